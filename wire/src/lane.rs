//! The methods of a Lane object.

use serde::{Deserialize, Serialize};
use yard_common::config::ReplayPolicy;
use yard_common::landing::{AttemptId, SignedRun};
use yard_common::replay::{Cause, Cost, ReplayEnd};
pub use yard_common::stage::{Stage, Verdict};
use yard_common::submission::Submission;
use yard_common::{
    ChangeId, FactNo, LaneName, LeaseNo, Millis, ObjectId, ReplayNo, RepoName, RunId, RunnerId, SuiteId,
    TokenId, Version,
};

use crate::method;

/// There may be something to do: pull. A lost hint costs time only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The repository, so that a new object learns who it is.
    pub repo: RepoName,
    /// The lane.
    pub lane: LaneName,
}
method!(Hint, "hint", ());

/// A runner asks for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The repository.
    pub repo: RepoName,
    /// The lane.
    pub lane: LaneName,
    /// The runner, stable over its life.
    pub runner: RunnerId,
    /// Hash of the runner's environment (operating system, tool versions), 40 hex digits.
    pub environment: String,
    /// Wait at most this long for work, in milliseconds (bounded by the platform to 20 s).
    pub wait_ms: u64,
    /// The bearer's token id.
    pub token: Option<TokenId>,
}
/// A leased run: what to test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The run.
    pub run: RunId,
    /// The lease.
    pub lease: LeaseNo,
    /// When the lease ends, unless renewed.
    pub until: Millis,
    /// The attempt whose candidate is tested.
    pub attempt: AttemptId,
    /// The ref to fetch.
    pub reference: String,
    /// The commit to check out.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Test command, configuration and environment, hashed.
    pub suite: SuiteId,
    /// The test command.
    pub command: String,
    /// The configuration's blob.
    pub config: Option<ObjectId>,
    /// Where the command writes JUnit XML, relative to the checkout; exit status alone never
    /// proves green.
    pub junit: Option<String>,
    /// Time limit of the command, in seconds.
    pub timeout_seconds: u32,
}
method!(Lease, "lease", Option<Work>);

/// A piece of a run's log, at most [`SEGMENT_BYTES_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Bytes of the log before it. More than the end of the segment before: what lies between was
    /// left out.
    pub start: u64,
    /// What was printed.
    pub text: String,
}

impl Segment {
    /// What lies behind a place; `None` when nothing does.
    #[must_use]
    pub fn after(mut self, place: u64) -> Option<Self> {
        if self.end() <= place {
            return None;
        }
        let mut skip = usize::try_from(place.saturating_sub(self.start)).unwrap_or(usize::MAX);
        while !self.text.is_char_boundary(skip) && skip < self.text.len() {
            skip += 1;
        }
        self.text = self.text.split_off(skip.min(self.text.len()));
        self.start += skip as u64;
        (!self.text.is_empty()).then_some(self)
    }

    /// Bytes of the log up to its end.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.text.len() as u64)
    }
}

/// One segment, in bytes: 128 KiB as the command wrote them, each byte at most three as text. Four of
/// them, escaped as JSON, stay under a request.
pub const SEGMENT_BYTES_MAX: usize = 3 * 128 * 1024;
/// The beginning of a run's log that is kept, in bytes.
pub const LOG_HEAD_BYTES: u64 = 256 * 1024;
/// The end of a run's log that is kept, in bytes: with the beginning 1 MiB.
pub const LOG_TAIL_BYTES: u64 = 768 * 1024;

/// Asks for a run's log from a place on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The run.
    pub run: RunId,
    /// Bytes of the log that the reader has.
    pub from: u64,
}
/// What a lane has of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogReply {
    /// The lease under which it was written: another one begins a log anew.
    pub lease: LeaseNo,
    /// The segments in order, the first cut to where the reader is; others may be absent.
    pub segments: Vec<Segment>,
    /// Has the run ended?
    pub ended: bool,
}
// Answered: `None` when the lane has nothing of this run any more.
method!(Log, "log", Option<LogReply>);

/// A runner is alive and still at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// The run.
    pub run: RunId,
    /// The lease.
    pub lease: LeaseNo,
    /// What the command printed since the last renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Segment>,
    /// The bearer's token id; filled in by the edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
}
// Answered: the lease goes on until then; refused as `stale` when another has it.
method!(Renew, "renew", Millis);

/// A runner's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The signed run.
    pub run: SignedRun,
    /// The runner.
    pub runner: RunnerId,
    /// The rest of the log, after what went with renewals.
    #[serde(default)]
    pub log: Vec<Segment>,
    /// Why it is not complete, where it is not.
    pub fault: Option<String>,
    /// The bearer's token id; filled in by the edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
}
method!(Report, "report", ());

