//! Where an entry stands and why: derived from the state, one true sentence each.

use yard_common::fact::Terminal;
use yard_common::landing::AttemptId;
use yard_common::replay::Cause;
use yard_common::stage::{Stage, Verdict};
use yard_common::{ChangeId, Millis, RepoPath, RunId};

use crate::choose::blocked_by;
use crate::judge::Together;
use crate::replay::{Behind, Open};
use crate::state::{Attempt, Entry, Lane, Status, Stop, View, Why};

/// Where an entry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryStage {
    /// The stage.
    pub stage: Stage,
    /// Why it is not on main.
    pub reason: String,
    /// The verdict, where one was reached.
    pub verdict: Option<Verdict>,
    /// The runs that prove it.
    pub runs: Vec<RunId>,
    /// The attempt it is in.
    pub attempt: Option<AttemptId>,
}

impl EntryStage {
    fn of(stage: Stage, reason: String) -> Self {
        Self { stage, reason, verdict: None, runs: Vec::new(), attempt: None }
    }
}

impl Lane {
    /// Where the change stands; `None` when it is no open change of this lane.
    #[must_use]
    pub fn stage(&self, change: &ChangeId, view: Option<&View>, now: Millis) -> Option<EntryStage> {
        let entry = self.entries.get(change)?;
        if let Some(reason) = &entry.held {
            return Some(EntryStage::of(Stage::Held, format!("held: {reason}")));
        }
        Some(match &entry.status {
            Status::Waiting => self.waiting(entry, view, now),
            Status::Aboard { train } => self.aboard(self.attempts.get(train)),
            Status::Suspect { runs, probe, on_main, .. } => {
                let place = if *on_main { "on main" } else { "on its own base" };
                let red = list(runs.iter().map(RunId::as_str));
                EntryStage {
                    attempt: probe
                        .and_then(|train| self.attempts.get(&train))
                        .map(|attempt| attempt.id.clone()),
                    runs: runs.clone(),
                    ..EntryStage::of(
                        Stage::Testing,
                        format!("red in a train ({red}), green without it: tested alone {place}"),
                    )
                }
            }
            Status::Replaying { open } => replaying(open),
            Status::SentBack { why, .. } => sent_back(why),
            Status::Stopped { why } => stopped(entry, why),
            Status::Closing { stage } => closing(*stage),
        })
    }

    fn waiting(&self, entry: &Entry, view: Option<&View>, now: Millis) -> EntryStage {
        if let Some(reason) = self.waits(view) {
            let bad = self.bad_main.as_ref();
            return EntryStage {
                verdict: bad.map(|bad| bad.verdict.clone()),
                runs: bad.map(|bad| bad.runs.clone()).unwrap_or_default(),
                ..EntryStage::of(Stage::Held, reason)
            };
        }
        let claims = view.map(|view| view.claims.as_slice()).unwrap_or_default();
        if let Some(blocked) = blocked_by(&entry.row, claims, now) {
            let holder =
                blocked.holder.map_or_else(|| "the parent repository".into(), |fork| fork.to_string());
            let reason = format!("{} is claimed by {holder} {}", blocked.path, blocked.until.until(now));
            return EntryStage::of(Stage::Held, reason);
        }
        if let Some((parent, told)) = self.stuck_parent(entry) {
            return EntryStage::of(Stage::Held, format!("it is built on {parent}, which {told}"));
        }
        if let Some(behind) = entry.behind.as_ref().filter(|_| self.is_behind(entry)) {
            return EntryStage::of(Stage::Queued, behind_of(behind));
        }
        if let Some((other, path)) = self.reserved_by(entry, now) {
            let (change, times) = (&other.row.change, other.replays);
            let reason = format!("{path} is reserved for {change}, which was replayed {times} times already");
            return EntryStage::of(Stage::Held, reason);
        }
        let ahead = self.entries.values().filter(|other| {
            matches!(other.status, Status::Waiting | Status::Aboard { .. }) && other.place < entry.place
        });
        let mut reason = match ahead.count() {
            0 => "next to board a train".to_owned(),
            1 => "one change is ahead of it".to_owned(),
            n => format!("{n} changes are ahead of it"),
        };
        if let Some(told) = &entry.told {
            reason = format!("{reason}; back at its place because {told}");
        }
        EntryStage::of(Stage::Queued, reason)
    }

