//! Order, restarts, lateness: what keeps its place, what comes again, what has no effect.

use yard_common::Refusal;
use yard_common::fact::Terminal;
use yard_common::stage::Stage;

use super::yard::*;
use crate::{Input, Step};

#[test]
fn trains_go_by_age_and_a_stack_lands_in_its_order() {
    let mut yard = Yard::new(|_, _| green());
    let parent = yard.submit("parent");
    yard.submit_on("child", std::slice::from_ref(&parent));
    yard.submit("last");
    yard.settle();
    assert_eq!(yard.landed(), ["parent", "child", "last"]);
    assert_eq!(yard.trains.len(), 1);
}

#[test]
fn the_place_of_the_configuration_is_alone() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.submit("config");
    yard.submit("b");
    for fact in &mut yard.log {
        if let yard_common::Fact::Submitted { row, .. } = fact
            && row.change == change("config")
        {
            row.edits[0].path = yard_common::RepoPath::new(".switchyard.toml").unwrap();
        }
    }
    yard.settle();
    assert_eq!(yard.trains, [vec!["a", "b"], vec!["config"]]);
}

#[test]
fn no_configuration_on_main_is_said_in_one_sentence() {
    let mut yard = Yard::new(|_, _| green());
    yard.check = Err("main has no .switchyard.toml with a check command".into());
    let a = yard.submit("a");
    yard.settle();
    yard.assert_stage(&a, Stage::Held, "main has no .switchyard.toml with a check command");
    assert!(yard.tested.is_empty());
    yard.check = Ok(check());
    yard.push(vec![]);
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn a7_a_change_behind_that_is_requeued_never_restarts_the_ones_ahead() {
    let mut yard = Yard::new(|_, _| green());
    for name in ["a", "b", "c", "d", "e"] {
        yard.submit(name);
    }
    yard.submit("restless");
    yard.work();
    assert_eq!(yard.trains[0].len(), 6);
    for _ in 0..10 {
        yard.submit("restless");
        yard.work();
    }
    assert!(yard.trains.len() <= 2, "the ones ahead stay in their train: {:?}", yard.trains);
    yard.settle();
    yard.now = yard.now.plus(crate::limits::CHURN_WAIT_MS);
    yard.settle();
    assert_eq!(yard.landed(), ["a", "b", "c", "d", "e", "restless"]);
    let ahead = yard.tested.iter().filter(|content| content.contains(&"a".to_owned()));
    assert_eq!(ahead.filter(|content| content.len() == 5).count(), 1, "{:?}", yard.tested);
}

#[test]
fn a12_a_direct_push_while_a_train_is_tested_assembles_it_anew_and_says_so() {
    let mut yard = Yard::new(|_, _| green());
    let a = yard.submit("a");
    yard.work();
    let work = yard.lease("runner").unwrap();
    yard.push(vec![change("hotfix")]);
    yard.pull();
    yard.assert_stage(&a, Stage::Queued, "main was pushed to directly");
    yard.work();
    let late = yard.report(&work, "runner", green());
    assert!(matches!(late, Err(Refusal::Stale { .. })), "{late:?}");
    yard.settle();
    assert_eq!(yard.landed(), ["hotfix", "a"]);
    assert_eq!(yard.tested, [["hotfix", "a"]], "tested on the new main");
}

#[test]
fn a14_the_same_diff_twice_ends_as_already_on_main_without_a_commit() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.submit("twin");
    yard.same.insert(change("twin"), change("a"));
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
    assert_eq!(yard.closed.get(&change("twin")), Some(&Terminal::AlreadyOnMain));
    assert!(yard.lane.entries.is_empty());
}

#[test]
fn a_collision_is_sent_back_with_its_paths_and_a_new_version_goes_again() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    let b = yard.submit("b");
    yard.collides.insert((change("a"), change("b")));
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
    yard.assert_stage(&b, Stage::NeedsAuthor, "b.txt (both changed it)");
    yard.collides.clear();
    yard.submit("b");
    yard.settle();
    assert_eq!(yard.landed(), ["a", "b"]);
}

