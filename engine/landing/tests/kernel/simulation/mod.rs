//! A seeded world: authors, lanes that also lie, admins, a network that drops, repeats and reorders.
//!
//! One number decides everything. First anything may happen and no law may break; then the faults
//! stop, and every change must come to an end or wait for somebody with a reason.

mod agents;
mod lanes;
mod lies;

use std::collections::BTreeMap;

use yard_common::fact::{Fact, Terminal};
use yard_common::landing::{AttemptId, LandRequest};
use yard_common::policy::Isolation;
use yard_common::{ChangeId, ObjectId, Refusal, RepoPath, Version};
use yard_git::Mode;
use yard_landing::{Ledger as _, Proposal};

use crate::merge::{Files, is_tree};
use crate::rng::Rng;
use crate::world::{Push, World, path};

pub use agents::Agent;
pub use lanes::Lane;

const PATHS: [&str; 6] = ["a", "b", "c", "d", "d/x", "d/y"];
const CONFIG: &str = ".switchyard.toml";

/// What is on its way.
#[derive(Clone)]
enum Message {
    Submit { agent: usize, push: Box<Push>, prepared: Option<Box<Proposal>> },
    Land { lane: usize, request: Box<LandRequest> },
    Cancel { agent: usize, change: ChangeId },
    Close { change: ChangeId, version: Version },
    Submitted { agent: usize, push: Box<Push>, answer: Result<(ChangeId, Version), Refusal> },
    Landed { lane: usize, key: AttemptId, answer: Result<ObjectId, Refusal> },
}

/// What a run did.
#[derive(Debug, Default, Clone)]
pub struct Stats {
    pub steps: usize,
    pub landings: usize,
    pub refused: usize,
    pub submitted: usize,
    pub rewinds: usize,
    pub by_paths: usize,
    pub lies: BTreeMap<&'static str, (usize, usize)>,
    pub ends: BTreeMap<&'static str, usize>,
}

pub struct Sim {
    rng: Rng,
    world: World,
    net: Vec<Message>,
    agents: Vec<Agent>,
    lanes: Vec<Lane>,
    faults: bool,
    seen: usize,
    told: BTreeMap<String, Result<(ChangeId, Version), Refusal>>,
    answered: BTreeMap<AttemptId, Result<ObjectId, Refusal>>,
    tips: Vec<ObjectId>,
    value: u64,
    pub stats: Stats,
}

/// Runs a seed to its end; the broken law, if one breaks.
pub fn run(seed: u64, steps: usize) -> Result<Stats, String> {
    world_after(seed, steps).map(|sim| sim.1)
}

/// The world that a seed ends in.
pub fn world_after(seed: u64, steps: usize) -> Result<(World, Stats), String> {
    let mut sim = Sim::new(seed);
    for _ in 0..steps {
        sim.step()?;
    }
    sim.drain()?;
    Ok((sim.world, sim.stats))
}

impl Sim {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut start = Files::new();
        for at in ["a", "b", "d/x"] {
            start.insert(path(at), (Mode::File, text(0, 0)));
        }
        let isolation = if rng.chance(35) { "paths" } else { "strict" };
        start.insert(path(CONFIG), (Mode::File, format!("{isolation} 0")));
        let world = World::new(&start);
        let main = world.main();
        let lanes = 1 + rng.below(3);
        Self {
            net: Vec::new(),
            agents: (0..3).map(|n| Agent::new(n, main)).collect(),
            lanes: (0..lanes).map(Lane::new).collect(),
            faults: true,
            seen: 0,
            told: BTreeMap::new(),
            answered: BTreeMap::new(),
            tips: vec![main],
            value: 0,
            stats: Stats::default(),
            rng,
            world,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.stats.steps += 1;
        self.world.now = self.world.now.plus(1);
        match self.rng.below(100) {
            0..60 => {
                for _ in 0..3 {
                    self.deliver()?;
                }
            }
            60..84 => {
                let lane = self.rng.below(self.lanes.len());
                self.tick(lane)?;
            }
            84..86 => self.admin(),
            86..98 => {
                let agent = self.rng.below(self.agents.len());
                self.author(agent);
            }
            _ => self.restart(),
        }
        self.laws()
    }

    /// A lane, the Repository's socket or an agent loses what was on its way.
    fn restart(&mut self) {
        let which = self.rng.below(3);
        self.net.retain(|message| {
            which
                != match message {
                    Message::Submit { .. } | Message::Cancel { .. } | Message::Close { .. } => 0,
                    Message::Land { .. } => 1,
                    Message::Submitted { .. } | Message::Landed { .. } => 2,
                }
        });
        if which == 1 {
            let lane = self.rng.below(self.lanes.len());
            self.lanes[lane].forget();
        }
    }

