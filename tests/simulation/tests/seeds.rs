//! Seeds of the simulation, those that once failed first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use yard_simulation::run::{Outcome, run};

/// Seeds in each run of the tests; `make simulate SEEDS=n` runs more.
const SEEDS: u64 = 40;

fn all(seeds: &[u64]) -> Vec<Outcome> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run(*seed, false);
                    done.lock().unwrap().push(outcome);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

#[test]
fn no_law_is_broken_whatever_fails_and_every_change_ends() {
    let kept = include_str!("../seeds.txt").lines().filter(|line| !line.starts_with('#'));
    let kept = kept.filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let seeds: Vec<u64> = kept.chain(1..=SEEDS).collect();
    let outcomes = all(&seeds);
    let broken: Vec<String> = outcomes
        .iter()
        .filter_map(|one| {
            let why = one.broken.as_ref()?;
            Some(format!("seed {}: {why} (yard-simulate --from {} --told)", one.seed, one.seed))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let landed: usize = outcomes.iter().map(|one| one.landed).sum();
    let faults: u64 = outcomes.iter().map(|one| one.faults).sum();
    assert!(landed > 300 && faults > 2_000, "{landed} landed under {faults} faults: the world is too kind");
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    // In threads of their own: what the edge keeps of a repository is kept by thread, as by isolate.
    let in_thread = || std::thread::spawn(|| run(7, true)).join().unwrap();
    let (one, two) = (in_thread(), in_thread());
    let differ = one.journal.iter().zip(&two.journal).find(|(a, b)| a != b);
    assert_eq!(differ, None);
    assert_eq!((one.steps, one.faults, one.landed), (two.steps, two.faults, two.landed));
}
