//! How facts change the state of a lane: the repository's facts, and the life of an attempt.

mod attempt;

use std::collections::BTreeSet;

use yard_common::fact::Terminal;
use yard_common::submission::{Submission, Via};
use yard_common::{ChangeId, Fact, Millis, ObjectId};

use crate::fact::KnownRow;
use crate::limits::{LANDINGS_KEPT, TOUCHED_PATHS_MAX};
use crate::state::{Entry, Lane, Status, Stop, Why};

impl Lane {
    /// Folds one fact of the repository.
    pub(crate) fn fold(&mut self, fact: &Fact, at: Millis) {
        match fact {
            Fact::Submitted { row, .. } => self.take(row, at),
            Fact::Landed { request, .. } => {
                if request.key.lane == self.name {
                    self.landed_key(&request.key, request.tip);
                } else {
                    self.main_moved(&format!("lane {} landed on main", request.key.lane));
                }
                let landed = request.changes.iter().map(|listed| (listed.change.clone(), listed.commit));
                self.end_landed(&landed.collect::<Vec<_>>());
            }
            Fact::LandingRefused { key, refusal, .. } => {
                let in_flight = self
                    .attempts
                    .get(&key.train)
                    .is_some_and(|open| open.id == *key && key.lane == self.name && open.landing.is_some());
                if in_flight {
                    self.answered(key, &Err(refusal.clone()), at);
                }
            }
            Fact::DirectPush { old, reason, rewritten, restored, standing, .. } => {
                if old.is_some() {
                    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
                    self.main_moved(&format!("main was pushed to directly{reason}"));
                }
                self.bad_main = None;
                self.wanted.extend(rewritten.iter().cloned());
                let landed = restored.iter().map(|change| {
                    let commit = standing.iter().find(|at| at.change == *change).map(|at| at.commit);
                    (change.clone(), commit.unwrap_or(ObjectId::ZERO))
                });
                self.end_landed(&landed.collect::<Vec<_>>());
            }
            Fact::Closed { change, stage, .. } => self.end_closed(change, *stage, at),
            Fact::HoldSet { change, reason, .. } => {
                if reason.is_some() {
                    self.leave_train(change);
                }
                if let Some(entry) = self.entries.get_mut(change) {
                    entry.held.clone_from(reason);
                }
            }
            Fact::Requeued { change, .. } => self.requeued(change),
            Fact::Approved { change, version, .. } => {
                if let Some(entry) = self.entry_at(change, *version)
                    && matches!(entry.status, Status::Stopped { why: Stop::Protected { .. } })
                {
                    entry.status = Status::Waiting;
                }
            }
            Fact::FreezeSet { reason } => self.frozen.clone_from(reason),
            Fact::OwnerSet { change, lane, owner_epoch } => {
                if *lane != self.name {
                    self.drop_entry(change);
                } else if let Some(entry) = self.entries.get_mut(change) {
                    entry.row.owner_epoch = *owner_epoch;
                } else {
                    self.wanted.insert(change.clone());
                }
            }
            Fact::SubmissionRefused { .. }
            | Fact::RefMoved { .. }
            | Fact::Claimed { .. }
            | Fact::ClaimReleased { .. }
            | Fact::ProtectedSet { .. } => {}
        }
    }

    /// Takes a row of the submissions log.
    fn take(&mut self, row: &Submission, at: Millis) {
        let was_aboard = self.leave_train(&row.change);
        let before = self.entries.get(&row.change);
        if before.is_some_and(|entry| entry.row.version >= row.version) {
            return;
        }
        if row.lane != self.name {
            self.drop_entry(&row.change);
            return;
        }
        let churned = if was_aboard { Some(at) } else { before.and_then(|entry| entry.churned) };
        let held = before.and_then(|entry| entry.held.clone());
        // What its author offers anew starts its count anew.
        let replayed = before.filter(|_| row.via == Via::Replay);
        let replays = replayed.map_or(0, |entry| entry.replays);
        let place = replayed.map_or(row.seq, |entry| entry.place);
        let reserved = replayed.and_then(|entry| entry.reserved);
        self.end_probe(&row.change);
        self.wanted.remove(&row.change);
        self.entries.insert(
            row.change.clone(),
            Entry {
                waits_for: row.waits_for.iter().filter(|parent| **parent != row.change).cloned().collect(),
                row: Box::new(row.clone()),
                since: at,
                status: Status::Waiting,
                held,
                failures: 0,
                told: None,
                churned,
                place,
                replays,
                reserved,
                behind: None,
                without: None,
            },
        );
    }

    /// Takes a row that was asked for: a change that was sent back by a rewrite of main, or offered again.
    pub(crate) fn known(&mut self, change: &ChangeId, known: Option<&KnownRow>, at: Millis) {
        self.wanted.remove(change);
        let Some(known) = known.filter(|_| !self.entries.contains_key(change)) else { return };
        self.take(&known.row, at);
        if let Some(entry) = self.entries.get_mut(change) {
            entry.held.clone_from(&known.held);
            if known.rewritten {
                entry.status = Status::SentBack { why: Why::Rewritten, at };
            }
        }
    }

    fn requeued(&mut self, change: &ChangeId) {
        let Some(entry) = self.entries.get_mut(change) else {
            self.wanted.insert(change.clone());
            return;
        };
        if matches!(entry.status, Status::SentBack { .. } | Status::Stopped { .. } | Status::Replaying { .. })
        {
            entry.status = Status::Waiting;
            entry.failures = 0;
            entry.replays = 0;
            entry.told = None;
        }
    }

    fn drop_entry(&mut self, change: &ChangeId) {
        self.leave_train(change);
        self.end_probe(change);
        self.entries.remove(change);
    }

    /// Changes that landed, in this order, leave the lane. All at once: a train has hundreds.
    fn end_landed(&mut self, landed: &[(ChangeId, ObjectId)]) {
        for (change, _) in landed {
            if let Some(entry) = self.entries.get(change) {
                let paths = entry.row.edits.iter().take(TOUCHED_PATHS_MAX).map(|edit| edit.path.clone());
                self.touch(change, paths.collect());
            }
            self.drop_entry(change);
            self.wanted.remove(change);
        }
        let changes: BTreeSet<&ChangeId> = landed.iter().map(|(change, _)| change).collect();
        for entry in self.entries.values_mut().filter(|entry| !entry.waits_for.is_empty()) {
            entry.waits_for.retain(|parent| !changes.contains(parent));
        }
        let known: BTreeSet<ObjectId> = self.landings.iter().map(|(_, commit)| *commit).collect();
        for one in landed {
            if !known.contains(&one.1) || !self.landings.contains(one) {
                self.landings.push_back(one.clone());
            }
        }
        while self.landings.len() > LANDINGS_KEPT {
            self.landings.pop_front();
        }
    }

    fn end_closed(&mut self, change: &ChangeId, stage: Terminal, at: Millis) {
        self.drop_entry(change);
        self.wanted.remove(change);
        let children: Vec<ChangeId> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.waits_for.contains(change))
            .map(|(child, _)| child.clone())
            .collect();
        for child in children {
            let orphaned = match stage {
                Terminal::Landed | Terminal::AlreadyOnMain => false,
                Terminal::Withdrawn | Terminal::Expired => true,
            };
            if orphaned {
                self.leave_train(&child);
                self.end_probe(&child);
            }
            if let Some(entry) = self.entries.get_mut(&child) {
                entry.waits_for.remove(change);
                if orphaned {
                    entry.status =
                        Status::SentBack { why: Why::Orphaned { parent: change.clone(), stage }, at };
                }
            }
        }
    }
}
