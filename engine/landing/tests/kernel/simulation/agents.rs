//! Authors: they push on while their changes land, stack, pull, amend, withdraw and repeat themselves.

use std::collections::BTreeSet;

use yard_common::{ChangeId, ObjectId, Refusal, RepoPath, Version};
use yard_landing::Ledger as _;

use super::{CONFIG, Message, PATHS, Sim, is_red};
use crate::merge::{Files, is_tree, merge_files};
use crate::model::Meant;
use crate::world::{Push, change, fork, with};

pub struct Agent {
    pub name: String,
    head: ObjectId,
    mine: Vec<ChangeId>,
    out: Vec<Push>,
    sent: Vec<Push>,
}

impl Agent {
    pub fn new(number: usize, head: ObjectId) -> Self {
        let (mine, out, sent) = (Vec::new(), Vec::new(), Vec::new());
        Self { name: format!("agent-{number}"), head, mine, out, sent }
    }
}

/// What `to` did to `from`, put over `onto` by force: what an author does by hand after a collision.
fn by_hand(from: &Files, onto: &Files, to: &Files) -> Option<Files> {
    let mut files = onto.clone();
    let paths: BTreeSet<&RepoPath> = from.keys().chain(to.keys()).collect();
    for at in paths {
        if from.get(at) != to.get(at) {
            match to.get(at) {
                Some(text) => drop(files.insert(at.clone(), text.clone())),
                None => drop(files.remove(at)),
            }
        }
    }
    is_tree(&files).then_some(files)
}

impl Sim {
    pub(super) fn author(&mut self, a: usize) {
        if !self.agents[a].out.is_empty() {
            self.resend(a);
            return;
        }
        match self.rng.below(100) {
            0..20 => self.new_work(a),
            20..38 => self.goes_on(a),
            38..45 => self.pulls(a),
            45..57 => self.new_version(a),
            57..67 => self.redoes(a),
            67..72 => self.withdraws(a),
            72..75 => self.offers_a_stale_tree(a),
            75..79 => self.reverts(a),
            79..83 => self.copies(a),
            83..86 => self.changes_the_configuration(a),
            86..94 => self.claims(a),
            _ => self.repeats_itself(a),
        }
    }

    pub(super) fn resend(&mut self, a: usize) {
        for push in self.agents[a].out.clone() {
            self.send(Message::Submit { agent: a, push: Box::new(push), prepared: None });
        }
    }

    /// Commits `to` on `parents` and pushes it.
    fn offer(&mut self, a: usize, id: Option<ChangeId>, parents: &[ObjectId], meant: Meant) {
        self.offer_reverting(a, id, parents, meant, Vec::new());
    }

    fn offer_reverting(
        &mut self,
        a: usize,
        id: Option<ChangeId>,
        parents: &[ObjectId],
        meant: Meant,
        reverts: Vec<ChangeId>,
    ) {
        let head = self.world.make(parents, &meant.to);
        let lane = self.lane_of(&meant.from, &meant.to);
        self.agents[a].head = head;
        let push = Push {
            key: format!("key-{}", self.world.count()),
            change: id,
            new_change: false,
            replay_of: None,
            reviewed: None,
            renames: Vec::new(),
            differing_lines: 0,
            fork: fork(&self.agents[a].name),
            head,
            lane: self.lanes[lane].name.clone(),
            reverts,
            meant,
        };
        self.push_out(a, push);
    }

    fn push_out(&mut self, a: usize, push: Push) {
        // Sometimes the edge prepares long before the Repository decides.
        let early = self.rng.chance(30).then(|| self.world.prepare(&push).ok().map(Box::new)).flatten();
        self.agents[a].out.push(push.clone());
        self.agents[a].sent.push(push.clone());
        self.send(Message::Submit { agent: a, push: Box::new(push), prepared: early });
    }

    fn fresh_id(&mut self) -> Option<ChangeId> {
        let n = self.world.count();
        self.rng.chance(60).then(|| change(&n.to_string()))
    }

    fn new_work(&mut self, a: usize) {
        let (main, from) = (self.world.main(), self.world.main_files());
        let to = self.edit(&from);
        let id = self.fresh_id();
        self.offer(a, id, &[main], Meant { from, to });
    }

