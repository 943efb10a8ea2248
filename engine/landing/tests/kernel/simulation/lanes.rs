//! Lanes as they should be: read the log, assemble, test, ask, and believe the answer.

use std::collections::BTreeMap;

use yard_common::fact::{Fact, Terminal};
use yard_common::landing::{AttemptId, LandRequest};
use yard_common::policy::Isolation;
use yard_common::{ChangeId, LaneName, ObjectId, Refusal, TrainNo, Version};
use yard_landing::Ledger as _;

use super::{CONFIG, Message, Sim, is_red};
use crate::merge::{Files, is_tree};
use crate::model::Meant;
use crate::world::{Push, lane, path};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    Queued,
    InTrain,
    /// Held by a person, or by a claim until then.
    Held(u64),
    Parent(ChangeId),
    NeedsAuthor(&'static str),
}

#[derive(Debug, Clone)]
struct Entry {
    version: Version,
    stage: Stage,
    order: u64,
    alone: bool,
    replays: u32,
}

/// A train under way.
#[derive(Debug, Clone)]
pub(super) struct Train {
    pub(super) request: LandRequest,
    ready: u64,
    pub(super) landing: bool,
}

pub struct Lane {
    pub name: LaneName,
    cursor: usize,
    entries: BTreeMap<ChangeId, Entry>,
    pub(super) train: Option<Train>,
    pub trains: u64,
}

impl Lane {
    pub fn new(number: usize) -> Self {
        let name = lane(&format!("lane-{number}"));
        Self { name, cursor: 0, entries: BTreeMap::new(), train: None, trains: 0 }
    }

    /// Loses all but the number of its trains, and reads the log anew.
    pub(super) fn forget(&mut self) {
        (self.cursor, self.train) = (0, None);
        self.entries.clear();
    }

    pub(super) fn stage_of(&self, change: &ChangeId, version: Version) -> Option<Stage> {
        self.entries.get(change).filter(|entry| entry.version == version).map(|entry| entry.stage.clone())
    }

    pub(super) fn owned(&self) -> Vec<(ChangeId, Version)> {
        self.entries.iter().map(|(change, entry)| (change.clone(), entry.version)).collect()
    }

    fn set(&mut self, change: &ChangeId, stage: Stage) {
        if let Some(entry) = self.entries.get_mut(change) {
            entry.stage = stage;
        }
    }

    fn queue(&mut self, change: &ChangeId, version: Version, order: u64) {
        let replays = self.entries.get(change).map_or(0, |entry| entry.replays);
        let entry = Entry { version, stage: Stage::Queued, order, alone: false, replays };
        self.entries.insert(change.clone(), entry);
    }

    /// A train that has not asked yet is given up when a member of it changed.
    fn drop_train_with(&mut self, change: &ChangeId) {
        let with = |train: &&Train| train.request.changes.iter().any(|listed| listed.change == *change);
        if self.train.as_ref().filter(with).is_some_and(|train| !train.landing) {
            self.requeue_train();
        }
    }

    fn requeue_train(&mut self) {
        let Some(train) = self.train.take() else { return };
        for listed in train.request.changes {
            if self.entries.get(&listed.change).is_some_and(|entry| entry.stage == Stage::InTrain) {
                self.set(&listed.change, Stage::Queued);
            }
        }
    }
}

impl Sim {
    pub(super) fn tick(&mut self, l: usize) -> Result<(), String> {
        self.read_log(l);
        let now = self.world.now.0;
        match &self.lanes[l].train {
            None => self.assemble(l),
            Some(train) if train.landing && now >= train.ready => {
                let request = Box::new(train.request.clone());
                self.lanes[l].train.as_mut().unwrap().ready = now + 4;
                self.send(Message::Land { lane: l, request });
                while self.faults && self.rng.chance(80) {
                    self.lie(l)?;
                }
            }
            Some(train) if now >= train.ready => self.test(l),
            Some(_) => {}
        }
        Ok(())
    }

    fn read_log(&mut self, l: usize) {
        let upto = if self.faults { 1 + self.rng.below(8) } else { usize::MAX };
        let from = self.lanes[l].cursor;
        let facts: Vec<Fact> = self.world.facts.iter().skip(from).take(upto).cloned().collect();
        self.lanes[l].cursor += facts.len();
        for fact in facts {
            self.read(l, fact);
        }
    }

