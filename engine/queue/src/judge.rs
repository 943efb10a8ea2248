//! What the runs of an attempt say about a tree.

use std::collections::BTreeSet;

use yard_common::landing::{RunResult, SignedRun};
use yard_common::{ObjectId, RunId};

use crate::fact::Check;
use crate::limits::{INCOMPLETE_RUNS_MAX, RED_RUNS, RED_RUNS_FLAKY};
use crate::state::{Attempt, Lane, Run};

/// What is known of one tree under one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A run is open.
    Running,
    /// Another run is needed; so many have ended.
    Needs(usize),
    /// Complete and green.
    Green(Box<SignedRun>),
    /// Red, proven by these runs.
    Red {
        /// The runs.
        runs: Vec<RunId>,
        /// What failed, in a few words.
        detail: String,
    },
    /// No complete result.
    Infra {
        /// The runs.
        runs: Vec<RunId>,
        /// What went wrong.
        detail: String,
    },
}

/// Red means: complete, at least one test ran, and not green. All else that is not green says nothing.
pub(crate) fn is_red(result: &RunResult) -> bool {
    result.complete && !result.proves_green() && (result.ran > 0 || !result.failed.is_empty())
}

/// Why a result says nothing, in a few words.
fn fault_of(run: &Run) -> String {
    let Some(ended) = &run.ended else { return "it has not ended".into() };
    match (&ended.fault, run.result()) {
        (Some(fault), _) => fault.clone(),
        (None, Some(result)) if result.ran == 0 => "no test ran".into(),
        (None, _) => "it did not come to its end".into(),
    }
}

impl Lane {
    /// A green run of this tree that may be used again: by tree and suite, the suite being that of the
    /// last runner's environment.
    #[must_use]
    pub fn green(&self, tree: ObjectId, check: &Check) -> Option<&SignedRun> {
        let suite = check.suite(self.environment.as_ref()?)?;
        self.greens
            .iter()
            .find(|green| green.tree == tree && green.suite == suite)
            .map(|green| green.signed.as_ref())
    }

    /// What is known of a tree: green by any run of the suite, else by the attempt's own runs.
    #[must_use]
    pub fn outcome(&self, attempt: &Attempt, tree: ObjectId, check: &Check) -> Outcome {
        if let Some(signed) = self.green(tree, check) {
            return Outcome::Green(Box::new(signed.clone()));
        }
        let runs: Vec<&Run> =
            attempt.runs.iter().filter(|run| run.tree == tree && run.check == *check).collect();
        let green = runs.iter().find(|run| run.result().is_some_and(RunResult::proves_green));
        if let Some(signed) = green.and_then(|run| run.ended.as_ref()?.signed.clone()) {
            return Outcome::Green(signed);
        }
        if runs.iter().any(|run| run.ended.is_none()) {
            return Outcome::Running;
        }
        let red: Vec<&&Run> = runs.iter().filter(|run| run.result().is_some_and(is_red)).collect();
        let ids = |runs: &[&&Run]| runs.iter().map(|run| run.id.clone()).collect();
        if red.len() >= self.red_runs_needed(&red) {
            return Outcome::Red { runs: ids(&red), detail: failed_tests(&red) };
        }
        let incomplete: Vec<&&Run> = runs.iter().filter(|run| !run.result().is_some_and(is_red)).collect();
        if incomplete.len() >= INCOMPLETE_RUNS_MAX {
            let detail = incomplete.last().map(|run| fault_of(run)).unwrap_or_default();
            return Outcome::Infra { runs: ids(&incomplete), detail };
        }
        Outcome::Needs(runs.len())
    }

    /// Runs that fail on the same test prove more than ones that fail here and there.
    fn red_runs_needed(&self, red: &[&&Run]) -> usize {
        let mut sets = red.iter().filter_map(|run| run.result()).map(|result| &result.failed);
        let Some(first) = sets.next() else { return RED_RUNS };
        let mut common: BTreeSet<&String> = first.iter().collect();
        let mut nameless = first.is_empty();
        for failed in sets {
            nameless |= failed.is_empty();
            common.retain(|test| failed.contains(test));
        }
        let telling = common.iter().any(|test| !self.flaky.contains_key(*test));
        if telling || nameless { RED_RUNS } else { RED_RUNS_FLAKY }
    }
}

/// The failed tests of the last run, at most three by name.
fn failed_tests(red: &[&&Run]) -> String {
    let Some(failed) = red.last().and_then(|run| run.result()).map(|result| &result.failed) else {
        return String::new();
    };
    match failed.len() {
        0 => "the command failed".into(),
        n if n <= 3 => failed.join(", "),
        n => {
            let shown: Vec<&str> = failed.iter().take(3).map(String::as_str).collect();
            format!("{} and {} more", shown.join(", "), n - 3)
        }
    }
}

/// What a train or probe is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A run of the first `count` changes under this check.
    Run {
        /// So many changes aboard.
        count: usize,
        /// The check.
        check: Check,
        /// So many runs of this tree have ended.
        before: usize,
    },
    /// Runs are open: wait.
    Wait,
}

/// What all checks of a tree say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Together {
    /// Not known yet.
    Open(Need),
    /// Green under each.
    Green(Vec<SignedRun>),
    /// Not green under one.
    Bad(Outcome),
}

impl Lane {
    /// What the checks say about the first `count` changes of an attempt.
    #[must_use]
    pub fn together(&self, attempt: &Attempt, tree: ObjectId, count: usize, checks: &[Check]) -> Together {
        let mut greens = Vec::new();
        for check in checks {
            match self.outcome(attempt, tree, check) {
                Outcome::Running => return Together::Open(Need::Wait),
                Outcome::Needs(before) => {
                    return Together::Open(Need::Run { count, check: check.clone(), before });
                }
                Outcome::Green(signed) => greens.push(*signed),
                bad @ (Outcome::Red { .. } | Outcome::Infra { .. }) => return Together::Bad(bad),
            }
        }
        Together::Green(greens)
    }
}
