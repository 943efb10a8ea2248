//! When a model redoes a change: on a collision, on an interaction, and early, while the rival ahead
//! is still tested.
//!
//! A replay is a job with a number; the answer comes as a next version of the change, or as the reason
//! why there is none. What comes under another number than the open one counts as cost alone. An
//! early replay only prepares the answer: once the rival has landed, the change collides with main, the
//! same prompt is asked, and its answer is at hand.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use yard_common::config::ReplayPolicy;
use yard_common::replay::{Cause, Cost, ReplayEnd};
use yard_common::stage::Verdict;
use yard_common::submission::Submission;
use yard_common::{ChangeId, Millis, ObjectId, ReplayNo, RepoPath, TrainNo, Version};

use crate::choose::changes_config;
use crate::fact::LaneFact;
use crate::limits::{
    PICKUP_DOUBLINGS_MAX, PICKUP_MS, REPLAY_ASKS_MAX, REPLAY_MS, RESERVE_AFTER, RESERVE_MS, RIVALS_MAX,
};
use crate::state::{Entry, Lane, Status, View, Why, World};

/// Milliseconds of a day: budgets are by UTC day.
const DAY_MS: u64 = 24 * 3600 * 1000;

/// A model replay that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Its number.
    pub no: ReplayNo,
    /// Why.
    pub cause: Cause,
    /// When it began.
    pub since: Millis,
    /// When it was put into the queue last; `None`: it is to be put there.
    pub asked: Option<Millis>,
    /// How often it was put there.
    pub asks: u32,
    /// Whoever took it up needs until then.
    #[serde(default)]
    pub until: Option<Millis>,
    /// An early one has ended, prepared or not; it stays as the mark that it was tried.
    #[serde(default)]
    pub done: bool,
}

/// A change that collides with one ahead of it in an open train, and not with main.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// The train.
    pub train: TrainNo,
    /// Where they collide.
    pub paths: Vec<(RepoPath, String)>,
    /// The replay that prepares for the rival's landing.
    pub early: Option<Open>,
}

/// What models cost on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Days since the Unix epoch, in UTC.
    pub day: u64,
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

/// A replay to be put into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The change.
    pub change: ChangeId,
    /// The version that is replayed.
    pub version: Version,
    /// The number.
    pub no: ReplayNo,
}

/// All that the lane knows about a replay that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The row.
    pub row: Box<Submission>,
    /// Why.
    pub cause: Cause,
    /// The commit and tree that the intent is redone on.
    pub onto: (ObjectId, ObjectId),
    /// Changes on its paths that came in since its base, newest last.
    pub rivals: Vec<ChangeId>,
    /// The answer is only prepared.
    pub early: bool,
}

impl Open {
    /// When it counts as lost.
    fn due(&self) -> Option<Millis> {
        let asked = self.asked.filter(|_| !self.done)?;
        let doubled = self.asks.saturating_sub(1).min(PICKUP_DOUBLINGS_MAX);
        Some(self.until.unwrap_or(asked.plus(PICKUP_MS << doubled)))
    }
}

impl Entry {
    /// The open replay of this entry, with `true` for an early one.
    #[must_use]
    pub fn replay(&self) -> Option<(&Open, bool)> {
        if let Status::Replaying { open } = &self.status {
            return Some((open, false));
        }
        let early = self.behind.as_ref()?.early.as_ref()?;
        (!early.done).then_some((early, true))
    }

    fn replay_mut(&mut self) -> Option<&mut Open> {
        if let Status::Replaying { open } = &mut self.status {
            return Some(open);
        }
        self.behind.as_mut()?.early.as_mut()
    }

    /// Why a model should redo it, if it should.
    fn cause(&self) -> Option<Cause> {
        let Status::SentBack { why, .. } = &self.status else { return None };
        match why {
            Why::Collided { paths } => Some(Cause::Collision { paths: paths.clone() }),
            Why::Judged { verdict: Verdict::Interaction { with }, runs, detail } => {
                Some(Cause::Interaction { with: with.clone(), runs: runs.clone(), detail: detail.clone() })
            }
            Why::Judged { .. }
            | Why::Nothing
            | Why::Rewritten
            | Why::BadConfig { .. }
            | Why::Orphaned { .. }
            | Why::NotReplayed { .. } => None,
        }
    }
}

impl Lane {
    /// Replays that begin, are asked for again, or are given up.
    pub(crate) fn settle_replays(&self, world: &World, now: Millis) -> Vec<LaneFact> {
        let mut facts = self.overdue(now);
        let Some(view) = world.view.as_ref().filter(|view| view.replay.by_model) else { return facts };
        let mut next = self.last_replay;
        for entry in self.entries.values() {
            let (change, version) = (entry.row.change.clone(), entry.row.version);
            if let Some(cause) = entry.cause() {
                if let Some(why) = self.barred(entry, &view.replay, now) {
                    facts.push(LaneFact::NotReplayed { change, version, why, at: now });
                    continue;
                }
                next = next.next();
                facts.push(LaneFact::ReplayBegan {
                    change,
                    version,
                    replay: next,
                    cause,
                    early: None,
                    at: now,
                });
            } else if let Some(behind) = &entry.behind
                && behind.early.is_none()
                && entry.status == Status::Waiting
                && self.attempts.contains_key(&behind.train)
                && self.barred(entry, &view.replay, now).is_none()
            {
                next = next.next();
                let cause = Cause::Collision { paths: behind.paths.clone() };
                let early = Some(behind.train);
                facts.push(LaneFact::ReplayBegan { change, version, replay: next, cause, early, at: now });
            }
        }
        facts
    }