    /// A parent that does not come by itself.
    fn stuck_parent(&self, entry: &Entry) -> Option<(ChangeId, &'static str)> {
        entry.waits_for.iter().find_map(|parent| {
            let told = match self.entries.get(parent) {
                None => "is not in this lane and has not landed",
                Some(parent) if parent.held.is_some() => "is held",
                Some(parent) => match parent.status {
                    Status::SentBack { .. } => "waits for its author",
                    Status::Stopped { .. } => "is held",
                    Status::Suspect { .. } => "is tested alone",
                    Status::Replaying { .. } => "is being replayed",
                    Status::Waiting | Status::Aboard { .. } | Status::Closing { .. } => return None,
                },
            };
            Some((parent.clone(), told))
        })
    }

    fn aboard(&self, attempt: Option<&Attempt>) -> EntryStage {
        let Some(attempt) = attempt else {
            return EntryStage::of(Stage::Queued, "between two trains".into());
        };
        let running = attempt.runs.iter().filter(|run| run.ended.is_none());
        let runner = running.filter_map(|run| run.lease.as_ref()).map(|lease| lease.runner.as_str()).next();
        let green = attempt.candidate.as_ref().is_some_and(|candidate| {
            let tree = candidate.prefix(attempt.limit).1;
            matches!(self.together(attempt, tree, attempt.limit, &candidate.checks), Together::Green(_))
        });
        let train = attempt.id.train;
        let reason = match (&attempt.landing, green, runner) {
            (Some(_), _, _) => format!("train {train} is green and landing"),
            (None, true, _) => match &self.frozen {
                Some(reason) => format!("train {train} is green; landing is frozen: {reason}"),
                None => format!("train {train} is green and about to land"),
            },
            (None, false, Some(runner)) => format!("train {train} is tested by {runner}"),
            (None, false, None) => format!("train {train} waits for a runner"),
        };
        EntryStage {
            attempt: Some(attempt.id.clone()),
            runs: attempt.runs.iter().map(|run| run.id.clone()).collect(),
            ..EntryStage::of(Stage::Testing, reason)
        }
    }
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// Paths with what went wrong at each, ten of them.
fn places(paths: &[(RepoPath, String)]) -> String {
    let shown: Vec<String> = paths.iter().take(10).map(|(path, why)| format!("{path} ({why})")).collect();
    let more = paths.len().saturating_sub(10);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Why a change has to be redone.
fn told(cause: &Cause) -> String {
    match cause {
        Cause::Collision { paths } => format!("collides with main at {}", places(paths)),
        Cause::Interaction { with, runs, detail } => {
            let proof = list(runs.iter().map(RunId::as_str));
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            let with = list(with.iter().map(ChangeId::as_str));
            let with = if with.is_empty() { "what landed since its base".to_owned() } else { with };
            format!("green alone, red together with {with} ({proof}){detail}")
        }
    }
}

fn replaying(open: &Open) -> EntryStage {
    let how = match (open.asked, open.asks) {
        (None, 0) => "a model is about to be asked".to_owned(),
        (None, n) => format!("a model is asked again, {n} answers did not come"),
        (Some(_), _) => "a model redoes it on newest main".to_owned(),
    };
    let (verdict, runs) = match &open.cause {
        Cause::Collision { .. } => (None, Vec::new()),
        Cause::Interaction { with, runs, .. } => {
            (Some(Verdict::Interaction { with: with.clone() }), runs.clone())
        }
    };
    let reason = format!("{}; replay {}: {how}", told(&open.cause), open.no);
    EntryStage { verdict, runs, ..EntryStage::of(Stage::Replaying, reason) }
}

fn behind_of(behind: &Behind) -> String {
    let early = match &behind.early {
        Some(open) if open.done => "; its replay is prepared",
        Some(_) => "; its replay is being prepared",
        None => "",
    };
    let (train, places) = (behind.train, places(&behind.paths));
    let told = "it waits for them to land or fall";
    format!("collides with changes ahead of it in train {train} at {places}: {told}{early}")
}

/// What the author of a change that does not merge is told to do.
pub(crate) const REBASE: &str = ": rebase it and push a new version";

pub(crate) fn sent_back(why: &Why) -> EntryStage {
    let back = |reason| EntryStage::of(Stage::NeedsAuthor, reason);
    match why {
        Why::Collided { paths } => {
            back(format!("collides with main at {}{REBASE}", places(paths)))
        }
        Why::NotReplayed { needs: cause, why } => {
            let verdict = match cause {
                Cause::Collision { .. } => None,
                Cause::Interaction { with, .. } => Some(Verdict::Interaction { with: with.clone() }),
            };
            let runs = match cause {
                Cause::Collision { .. } => Vec::new(),
                Cause::Interaction { runs, .. } => runs.clone(),
            };
            // Some reasons say by themselves what to do.
            let advice = if why.contains("push a new version") { "" } else { REBASE };
            let reason = format!("{}; not replayed: {why}{advice}", told(cause));
            EntryStage { verdict, runs, ..back(reason) }
        }
        Why::Judged { verdict, runs, detail } => {
            let proof = list(runs.iter().map(RunId::as_str));
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            let reason = match verdict {
                Verdict::Interaction { with } if with.is_empty() => {
                    format!("green alone on its base, red on today's main ({proof}){detail}")
                }
                Verdict::Interaction { with } => {
                    let with = list(with.iter().map(ChangeId::as_str));
                    format!("green alone, red together with {with}, which landed first ({proof}){detail}")
                }
                _ => format!("red alone while its base is green ({proof}){detail}"),
            };
            EntryStage { verdict: Some(verdict.clone()), runs: runs.clone(), ..back(reason) }
        }
        Why::Rewritten => {
            back("it had landed, and main was rewritten: push a new version or requeue it".into())
        }
        Why::Nothing => back(
            "merged with main it changes nothing: others have landed the same work; withdraw it, or push what is \
             left to do as a new version"
                .into(),
        ),
        Why::BadConfig { why } => back(format!("its .switchyard.toml cannot be read: {why}")),
        Why::Orphaned { parent, stage } => {
            let how = match stage {
                Terminal::Withdrawn => "was withdrawn",
                Terminal::Expired => "expired",
                Terminal::AlreadyOnMain | Terminal::Landed => "ended",
            };
            back(format!("it is built on {parent}, which {how}: rebase it onto main"))
        }
    }
}

fn stopped(entry: &Entry, why: &Stop) -> EntryStage {
    match why {
        Stop::Infra { runs, detail } => {
            let proof = list(runs.iter().map(RunId::as_str));
            EntryStage {
                verdict: Some(Verdict::Infra),
                runs: runs.clone(),
                ..EntryStage::of(
                    Stage::Held,
                    format!("no complete test result ({proof}): {detail}: push a new version or requeue it"),
                )
            }
        }
        Stop::Protected { path, rule } => {
            let (change, version) = (&entry.row.change, entry.row.version);
            let reason = format!("{path} is protected: {rule} (yard approve {change} {version})");
            EntryStage::of(Stage::Held, reason)
        }
        Stop::Quarantined { why } => {
            EntryStage::of(Stage::Held, format!("in quarantine: {why}: push a new version or requeue it"))
        }
    }
}

fn closing(stage: Terminal) -> EntryStage {
    match stage {
        Terminal::AlreadyOnMain => {
            EntryStage::of(Stage::Queued, "main has all that it wants: it is being closed".into())
        }
        Terminal::Expired => EntryStage::of(Stage::NeedsAuthor, "it waited for its author too long".into()),
        Terminal::Landed | Terminal::Withdrawn => EntryStage::of(Stage::Queued, "it is being closed".into()),
    }
}
