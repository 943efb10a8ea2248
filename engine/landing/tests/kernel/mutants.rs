//! Every check switched off in turn: some story, or some seed of the simulation, must notice.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use yard_landing::mutant::{Mutant, switch_off};

use crate::{scenarios, simulation};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that may fail, without its words; did it?
pub fn fails(what: impl FnOnce()) -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let failed = catch_unwind(AssertUnwindSafe(what)).is_err();
    QUIET.set(false);
    failed
}

/// Checks of which one covers another: they are noticed together only, or together as well.
const PAIRS: &[&[Mutant]] = &[
    &[Mutant::PathsDisjoint, Mutant::PathsDiffer],
    &[Mutant::Epoch, Mutant::Head, Mutant::CommitParent],
    &[Mutant::Head, Mutant::CommitParent],
    &[Mutant::Head, Mutant::Ours],
    &[Mutant::Key, Mutant::Landed],
    &[Mutant::Base, Mutant::HowTheirs],
    &[Mutant::Theirs, Mutant::EveryPath],
];

/// What is switched off at a time: each mutant alone, but for those that another check covers.
fn sets() -> Vec<Vec<Mutant>> {
    let covered = [Mutant::PathsDisjoint];
    let alone = Mutant::ALL.iter().filter(|mutant| !covered.contains(mutant)).map(|mutant| vec![*mutant]);
    alone.chain(PAIRS.iter().map(|pair| pair.to_vec())).collect()
}

/// The first story that fails under these mutants, by name.
fn story_that_notices(mutants: &[Mutant]) -> Option<&'static str> {
    let notices = |name: &str, story: fn()| {
        // The long story of the turns has nothing to say to the others.
        let turn = mutants.iter().any(|mutant| matches!(mutant, Mutant::Turn | Mutant::TurnOrder));
        if name.contains("starve") && !turn && !mutants.is_empty() {
            return false;
        }
        switch_off(mutants);
        let failed = fails(story);
        switch_off(&[]);
        failed
    };
    scenarios::all().into_iter().find(|(name, story)| notices(name, *story)).map(|(name, _)| name)
}

/// Mutants of what the simulation has not: its lanes are strict, and it has no submodules or renames.
const OUTSIDE: &[Mutant] = &[
    Mutant::Gitlink,
    Mutant::FromAbsent,
    Mutant::FromHow,
    Mutant::PathsDisjoint,
    Mutant::PathsDiffer,
    Mutant::PathsDirectory,
    Mutant::Strict,
    Mutant::Commutative,
    Mutant::ProtectedMain,
    Mutant::Turn,
    Mutant::TurnOrder,
    Mutant::StaleTree,
];

/// The first seed of the simulation that breaks a law under these mutants, and the law.
fn seed_that_notices(mutants: &[Mutant], seeds: u64) -> Option<(u64, String)> {
    (1..=seeds).find_map(|seed| {
        let mut law = "a panic".to_owned();
        let run = || {
            switch_off(mutants);
            if let Err(broken) = simulation::run(seed, 350) {
                law = broken;
                panic!("a law is broken");
            }
        };
        let failed = fails(run);
        switch_off(&[]);
        failed.then_some((seed, law))
    })
}

#[test]
fn every_mutant_is_noticed_by_a_story() {
    assert_eq!(story_that_notices(&[]), None, "the stories hold without a mutant");
    let mut survivors = Vec::new();
    for set in sets() {
        match story_that_notices(&set) {
            Some(story) => println!("{set:?}: {story}"),
            None => survivors.push(set),
        }
    }
    assert!(survivors.is_empty(), "no story notices {survivors:?}");
    assert!(sets().len() >= 30);
}

#[test]
fn most_mutants_break_a_law_of_the_simulation() {
    let seeds = std::env::var("YARD_MUTANT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let (mut noticed, mut survivors) = (0, Vec::new());
    for set in sets() {
        if set.iter().any(|mutant| OUTSIDE.contains(mutant)) {
            continue;
        }
        match seed_that_notices(&set, seeds) {
            Some((seed, law)) => {
                println!("{set:?}: seed {seed}: {law}");
                noticed += 1;
            }
            None => survivors.push(set),
        }
    }
    println!("{noticed} noticed within {seeds} seeds; left to the stories: {survivors:?}");
    assert!(noticed >= 30, "only {noticed} are noticed");
}