    /// Works on top of what it has: a stack, or its own landed commit.
    fn goes_on(&mut self, a: usize) {
        let head = self.agents[a].head;
        let from = self.world.files_of(head);
        let to = self.edit(&from);
        let id = self.fresh_id();
        self.offer(a, id, &[head], Meant { from, to });
    }

    /// `git pull`, then work.
    fn pulls(&mut self, a: usize) {
        let (head, main) = (self.agents[a].head, self.world.main());
        let store = &self.world.store;
        let (mine, theirs) = (store.history(head), store.history(main));
        if theirs.contains(&head) || mine.contains(&main) {
            return;
        }
        let fork_point = mine.intersection(&theirs).max_by_key(|id| store.history(**id).len()).copied();
        let base = fork_point.map(|id| self.world.files_of(id)).unwrap_or_default();
        let merged = merge_files(&base, &self.world.main_files(), &self.world.files_of(head));
        let Some(from) = merged else { return };
        let pull = self.world.make(&[head, main], &from);
        let to = self.edit(&from);
        let id = self.fresh_id();
        self.offer(a, id, &[pull], Meant { from, to });
    }

    fn open_mine(&self, a: usize) -> Vec<ChangeId> {
        let open = |change: &&ChangeId| self.world.ledger.state(change).is_open();
        self.agents[a].mine.iter().filter(open).cloned().collect()
    }

    /// Amends, or commits on top of, an open change of its own.
    fn new_version(&mut self, a: usize) {
        let open = self.open_mine(a);
        let Some(id) = self.rng.pick(&open).cloned() else { return };
        let row = self.world.ledger.newest(&id).unwrap();
        let Some(meant) = self.world.model.meant.get(&(id.clone(), row.version)).cloned() else { return };
        if row.via == yard_common::submission::Via::Replay {
            return;
        }
        let parents = if self.rng.chance(60) { self.world.store.links(row.head).1 } else { vec![row.head] };
        let to = self.edit(&self.world.files_of(row.head));
        self.offer(a, Some(id), &parents, Meant { from: meant.from, to });
    }

    /// What was sent back or taken off main is done anew on the newest main.
    fn redoes(&mut self, a: usize) {
        let open = self.open_mine(a);
        let back: Vec<ChangeId> = open.into_iter().filter(|id| self.is_sent_back(id)).collect();
        let Some(id) = self.rng.pick(&back).cloned() else { return };
        let version = self.world.ledger.newest(&id).unwrap().version;
        let Some(meant) = self.world.model.meant.get(&(id.clone(), version)).cloned() else { return };
        let (main, from) = (self.world.main(), self.world.main_files());
        let Some(mut to) = by_hand(&meant.from, &from, &meant.to) else { return };
        if is_red(&to) {
            to = self.edit(&from);
        }
        self.offer(a, Some(id), &[main], Meant { from, to });
    }

    fn is_sent_back(&self, id: &ChangeId) -> bool {
        let state = self.world.ledger.state(id);
        let version = self.world.ledger.newest(id).map_or(Version(0), |row| row.version);
        let owner = state.owner.map(|owner| owner.0);
        let lane = self.lanes.iter().find(|lane| Some(&lane.name) == owner.as_ref());
        let stage = lane.and_then(|lane| lane.stage_of(id, version));
        state.rewritten.is_some() || matches!(stage, Some(super::lanes::Stage::NeedsAuthor(_)))
    }

    fn withdraws(&mut self, a: usize) {
        let mine = self.agents[a].mine.clone();
        if let Some(change) = self.rng.pick(&mine).cloned() {
            self.send(Message::Cancel { agent: a, change });
        }
    }

    /// A tree of some main of before, offered on top of today's.
    fn offers_a_stale_tree(&mut self, a: usize) {
        let newest = self.tips.len().saturating_sub(6);
        let old = *self.rng.pick(&self.tips[newest..]).unwrap();
        let (main, from) = (self.world.main(), self.world.main_files());
        let to = self.edit(&self.world.files_of(old));
        let id = self.fresh_id();
        self.offer(a, id, &[main], Meant { from, to });
    }