#[test]
fn a13_a_lost_landing_answer_is_asked_for_again_and_lands_once() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    assert!(yard.run_once());
    while !matches!(yard.lane.next(&yard.world, yard.now), Step::Land { .. }) {
        assert!(yard.step());
    }
    let Step::Land { attempt } = yard.lane.next(&yard.world, yard.now) else { unreachable!() };
    yard.land(&attempt).unwrap();
    yard.restart();
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
    assert!(yard.lane.entries.is_empty() && yard.lane.attempts.is_empty());
}

#[test]
fn a10_killed_at_any_step_the_lane_goes_on_and_everything_lands_once() {
    for kill in 0..40 {
        let mut yard =
            Yard::new(|content, _| if content.contains(&change("bad")) { red("t") } else { green() });
        for name in ["a", "bad", "b"] {
            yard.submit(name);
        }
        for at in 0..400 {
            if at == kill {
                yard.restart();
            }
            if !yard.step() && !yard.run_once() {
                break;
            }
        }
        assert_eq!(yard.landed(), ["a", "b"], "killed at {kill}");
        assert_eq!(yard.stage(&change("bad")).stage, Stage::NeedsAuthor);
    }
}

#[test]
fn a9_a_process_that_dies_while_it_assembles_leaves_no_idle_train() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.pull();
    let Step::Assemble { attempt, kind, .. } = yard.lane.next(&yard.world, yard.now) else { panic!() };
    yard.feed(Input::Begin { attempt: attempt.clone(), kind }).unwrap();
    yard.restart();
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
    assert!(yard.answers.keys().all(|key| *key != attempt), "the abandoned number is never used again");
}

#[test]
fn an_assembly_that_was_refused_keeps_no_train_from_leaving() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.pull();
    let Step::Assemble { mut attempt, kind, .. } = yard.lane.next(&yard.world, yard.now) else { panic!() };
    attempt.train = yard_common::TrainNo(attempt.train.0 + 1);
    assert!(yard.feed(Input::Begin { attempt, kind }).is_err());
    assert!(matches!(yard.lane.next(&yard.world, yard.now), Step::Assemble { .. }));
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn a6_a_green_run_whose_report_came_lands_by_a_sweep_alone() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    assert!(yard.run_once());
    yard.restart();
    yard.feed(Input::Tick).unwrap();
    yard.work();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn a_dead_runners_run_is_leased_again_and_its_late_report_is_evidence_only() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    let first = yard.lease("dead").unwrap();
    assert!(yard.lease("alive").is_none(), "one run, one runner");
    assert_eq!(yard.lease("dead"), Some(first.clone()), "a repeated question gets the same answer");
    yard.now = first.until;
    let second = yard.lease("alive").unwrap();
    assert_eq!(second.run, first.run);
    assert!(second.lease > first.lease);
    assert!(matches!(yard.report(&first, "dead", red("x")), Err(Refusal::Stale { .. })));
    assert!(matches!(yard.renew(&first, "dead"), Err(Refusal::Stale { .. })));
    assert!(yard.stored.iter().any(|fact| matches!(fact, crate::LaneFact::Late { .. })));
    yard.report(&second, "alive", green()).unwrap();
    yard.work();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn a_report_whose_answer_was_lost_is_answered_again_and_counts_once() {
    let mut yard = Yard::new(|_, _| red("t"));
    yard.submit("a");
    yard.work();
    let work = yard.lease("r").unwrap();
    yard.report(&work, "r", red("t")).unwrap();
    let stored = yard.stored.len();
    yard.report(&work, "r", red("t")).unwrap();
    assert_eq!(yard.stored.len(), stored);
    assert!(
        matches!(yard.report(&work, "r", green()), Err(Refusal::Stale { .. })),
        "another result is no repeat"
    );
}

