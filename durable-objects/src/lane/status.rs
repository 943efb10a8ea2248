//! What a lane says of itself.

use yard_common::{ChangeId, Millis, Refusal};
use yard_queue::Work;
use yard_queue::state::{Attempt, Run};
use yard_queue::story::{Story, not_sent_back};
use yard_wire::lane as wire;

use super::{Lane, Loaded, store};
use crate::repository::Platform;

/// Runs that are shown.
const RUNS_MAX: usize = 50;

/// Leased work, as a runner gets it.
pub(super) fn work(work: Work) -> wire::Work {
    wire::Work {
        run: work.run,
        lease: work.lease,
        until: work.until,
        attempt: work.attempt,
        reference: work.reference.to_string(),
        commit: work.commit.0,
        tree: work.commit.1,
        suite: work.suite,
        command: work.check.command,
        config: work.check.config,
        junit: work.check.junit,
        timeout_seconds: work.check.timeout_seconds,
    }
}

fn open_run(attempt: &Attempt, run: &Run) -> wire::RunView {
    wire::RunView {
        run: run.id.clone(),
        purpose: run.purpose.as_str().into(),
        attempt: attempt.id.clone(),
        tree: run.tree,
        changes: attempt.aboard(run.count),
        runner: run.lease.as_ref().map(|lease| lease.runner.clone()),
        result: None,
        open: true,
    }
}

fn entry(loaded: &Loaded, change: &ChangeId, now: Millis) -> Option<wire::EntryView> {
    let stage = loaded.brain.stage(change, loaded.world.view.as_ref(), now)?;
    let entry = loaded.brain.entries.get(change)?;
    Some(wire::EntryView {
        change: change.clone(),
        version: entry.row.version,
        stage: stage.stage,
        reason: stage.reason,
        verdict: stage.verdict,
        runs: stage.runs,
        attempt: stage.attempt,
        since: entry.since,
    })
}

fn runs(loaded: &Loaded) -> Vec<wire::RunView> {
    let brain = &loaded.brain;
    let open = brain.attempts.values().rev().flat_map(|attempt| {
        let runs = attempt.runs.iter().rev().filter(|run| run.ended.is_none());
        runs.map(move |run| open_run(attempt, run))
    });
    let past = brain.past_runs.iter().map(|past| wire::RunView {
        run: past.run.clone(),
        purpose: past.purpose.as_str().into(),
        attempt: past.attempt.clone(),
        tree: past.tree,
        changes: past.changes.clone(),
        runner: past.runner.clone(),
        result: past.result.clone(),
        open: false,
    });
    open.chain(past).take(RUNS_MAX).collect()
}

impl<P: Platform> Lane<P> {
    /// Entries by age, each with its stage and one sentence; runs; flaky tests.
    pub(super) fn status(&self, asked: &wire::Status, now: Millis) -> Result<wire::StatusReply, Refusal> {
        self.introduce(&asked.repo, &asked.lane)?;
        let outbox = self.outbox()?;
        self.with(|loaded| {
            let brain = &loaded.brain;
            let mut changes: Vec<&ChangeId> = if asked.changes.is_empty() {
                brain.entries.keys().collect()
            } else {
                asked.changes.iter().filter(|change| brain.entries.contains_key(*change)).collect()
            };
            changes.sort_by_key(|change| brain.entries.get(*change).map(|entry| entry.row.seq));
            wire::StatusReply {
                waits: brain.waits(loaded.world.view.as_ref()),
                entries: changes.into_iter().filter_map(|change| entry(loaded, change, now)).collect(),
                runs: runs(loaded),
                flaky: brain.flaky.iter().map(|(test, times)| (test.clone(), *times)).collect(),
                outbox,
            }
        })
    }
}

impl<P: Platform> Lane<P> {
    /// What was done with one change, told from the facts that are still kept.
    pub(super) fn history(&self, asked: &wire::History) -> Result<Vec<wire::Step>, Refusal> {
        self.introduce(&asked.repo, &asked.lane)?;
        let mut story = Story::new(asked.change.clone());
        let mut steps = Vec::new();
        store::each_decision(&self.sql, &asked.change, |at, facts| {
            for told in facts.iter().filter_map(|fact| story.tell(fact)) {
                let (kind, text) = (told.kind.to_owned(), told.text);
                if let Some(last) = steps.last_mut().filter(|last: &&mut wire::Step| last.kind == "back")
                    && kind == "replay"
                    && let Some(text) = not_sent_back(&last.text)
                {
                    (last.kind, last.text) = ("attempt".into(), text.to_owned());
                }
                steps.push(wire::Step { at, kind, text, attempt: told.attempt, run: told.run, fact: None });
            }
        })?;
        Ok(steps)
    }
}