    fn laws(&mut self) -> Result<(), String> {
        if self.seen == self.world.facts.len() {
            return Ok(());
        }
        let by_paths = |fact: &&Fact| matches!(fact, Fact::Landed { untested: Some(_), .. });
        self.stats.by_paths += self.world.facts[self.seen..].iter().filter(by_paths).count();
        self.seen = self.world.facts.len();
        if let Some(main) = self.world.ledger.main()
            && self.tips.last() != Some(&main)
        {
            self.tips.push(main);
        }
        self.world.laws()
    }

    fn send(&mut self, message: Message) {
        if self.net.len() > 60 {
            self.net.remove(0);
        }
        self.net.push(message);
    }

    fn deliver(&mut self) -> Result<(), String> {
        if self.net.is_empty() {
            return Ok(());
        }
        let at = if self.faults && self.rng.chance(50) { self.rng.below(self.net.len()) } else { 0 };
        let message = self.net.remove(at);
        if self.faults {
            match self.rng.below(100) {
                0..6 => return Ok(()),
                6..14 => self.net.push(message.clone()),
                _ => {}
            }
        }
        self.receive(message)
    }

    fn receive(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Submit { agent, push, prepared } => {
                let answer = match &prepared {
                    Some(proposal) => self.world.offer(proposal, &push.meant),
                    None => self.world.submit(&push),
                };
                self.same_answer(&push, &answer)?;
                self.stats.submitted += usize::from(answer.is_ok());
                self.send(Message::Submitted { agent, push, answer });
            }
            Message::Land { lane, request } => {
                let answer = self.land(&request)?;
                self.send(Message::Landed { lane, key: request.key.clone(), answer });
            }
            Message::Cancel { agent, change } => {
                let actor = crate::world::agent(&self.agents[agent].name);
                let landed = self.world.model.on_main(&change, &self.world.store) > 0;
                if self.world.cancel(&change, &actor).is_ok() && landed {
                    return Err(format!("the cancel of landed {change} was taken"));
                }
            }
            Message::Close { change, version } => {
                let _ = self.world.close(&change, version, Terminal::AlreadyOnMain);
            }
            Message::Submitted { agent, push, answer } => self.told(agent, &push, answer),
            Message::Landed { lane, key, answer } => self.answered(lane, &key, answer)?,
        }
        Ok(())
    }

    /// One key, one answer (a race leaves no trace, and preparing is no answer).
    fn same_answer(
        &mut self,
        push: &Push,
        answer: &Result<(ChangeId, Version), Refusal>,
    ) -> Result<(), String> {
        if matches!(answer, Err(Refusal::Raced | Refusal::KeyReused { .. })) {
            return Ok(());
        }
        let key = yard_common::IdempotencyKey::new(push.key.clone()).unwrap();
        if self.world.ledger.submission_answer(&key).is_none() {
            return Ok(());
        }
        let name = format!("{} {}", push.key, push.head);
        let first = self.told.entry(name).or_insert_with(|| answer.clone());
        if first == answer { Ok(()) } else { Err(format!("{} was answered twice", push.key)) }
    }

    fn land(&mut self, request: &LandRequest) -> Result<Result<ObjectId, Refusal>, String> {
        let answer = self.world.land(request);
        match &answer {
            Ok(_) => self.stats.landings += request.changes.len(),
            Err(_) => self.stats.refused += 1,
        }
        let first = self.answered.entry(request.key.clone()).or_insert_with(|| answer.clone());
        if *first == answer { Ok(answer) } else { Err(format!("{} was answered twice", request.key)) }
    }

    // ---- admins ---------------------------------------------------------------------------------

    fn admin(&mut self) {
        let main = self.world.main();
        if self.world.ledger.frozen().is_some() && self.rng.chance(80) {
            let _ = self.world.freeze(None);
            return;
        }
        match self.rng.below(100) {
            0..22 => {
                let files = self.edit(&self.world.main_files());
                if !is_red(&files) {
                    let new = self.world.make(&[main], &files);
                    let _ = self.world.push(new, "");
                }
            }
            22..34 => {
                let mut at = main;
                for _ in 0..=self.rng.below(3) {
                    at = self.world.store.links(at).1.first().copied().unwrap_or(at);
                }
                self.stats.rewinds += usize::from(at != main && self.world.push(at, "bad commit").is_ok());
            }
            34..44 => {
                // Back to some main of before: often a fast-forward that undoes a rewind.
                let at = *self.rng.pick(&self.tips).unwrap();
                let _ = self.world.push(at, "restored");
            }
            44..58 => {
                let frozen = self.world.ledger.frozen().is_some();
                let _ = self.world.freeze((!frozen).then_some("release"));
            }
            58..70 => {
                let Some(change) = self.any_change() else { return };
                let held = self.world.ledger.state(&change).hold.is_some();
                let _ = self.world.hold(&change, (!held).then_some("review"));
            }
            70..80 => {
                let Some(change) = self.any_change() else { return };
                let to = self.rng.below(self.lanes.len());
                let _ = self.world.hand_over(&change, &self.lanes[to].name.clone());
            }
            80..90 => self.approve_all(),
            90..95 => {
                let files =
                    crate::world::with(&self.world.main_files(), &[(CONFIG, Some(&self.fresh_config()))]);
                let new = self.world.make(&[main], &files);
                let _ = self.world.push(new, "");
            }
            _ => {
                let Some(change) = self.any_change() else { return };
                let _ = self.world.requeue(&change);
            }
        }
    }

    fn fresh_config(&mut self) -> String {
        self.value += 1;
        let today = self.world.ledger.policy().isolation;
        let isolation = if today == Isolation::Paths { "paths" } else { "strict" };
        format!("{isolation} {}", self.value)
    }

    fn approve_all(&mut self) {
        let changes: Vec<ChangeId> = self.world.ledger.changes().cloned().collect();
        for change in changes {
            let row = self.world.ledger.newest(&change).unwrap();
            if row.edits.iter().any(|edit| edit.path == path(CONFIG)) {
                let _ = self.world.approve(&change, row.version);
            }
        }
    }

    fn any_change(&mut self) -> Option<ChangeId> {
        let open: Vec<ChangeId> = self
            .world
            .ledger
            .changes()
            .filter(|change| self.world.ledger.state(change).closed.is_none())
            .cloned()
            .collect();
        let newest = open.len().saturating_sub(8);
        self.rng.pick(&open[newest.min(open.len())..]).cloned()
    }

    // ---- edits ----------------------------------------------------------------------------------

    /// One to two random edits of a tree: content, mode, add, delete, file and directory.
    fn edit(&mut self, files: &Files) -> Files {
        let mut files = files.clone();
        for _ in 0..1 + self.rng.below(2) {
            for _ in 0..5 {
                if let Some(edited) = self.edit_one(&files) {
                    files = edited;
                    break;
                }
            }
        }
        files
    }

    fn edit_one(&mut self, files: &Files) -> Option<Files> {
        let at = path(self.rng.pick(&PATHS)?);
        let mut files = files.clone();
        self.value += 1;
        match (files.get(&at).cloned(), self.rng.below(100)) {
            (None, _) => drop(files.insert(at.clone(), (Mode::File, text(self.value, 0)))),
            (Some((mode, old)), 0..15) => {
                let mode = if mode == Mode::File { Mode::Executable } else { Mode::File };
                files.insert(at.clone(), (mode, old));
            }
            (Some(_), 15..27) => drop(files.remove(&at)),
            (Some((mode, old)), place) => {
                let mut lines: Vec<String> = old.split('\n').map(str::to_owned).collect();
                let line = place % 3 * 2;
                lines[line] = self.value.to_string();
                files.insert(at.clone(), (mode, lines.join("\n")));
            }
        }
        if !is_tree(&files) && self.rng.chance(40) {
            files.retain(|other, _| !other.is_below(&at) && !at.is_below(other));
        }
        is_tree(&files).then_some(files)
    }

    fn lane_of(&self, from: &Files, to: &Files) -> usize {
        let paths: Vec<&RepoPath> = from.keys().chain(to.keys()).collect();
        let differ = paths.into_iter().filter(|path| from.get(*path) != to.get(*path));
        let lane = |at: &RepoPath| {
            let place = PATHS.iter().position(|known| known.as_bytes() == at.as_bytes()).unwrap_or(0);
            place * self.lanes.len() / PATHS.len()
        };
        let mut lanes: Vec<usize> = differ.map(lane).collect();
        lanes.dedup();
        if lanes.len() == 1 { lanes[0] } else { 0 }
    }

    // ---- the end --------------------------------------------------------------------------------

    /// The faults stop: every change must end, or wait for somebody with a reason.
    fn drain(&mut self) -> Result<(), String> {
        self.faults = false;
        let _ = self.world.freeze(None);
        let held: Vec<ChangeId> = self.world.ledger.changes().cloned().collect();
        for change in held {
            let _ = self.world.hold(&change, None);
        }
        for round in 0..1500 {
            self.world.now = self.world.now.plus(1);
            self.approve_all();
            for lane in 0..self.lanes.len() {
                self.tick(lane)?;
            }
            if round % 20 == 0 {
                for agent in 0..self.agents.len() {
                    self.resend(agent);
                }
            }
            for _ in 0..12 {
                self.deliver()?;
            }
            self.laws()?;
            if round % 10 == 9 && self.unfinished().is_none() && self.net.is_empty() {
                return self.ends();
            }
        }
        Err(format!("not live: {}", self.unfinished().unwrap_or_else(|| "messages go on".into())))
    }

    fn unfinished(&self) -> Option<String> {
        self.world
            .ledger
            .changes()
            .find_map(|change| self.waits(change, 0).err().map(|why| format!("{change}: {why}")))
    }

    /// How the change ended or for whom it waits; an error when it is nobody's.
    fn waits(&self, change: &ChangeId, depth: usize) -> Result<&'static str, String> {
        let state = self.world.ledger.state(change);
        if state.landed.is_some() {
            return Ok("landed");
        }
        if let Some(closed) = state.closed {
            return Ok(if closed.stage == Terminal::Withdrawn { "withdrawn" } else { "already on main" });
        }
        if state.rewritten.is_some() {
            return Ok("rewritten: waits for its author");
        }
        let row = self.world.ledger.newest(change).unwrap();
        let owner = state.owner.map(|owner| owner.0);
        let lane = self.lanes.iter().find(|lane| Some(&lane.name) == owner.as_ref());
        let Some(stage) = lane.and_then(|lane| lane.stage_of(change, row.version)) else {
            return Err("in no lane".into());
        };
        match stage {
            lanes::Stage::NeedsAuthor(why) => Ok(why),
            lanes::Stage::Parent(parent) if depth < 50 => match self.waits(&parent, depth + 1) {
                Ok("landed" | "already on main") => Err(format!("its parent {parent} is there")),
                Ok(_) => Ok("waits for its parent"),
                Err(why) => Err(why),
            },
            other => Err(format!("{other:?}")),
        }
    }

    fn ends(&mut self) -> Result<(), String> {
        let changes: Vec<ChangeId> = self.world.ledger.changes().cloned().collect();
        for change in changes {
            let end = self.waits(&change, 0)?;
            *self.stats.ends.entry(end).or_default() += 1;
        }
        Ok(())
    }
}