    fn read(&mut self, l: usize, fact: Fact) {
        let lane = &mut self.lanes[l];
        let closed = |lane: &mut Lane, change: &ChangeId| {
            lane.drop_train_with(change);
            lane.entries.remove(change);
        };
        match fact {
            Fact::Submitted { row, .. } => {
                lane.drop_train_with(&row.change);
                if row.lane == lane.name {
                    lane.queue(&row.change, row.version, row.seq.0);
                } else {
                    lane.entries.remove(&row.change);
                }
            }
            Fact::Landed { request, .. } => {
                request.changes.iter().for_each(|listed| closed(lane, &listed.change));
            }
            Fact::Closed { change, .. } => closed(lane, &change),
            Fact::DirectPush { rewritten, restored, .. } => {
                restored.iter().for_each(|change| closed(lane, change));
                for change in rewritten {
                    let row = self.world.ledger.newest(&change).unwrap();
                    if row.lane == lane.name {
                        lane.queue(&change, row.version, row.seq.0);
                        lane.set(&change, Stage::NeedsAuthor("main was rewritten"));
                    }
                }
            }
            Fact::Requeued { change, .. } => lane.set(&change, Stage::Queued),
            Fact::HoldSet { change, reason, .. } => {
                lane.drop_train_with(&change);
                if !matches!(lane.entries.get(&change).map(|entry| &entry.stage), Some(Stage::NeedsAuthor(_)))
                {
                    let stage = if reason.is_some() { Stage::Held(u64::MAX) } else { Stage::Queued };
                    lane.set(&change, stage);
                }
            }
            Fact::OwnerSet { change, lane: to, .. } => {
                lane.drop_train_with(&change);
                lane.entries.remove(&change);
                let row = self.world.ledger.newest(&change).unwrap();
                if to == lane.name && self.world.ledger.state(&change).is_open() {
                    lane.queue(&change, row.version, row.seq.0);
                }
            }
            _ => {}
        }
    }

    fn assemble(&mut self, l: usize) {
        if self.world.ledger.frozen().is_some() {
            return;
        }
        let now = self.world.now.0;
        let mut order: Vec<(u64, ChangeId, Entry)> = self.lanes[l]
            .entries
            .iter()
            .map(|(change, entry)| (entry.order, change.clone(), entry.clone()))
            .collect();
        order.sort_by_key(|(order, ..)| *order);
        let mut tree = self.world.store.links(self.world.main()).0;
        let mut listed = Vec::new();
        for (_, change, entry) in order {
            let free = match entry.stage {
                Stage::Queued | Stage::Parent(_) => true,
                Stage::Held(until) => until <= now,
                Stage::InTrain | Stage::NeedsAuthor(_) => false,
            };
            if !free
                || (entry.alone && !listed.is_empty())
                || !self.parents_there(l, &change, &entry, &listed)
            {
                continue;
            }
            let edits = self.world.merge(&change, entry.version, tree);
            let after = edits.as_ref().and_then(|edits| self.world.tree_after(tree, edits));
            let (Some(edits), Some(after)) = (edits, after) else {
                self.collided(l, &change, &entry);
                continue;
            };
            if edits.iter().all(|edit| edit.result == edit.ours) {
                if edits.iter().all(|edit| edit.theirs == edit.ours) {
                    self.send(Message::Close { change, version: entry.version });
                } else {
                    self.lanes[l].set(&change, Stage::NeedsAuthor("main has it in another form"));
                }
                continue;
            }
            self.lanes[l].set(&change, Stage::InTrain);
            tree = after;
            listed.push((change, entry.version, edits, after));
            if listed.len() == 3 || entry.alone {
                break;
            }
        }
        if listed.is_empty() {
            return;
        }
        let name = self.lanes[l].name.clone();
        let mut request = self.world.request(&name, self.world.main(), listed);
        self.lanes[l].trains += 1;
        request.key.train = TrainNo(self.lanes[l].trains * 10 + l as u64);
        let ready = now + if self.faults { self.rng.between(2, 14) } else { 2 };
        self.lanes[l].train = Some(Train { request, ready, landing: false });
    }

    /// Has everything that the change waits for landed, or does it stand earlier in the train?
    fn parents_there(
        &mut self,
        l: usize,
        change: &ChangeId,
        entry: &Entry,
        listed: &[(ChangeId, Version, Vec<yard_common::landing::Edit>, ObjectId)],
    ) -> bool {
        let Some(row) = self.world.ledger.row(change, entry.version) else { return false };
        for parent in &row.waits_for {
            let state = self.world.ledger.state(parent);
            let earlier = listed.iter().any(|(other, ..)| other == parent);
            let stage = match state.closed.map(|closed| closed.stage) {
                _ if state.landed.is_some() || earlier => continue,
                Some(Terminal::AlreadyOnMain) => continue,
                Some(_) => Stage::NeedsAuthor("its parent was withdrawn"),
                None => Stage::Parent(parent.clone()),
            };
            self.lanes[l].set(change, stage);
            return false;
        }
        true
    }

