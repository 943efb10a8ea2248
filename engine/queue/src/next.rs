//! What the host does next: derived from the state, so a restart loses nothing.

use yard_common::fact::Terminal;
use yard_common::landing::{AttemptId, LandChange, LandRequest, SignedRun};
use yard_common::{ChangeId, Millis, ObjectId, Version};

use crate::fact::AttemptKind;
use crate::judge::Together;
use crate::replay::Pointer;
use crate::state::{Attempt, Landing, Lane, Status, World};

/// One step of the host. It does it, feeds what came of it, and asks again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read the repository's log to its end, and the view with it.
    Pull,
    /// Ask the repository for the rows of these changes.
    Ask(Vec<ChangeId>),
    /// Ask the repository to close a change.
    Close {
        /// The change.
        change: ChangeId,
        /// Its version.
        version: Version,
        /// How it ends.
        stage: Terminal,
        /// Main, as the lane saw it.
        head: ObjectId,
    },
    /// Assemble, stage and put an attempt.
    Assemble {
        /// Its number.
        attempt: AttemptId,
        /// What it is.
        kind: AttemptKind,
        /// The changes that may board, in order.
        changes: Vec<ChangeId>,
    },
    /// Write the notes of the first changes of a train and put their pack.
    Note {
        /// The attempt.
        attempt: AttemptId,
        /// How many changes land.
        count: usize,
        /// The runs that prove them.
        runs: Vec<SignedRun>,
    },
    /// Ask the kernel.
    Land {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Put these replays into the queue.
    Replay(Vec<Pointer>),
    /// Nothing, until an input comes or this time has come.
    Rest {
        /// When to ask again; `None`: an input will come.
        until: Option<Millis>,
    },
}

impl Lane {
    /// The next step.
    #[must_use]
    pub fn next(&self, world: &World, now: Millis) -> Step {
        let Some(view) = world.view.as_ref().filter(|_| !world.stale) else { return Step::Pull };
        if !self.wanted.is_empty() {
            return Step::Ask(self.wanted.iter().take(100).cloned().collect());
        }
        if let Some(close) = self.close(view.head.map(|head| head.0)) {
            return close;
        }
        if let Some(step) = self.land(now) {
            return step;
        }
        let unasked = self.unasked();
        if !unasked.is_empty() {
            return Step::Replay(unasked);
        }
        let assembling = world.assembling.is_some();
        if let (false, true) = (assembling, view.check.is_ok())
            && let Some(step) = self.without(view)
        {
            return step;
        }
        if self.train().is_none() && !assembling && self.waits(Some(view)).is_none() {
            let changes = self.choose(view, now);
            if !changes.is_empty() {
                return Step::Assemble { attempt: self.new_attempt(), kind: AttemptKind::Train, changes };
            }
        }
        if let (false, true, None) = (assembling, view.check.is_ok(), &self.bad_main)
            && let Some(step) = self.probe()
        {
            return step;
        }
        Step::Rest { until: self.wakes_at(world, now) }
    }

    fn close(&self, head: Option<ObjectId>) -> Option<Step> {
        let head = head.unwrap_or(ObjectId::ZERO);
        self.entries.values().find_map(|entry| match entry.status {
            Status::Closing { stage } => Some(Step::Close {
                change: entry.row.change.clone(),
                version: entry.row.version,
                stage,
                head,
            }),
            _ => None,
        })
    }

    fn land(&self, now: Millis) -> Option<Step> {
        let train = self.train()?;
        let candidate = train.candidate.as_ref()?;
        if train.after > now {
            return None;
        }
        if train.landing.is_some() {
            return Some(Step::Land { attempt: train.id.clone() });
        }
        if self.frozen.is_some() {
            return None;
        }
        match self.together(train, candidate.prefix(train.limit).1, train.limit, &candidate.checks) {
            Together::Green(runs) if train.limit > 0 => {
                Some(Step::Note { attempt: train.id.clone(), count: train.limit, runs })
            }
            _ => None,
        }
    }

    fn probe(&self) -> Option<Step> {
        self.entries.values().find_map(|entry| match &entry.status {
            Status::Suspect { probe: None, on_main, .. } if entry.held.is_none() => Some(Step::Assemble {
                attempt: self.new_attempt(),
                kind: AttemptKind::Probe {
                    change: entry.row.change.clone(),
                    version: entry.row.version,
                    on_main: *on_main,
                },
                changes: vec![entry.row.change.clone()],
            }),
            _ => None,
        })
    }

    /// When there may be something to do although no input comes: never earlier than now.
    fn wakes_at(&self, world: &World, now: Millis) -> Option<Millis> {
        let waiting = || self.entries.values().filter(|entry| entry.status == Status::Waiting);
        let claims = world.view.iter().flat_map(|view| &view.claims).map(|claim| claim.until);
        let claims = claims.filter(|until| *until > now && waiting().next().is_some());
        let reserved = self.entries.values().filter_map(|entry| entry.reserved).filter(|until| *until > now);
        let churned = waiting().filter_map(|entry| entry.churned);
        let churned = churned.map(|at| at.plus(crate::limits::CHURN_WAIT_MS)).filter(|until| *until > now);
        let expiring = self.entries.values().filter_map(|entry| match entry.status {
            Status::SentBack { at, .. } => Some(at.plus(yard_common::limits::NEEDS_AUTHOR_MS_MAX)),
            _ => None,
        });
        let turn = self.train().map(|train| train.after).filter(|after| *after > now);
        claims.chain(churned).chain(reserved).chain(expiring).chain(turn).chain(self.settles_at()).min()
    }

    /// The request of a train whose notes are written, with what travels beside it.
    #[must_use]
    pub fn land_request(&self, attempt: &AttemptId) -> Option<(LandRequest, &Landing)> {
        let train: &Attempt = self.attempts.get(&attempt.train).filter(|train| train.id == *attempt)?;
        let candidate = train.candidate.as_ref()?;
        let landing = train.landing.as_ref()?;
        let (tip, tree) = candidate.prefix(landing.count);
        let Together::Green(runs) = self.together(train, tree, landing.count, &candidate.checks) else {
            return None;
        };
        let changes = candidate.members.iter().take(landing.count).map(|member| LandChange {
            change: member.change.clone(),
            version: member.version,
            commit: member.commit,
            edits: member.edits.clone(),
            list: member.list.clone(),
        });
        let request = LandRequest {
            key: train.id.clone(),
            epoch: candidate.epoch,
            owner_epoch: candidate.owner_epoch,
            head: candidate.head,
            tested_head: candidate.head,
            tip,
            notes_head: landing.notes_head,
            notes_tip: landing.commit.id,
            candidate: candidate.pack.clone(),
            notes: landing.pack.clone(),
            changes: changes.collect(),
            runs,
        };
        Some((request, landing))
    }
}