    fn reverts(&mut self, a: usize) {
        let landings = self.world.model.landings.clone();
        let Some((id, _, commit)) = self.rng.pick(&landings).cloned() else { return };
        let (main, from) = (self.world.main(), self.world.main_files());
        let before = self.world.store.links(commit).1.first().map(|parent| self.world.files_of(*parent));
        let after = self.world.files_of(commit);
        let Some(to) = before.and_then(|before| merge_files(&after, &from, &before)) else { return };
        let fresh = self.fresh_id();
        self.offer_reverting(a, fresh, &[main], Meant { from, to }, vec![id]);
    }

    /// The same work as somebody else's, sometimes under their id.
    fn copies(&mut self, a: usize) {
        let Some(other) = self.any_change() else { return };
        let version = self.world.ledger.newest(&other).unwrap().version;
        let Some(meant) = self.world.model.meant.get(&(other.clone(), version)).cloned() else { return };
        let (main, from) = (self.world.main(), self.world.main_files());
        let Some(to) = by_hand(&meant.from, &from, &meant.to) else { return };
        let id = if self.rng.chance(50) { Some(other) } else { self.fresh_id() };
        self.offer(a, id, &[main], Meant { from, to });
    }

    fn changes_the_configuration(&mut self, a: usize) {
        let (main, from) = (self.world.main(), self.world.main_files());
        let to = with(&from, &[(CONFIG, Some(&self.fresh_config()))]);
        let id = self.fresh_id();
        self.offer(a, id, &[main], Meant { from, to });
    }

    fn claims(&mut self, a: usize) {
        let at = PATHS[self.rng.below(PATHS.len())];
        let for_ms = self.rng.between(10, 60);
        let who = fork(&self.agents[a].name);
        let _ = self.world.claim(&who, &[at], for_ms);
    }

    fn repeats_itself(&mut self, a: usize) {
        let sent = self.agents[a].sent.clone();
        let Some(mut push) = self.rng.pick(&sent).cloned() else { return };
        let key = yard_common::IdempotencyKey::new(push.key.clone()).unwrap();
        if self.world.ledger.submission_answer(&key).is_some() && self.rng.chance(20) {
            push.head = self.agents[a].head;
        }
        self.send(Message::Submit { agent: a, push: Box::new(push), prepared: None });
    }

    /// The author reads the answer to a push.
    pub(super) fn told(&mut self, a: usize, push: &Push, answer: Result<(ChangeId, Version), Refusal>) {
        let Some(at) = self.agents[a].out.iter().position(|out| out.key == push.key && out.head == push.head)
        else {
            return;
        };
        match answer {
            Err(Refusal::Raced) => {}
            Err(Refusal::WhichChange { open, .. }) => {
                let mut again = self.agents[a].out.remove(at);
                again.key = format!("key-{}", self.world.count());
                let below = self.world.store.history(again.head);
                let contains = |commit: &ObjectId| below.contains(commit);
                let newest = self.world.ledger.newest(&open).unwrap();
                let parents = self.world.store.links(again.head).1;
                // What a pull on top of the open change was meant from is anybody's guess.
                let pulled = newest.commits.iter().any(contains) && !newest.commits.contains(&parents[0]);
                again.new_change = pulled || self.rng.chance(60);
                if !again.new_change {
                    // As the refusal says: amended with the id, which makes another commit.
                    again.head = self.world.make(&parents, &again.meant.to);
                    self.agents[a].head = again.head;
                    let on = parents.iter().flat_map(|parent| self.world.ledger.versions_with(parent));
                    let own = on.into_iter().find(|(change, _)| *change == open);
                    if let Some(before) = own.and_then(|own| self.world.model.meant.get(&own)) {
                        again.meant.from = before.from.clone();
                    }
                    again.change = Some(open);
                }
                self.push_out(a, again);
            }
            Err(_) => {
                // What was refused is thrown away, not built on.
                self.agents[a].out.remove(at);
                if self.agents[a].head == push.head {
                    self.agents[a].head = self.world.main();
                }
            }
            Ok((id, _)) => {
                self.agents[a].out.remove(at);
                if !self.agents[a].mine.contains(&id) {
                    self.agents[a].mine.push(id);
                }
            }
        }
    }
}
