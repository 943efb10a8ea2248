//! What collides is redone by a model, or goes back with the reason why not.

use yard_common::config::ReplayPolicy;
use yard_common::replay::{Cause, ReplayEnd};
use yard_common::stage::{Stage, Verdict};
use yard_common::{ChangeId, ReplayNo};

use super::yard::*;
use crate::limits::{PICKUP_MS, REPLAY_ASKS_MAX, RESERVE_MS};
use crate::replay::Pointer;

fn has(content: &[ChangeId], name: &str) -> bool {
    content.contains(&change(name))
}

/// Main has `rival`, which `late` collides with.
fn collided() -> Yard {
    let mut yard = Yard::new(|content, _| if has(content, "bad") { red("t") } else { green() });
    yard.replay = ReplayPolicy::default();
    yard.submit("late");
    yard.fact(yard_common::Fact::HoldSet {
        change: change("late"),
        reason: Some("wait".into()),
        by: String::new(),
    });
    yard.collides.insert((change("rival"), change("late")));
    yard.submit("rival");
    yard.settle();
    yard.fact(yard_common::Fact::HoldSet { change: change("late"), reason: None, by: String::new() });
    yard.settle();
    assert_eq!(yard.landed(), ["rival"]);
    yard
}

fn failed(why: &str) -> ReplayEnd {
    ReplayEnd::Failed { why: why.into() }
}

#[test]
fn a_change_that_collides_is_asked_of_the_model_once_and_lands_as_its_next_version() {
    let mut yard = collided();
    yard.assert_stage(&change("late"), Stage::Replaying, "collides with main at late.txt (both changed it)");
    let [pointer] = yard.asked.as_slice() else { panic!("{:?}", yard.asked) };
    let pointer = pointer.clone();
    let job = yard.job(&pointer).unwrap();
    assert!(!job.early && matches!(job.cause, Cause::Collision { .. }));
    assert_eq!(job.onto.0, yard.head().0, "redone on newest main");
    assert!(job.rivals.is_empty(), "the rival of this story touches another path");
    yard.restart();
    yard.settle();
    assert_eq!(yard.asked.len(), 1, "a restart asks nothing twice");
    yard.proposes(&pointer);
    yard.settle();
    assert_eq!(yard.landed(), ["rival", "late"]);
    assert!(yard.job(&pointer).is_none() && yard.lane.entries.is_empty());
}

#[test]
fn a_replay_that_fails_goes_back_with_both_reasons() {
    let mut yard = collided();
    let pointer = yard.asked[0].clone();
    yard.replay_ends(&pointer, failed("no model is configured"), 0);
    yard.settle();
    yard.assert_stage(&change("late"), Stage::NeedsAuthor, "not replayed: no model is configured");
    yard.assert_stage(&change("late"), Stage::NeedsAuthor, "collides with main at late.txt");
    assert_eq!(yard.asked.len(), 1, "it is not tried again by itself");
    yard.restart();
    yard.settle();
    assert_eq!(yard.asked.len(), 1);
}

#[test]
fn an_answer_under_another_number_has_no_effect_and_its_cost_counts() {
    let mut yard = collided();
    let pointer = yard.asked[0].clone();
    let late = Pointer { no: ReplayNo(pointer.no.0 + 7), ..pointer.clone() };
    yard.replay_ends(&late, failed("x"), 5);
    yard.assert_stage(&change("late"), Stage::Replaying, "");
    assert_eq!(yard.lane.spent.micro_usd, 5);
    yard.submit("late");
    yard.pull();
    yard.replay_ends(&pointer, failed("too late"), 7);
    assert_eq!(yard.lane.spent.micro_usd, 12);
    assert_ne!(yard.stage(&change("late")).stage, Stage::NeedsAuthor);
}

#[test]
fn a_message_that_is_lost_is_sent_again_less_and_less_often_and_then_given_up() {
    let mut yard = collided();
    for asks in 1..=REPLAY_ASKS_MAX {
        assert_eq!(yard.asked.len(), asks as usize);
        let wait = PICKUP_MS << (asks - 1);
        yard.now = yard.now.plus(wait - 1);
        yard.feed(crate::Input::Tick).unwrap();
        yard.settle();
        assert_eq!(yard.asked.len(), asks as usize, "not before {wait} ms");
        yard.now = yard.now.plus(1);
        yard.feed(crate::Input::Tick).unwrap();
        yard.settle();
    }
    assert_eq!(yard.asked.len(), REPLAY_ASKS_MAX as usize);
    yard.assert_stage(&change("late"), Stage::NeedsAuthor, "no answer came, asked 7 times");
}