    /// A collided change is replayed by a model, or sent back.
    fn collided(&mut self, l: usize, change: &ChangeId, entry: &Entry) {
        self.lanes[l].set(change, Stage::NeedsAuthor("it collides"));
        if entry.replays >= 2 || !self.rng.chance(50) {
            return;
        }
        if let Some(entry) = self.lanes[l].entries.get_mut(change) {
            entry.replays += 1;
        }
        let Some(meant) = self.world.model.meant.get(&(change.clone(), entry.version)).cloned() else {
            return;
        };
        let (main, from) = (self.world.main(), self.world.main_files());
        let mut to: Files = from.clone();
        for at in meant.from.keys().chain(meant.to.keys()) {
            if meant.from.get(at) != meant.to.get(at) {
                match meant.to.get(at) {
                    Some(text) => drop(to.insert(at.clone(), text.clone())),
                    None => drop(to.remove(at)),
                }
            }
        }
        if to == from || !is_tree(&to) {
            return;
        }
        let head = self.world.make(&[main], &to);
        let push = Push {
            key: format!("replay-{}", self.world.count()),
            change: Some(change.clone()),
            new_change: false,
            replay_of: Some(entry.version),
            reviewed: None,
            renames: Vec::new(),
            differing_lines: 0,
            fork: self.world.ledger.newest(change).unwrap().fork.clone(),
            head,
            lane: self.lanes[self.lane_of(&from, &to)].name.clone(),
            reverts: Vec::new(),
            meant: Meant { from, to },
        };
        self.send(Message::Submit { agent: 0, push: Box::new(push), prepared: None });
    }

    fn test(&mut self, l: usize) {
        let Some(mut train) = self.lanes[l].train.take() else { return };
        let tree = self.world.store.links(train.request.tip).0;
        if is_red(&self.world.store.files(tree)) {
            let alone = train.request.changes.len() == 1;
            for listed in &train.request.changes {
                let stage = if alone { Stage::NeedsAuthor("its tests are red") } else { Stage::Queued };
                self.lanes[l].set(&listed.change, stage);
                if let Some(entry) = self.lanes[l].entries.get_mut(&listed.change) {
                    entry.alone = true;
                }
            }
            return;
        }
        train.request.runs = self.runs(tree);
        train.landing = true;
        self.lanes[l].train = Some(train);
    }

    /// The runs that a green tree needs: under today's configuration, and its own where that is another.
    pub(super) fn runs(&mut self, tree: ObjectId) -> Vec<yard_common::landing::SignedRun> {
        let mut runs = vec![self.world.run(tree, true)];
        let text = self.world.store.files(tree).get(&path(CONFIG)).map(|file| file.1.clone());
        let config = text.as_ref().map(|text| self.world.store.blob_id(text));
        if config != self.world.ledger.policy().config
            && let Some(text) = text
        {
            runs.push(self.world.run_under(tree, true, text.trim(), config));
        }
        runs
    }

    pub(super) fn answered(
        &mut self,
        l: usize,
        key: &AttemptId,
        answer: Result<ObjectId, Refusal>,
    ) -> Result<(), String> {
        let now = self.world.now.0;
        let lane = &mut self.lanes[l];
        if lane.train.as_ref().is_none_or(|train| train.request.key != *key) {
            return Ok(());
        }
        match answer {
            Ok(_) => {
                // The log says the same; a change that left main since was read there.
                lane.requeue_train();
            }
            Err(Refusal::Turn { .. } | Refusal::Frozen { .. }) => {
                if let Some(train) = lane.train.as_mut() {
                    train.request.key.attempt = train.request.key.attempt.next();
                    train.ready = now + 4;
                }
            }
            Err(Refusal::Fence { change, until, .. }) => {
                lane.requeue_train();
                lane.set(&change, Stage::Held(until.0));
            }
            Err(Refusal::Held { changes }) => {
                lane.requeue_train();
                changes.iter().for_each(|change| lane.set(change, Stage::Held(now + 5)));
            }
            Err(Refusal::Protected { change, .. }) => {
                lane.requeue_train();
                lane.set(&change, Stage::Held(now + 5));
            }
            Err(
                refusal @ (Refusal::GoesBack { .. }
                | Refusal::OtherTree { .. }
                | Refusal::Unbound { .. }
                | Refusal::Malformed { .. }),
            ) => return Err(format!("honest work was refused: {refusal}")),
            Err(Refusal::Moved { .. }) => self.rebase(l),
            Err(_) => lane.requeue_train(),
        }
        Ok(())
    }

    /// Under `isolation = "paths"` a moved train is put on the new main and asked for with the run it has.
    fn rebase(&mut self, l: usize) {
        let Some(mut train) = self.lanes[l].train.take() else { return };
        let listed: Vec<(ChangeId, Version)> =
            train.request.changes.iter().map(|listed| (listed.change.clone(), listed.version)).collect();
        let name = self.lanes[l].name.clone();
        let paths = self.world.ledger.policy().isolation == Isolation::Paths;
        let again = if paths { self.world.assemble(&name, &listed) } else { None };
        match again {
            Some(mut request) => {
                request.key = train.request.key.clone();
                request.key.attempt = request.key.attempt.next();
                (request.tested_head, request.runs) = (train.request.tested_head, train.request.runs);
                train = Train { request, ready: self.world.now.0, landing: true };
                self.lanes[l].train = Some(train);
            }
            None => {
                self.lanes[l].train = Some(train);
                self.lanes[l].requeue_train();
            }
        }
    }
}