#[test]
fn a_renewed_lease_is_not_lost() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    let work = yard.lease("r1").unwrap();
    yard.now = yard.now.plus(crate::limits::FIRST_LEASE_MS - 1);
    yard.renew(&work, "r1").unwrap();
    for _ in 0..10 {
        yard.now = yard.now.plus(crate::limits::LEASE_MS - 1);
        yard.renew(&work, "r1").unwrap();
    }
    assert!(yard.lease("r2").is_none());
    yard.report(&work, "r1", green()).unwrap();
    yard.work();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn a_lease_is_short_until_its_first_renewal_and_renewals_that_say_nothing_new_are_not_stored() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    let work = yard.lease("r1").unwrap();
    assert_eq!(work.until, yard.now.plus(crate::limits::FIRST_LEASE_MS));
    let first = yard.renew(&work, "r1").unwrap();
    assert_eq!(first, crate::Answer::Until(yard.now.plus(crate::limits::LEASE_MS)));
    let stored = yard.stored.len();
    yard.now = yard.now.plus(5_000);
    assert_eq!(yard.renew(&work, "r1").unwrap(), first);
    assert_eq!(yard.stored.len(), stored);
    yard.now = yard.now.plus(10_000);
    assert_ne!(yard.renew(&work, "r1").unwrap(), first);
    assert_eq!(yard.stored.len(), stored + 1);
}

#[test]
fn a_lease_whose_answer_reached_nobody_is_given_again_after_the_short_time() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    yard.lease("gone").unwrap();
    let crate::Step::Rest { until: Some(until) } = yard.lane.next(&yard.world, yard.now) else {
        panic!("the lane must wake by itself")
    };
    assert_eq!(until, yard.now.plus(crate::limits::FIRST_LEASE_MS));
    yard.now = until;
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn only_the_token_that_a_lease_was_given_to_speaks_for_it() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    let work = yard.lease("r1").unwrap();
    let forbidden = |answer| matches!(answer, Err(Refusal::Forbidden { .. }));
    assert!(forbidden(yard.renew(&work, "r2")));
    let (run, lease, runner) = (work.run.clone(), work.lease, yard_common::RunnerId::new("r1").unwrap());
    assert!(forbidden(yard.feed(Input::Renewed { run, lease, token: None })));
    let signed = Yard::signed(&work, red("t"));
    let token = Some(yard_common::TokenId::new("token-r2").unwrap());
    assert!(forbidden(yard.feed(Input::Reported { signed, runner: runner.clone(), fault: None, token })));
    let token = Some(yard_common::TokenId::new("token-r2").unwrap());
    let asked = Input::LeaseAsked { runner, environment: "e".into(), token };
    assert_eq!(yard.feed(asked).unwrap(), crate::Answer::Work(None), "its name alone gives no lease");
    yard.report(&work, "r1", green()).unwrap();
    yard.work();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn a_run_that_loses_every_runner_counts_as_without_result_and_others_go_on() {
    let mut yard = Yard::new(|_, _| green());
    let killer = yard.submit("killer");
    yard.submit("b");
    for _ in 0..200 {
        yard.work();
        let Some(work) = yard.lease("runner") else { break };
        let content = yard.trees[&work.commit.1].clone();
        if content.contains(&killer) {
            yard.now = work.until;
            yard.feed(Input::Tick).unwrap();
        } else {
            yard.report(&work, "runner", green()).unwrap();
        }
    }
    assert_eq!(yard.landed(), ["b"]);
    yard.assert_stage(&killer, Stage::Held, "runners were lost");
}

#[test]
fn a_report_of_another_tree_than_was_leased_has_no_effect() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    let work = yard.lease("r").unwrap();
    let mut lie = work.clone();
    lie.commit.1 = yard_common::ObjectId::EMPTY_TREE;
    assert!(matches!(yard.report(&lie, "r", green()), Err(Refusal::Invalid { .. })));
    yard.work();
    assert!(yard.landed().is_empty());
}