#[test]
fn one_that_was_taken_up_has_the_time_that_it_asked_for() {
    let mut yard = collided();
    let pointer = yard.asked[0].clone();
    let (change, version, replay) = (pointer.change.clone(), pointer.version, pointer.no);
    yard.feed(crate::Input::ReplayTaken { change, version, replay, for_ms: 3 * PICKUP_MS }).unwrap();
    for (ms, asked) in [(3 * PICKUP_MS - 1, 1), (1, 2)] {
        yard.now = yard.now.plus(ms);
        yard.feed(crate::Input::Tick).unwrap();
        yard.settle();
        assert_eq!(yard.asked.len(), asked);
    }
    yard.kill();
    yard.settle();
    assert_eq!(yard.asked.len(), 2);
}

#[test]
fn a_change_is_replayed_so_often_and_no_more_until_its_author_offers_it_anew() {
    let mut yard = collided();
    yard.replay.per_change = 3;
    yard.pull();
    for round in 0..3 {
        let pointer = yard.asked.last().unwrap().clone();
        // The next rival lands while the model works.
        let rival = format!("rival{round}");
        yard.collides.insert((change(&rival), change("late")));
        let mut collides = yard.collides.clone();
        yard.proposes(&pointer);
        collides.retain(|(other, _)| *other == change(&rival));
        yard.collides = collides;
        let (_, mut content) = yard.head();
        content.push(change(&rival));
        yard.push(content);
        yard.world.stale = true;
        yard.settle();
    }
    assert_eq!(yard.asked.len(), 3);
    yard.assert_stage(&change("late"), Stage::NeedsAuthor, "it was replayed 3 times");
    yard.submit("late");
    yard.settle();
    assert_eq!(yard.asked.len(), 4, "its author's version counts anew");
}

#[test]
fn a_spent_budget_stops_the_models_for_the_day() {
    let mut yard = collided();
    yard.replay_ends(&yard.asked[0].clone(), failed("x"), 10_000_000);
    yard.submit("late");
    yard.settle();
    yard.assert_stage(&change("late"), Stage::NeedsAuthor, "budget of 10 US dollars a day");
    yard.now = yard.now.plus(24 * 3600 * 1000);
    yard.submit("late");
    yard.settle();
    yard.assert_stage(&change("late"), Stage::Replaying, "");
}

/// `late` collides with `rival`, which is ahead of it in one train.
fn behind() -> Yard {
    let mut yard = Yard::new(|content, _| if has(content, "bad-rival") { red("t") } else { green() });
    yard.replay = ReplayPolicy::default();
    yard
}

#[test]
fn while_the_rival_ahead_is_tested_the_replay_is_prepared_on_what_it_makes_of_main() {
    let mut yard = behind();
    yard.submit("rival");
    yard.submit("late");
    yard.collides.insert((change("rival"), change("late")));
    yard.work();
    yard.assert_stage(&change("late"), Stage::Queued, "collides with changes ahead of it in train 1");
    let early = yard.asked[0].clone();
    let job = yard.job(&early).unwrap();
    let tip = yard.lane.train().unwrap().candidate.as_ref().unwrap().tip();
    assert_eq!((job.early, job.onto), (true, tip));
    yard.replay_ends(&early, ReplayEnd::Prepared, 10);
    yard.work();
    yard.assert_stage(&change("late"), Stage::Queued, "its replay is prepared");
    yard.kill();
    yard.settle();
    assert_eq!(yard.landed(), ["rival"]);
    assert_eq!(yard.asked.len(), 2, "now that it has landed, the replay is asked in earnest");
    yard.proposes(&yard.asked[1].clone());
    yard.settle();
    assert_eq!(yard.landed(), ["rival", "late"]);
}

#[test]
fn a_change_that_collided_with_a_rival_that_falls_lands_as_it_is() {
    for by_model in [true, false] {
        let mut yard = behind();
        yard.replay.by_model = by_model;
        yard.submit("bad-rival");
        yard.submit("late");
        yard.collides.insert((change("bad-rival"), change("late")));
        yard.settle();
        assert_eq!(yard.landed(), ["late"], "nobody is sent back for what never landed");
    }
}

