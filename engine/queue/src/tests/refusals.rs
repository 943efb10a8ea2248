//! What the kernel's refusals lead to: each ends, none loops.

use yard_common::stage::Stage;
use yard_common::{Millis, Refusal, RepoPath};

use super::yard::*;
use crate::Step;

fn refused(refusal: impl Fn(&Yard) -> Vec<Refusal>) -> Yard {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.submit("b");
    yard.refuse_next = refusal(&yard);
    yard.settle();
    yard
}

#[test]
fn moved_means_assembled_anew_at_the_same_places() {
    let yard = refused(|yard| vec![Refusal::Moved { head: yard.head().0, paths: vec![] }]);
    assert_eq!(yard.landed(), ["a", "b"]);
    assert_eq!(yard.trains, [["a", "b"], ["a", "b"]]);
    assert_eq!(yard.tested.len(), 1, "the same tree is green already");
}

#[test]
fn turn_and_frozen_mean_the_same_candidate_and_run_under_a_new_number() {
    let lane = yard_common::LaneName::new("other").unwrap();
    let mut yard = refused(|yard| {
        vec![
            Refusal::Turn { lane: lane.clone(), until: yard.now.plus(5_000) },
            Refusal::Frozen { reason: "race".into() },
        ]
    });
    let Step::Rest { until: Some(until) } = yard.lane.next(&yard.world, yard.now) else { panic!() };
    assert_eq!(until, yard.now.plus(5_000));
    yard.now = until;
    yard.settle();
    yard.now = yard.now.plus(crate::limits::CALL_RETRY_MS);
    yard.settle();
    assert_eq!(yard.landed(), ["a", "b"]);
    assert_eq!((yard.trains.len(), yard.tested.len()), (1, 1));
    let attempts: Vec<u64> = yard.answers.keys().map(|key| key.attempt.0).collect();
    assert_eq!(attempts, [1, 2, 3]);
}

#[test]
fn unbound_puts_the_named_change_into_quarantine_and_the_other_lands() {
    let yard = refused(|_| vec![Refusal::Unbound { change: change("a"), why: "an edit is missing".into() }]);
    assert_eq!(yard.landed(), ["b"]);
    yard.assert_stage(&change("a"), Stage::Held, "in quarantine");
}

#[test]
fn protected_holds_until_an_admin_approves() {
    let path = RepoPath::new("a.txt").unwrap();
    let mut yard = refused(|_| {
        vec![Refusal::Protected { change: change("a"), path: path.clone(), rule: "an admin approves".into() }]
    });
    assert_eq!(yard.landed(), ["b"]);
    yard.assert_stage(&change("a"), Stage::Held, "a.txt is protected: an admin approves");
    let version = yard.rows[&change("a")].version;
    yard.fact(yard_common::Fact::Approved { change: change("a"), version, by: "admin".into() });
    yard.settle();
    assert_eq!(yard.landed(), ["b", "a"]);
}

#[test]
fn a_failure_that_names_nobody_is_narrowed_down_and_ends() {
    let malformed = || Refusal::Malformed { why: "odd".into() };
    let yard = refused(|_| vec![malformed(); 20]);
    assert!(yard.landed().is_empty());
    for id in [change("a"), change("b")] {
        yard.assert_stage(&id, Stage::Held, "in quarantine: malformed candidate: odd");
    }
}

#[test]
fn an_unproven_run_is_run_anew() {
    let yard = refused(|_| vec![Refusal::Unproven { why: "the mac is wrong".into() }]);
    assert_eq!(yard.landed(), ["a", "b"]);
    assert!(yard.tested.len() >= 2);
}

#[test]
fn a_fault_of_the_platform_is_asked_again_with_the_same_number() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    yard.run_once();
    while !matches!(yard.lane.next(&yard.world, yard.now), Step::Land { .. }) {
        yard.step();
    }
    let Step::Land { attempt } = yard.lane.next(&yard.world, yard.now) else { unreachable!() };
    let answer = Err(Refusal::Internal { during: "landing".into() });
    yard.feed(crate::Input::LandAnswered { attempt: attempt.clone(), answer }).unwrap();
    assert_eq!(yard.lane.next(&yard.world, yard.now), Step::Pull, "it may have landed: look first");
    yard.pull();
    assert_eq!(yard.lane.next(&yard.world, yard.now), Step::Rest { until: Some(Millis(yard.now.0 + 1_000)) });
    yard.now = yard.now.plus(1_000);
    assert_eq!(yard.lane.next(&yard.world, yard.now), Step::Land { attempt });
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
}
