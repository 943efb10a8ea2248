//! One seed from beginning to end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::json;

use crate::actors::{self, Play};
use crate::client::{self, admin, request};
use crate::laws::{Broken, Laws};
use crate::objects::{Weather, World};
use crate::suite;

/// What became of a seed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Events.
    pub steps: u64,
    /// Faults among them.
    pub faults: u64,
    /// Changes that were accepted.
    pub changes: usize,
    /// Of them landed.
    pub landed: usize,
    /// The first law that was broken.
    pub broken: Option<String>,
    /// What happened, where that was asked for.
    #[serde(skip)]
    pub journal: Vec<String>,
}

/// When everybody comes to an end, in milliseconds.
const PLAY_MS: u64 = 15 * 60_000;
/// What is still open so long after that has been forgotten, in milliseconds.
const REST_MS: u64 = 4 * 3_600_000;
/// Events of one seed, at most.
const STEPS_MAX: u64 = 3_000_000;

fn play(seed: u64) -> (Rc<Play>, u64) {
    let world = World::new(seed);
    let clock = world.clock.clone();
    let level = clock.below(4);
    let weather = Weather { lost: 12 * level, twice: 10 * level, slow: 3 * level, sql: 4 * level };
    world.weather.set(Weather::default());
    let kills = if clock.chance(600) { 20_000 + clock.below(120_000) } else { 0 };
    let errs = if clock.chance(500) { 300 } else { 0 };
    let flaky = if clock.chance(300) { 60 } else { 0 };
    let play = Rc::new(Play {
        world,
        repo: format!("r{seed}"),
        changes: RefCell::default(),
        pushed: RefCell::default(),
        green: RefCell::default(),
        calm: Cell::new(false),
        busy: Cell::new(0),
        errs,
        flaky,
    });
    start(&play, weather, kills);
    (play, kills)
}

/// The repository with its first commit, then everybody.
fn start(play: &Rc<Play>, weather: Weather, kills: u64) {
    let all = Rc::clone(play);
    play.busy.set(1);
    play.world.clock.spawn("play", async move {
        let clock = all.world.clock.clone();
        request(&all.world, ("POST", "/api/repos"), &admin(), json!({ "name": all.repo })).await;
        let (commit, pack) = actors::commit(&all, None, &suite::project(), "first");
        let none = yard_common::ObjectId::ZERO;
        let pushed = client::push(&all.world, &all.repo, ("refs/heads/main", none, commit), pack).await;
        pushed.expect("the first push, in fair weather");
        all.world.weather.set(weather);
        let agents = 2 + clock.below(9);
        for number in 0..agents {
            all.busy.set(all.busy.get() + 1);
            clock.spawn("agent", actors::agent(Rc::clone(&all), number));
        }
        for number in 0..=clock.below(2) {
            clock.spawn("runner", actors::runner(Rc::clone(&all), number));
        }
        clock.spawn("chief", actors::chief(Rc::clone(&all)));
        clock.spawn("cron", actors::cron(Rc::clone(&all)));
        if kills > 0 {
            clock.spawn("chaos", actors::chaos(Rc::clone(&all), kills));
        }
        all.busy.set(all.busy.get() - 1);
    });
    actors::consume(play);
}

/// Runs a seed; `told` keeps what happened.
#[must_use]
pub fn run(seed: u64, told: bool) -> Outcome {
    let (play, _) = play(seed);
    if told {
        *play.world.journal.borrow_mut() = Some(Vec::new());
    }
    let mut laws = Laws::new(&play);
    let mut steps = 0;
    let broken = drive(&play, &mut laws, &mut steps).err().map(|broken| broken.0);
    let changes = play.changes.borrow().values().filter(|meant| meant.accepted).count();
    let faults = play.world.faults.get();
    let journal = play.world.journal.borrow_mut().take().unwrap_or_default();
    let landed = laws.landed.len();
    play.world.end();
    Outcome { seed, steps, faults, changes, landed, broken, journal }
}

fn drive(play: &Rc<Play>, laws: &mut Laws, steps: &mut u64) -> Result<(), Broken> {
    let mut step = |laws: &mut Laws| -> Result<(), Broken> {
        *steps += 1;
        if *steps > STEPS_MAX || !play.world.clock.step() {
            return Err(Broken("it never comes to rest".into()));
        }
        laws.check()
    };
    while actors::since_start(play) < PLAY_MS {
        step(laws)?;
    }
    actors::calm(play);
    let all = Rc::clone(play);
    play.world.clock.spawn("play", async move { actors::let_all_go(&all).await });
    // Look after a while whether all is done, and again, until it is or has had more than its time.
    let mut wait = 60_000;
    loop {
        let until = actors::since_start(play) + wait;
        while actors::since_start(play) < until || play.busy.get() > 0 {
            step(laws)?;
        }
        let verdict = Rc::new(Cell::new(None));
        let told = Rc::clone(&verdict);
        let all = Rc::clone(play);
        // What is asked is asked over the same network; the laws are looked at while nothing else moves them.
        let frozen = laws.snapshot();
        play.world.clock.spawn("judge", async move { told.set(Some(frozen.at_rest(&all).await)) });
        let found = loop {
            step(laws)?;
            if let Some(found) = verdict.take() {
                break found;
            }
        };
        match found {
            Ok(()) => return Ok(()),
            Err(broken) if wait > REST_MS => return Err(broken),
            Err(_) => wait *= 2,
        }
    }
}