#[test]
fn a8_an_interaction_is_replayed_with_the_rival_shown() {
    let both = |content: &[ChangeId]| has(content, "rename") && has(content, "caller");
    let mut yard =
        Yard::new(move |content, runs| if both(content) && runs < 90 { red("calls") } else { green() });
    yard.replay = ReplayPolicy::default();
    yard.submit("rename");
    yard.submit("caller");
    yard.settle();
    assert_eq!(yard.landed(), ["rename"]);
    yard.assert_stage(&change("caller"), Stage::Replaying, "red together with change-rename");
    let stage = yard.stage(&change("caller"));
    assert_eq!(stage.verdict, Some(Verdict::Interaction { with: vec![change("rename")] }));
    let pointer = yard.asked[0].clone();
    let job = yard.job(&pointer).unwrap();
    assert!(matches!(job.cause, Cause::Interaction { .. }), "{job:?}");
    assert_eq!(job.rivals, [change("rename")]);
    yard.runs = 100;
    yard.proposes(&pointer);
    yard.settle();
    assert_eq!(yard.landed(), ["rename", "caller"]);
}

#[test]
fn after_two_replays_that_collided_again_the_paths_are_reserved_for_a_while() {
    let mut yard = collided();
    for _ in 0..2 {
        let pointer = yard.asked.last().unwrap().clone();
        yard.proposes(&pointer);
        yard.collides.insert((change("rival"), change("late")));
        yard.settle();
    }
    yard.assert_stage(&change("late"), Stage::Replaying, "");
    // Another change of its path waits; the others do not.
    let rows = yard.rows[&change("late")].edits.clone();
    yard.submit("other");
    let other = yard.submit("same-path");
    yard.rows.get_mut(&other).unwrap().edits.clone_from(&rows);
    let yard_common::Fact::Submitted { row, .. } = yard.log.last_mut().unwrap() else { panic!() };
    row.edits = rows;
    yard.settle();
    assert_eq!(yard.landed(), ["rival", "other"]);
    yard.assert_stage(&other, Stage::Held, "late.txt is reserved for change-late");
    // Not for ever.
    yard.now = yard.now.plus(RESERVE_MS);
    yard.feed(crate::Input::Tick).unwrap();
    yard.settle();
    assert!(yard.landed().contains(&"same-path".to_owned()));
}

#[test]
fn a_replayed_change_keeps_its_place() {
    let mut yard = collided();
    yard.submit("younger");
    yard.proposes(&yard.asked[0].clone());
    yard.settle();
    assert_eq!(yard.landed(), ["rival", "late", "younger"]);
}

#[test]
fn no_model_is_asked_where_the_configuration_says_so() {
    let mut yard = behind();
    yard.replay.by_model = false;
    yard.collides.insert((change("rival"), change("late")));
    yard.submit("rival");
    yard.submit("late");
    yard.settle();
    yard.assert_stage(
        &change("late"),
        Stage::NeedsAuthor,
        "collides with main at late.txt (both changed it): rebase",
    );
    assert!(yard.asked.is_empty());
}

/// A replay of a change that brings a test, waiting with its proof to be made; and the pointer.
fn with_its_own_test(
    suite: impl FnMut(&[ChangeId], u64) -> yard_common::landing::RunResult + 'static,
) -> Yard {
    let mut yard = Yard::new(suite);
    yard.replay = ReplayPolicy::default();
    let (_, mut content) = yard.head();
    content.push(change("rival"));
    yard.push(content);
    yard.collides.insert((change("rival"), change("late")));
    yard.with_test = true;
    yard.submit("late");
    yard.settle();
    let pointer = yard.asked[0].clone();
    yard.proposes(&pointer);
    yard
}

#[test]
fn the_own_tests_of_a_replayed_change_are_tried_without_it_and_the_record_says_so() {
    let mut yard = with_its_own_test(
        |content, _| {
            if has(content, "tests-of-late") { red("test_late") } else { green() }
        },
    );
    yard.work();
    assert!(yard.run_once(), "the proof is tried before the train, so that its note can say it");
    assert_eq!(yard.tested.last().unwrap(), &["rival", "tests-of-late"]);
    let proof = yard.lane.entries[&change("late")].without.clone().unwrap();
    assert!(proof.sentence().starts_with("its own tests fail without it (main-"), "{proof:?}");
    yard.restart();
    yard.settle();
    assert_eq!(yard.landed(), ["rival", "late"]);
    assert!(yard.lane.attempts.is_empty());
}

#[test]
fn a_proof_that_fails_or_never_comes_holds_no_landing() {
    let mut yard = with_its_own_test(|_, _| green());
    yard.settle();
    assert_eq!(yard.landed(), ["rival", "late"], "tests that pass without it are evidence, no verdict");
    let mut yard = with_its_own_test(|_, _| green());
    yard.work();
    let proof = yard.lease("slow").unwrap();
    yard.settle();
    assert_eq!(yard.landed(), ["rival", "late"]);
    yard.report(&proof, "slow", red("late")).unwrap();
    yard.settle();
    assert!(yard.lane.attempts.is_empty(), "a proof that comes late ends all the same");
}