    /// Replays whose answer did not come in time.
    fn overdue(&self, now: Millis) -> Vec<LaneFact> {
        let late = |open: &Open| open.due().is_some_and(|due| due <= now);
        let mut facts = Vec::new();
        for entry in self.entries.values() {
            let Some((open, early)) = entry.replay().filter(|(open, _)| late(open)) else { continue };
            let (change, version) = (entry.row.change.clone(), entry.row.version);
            if open.asks < REPLAY_ASKS_MAX && !early {
                facts.push(LaneFact::ReplayLost { change, version, replay: open.no });
                continue;
            }
            let why = format!("no answer came, asked {} times", open.asks);
            facts.push(LaneFact::ReplayEnded {
                change,
                version,
                replay: open.no,
                end: ReplayEnd::Failed { why },
                cost: Cost::default(),
                at: now,
            });
        }
        facts
    }

    /// Why no model is asked for this change, if so.
    fn barred(&self, entry: &Entry, policy: &ReplayPolicy, now: Millis) -> Option<String> {
        if changes_config(&entry.row) {
            return Some("a change of .switchyard.toml is never redone by a model".into());
        }
        if entry.replays >= policy.per_change {
            return Some(format!(
                "it was replayed {} times, as often as replay.per_change allows",
                entry.replays
            ));
        }
        let spent = if self.spent.day == now.0 / DAY_MS { self.spent.micro_usd } else { 0 };
        if spent >= policy.micro_usd_per_day {
            let limit = policy.micro_usd_per_day / 1_000_000;
            return Some(format!(
                "the models' budget of {limit} US dollars a day (replay.usd_per_day) is spent"
            ));
        }
        None
    }

    /// When an open replay is overdue.
    pub(crate) fn replays_due(&self) -> impl Iterator<Item = Millis> {
        self.entries.values().filter_map(|entry| entry.replay()?.0.due())
    }

    /// Replays that are to be put into the queue, at most 50.
    #[must_use]
    pub fn unasked(&self) -> Vec<Pointer> {
        let open = self.entries.values().filter_map(|entry| {
            let (open, _) = entry.replay().filter(|(open, _)| open.asked.is_none())?;
            Some(Pointer { change: entry.row.change.clone(), version: entry.row.version, no: open.no })
        });
        open.take(50).collect()
    }

    /// The job of an open replay; `None` when it is not open any more.
    #[must_use]
    pub fn replay_job(
        &self,
        change: &ChangeId,
        version: Version,
        no: ReplayNo,
        view: Option<&View>,
    ) -> Option<Job> {
        let entry = self.entries.get(change).filter(|entry| entry.row.version == version)?;
        let (open, early) = entry.replay().filter(|(open, _)| open.no == no)?;
        let onto = if early {
            let train = entry.behind.as_ref()?.train;
            let attempt = self.attempts.get(&train)?;
            attempt.candidate.as_ref()?.prefix(attempt.limit)
        } else {
            view?.head?
        };
        let rivals = self.rivals(entry, &open.cause);
        Some(Job { row: entry.row.clone(), cause: open.cause.clone(), onto, rivals, early })
    }

    /// Changes that touched the colliding paths since the base of the row, landed or aboard the train ahead.
    fn rivals(&self, entry: &Entry, cause: &Cause) -> Vec<ChangeId> {
        let paths: BTreeSet<&RepoPath> = match cause {
            Cause::Interaction { with, .. } => {
                return with.iter().rev().take(RIVALS_MAX).rev().cloned().collect();
            }
            Cause::Collision { paths } => paths.iter().map(|(path, _)| path).collect(),
        };
        let own: BTreeSet<&RepoPath> = entry.row.edits.iter().map(|edit| &edit.path).collect();
        let since: BTreeSet<ChangeId> = self.landed_since(&entry.row.base.commits).into_iter().collect();
        let touches =
            |touched: &[RepoPath]| touched.iter().any(|path| paths.contains(path) || own.contains(path));
        let mut rivals: Vec<ChangeId> = self
            .touched
            .iter()
            .filter(|(change, touched)| since.contains(change) && touches(touched))
            .map(|(change, _)| change.clone())
            .collect();
        let ahead = entry.behind.as_ref().and_then(|behind| self.attempts.get(&behind.train));
        let aboard = ahead.and_then(|attempt| attempt.candidate.as_ref()).map(|candidate| &candidate.members);
        for member in aboard.into_iter().flatten() {
            let touched: Vec<RepoPath> = member.edits.iter().map(|edit| edit.path.clone()).collect();
            if touches(&touched) && !rivals.contains(&member.change) {
                rivals.push(member.change.clone());
            }
        }
        let skip = rivals.len().saturating_sub(RIVALS_MAX);
        rivals.split_off(skip)
    }

