//! CPU of the workerd process, and which part of it is whose.
//!
//! The platform's own meter (`GET /api/metrics`, `busy_ms_*`) adds up how long each class of object was at
//! work; all of them share one thread, as the simulators of R2 and D1 do. That is time on the wall, so what
//! the thread waited for a core is taken off in proportion (`/proc/PID/task/TID/schedstat`).
//!
//! That alone is too little: the runtime also works for an object between its polls (SQLite's commits, the
//! bodies of calls, garbage), which production takes from the same object's second. It cannot be told from
//! the simulators' work and HTTP's on that thread, so all that the thread did besides is given to the edge
//! and the objects in proportion to their own work, the simulators' part included: an estimate that is
//! meant to be too dear rather than too cheap. V8's compiler and collector on other threads are no object's.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};
use yard_loadtest::Platform;

/// The meter's name of each class, and the name of its figure.
const CLASSES: [(&str, &str); 5] = [
    ("busy_ms_repository", "repository"),
    ("busy_ms_lane", "lane"),
    ("busy_ms_board", "board"),
    ("busy_ms_registry", "registry"),
    ("busy_ms_edge", "edge"),
];

/// What a thread has had so far, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    on_core: u64,
    waiting: u64,
}

/// What the process and its threads have had so far.
#[derive(Debug)]
pub struct Reading {
    process_ms: u64,
    threads: BTreeMap<String, Thread>,
}

/// Milliseconds of CPU between two readings.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The whole process.
    pub process_ms: f64,
    /// Each class of object and the edge, by the name of its figure.
    pub classes: BTreeMap<&'static str, f64>,
    /// The busiest thread, which all objects and the edge share.
    pub thread_ms: f64,
    /// Share of its wish for a core that the busiest thread got, 0 to 1.
    pub on_core: f64,
}

impl Reading {
    /// Reads it now.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn take(platform: &Platform) -> Result<Self> {
        let tasks = format!("/proc/{}/task", platform.ready().workerd_pid);
        let mut threads = BTreeMap::new();
        for task in fs::read_dir(&tasks)? {
            let task = task?;
            // A thread may end meanwhile.
            let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
            let mut numbers = text.split_whitespace().map(str::parse);
            let on_core = numbers.next().context("schedstat")??;
            let waiting = numbers.next().context("schedstat")??;
            threads.insert(task.file_name().to_string_lossy().into_owned(), Thread { on_core, waiting });
        }
        Ok(Self { process_ms: platform.cpu_ms()?, threads })
    }

    /// The CPU since `before`; `busy` are the meter's counts of the same time.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "times are far below 2^52")]
    pub fn since(&self, before: &Self, busy: &serde_json::Value) -> Split {
        let spent = self.threads.iter().map(|(id, now)| {
            let old = before.threads.get(id).copied().unwrap_or_default();
            (now.on_core.saturating_sub(old.on_core), now.waiting.saturating_sub(old.waiting))
        });
        let (on, waiting) = spent.max().unwrap_or_default();
        let on_core = on as f64 / (on + waiting).max(1) as f64;
        let classes = CLASSES.iter().map(|(counter, name)| {
            let wall = busy.get(counter).and_then(serde_json::Value::as_u64).unwrap_or(0);
            (*name, wall as f64 * on_core)
        });
        let process_ms = self.process_ms.saturating_sub(before.process_ms) as f64;
        Split { process_ms, classes: classes.collect(), thread_ms: on as f64 / 1e6, on_core }
    }
}

impl Split {
    /// What is no object's and not the edge's.
    #[must_use]
    pub fn rest_ms(&self) -> f64 {
        self.process_ms - self.classes.values().sum::<f64>()
    }

    /// How much dearer an object is with its share of what the runtime did on its thread: 1 or more.
    #[must_use]
    pub fn runtime_factor(&self) -> f64 {
        let polled: f64 = self.classes.values().sum();
        if polled > 0.0 { (self.thread_ms / polled).max(1.0) } else { 1.0 }
    }

    /// The object class that used most: its name and its milliseconds, its own polls alone.
    #[must_use]
    pub fn busiest_object(&self) -> (&'static str, f64) {
        let objects = self.classes.iter().filter(|(name, _)| **name != "edge");
        let busiest = objects.max_by(|one, other| one.1.total_cmp(other.1));
        busiest.map_or(("repository", 0.0), |(name, ms)| (*name, *ms))
    }
}

#[cfg(test)]
mod tests;
