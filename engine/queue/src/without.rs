//! The proof that a replayed change does what was asked: its own tests, put on main without the rest of
//! it, must fail.
//!
//! The train's green run shows that they pass with it. This run is evidence for the record and decides
//! nothing: landing does not wait for it.

use serde::{Deserialize, Serialize};
use yard_common::landing::AttemptId;
use yard_common::policy::glob_matches;
use yard_common::submission::Submission;
use yard_common::{Millis, RunId};

use crate::fact::{AttemptKind, Candidate, LaneFact, Purpose};
use crate::judge::{Need, is_red};
use crate::next::Step;
use crate::settle::run_opened;
use crate::state::{Attempt, Entry, Lane, Status, View};

/// What its own tests say without the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "without", rename_all = "kebab-case")]
pub enum Without {
    /// They fail, as they should.
    Red {
        /// The run.
        run: RunId,
        /// What failed, in a few words.
        detail: String,
    },
    /// They pass: they do not show that the change does anything.
    Green {
        /// The run.
        run: RunId,
    },
    /// It is not known.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Without {
    /// One sentence for the record.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Red { run, detail } => format!("its own tests fail without it ({run}: {detail})"),
            Self::Green { run } => format!("its own tests pass without it as well ({run})"),
            Self::Unknown { why } => format!("its own tests were not run without it: {why}"),
        }
    }
}

/// The edits of a row that are tests by these patterns.
#[must_use]
pub fn own_tests(row: &Submission, patterns: &[String]) -> Submission {
    let is_test = |path: &[u8]| patterns.iter().any(|pattern| glob_matches(pattern.as_bytes(), path));
    let edits = row.edits.iter().filter(|edit| is_test(edit.path.as_bytes())).cloned().collect();
    Submission { edits, ..row.clone() }
}

impl Lane {
    /// The next replayed change whose own tests are to be tried without it.
    pub(crate) fn without(&self, view: &View) -> Option<Step> {
        let tried = |entry: &Entry| {
            entry.without.is_some()
                || self.attempts.values().any(|attempt| {
                    matches!(&attempt.kind, AttemptKind::Without { change, version }
                        if *change == entry.row.change && *version == entry.row.version)
                })
        };
        let mut open = self.entries.values().filter(|entry| {
            entry.row.replay.is_some()
                && matches!(entry.status, Status::Waiting | Status::Aboard { .. })
                && !tried(entry)
        });
        open.find_map(|entry| {
            let tests = own_tests(&entry.row, &view.tests).edits.len();
            (tests > 0 && tests < entry.row.edits.len()).then(|| Step::Assemble {
                attempt: self.new_attempt(),
                kind: AttemptKind::Without { change: entry.row.change.clone(), version: entry.row.version },
                changes: vec![entry.row.change.clone()],
            })
        })
    }

    /// Opens its run, then keeps what it says.
    pub(crate) fn settle_without(
        &self,
        attempt: &Attempt,
        candidate: &Candidate,
        now: Millis,
    ) -> Option<LaneFact> {
        let Some(run) = attempt.runs.first() else {
            let check = candidate.checks.first()?.clone();
            let need = Need::Run { count: 1, check, before: 0 };
            return run_opened(attempt, candidate.prefix(1), need, Purpose::Without);
        };
        let ended = run.ended.as_ref()?;
        let without = match run.result() {
            Some(result) if result.proves_green() => Without::Green { run: run.id.clone() },
            Some(result) if is_red(result) => {
                let detail = result.failed.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
                Without::Red { run: run.id.clone(), detail }
            }
            _ => Without::Unknown { why: ended.fault.clone().unwrap_or_else(|| "no complete result".into()) },
        };
        Some(LaneFact::TriedWithout { attempt: attempt.id.clone(), without, at: now })
    }

    /// Keeps the proof and ends its attempt.
    pub(crate) fn tried_without(&mut self, id: &AttemptId, without: &Without) {
        let Some(attempt) = self.attempts.remove(&id.train) else { return };
        let AttemptKind::Without { change, version } = &attempt.kind else { return };
        if let Some(entry) = self.entry_at(change, *version) {
            entry.without = Some(without.clone());
        }
    }
}
