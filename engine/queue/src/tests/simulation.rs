//! Seeded runs with runners that lie, die and come late, a host that is killed, admins that push.

use yard_common::Fact;
use yard_common::replay::ReplayEnd;
use yard_common::stage::{Stage, Verdict};

use super::yard::*;
use crate::Input;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Plays one seed; afterwards every change has landed, or waits with a reason that is true.
fn play(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut yard =
        Yard::new(
            |content, _| {
                if content.iter().any(|id| id.as_str().contains("bad")) { red("t") } else { green() }
            },
        );
    yard.replay.by_model = seed.is_multiple_of(2);
    let mut held = Vec::new();
    let mut submitted: Vec<String> = Vec::new();
    for _ in 0..300 {
        match dice.roll(16) {
            0 | 1 => {
                let name = format!("{}{}", if dice.roll(6) == 0 { "bad" } else { "ok" }, submitted.len());
                if let Some(rival) = submitted.last().filter(|_| dice.roll(3) == 0 && yard.replay.by_model) {
                    yard.collides.insert((change(rival), change(&name)));
                }
                yard.submit(&name);
                submitted.push(name);
            }
            2 => yard.kill(),
            3 => yard.now = yard.now.plus(dice.roll(90_000)),
            4 if dice.roll(4) == 0 => {
                let (_, content) = yard.head();
                yard.push(content);
            }
            5 if !submitted.is_empty() => {
                let name = submitted[dice.roll(submitted.len() as u64) as usize].clone();
                author(&mut dice, &mut yard, &name);
            }
            6 => {
                let reason = (dice.roll(2) == 0).then(|| "freeze".to_owned());
                yard.fact(Fact::FreezeSet { reason });
            }
            7 | 8 => {
                let runner = format!("r{}", dice.roll(3));
                if let Some(work) = yard.lease(&runner) {
                    held.push((work, runner));
                }
            }
            9 | 10 if !held.is_empty() => {
                let (work, runner) = held.swap_remove(dice.roll(held.len() as u64) as usize);
                let content = yard.trees[&work.commit.1].clone();
                let result = (yard.suite)(&content, 0);
                let _ = yard.report(&work, &runner, result.clone());
                if dice.roll(4) == 0 {
                    let _ = yard.report(&work, &runner, result);
                }
            }
            12 if !yard.asked.is_empty() => model(&mut dice, &mut yard),
            11 if !held.is_empty() => {
                held.swap_remove(0);
            }
            _ => {
                yard.step();
            }
        }
    }
    ends(seed, &mut yard, &submitted);
}

/// A model answers: well, not at all, twice, or long after it was asked.
fn model(dice: &mut Dice, yard: &mut Yard) {
    let pointer = yard.asked[dice.roll(yard.asked.len() as u64) as usize].clone();
    if yard.job(&pointer).is_some_and(|job| job.early) {
        return yard.replay_ends(&pointer, ReplayEnd::Prepared, 1);
    }
    match dice.roll(4) {
        0 => yard.replay_ends(&pointer, ReplayEnd::Failed { why: "it refused".into() }, 1),
        1 => {
            yard.proposes(&pointer);
            yard.proposes(&pointer);
        }
        _ => yard.proposes(&pointer),
    }
}

/// A new version, a withdrawal or a hold of an open change.
fn author(dice: &mut Dice, yard: &mut Yard, name: &str) {
    if yard.landed().iter().any(|landed| landed == name) || yard.closed.contains_key(&change(name)) {
        return;
    }
    match dice.roll(3) {
        0 => {
            yard.submit(name);
        }
        1 => yard.withdraw(&change(name)),
        _ => {
            let (change, reason) = (change(name), Some("person".into()));
            yard.fact(Fact::HoldSet { change, reason, by: String::new() });
        }
    }
}

/// Faults stop: every change has landed once, or waits with a reason that is true.
fn ends(seed: u64, yard: &mut Yard, submitted: &[String]) {
    yard.fact(Fact::FreezeSet { reason: None });
    for name in submitted {
        yard.fact(Fact::HoldSet { change: change(name), reason: None, by: String::new() });
    }
    for _ in 0..16 {
        yard.now = yard.now.plus(crate::limits::CHURN_WAIT_MS);
        yard.feed(Input::Tick).unwrap();
        yard.settle();
    }
    let landed = yard.landed();
    for name in submitted {
        let id = change(name);
        let times = landed.iter().filter(|other| *other == name).count();
        assert!(times <= 1, "seed {seed}: {name} landed {times} times");
        if times == 1 || yard.closed.contains_key(&id) {
            assert!(!yard.lane.entries.contains_key(&id), "seed {seed}: {name} ended and is still open");
            continue;
        }
        let stage = yard.stage(&id);
        if stage.stage == Stage::NeedsAuthor && stage.reason.contains("collides with main") {
            let rivals = yard.collides.iter().filter(|(_, late)| *late == id);
            let on_main = rivals.into_iter().any(|(rival, _)| yard.head().1.contains(rival));
            assert!(on_main, "seed {seed}: {name} collides with nothing: {stage:?}");
            continue;
        }
        assert!(name.starts_with("bad"), "seed {seed}: {name} waits: {stage:?}");
        assert_eq!(
            (stage.stage, stage.verdict),
            (Stage::NeedsAuthor, Some(Verdict::BrokenAlone)),
            "seed {seed}"
        );
    }
}

#[test]
fn whatever_runners_hosts_and_admins_do_each_change_ends_once_and_only_the_guilty_wait() {
    (1..=60).for_each(play);
}