/// Three lines that are edited, kept apart so that git merges edits of two of them.
fn text(top: u64, end: u64) -> String {
    format!("{top}\n-\n0\n--\n{end}\n")
}

/// The tests of a tree: red when some file has an unlucky number in it.
fn is_red(files: &Files) -> bool {
    files.values().any(|(_, text)| {
        text.split('\n').filter_map(|line| line.parse::<u64>().ok()).any(|number| number % 29 == 7)
    })
}

#[test]
fn no_seed_breaks_a_law_and_every_change_ends() {
    let first: u64 = std::env::var("YARD_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let seeds: u64 = std::env::var("YARD_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    println!("seeds {first} to {}, YARD_SEED=n YARD_SEEDS=1 replays one", first + seeds - 1);
    let mut total = Stats::default();
    let mut broken = Vec::new();
    for seed in first..first + seeds {
        match run(seed, 500) {
            Ok(stats) => total.add(&stats),
            Err(law) => broken.push(format!("seed {seed}: {law}")),
        }
    }
    println!("{total:?}");
    assert!(broken.is_empty(), "{} of {seeds} seeds: {broken:#?}", broken.len());
    if seeds >= 60 {
        assert!(total.landings > 500 && total.rewinds > 20, "the simulation does too little");
        assert!(total.lies.len() >= 25, "some lies were never told");
    }
}

#[test]
fn a_seed_replays_exactly() {
    let once = run(7, 300).map(|stats| format!("{stats:?}"));
    assert_eq!(once, run(7, 300).map(|stats| format!("{stats:?}")));
}

impl Stats {
    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.landings += other.landings;
        self.refused += other.refused;
        self.submitted += other.submitted;
        self.rewinds += other.rewinds;
        self.by_paths += other.by_paths;
        for (lie, (told, taken)) in &other.lies {
            let sum = self.lies.entry(lie).or_default();
            *sum = (sum.0 + told, sum.1 + taken);
        }
        for (end, count) in &other.ends {
            *self.ends.entry(end).or_default() += count;
        }
    }
}
