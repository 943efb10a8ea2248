//! kill -9 of workerd at every named point, then a restart on the same state: every change still
//! ends exactly once.
//!
//! The hosts enumerate their points (before and after every write and every effect). Several points share
//! a platform: its first life is killed at the first of them, its second life at the second, often while
//! it still recovers, and so on; after each round of work all that was ever offered is checked. A point
//! that no kill hit fails the test: it would prove nothing. `YARD_KILL=PART,PART` runs only the points
//! (NAME#PASS) that contain one of these.

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

/// Rounds of work without a kill until a point counts as never passed: a candidate that did not land is
/// swept only after a later one has landed.
const IDLE_ROUNDS_MAX: usize = 2;
/// Each point is hit at its first pass of a life, and those that are passed more often once more, in the
/// midst of other work; a round passes them at least this often.
const LATER: &[&str] = &[
    "repository.candidate.after#2",
    "repository.revoke.after#3",
    "repository.before-save#7",
    "repository.after-fold#4",
    "repository.saved#7",
    "repository.durable#60",
    "repository.durable#90",
    "repository.index.after#2",
    "repository.board.after#2",
    "lane.before-save#18",
    "lane.saved#6",
    "lane.saved#12",
    "lane.saved#18",
    "lane.saved#24",
    "lane.pull.after#4",
    "lane.stage.after#2",
    "lane.candidate.put#2",
    "lane.notes.put#2",
    "lane.land.before#2",
    "lane.land.after#2",
    "lane.board.after#3",
    "lane.index.after#2",
    "board.before-save#4",
    "board.saved#4",
    "registry.saved#3",
];

/// The life of one platform, killed at each of these points in turn.
fn live_through(chain: &[String]) -> Result<()> {
    let names: Vec<&str> = chain.iter().filter_map(|point| point.split('#').next()).collect();
    let mut world = World::start(chain, chain.len() * IDLE_ROUNDS_MAX + 1)?;
    let mut idle = 0;
    loop {
        let before = world.kills()?;
        let done = world.round();
        let kills = world.kills()?;
        let after = kills.last().map_or("no kill", String::as_str);
        done.with_context(|| format!("after {}, last {after}:\n{}", kills.join(", "), world.log_tail()))?;
        if kills == names {
            return Ok(());
        }
        idle = if kills.len() == before.len() { idle + 1 } else { 0 };
        if idle == IDLE_ROUNDS_MAX {
            let missed = chain.get(kills.len()..).unwrap_or_default();
            bail!("no kill hit {missed:?}: rounds of work never passed the first of them");
        }
    }
}

/// Neighbours in the list come into different chains: so that several objects die in one platform's life.
fn chains(points: &[String]) -> Vec<Vec<String>> {
    let count = points.len().div_ceil(CHAIN_MAX);
    (0..count).map(|first| points.iter().skip(first).step_by(count).cloned().collect()).collect()
}

#[test]
fn a10_a_kill_at_any_point_loses_nothing_and_doubles_nothing() {
    let only = std::env::var("YARD_KILL").unwrap_or_default();
    let wanted = |point: &String| only.split(',').any(|part| point.contains(part));
    let first = points::NAMES.iter().map(|name| format!("{name}#1"));
    let later = LATER.iter().map(|point| (*point).to_owned());
    let points: Vec<String> = first.chain(later).filter(wanted).collect();
    assert!(!points.is_empty(), "no point is called {only}");
    let chains = chains(&points);
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
