//! kill -9 of workerd at every named point, then a restart on the same state: every change still
//! ends exactly once.
//!
//! The hosts enumerate their points (before and after every write and every effect). Several points share
//! a platform: its first life is killed at the first of them, its second life at the second, often while
//! it still recovers, and so on; after each round of work all that was ever offered is checked. A point
//! that no kill hit fails the test: it would prove nothing. `YARD_KILL=PART,PART` runs only the points
//! whose names contain one of these.

mod world;

use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use world::World;
use yard_objects::points;

/// Platforms at once: each has a workerd, a runner and git's processes.
const AT_ONCE: usize = 2;
/// Points of one platform.
const CHAIN_MAX: usize = 7;

/// The life of one platform, killed at each of these points in turn.
fn live_through(chain: &[&str]) -> Result<()> {
    let at: Vec<String> = chain.iter().map(|name| format!("{name}#1")).collect();
    let mut world = World::start(&at, chain.len())?;
    loop {
        let before = world.kills()?;
        let done = world.round(chain.len());
        let kills = world.kills()?;
        let after = kills.last().map_or("no kill", String::as_str);
        done.with_context(|| format!("after {}, last {after}:\n{}", kills.join(", "), world.log_tail()))?;
        if kills.iter().map(String::as_str).eq(chain.iter().copied()) {
            return Ok(());
        }
        if kills.len() == before.len() {
            let missed = chain.get(kills.len()..).unwrap_or_default();
            bail!("no kill hit {missed:?}: a round of work never passed the first of them");
        }
    }
}

/// Neighbours in the list come into different chains: so that several objects die in one platform's life.
fn chains<'a>(names: &[&'a str]) -> Vec<Vec<&'a str>> {
    let count = names.len().div_ceil(CHAIN_MAX);
    (0..count).map(|first| names.iter().copied().skip(first).step_by(count).collect()).collect()
}

#[test]
fn a_kill_at_any_point_loses_nothing_and_doubles_nothing() {
    let only = std::env::var("YARD_KILL").unwrap_or_default();
    let wanted = |name: &&str| only.split(',').any(|part| name.contains(part));
    let names: Vec<&str> = points::NAMES.iter().copied().filter(wanted).collect();
    assert!(!names.is_empty(), "no point is called {only}");
    let chains = chains(&names);
    let next = Mutex::new(chains.iter());
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(chain) = next.lock().expect("no thread panics holding it").next() else {
                        return;
                    };
                    let began = Instant::now();
                    let result = live_through(chain);
                    let said = if result.is_ok() { "ok" } else { "FAILED" };
                    eprintln!("{:5.1} s  {said}  {}", began.elapsed().as_secs_f64(), chain.join(", "));
                    if let Err(error) = result {
                        faults.lock().expect("no thread panics holding it").push(format!("{error:#}"));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().expect("all threads have ended");
    assert!(faults.is_empty(), "{} of {} chains:\n{}", faults.len(), chains.len(), faults.join("\n\n"));
}
