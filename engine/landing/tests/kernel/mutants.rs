//! Every check switched off in turn: some story, or some seed of the simulation, must notice.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use yard_landing::mutant::{Mutant, switch_off};

use crate::scenarios;

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

/// Checks of which one covers another, so that only both together are noticed.
const PAIRS: &[&[Mutant]] = &[&[Mutant::PathsDisjoint, Mutant::PathsDiffer]];

/// What is switched off at a time: each mutant alone, but for those that another check covers.
fn sets() -> Vec<Vec<Mutant>> {
    let covered = [Mutant::PathsDisjoint];
    let alone = Mutant::ALL.iter().filter(|mutant| !covered.contains(mutant)).map(|mutant| vec![*mutant]);
    alone.chain(PAIRS.iter().map(|pair| pair.to_vec())).collect()
}

/// The stories that fail under these mutants, by name.
fn stories_that_notice(mutants: &[Mutant]) -> Vec<&'static str> {
    let notices = |story: fn()| {
        switch_off(mutants);
        let failed = fails(story);
        switch_off(&[]);
        failed
    };
    scenarios::all().into_iter().filter(|(_, story)| notices(*story)).map(|(name, _)| name).collect()
}

#[test]
fn every_mutant_is_noticed_by_a_story() {
    assert_eq!(stories_that_notice(&[]), Vec::<&str>::new(), "the stories hold without a mutant");
    let mut survivors = Vec::new();
    for set in sets() {
        let by = stories_that_notice(&set);
        println!("{set:?}: {} stories: {}", by.len(), by.join(", "));
        if by.is_empty() {
            survivors.push(set);
        }
    }
    assert!(survivors.is_empty(), "nobody notices {survivors:?}");
    assert!(sets().len() >= 30);
}
