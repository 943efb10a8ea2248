//! What a decision tells the board: few events a train, one for each change that needs somebody.

use yard_common::replay::ReplayEnd;
use yard_common::stage::Stage;
use yard_common::{ChangeId, Millis};
use yard_queue::fact::AttemptKind;
use yard_queue::{Lane as Brain, LaneFact};
use yard_wire::board::Event;
use yard_wire::names;

use super::Loaded;

/// Events of one decision at most: their numbers are the row's times this.
const EVENTS_MAX: usize = 1_000;

/// What is compared with what the decision made of it.
pub(super) struct Before {
    lane_waits: Option<String>,
}

impl Before {
    pub fn of(brain: &Brain) -> Self {
        Self { lane_waits: brain.waits(None) }
    }
}

/// The events of a decision, numbered after the row that it will have.
pub(super) fn of(before: &Before, loaded: &Loaded, facts: &[LaneFact], now: Millis) -> Vec<Event> {
    let Some(repo) = &loaded.repo else { return Vec::new() };
    let brain = &loaded.brain;
    let mut told: Vec<(&'static str, Option<ChangeId>, String)> = Vec::new();
    for fact in facts {
        tell(brain, fact, &mut told);
    }
    let waits = brain.waits(loaded.world.view.as_ref());
    if waits != before.lane_waits && facts.iter().any(|fact| matches!(fact, LaneFact::MainBad { .. })) {
        told.push(("main", None, waits.unwrap_or_default()));
    }
    let source = names::lane(repo, &brain.name);
    let row = loaded.stored.last + 1;
    told.truncate(EVENTS_MAX);
    told.into_iter()
        .enumerate()
        .map(|(place, (kind, change, text))| {
            let text = match (&change, text.is_empty()) {
                (Some(change), true) => {
                    let stage = brain.stage(change, loaded.world.view.as_ref(), now);
                    stage.map(|stage| stage.reason).unwrap_or_default()
                }
                _ => text,
            };
            Event {
                source: source.clone(),
                number: row * EVENTS_MAX as u64 + place as u64,
                at: now,
                kind: kind.to_owned(),
                change,
                lane: Some(brain.name.clone()),
                text,
            }
        })
        .collect()
}

fn tell(brain: &Brain, fact: &LaneFact, told: &mut Vec<(&'static str, Option<ChangeId>, String)>) {
    match fact {
        LaneFact::Assembled { attempt, candidate, aside, .. } => {
            let train =
                brain.attempts.get(&attempt.train).is_some_and(|open| open.kind == AttemptKind::Train);
            if let (Some(candidate), true) = (candidate, train) {
                let count = candidate.members.len();
                let text = format!("train {} carries {count} changes and waits for a runner", attempt.train);
                told.push(("testing", None, text));
            }
            told.extend(
                aside
                    .iter()
                    .map(|(change, ..)| (kind_of(brain, change), Some(change.clone()), String::new())),
            );
        }
        LaneFact::RunOpened { run, purpose, .. } => {
            told.push(("work", None, format!("run {run} ({}) waits for a runner", purpose.as_str())));
        }
        LaneFact::Leased { run, runner, .. } => {
            told.push(("testing", None, format!("run {run} is with {runner}")));
        }
        LaneFact::Reported { signed, fault, .. } => {
            let result = match (&fault, signed.result.proves_green()) {
                (Some(fault), _) => format!("incomplete: {fault}"),
                (None, true) => format!("green, {} tests", signed.result.ran),
                (None, false) => {
                    format!("not green, {} of {} tests failed", signed.result.failed.len(), signed.result.ran)
                }
            };
            told.push(("run", None, format!("run {}: {result}", signed.run)));
        }
        LaneFact::Judged { change, .. } | LaneFact::Cleared { change, .. } => {
            told.push((kind_of(brain, change), Some(change.clone()), String::new()));
        }
        LaneFact::Suspected { train, runs, .. } => {
            let red = runs.iter().map(yard_common::RunId::as_str).collect::<Vec<_>>().join(", ");
            told.push(("testing", None, format!("train {train} is red ({red}): the suspect is tried alone")));
        }
        LaneFact::Ended { attempt, why } => {
            told.push(("queued", None, format!("attempt {attempt} ended: {why}")))
        }
        LaneFact::Answered { attempt, answer, .. } => {
            if let Err(refusal) = answer {
                told.push(("queued", None, format!("attempt {attempt} did not land: {refusal}")));
            }
        }
        LaneFact::ReplayBegan { .. } | LaneFact::ReplayEnded { .. } | LaneFact::NotReplayed { .. } => {
            tell_replay(brain, fact, told);
        }
        LaneFact::MainAgain { .. } => told.push(("main", None, "main is tried again".into())),
        LaneFact::Read { .. }
        | LaneFact::Known { .. }
        | LaneFact::Began { .. }
        | LaneFact::Renewed { .. }
        | LaneFact::LeaseLost { .. }
        | LaneFact::Late { .. }
        | LaneFact::TriedWithout { .. }
        | LaneFact::ReplaysAsked { .. }
        | LaneFact::ReplayTaken { .. }
        | LaneFact::ReplayLost { .. }
        | LaneFact::OnMain { .. }
        | LaneFact::Expiring { .. }
        | LaneFact::MainBad { .. }
        | LaneFact::Noted { .. }
        | LaneFact::CloseRefused { .. } => {}
    }
}

fn tell_replay(brain: &Brain, fact: &LaneFact, told: &mut Vec<(&'static str, Option<ChangeId>, String)>) {
    let (change, text) = match fact {
        LaneFact::ReplayBegan { change, early: None, .. } | LaneFact::NotReplayed { change, .. } => {
            (change, String::new())
        }
        LaneFact::ReplayEnded { change, replay, end, .. } => {
            let text = match end {
                ReplayEnd::Proposed { version } => format!("replay {replay} is offered as version {version}"),
                ReplayEnd::Prepared => format!("replay {replay} is prepared"),
                ReplayEnd::Failed { .. } => String::new(),
            };
            (change, text)
        }
        _ => return,
    };
    told.push((kind_of(brain, change), Some(change.clone()), text));
}

fn kind_of(brain: &Brain, change: &ChangeId) -> &'static str {
    match brain.stage(change, None, Millis(0)).map(|stage| stage.stage) {
        Some(Stage::NeedsAuthor) => "needs-author",
        Some(Stage::Held) => "held",
        Some(Stage::Testing) => "testing",
        Some(Stage::Replaying) => "replaying",
        Some(Stage::Queued | Stage::Submitted) => "queued",
        Some(Stage::Landed | Stage::Withdrawn | Stage::AlreadyOnMain | Stage::Expired) | None => "ended",
    }
}
