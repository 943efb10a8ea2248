//! How facts change the state of a lane: the repository's facts, and the life of an attempt.

use std::collections::BTreeSet;

use yard_common::fact::Terminal;
use yard_common::landing::AttemptId;
use yard_common::stage::Verdict;
use yard_common::submission::{Submission, Via};
use yard_common::{ChangeId, Fact, Millis, ObjectId, Refusal, RunId, TrainNo, Version};

use crate::fact::{Aside, AttemptKind, Candidate, KnownRow, LandAnswer};
use crate::limits::{CALL_RETRY_MS, FAILURES_MAX, LANDINGS_KEPT, TOUCHED_PATHS_MAX};
use crate::replay::Behind;
use crate::state::{Attempt, Entry, Lane, Status, Stop, Why};
use crate::without::Without;

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

    /// A change leaves its train: those before it may still land, those behind it go back to their
    /// places. A landing that is asked for keeps all its changes until the answer.
    pub(crate) fn leave_train(&mut self, change: &ChangeId) -> bool {
        let Some(Status::Aboard { train }) = self.entries.get(change).map(|entry| entry.status.clone())
        else {
            return false;
        };
        let Some(attempt) = self.attempts.get(&train) else { return false };
        if attempt.landing.is_some() {
            return true;
        }
        let place = attempt
            .candidate
            .as_ref()
            .and_then(|candidate| candidate.members.iter().position(|member| member.change == *change));
        match place {
            Some(index) if index > 0 && index < attempt.limit => self.cut(train, index),
            _ => self.close_attempt(train, "one of its changes left it"),
        }
        true
    }

    /// Only the first `limit` changes of the train may still land; the others go back to their places.
    fn cut(&mut self, train: TrainNo, limit: usize) {
        let Some(attempt) = self.attempts.get_mut(&train) else { return };
        let left: Vec<ChangeId> = attempt
            .candidate
            .iter()
            .flat_map(|candidate| candidate.members.iter().take(attempt.limit).skip(limit))
            .map(|member| member.change.clone())
            .collect();
        attempt.limit = attempt.limit.min(limit);
        self.put_back(train, &left, None);
    }

    fn put_back(&mut self, train: TrainNo, changes: &[ChangeId], told: Option<&str>) {
        for change in changes {
            if let Some(entry) = self.entries.get_mut(change)
                && entry.status == (Status::Aboard { train })
            {
                entry.status = Status::Waiting;
                entry.told = told.map(str::to_owned);
            }
        }
    }

    /// Ends an attempt without landing: its changes go back to their places.
    pub(crate) fn close_attempt(&mut self, train: TrainNo, why: &str) {
        let Some(attempt) = self.attempts.remove(&train) else { return };
        match &attempt.kind {
            AttemptKind::Train => {
                let members = attempt.aboard(usize::MAX);
                self.put_back(train, &members, Some(why));
            }
            AttemptKind::Probe { change, version, .. } => {
                if let Some(entry) = self.entry_at(change, *version)
                    && let Status::Suspect { probe, .. } = &mut entry.status
                {
                    *probe = None;
                }
            }
            AttemptKind::Confirm { .. } | AttemptKind::Without { .. } => {}
        }
    }

    /// Main is not where the open train stands on.
    fn main_moved(&mut self, why: &str) {
        let trains: Vec<TrainNo> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| match attempt.kind {
                AttemptKind::Train => attempt.landing.is_none(),
                AttemptKind::Probe { on_main, .. } => on_main,
                AttemptKind::Confirm { .. } => true,
                // Evidence for the record: it may come after the landing.
                AttemptKind::Without { .. } => false,
            })
            .map(|(train, _)| *train)
            .collect();
        for train in trains {
            self.close_attempt(train, why);
        }
    }

    pub(crate) fn began(&mut self, id: &AttemptId, kind: &AttemptKind, at: Millis) {
        self.last_train = self.last_train.max(id.train);
        if let AttemptKind::Probe { change, version, .. } = kind
            && let Some(entry) = self.entry_at(change, *version)
            && let Status::Suspect { probe, .. } = &mut entry.status
        {
            *probe = Some(id.train);
        }
        let attempt = Attempt {
            id: id.clone(),
            staged: id.clone(),
            kind: kind.clone(),
            began: at,
            candidate: None,
            limit: 0,
            runs: Vec::new(),
            landing: None,
            after: Millis::default(),
        };
        self.attempts.insert(id.train, attempt);
    }

    pub(crate) fn assembled(
        &mut self,
        id: &AttemptId,
        candidate: Option<&Candidate>,
        aside: &[(ChangeId, Version, Aside)],
        at: Millis,
    ) {
        let without = self.attempts.get(&id.train).is_some_and(|attempt| attempt.is_without());
        for (change, version, aside) in aside.iter().filter(|_| !without) {
            self.put_aside(change, *version, aside, id.train, at);
        }
        let Some(attempt) = self.attempts.get_mut(&id.train).filter(|attempt| attempt.id == *id) else {
            return;
        };
        if let (AttemptKind::Without { .. }, None) = (&attempt.kind, candidate) {
            let why = "they do not merge with main alone".to_owned();
            return self.tried_without(id, &Without::Unknown { why });
        }
        let Some(candidate) = candidate else {
            self.close_attempt(id.train, "none of its changes could board");
            return;
        };
        attempt.limit = candidate.members.len();
        attempt.candidate = Some(Box::new(candidate.clone()));
        if attempt.kind == AttemptKind::Train {
            for member in &candidate.members {
                if let Some(entry) = self.entry_at(&member.change, member.version) {
                    entry.status = Status::Aboard { train: id.train };
                    entry.behind = None;
                    entry.told = None;
                }
            }
        }
    }

    fn put_aside(&mut self, change: &ChangeId, version: Version, aside: &Aside, train: TrainNo, at: Millis) {
        let Some(entry) = self.entry_at(change, version) else { return };
        entry.behind = None;
        entry.status = match aside {
            Aside::Behind { paths } => {
                entry.behind = Some(Behind { train, paths: paths.clone(), early: None });
                Status::Waiting
            }
            Aside::Collided { paths } => Status::SentBack { why: Why::Collided { paths: paths.clone() }, at },
            Aside::AlreadyOnMain => Status::Closing { stage: Terminal::AlreadyOnMain },
            Aside::Nothing => Status::SentBack { why: Why::Nothing, at },
            Aside::BadConfig { why } => Status::SentBack { why: Why::BadConfig { why: why.clone() }, at },
            Aside::Broken { why } => Status::Stopped { why: Stop::Quarantined { why: why.clone() } },
        };
    }

    pub(crate) fn ended(&mut self, id: &AttemptId, why: &str) {
        if self.attempts.get(&id.train).is_some_and(|attempt| attempt.id == *id) {
            self.close_attempt(id.train, why);
        }
    }

    pub(crate) fn suspected(&mut self, train: TrainNo, index: usize, runs: &[RunId]) {
        let Some(attempt) = self.attempts.get(&train) else { return };
        let suspect = attempt.candidate.as_ref().and_then(|candidate| candidate.members.get(index)).cloned();
        let with = attempt.nearest_first(index);
        self.cut(train, index);
        if index == 0 {
            self.close_attempt(train, "its first change is tried alone");
        }
        if let Some(suspect) = suspect
            && let Some(entry) = self.entry_at(&suspect.change, suspect.version)
        {
            entry.status = Status::Suspect { runs: runs.to_vec(), with, on_main: false, probe: None };
        }
    }

    pub(crate) fn judged(
        &mut self,
        change: &ChangeId,
        version: Version,
        verdict: &Verdict,
        runs: &[RunId],
        detail: &str,
        at: Millis,
    ) {
        self.leave_train(change);
        self.end_probe(change);
        let Some(entry) = self.entry_at(change, version) else { return };
        let (runs, detail) = (runs.to_vec(), detail.to_owned());
        entry.status = match verdict {
            Verdict::BrokenAlone | Verdict::Interaction { .. } => {
                Status::SentBack { why: Why::Judged { verdict: verdict.clone(), runs, detail }, at }
            }
            Verdict::Infra => Status::Stopped { why: Stop::Infra { runs, detail } },
            Verdict::StaleBase { .. } | Verdict::Victim { .. } | Verdict::Flaky { .. } | Verdict::MainRed => {
                Status::Waiting
            }
        };
    }

    /// Main stands at the tip of this landing.
    fn landed_key(&mut self, id: &AttemptId, tip: ObjectId) {
        self.bad_main = None;
        let Some(attempt) = self.attempts.get(&id.train).filter(|attempt| attempt.id == *id) else {
            return;
        };
        let count = attempt.landing.as_ref().map_or(attempt.limit, |landing| landing.count);
        let landed: Vec<(ChangeId, ObjectId)> = attempt
            .candidate
            .iter()
            .flat_map(|candidate| candidate.members.iter().take(count))
            .map(|member| (member.change.clone(), member.commit))
            .collect();
        debug_assert!(landed.last().is_none_or(|(_, commit)| *commit == tip));
        self.close_attempt(id.train, "changes before it landed");
        self.end_landed(&landed);
        self.narrow = None;
        self.main_moved("a train landed");
    }

    /// The Repository's answer to a landing.
    pub(crate) fn answered(&mut self, id: &AttemptId, answer: &LandAnswer, at: Millis) {
        let Some(attempt) = self.attempts.get(&id.train).filter(|attempt| attempt.id == *id) else { return };
        let Some(landing) = &attempt.landing else { return };
        let members = attempt.aboard(landing.count);
        match answer {
            Ok((tip, _)) => self.landed_key(id, *tip),
            Err(refusal) => self.refused(id, refusal, &members, at),
        }
    }

    fn refused(&mut self, id: &AttemptId, refusal: &Refusal, members: &[ChangeId], at: Millis) {
        match refusal {
            // The same candidate and its runs come again under the next number.
            Refusal::Turn { until, .. } => self.again(id.train, *until),
            Refusal::Frozen { .. } => self.again(id.train, at.plus(CALL_RETRY_MS)),
            Refusal::Internal { .. } | Refusal::Overloaded { .. } => {
                if let Some(attempt) = self.attempts.get_mut(&id.train) {
                    attempt.after = at.plus(CALL_RETRY_MS);
                }
            }
            Refusal::Protected { change, path, rule } => {
                self.close_attempt(id.train, &refusal.to_string());
                let why = Stop::Protected { path: path.clone(), rule: rule.clone() };
                self.stop(change, why);
            }
            Refusal::Moved { .. } => self.close_attempt(id.train, "main moved"),
            Refusal::AlreadyLanded { changes }
            | Refusal::Withdrawn { changes }
            | Refusal::Superseded { changes }
            | Refusal::Held { changes } => {
                self.close_attempt(id.train, &refusal.to_string());
                self.fail(changes, &refusal.to_string());
            }
            Refusal::Fence { change, .. }
            | Refusal::ParentOpen { change, .. }
            | Refusal::GoesBack { change, .. }
            | Refusal::NotOwner { change: Some(change) } => {
                self.close_attempt(id.train, &refusal.to_string());
                self.fail(std::slice::from_ref(change), &refusal.to_string());
            }
            Refusal::Unbound { change, .. } | Refusal::OtherTree { change, .. } => {
                self.close_attempt(id.train, &refusal.to_string());
                self.stop(change, Stop::Quarantined { why: refusal.to_string() });
            }
            _ => {
                self.close_attempt(id.train, &refusal.to_string());
                if matches!(refusal, Refusal::Unproven { .. }) {
                    self.greens.clear();
                }
                self.narrow = Some((members.len() / 2).max(1));
                self.fail(members, &refusal.to_string());
            }
        }
    }

    fn again(&mut self, train: TrainNo, after: Millis) {
        if let Some(attempt) = self.attempts.get_mut(&train) {
            attempt.id.attempt = attempt.id.attempt.next();
            attempt.after = after;
            attempt.landing = None;
        }
    }

    fn stop(&mut self, change: &ChangeId, why: Stop) {
        if let Some(entry) = self.entries.get_mut(change) {
            entry.status = Status::Stopped { why };
        }
    }

    /// Counts a failed landing; an entry that fails too often is put into quarantine.
    pub(crate) fn fail(&mut self, changes: &[ChangeId], why: &str) {
        for change in changes {
            let Some(entry) = self.entries.get_mut(change) else { continue };
            entry.failures += 1;
            entry.told = Some(why.to_owned());
            if entry.failures >= FAILURES_MAX {
                entry.status = Status::Stopped { why: Stop::Quarantined { why: why.to_owned() } };
            }
        }
    }
}