    /// Keeps which paths a landing touched, so that a later collision can name it.
    pub(crate) fn touch(&mut self, change: &ChangeId, paths: Vec<RepoPath>) {
        self.touched.push_back((change.clone(), paths));
        while self.touched.len() > crate::limits::LANDINGS_KEPT {
            self.touched.pop_front();
        }
    }

    pub(crate) fn apply_to_replay(&mut self, fact: &LaneFact) {
        match fact {
            LaneFact::ReplayBegan { change, version, replay, cause, early, at } => {
                self.last_replay = self.last_replay.max(*replay);
                let open = Open {
                    no: *replay,
                    cause: cause.clone(),
                    since: *at,
                    asked: None,
                    asks: 0,
                    until: None,
                    done: false,
                };
                let Some(entry) = self.entry_at(change, *version) else { return };
                match (early, &mut entry.behind) {
                    (Some(train), Some(behind)) if behind.train == *train => behind.early = Some(open),
                    (Some(_), _) => {}
                    (None, _) => {
                        entry.replays += 1;
                        entry.behind = None;
                        entry.status = Status::Replaying { open };
                        if entry.replays > RESERVE_AFTER {
                            entry.reserved = Some(at.plus(RESERVE_MS));
                        }
                    }
                }
            }
            LaneFact::ReplaysAsked { replays, at } => {
                for entry in self.entries.values_mut() {
                    if let Some(open) = entry.replay_mut()
                        && replays.contains(&open.no)
                    {
                        (open.asked, open.asks, open.until) = (Some(*at), open.asks + 1, None);
                    }
                }
            }
            LaneFact::ReplayTaken { change, version, replay, until } => {
                if let Some(open) = self.open_replay(change, *version, *replay) {
                    open.until = Some(*until);
                }
            }
            LaneFact::ReplayLost { change, version, replay } => {
                if let Some(open) = self.open_replay(change, *version, *replay) {
                    (open.asked, open.until) = (None, None);
                }
            }
            LaneFact::ReplayEnded { change, version, replay, end, cost, at } => {
                self.spend(cost, *at);
                self.end_replay(change, *version, *replay, end, *at);
            }
            LaneFact::NotReplayed { change, version, why, at } => {
                if let Some(entry) = self.entry_at(change, *version)
                    && let Some(cause) = entry.cause()
                {
                    entry.status = Status::SentBack {
                        why: Why::NotReplayed { needs: cause, why: why.clone() },
                        at: *at,
                    };
                }
            }
            _ => {}
        }
    }

    /// The fact of an end: a repeat of one that has its effect already, without a cost, is none.
    pub(crate) fn replay_ended(
        &self,
        change: ChangeId,
        version: Version,
        replay: ReplayNo,
        end: ReplayEnd,
        cost: Cost,
        at: Millis,
    ) -> Vec<LaneFact> {
        let open = self.entries.get(&change).filter(|entry| entry.row.version == version);
        let open = open.and_then(Entry::replay).is_some_and(|(open, _)| open.no == replay);
        if !open && cost == Cost::default() {
            return Vec::new();
        }
        vec![LaneFact::ReplayEnded { change, version, replay, end, cost, at }]
    }

    fn open_replay(&mut self, change: &ChangeId, version: Version, no: ReplayNo) -> Option<&mut Open> {
        self.entry_at(change, version)?.replay_mut().filter(|open| open.no == no)
    }

    fn spend(&mut self, cost: &Cost, at: Millis) {
        let day = at.0 / DAY_MS;
        if self.spent.day != day {
            self.spent = Spent { day, micro_usd: 0 };
        }
        self.spent.micro_usd = self.spent.micro_usd.saturating_add(cost.micro_usd);
    }

    fn end_replay(&mut self, change: &ChangeId, version: Version, no: ReplayNo, end: &ReplayEnd, at: Millis) {
        let Some(entry) = self.entry_at(change, version) else { return };
        if let Some(early) = entry.behind.as_mut().and_then(|behind| behind.early.as_mut())
            && early.no == no
        {
            early.done = true;
            return;
        }
        let Status::Replaying { open } = &mut entry.status else { return };
        if open.no != no {
            return;
        }
        match end {
            // The version is in the repository's log: it comes with the next pull.
            ReplayEnd::Proposed { .. } | ReplayEnd::Prepared => open.until = Some(at.plus(REPLAY_MS)),
            ReplayEnd::Failed { why } => {
                let why = Why::NotReplayed { needs: open.cause.clone(), why: why.clone() };
                entry.status = Status::SentBack { why, at };
            }
        }
    }
}
