//! The life of an attempt: how it begins, what becomes of its changes, how it ends.

use yard_common::fact::Terminal;
use yard_common::landing::AttemptId;
use yard_common::stage::Verdict;
use yard_common::{ChangeId, Millis, ObjectId, Refusal, RunId, TrainNo, Version};

use crate::fact::{Aside, AttemptKind, Candidate, LandAnswer};
use crate::limits::{CALL_RETRY_MS, FAILURES_MAX};
use crate::replay::Behind;
use crate::state::{Attempt, Lane, Status, Stop, Why};
use crate::without::Without;

impl Lane {
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
    pub(super) fn main_moved(&mut self, why: &str) {
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
    pub(super) fn landed_key(&mut self, id: &AttemptId, tip: ObjectId) {
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