/// One entry of the lane, with its one true sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryView {
    /// The change.
    pub change: ChangeId,
    /// The version.
    pub version: Version,
    /// The stage, derived.
    pub stage: Stage,
    /// Why it is not on main.
    pub reason: String,
    /// The verdict, where one was reached.
    pub verdict: Option<Verdict>,
    /// The runs that prove it.
    pub runs: Vec<RunId>,
    /// The train it is in.
    pub attempt: Option<AttemptId>,
    /// When it was taken.
    pub since: Millis,
}

/// The state of the lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The repository.
    pub repo: RepoName,
    /// The lane.
    pub lane: LaneName,
    /// These changes only; all open ones when empty.
    pub changes: Vec<ChangeId>,
}
/// A test run as the lane knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// The run.
    pub run: RunId,
    /// What it is for: `train`, `alone`, `base`, `again`, `prefix`, `confirm`.
    pub purpose: String,
    /// The attempt it belongs to.
    pub attempt: AttemptId,
    /// The tree.
    pub tree: ObjectId,
    /// The changes aboard.
    pub changes: Vec<ChangeId>,
    /// Who runs it.
    pub runner: Option<RunnerId>,
    /// The result, when there is one.
    pub result: Option<yard_common::landing::RunResult>,
    /// Does it wait for a runner or for its result? One that is over has no result when its runners were lost.
    #[serde(default)]
    pub open: bool,
}
/// What a lane says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReply {
    /// Why the whole lane waits, if it does.
    pub waits: Option<String>,
    /// The entries.
    pub entries: Vec<EntryView>,
    /// The runs that are open or ended last, newest first, at most 50.
    pub runs: Vec<RunView>,
    /// Tests that were red and then green on one tree, with how often.
    pub flaky: Vec<(String, u32)>,
    /// Rows that have not gone to the index yet.
    #[serde(default)]
    pub outbox: u64,
}
method!(Status, "status", StatusReply);

/// What the lane did with one change, oldest first, as far back as it keeps its decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The repository.
    pub repo: RepoName,
    /// The lane.
    pub lane: LaneName,
    /// The change.
    pub change: ChangeId,
}
/// One thing that happened to a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub at: Millis,
    /// `version`, `attempt`, `run` (green), `red` (a run that was not green), `verdict`, `back` (sent back),
    /// `held`, `released`, `replay`, `approved`, `requeued`, `landed`, `rewritten`, `closing`, `closed`,
    /// `owner`.
    pub kind: String,
    /// One sentence.
    pub text: String,
    /// The attempt, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    /// The run, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The fact of the repository's log that says so, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<FactNo>,
}
method!(History, "history", Vec<Step>);

/// The consumer of the `replay` queue asks what is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskReplay {
    /// The repository.
    pub repo: RepoName,
    /// The lane.
    pub lane: LaneName,
    /// The change.
    pub change: ChangeId,
    /// The version that is replayed.
    pub version: Version,
    /// The replay's number.
    pub replay: ReplayNo,
    /// How long whoever asks needs at most, in milliseconds; after that another is asked.
    pub for_ms: u64,
}
/// A replay that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayJob {
    /// The row that is replayed.
    pub row: Box<Submission>,
    /// Why.
    pub cause: Cause,
    /// The commit that the intent is redone on.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Changes on its paths that came in since its base, newest last, at most 10.
    pub rivals: Vec<ChangeId>,
    /// The answer is only prepared: nothing is submitted.
    pub early: bool,
    /// What main's configuration says.
    pub policy: ReplayPolicy,
    /// What models may still cost today, in millionths of a US dollar.
    pub budget_left: u64,
}
// `None`: it is not open any more.
method!(AskReplay, "ask-replay", Option<ReplayJob>);

/// A replay ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReplay {
    /// The repository.
    pub repo: RepoName,
    /// The lane.
    pub lane: LaneName,
    /// The change.
    pub change: ChangeId,
    /// The version that was replayed.
    pub version: Version,
    /// The replay's number.
    pub replay: ReplayNo,
    /// How.
    pub end: ReplayEnd,
    /// What it cost.
    pub cost: Cost,
}
method!(EndReplay, "end-replay", ());

/// A message of the `replay` queue: which replay is to be made, no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayPointer {
    /// The repository.
    pub repo: RepoName,
    /// The lane.
    pub lane: LaneName,
    /// The change.
    pub change: ChangeId,
    /// The version that is replayed.
    pub version: Version,
    /// The replay's number.
    pub replay: ReplayNo,
}