#[test]
fn while_frozen_nothing_is_assembled_and_after_the_thaw_it_goes_at_once() {
    let mut yard = Yard::new(|_, _| green());
    yard.fact(yard_common::Fact::FreezeSet { reason: Some("release".into()) });
    let a = yard.submit("a");
    yard.settle();
    assert!(yard.trains.is_empty());
    yard.assert_stage(&a, Stage::Held, "landing is frozen: release");
    yard.fact(yard_common::Fact::FreezeSet { reason: None });
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn a_train_under_test_when_the_freeze_comes_lands_after_the_thaw_with_the_same_run() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.work();
    yard.fact(yard_common::Fact::FreezeSet { reason: Some("release".into()) });
    yard.settle();
    assert!(yard.landed().is_empty());
    yard.assert_stage(&change("a"), Stage::Testing, "green; landing is frozen: release");
    yard.fact(yard_common::Fact::FreezeSet { reason: None });
    yard.settle();
    assert_eq!((yard.landed().len(), yard.tested.len()), (1, 1));
}

#[test]
fn a_claim_with_a_higher_number_keeps_a_change_off_until_it_ends() {
    let mut yard = Yard::new(|_, _| green());
    let a = yard.submit("a");
    yard.view_claims = vec![crate::state::Claim {
        fork: Some(yard_common::ForkName::new("other").unwrap()),
        paths: vec![yard_common::RepoPath::new("a.txt").unwrap()],
        fence: yard_common::Fence(7),
        until: yard.now.plus(1_000),
    }];
    yard.submit("b");
    yard.settle();
    assert_eq!(yard.landed(), ["b"]);
    yard.assert_stage(&a, Stage::Held, "a.txt is claimed by other");
    let Step::Rest { until } = yard.lane.next(&yard.world, yard.now) else { panic!() };
    assert_eq!(until, Some(yard.view_claims[0].until));
    yard.now = yard.now.plus(1_000);
    yard.settle();
    assert_eq!(yard.landed(), ["b", "a"]);
}

#[test]
fn a_change_held_or_withdrawn_while_it_is_tested_does_not_land() {
    let mut yard = Yard::new(|_, _| green());
    let ids = ["a", "b", "c"].map(|name| yard.submit(name));
    yard.work();
    let (change, reason) = (ids[1].clone(), Some("wait for legal".into()));
    yard.fact(yard_common::Fact::HoldSet { change, reason, by: String::new() });
    yard.withdraw(&ids[2]);
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
    yard.assert_stage(&ids[1], Stage::Held, "wait for legal");
    yard.fact(yard_common::Fact::HoldSet { change: ids[1].clone(), reason: None, by: String::new() });
    yard.settle();
    assert_eq!(yard.landed(), ["a", "b"]);
}

#[test]
fn a_change_that_waits_for_its_author_too_long_expires() {
    let mut yard = Yard::new(|content, _| if content.is_empty() { green() } else { red("t") });
    let a = yard.submit("a");
    yard.settle();
    yard.now = yard.now.plus(yard_common::limits::NEEDS_AUTHOR_MS_MAX);
    yard.feed(Input::Tick).unwrap();
    yard.settle();
    assert_eq!(yard.closed.get(&a), Some(&Terminal::Expired));
}

#[test]
fn a_rewritten_main_sends_the_change_back_and_a_requeue_offers_it_again() {
    let mut yard = Yard::new(|_, _| green());
    let a = yard.submit("a");
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
    yard.push(vec![]);
    if let Some(yard_common::Fact::DirectPush { rewritten, .. }) = yard.log.last_mut() {
        rewritten.push(a.clone());
    }
    yard.rewritten.insert(a.clone());
    yard.settle();
    yard.assert_stage(&a, Stage::NeedsAuthor, "main was rewritten");
    yard.rewritten.clear();
    yard.fact(yard_common::Fact::Requeued { change: a.clone(), by: String::new() });
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
}
