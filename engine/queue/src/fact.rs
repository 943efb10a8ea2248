//! What happened in a lane: the stored, append-only vocabulary of the Lane object.
//!
//! Stored as JSON; fields are only ever added, with a default.

use serde::{Deserialize, Serialize};
use yard_common::bytes::Base64;
use yard_common::edit_list::EditList;
use yard_common::fact::Terminal;
use yard_common::landing::{AttemptId, Edit, PackRef, SignedRun};
use yard_common::replay::{Cause, Cost, ReplayEnd};
use yard_common::stage::Verdict;
use yard_common::submission::{CommitNode, Submission};
use yard_common::{
    ChangeId, Epoch, Fact, FactNo, LeaseNo, Millis, ObjectId, OwnerEpoch, Refusal, ReplayNo, RepoPath, RunId,
    RunnerId, SuiteId, TokenId, TrainNo, Version,
};

use crate::without::Without;

/// A test command with all that decides its meaning but the runner's environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Check {
    /// The configuration's blob.
    pub config: Option<ObjectId>,
    /// The command.
    pub command: String,
    /// Where it writes JUnit XML, relative to the checkout.
    pub junit: Option<String>,
    /// Its time limit, in seconds.
    pub timeout_seconds: u32,
}

impl Check {
    /// Command, configuration and environment, hashed: 40 hex digits.
    #[must_use]
    pub fn suite(&self, environment: &str) -> Option<SuiteId> {
        let config = self.config.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let text = format!("{}\0{config}\0{environment}", self.command);
        SuiteId::new(yard_git::hash(yard_git::Kind::Blob, text.as_bytes()).to_string()).ok()
    }
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A whole train.
    Train,
    /// One change alone on its base.
    Alone,
    /// The base itself.
    Base,
    /// The same tree again.
    Again,
    /// The first changes of a train.
    Prefix,
    /// Main's tip, which came in untested.
    Confirm,
    /// The own tests of a replayed change, without the rest of it.
    Without,
}

impl Purpose {
    /// The name, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Alone => "alone",
            Self::Base => "base",
            Self::Again => "again",
            Self::Prefix => "prefix",
            Self::Confirm => "confirm",
            Self::Without => "without",
        }
    }
}

/// A change aboard a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The change.
    pub change: ChangeId,
    /// Its version.
    pub version: Version,
    /// Its commit in the candidate.
    pub commit: ObjectId,
    /// The commit's tree.
    pub tree: ObjectId,
    /// Its edits, made on the tree of the change before it; empty where they are the value of `list`.
    pub edits: Vec<Edit>,
    /// Where the edits are, when they are too many for a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<EditList>,
}

/// An attempt's commits, built and staged, not yet on main.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The commit that the first change stands on: main, or a probe's copy of the change's base.
    pub head: ObjectId,
    /// Its tree.
    pub head_tree: ObjectId,
    /// Main's epoch.
    pub epoch: Epoch,
    /// The lane's owner epoch.
    pub owner_epoch: OwnerEpoch,
    /// The changes, in landing order; never empty.
    pub members: Vec<Member>,
    /// The pack.
    pub pack: PackRef,
    /// The checks that must be green: one; two where the train changes the configuration.
    pub checks: Vec<Check>,
}

impl Candidate {
    /// The last commit and its tree.
    #[must_use]
    pub fn tip(&self) -> (ObjectId, ObjectId) {
        self.members.last().map_or((self.head, self.head_tree), |last| (last.commit, last.tree))
    }

    /// The changes aboard.
    #[must_use]
    pub fn versions(&self) -> Vec<(ChangeId, Version)> {
        self.members.iter().map(|member| (member.change.clone(), member.version)).collect()
    }

    /// How long it may take to its landing, in milliseconds: each check twice, for a red run is
    /// repeated, and as long again for a runner to come.
    #[must_use]
    pub fn life_ms(&self) -> u64 {
        let tests: u64 = self.checks.iter().map(|check| u64::from(check.timeout_seconds) * 1_000).sum();
        tests.saturating_mul(2).saturating_add(crate::limits::LEASE_MS).saturating_mul(2)
    }

    /// Commit and tree of the first `count` changes.
    #[must_use]
    pub fn prefix(&self, count: usize) -> (ObjectId, ObjectId) {
        match count.checked_sub(1).and_then(|last| self.members.get(last)) {
            Some(member) => (member.commit, member.tree),
            None => (self.head, self.head_tree),
        }
    }
}

/// Why a change did not board the train that was assembled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "aside", rename_all = "kebab-case")]
pub enum Aside {
    /// It collides at these paths, at most 100.
    Collided {
        /// The paths, with what went wrong at each.
        paths: Vec<(RepoPath, String)>,
    },
    /// It merges with main, and collides with changes ahead of it in this train.
    Behind {
        /// The paths, with what went wrong at each, at most 100.
        paths: Vec<(RepoPath, String)>,
    },
    /// Main has all that it wants.
    AlreadyOnMain,
    /// Merged with main it changes nothing, although main has not all of it as it was offered.
    Nothing,
    /// Its `.switchyard.toml` cannot be read.
    BadConfig {
        /// What is wrong.
        why: String,
    },
    /// It cannot be put into a train at all.
    Broken {
        /// What is wrong.
        why: String,
    },
}

/// An open change as the repository knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRow {
    /// Its newest row.
    pub row: Box<Submission>,
    /// It landed once, but main was rewritten, and nobody has offered it again.
    pub rewritten: bool,
    /// Held by a person, with the reason.
    pub held: Option<String>,
}

/// What an attempt is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AttemptKind {
    /// A train, to be landed.
    Train,
    /// A suspect alone; never lands.
    Probe {
        /// The suspect.
        change: ChangeId,
        /// Its version.
        version: Version,
        /// On main rather than on its own base, where that base proves nothing.
        on_main: bool,
    },
    /// The own tests of a replayed change on main, without the rest of it; never lands.
    Without {
        /// The change.
        change: ChangeId,
        /// Its version.
        version: Version,
    },
    /// Main's tip, which came in untested.
    Confirm {
        /// Main.
        commit: ObjectId,
        /// Its tree.
        tree: ObjectId,
        /// The check.
        check: Check,
    },
}

/// What the Repository answers to a landing.
pub type LandAnswer = Result<(ObjectId, FactNo), Refusal>;

/// One thing that happened in a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
pub enum LaneFact {
    /// The repository's log was read up to here.
    Read {
        /// The last fact that was read.
        upto: FactNo,
        /// What concerns lanes.
        facts: Vec<(FactNo, Fact)>,
        /// When.
        at: Millis,
    },
    /// Rows that the lane lacked, as the repository has them now.
    Known {
        /// Each change, with its newest row if it is still open.
        rows: Vec<(ChangeId, Option<KnownRow>)>,
        /// When.
        at: Millis,
    },
    /// An attempt got its number; it is being assembled.
    Began {
        /// Its number.
        attempt: AttemptId,
        /// What it is.
        kind: AttemptKind,
        /// When.
        at: Millis,
    },
    /// An attempt was assembled and staged.
    Assembled {
        /// The attempt.
        attempt: AttemptId,
        /// What was built; `None` when no change could board.
        candidate: Option<Box<Candidate>>,
        /// Changes that did not board, with their versions.
        aside: Vec<(ChangeId, Version, Aside)>,
        /// When.
        at: Millis,
    },
    /// An attempt ended without landing; its changes are back at their places.
    Ended {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        why: String,
    },
    /// A run waits for a runner.
    RunOpened {
        /// The run.
        run: RunId,
        /// The train it belongs to.
        train: TrainNo,
        /// What it is for.
        purpose: Purpose,
        /// The commit.
        commit: ObjectId,
        /// Its tree.
        tree: ObjectId,
        /// How many of the train's changes are aboard.
        count: usize,
        /// The check.
        check: Check,
    },
    /// A runner has the run.
    Leased {
        /// The run.
        run: RunId,
        /// The lease.
        lease: LeaseNo,
        /// The runner.
        runner: RunnerId,
        /// Hash of its environment.
        environment: String,
        /// When the lease ends.
        until: Millis,
        /// The token that it was given to.
        #[serde(default)]
        token: Option<TokenId>,
    },
    /// A lease goes on.
    Renewed {
        /// The run.
        run: RunId,
        /// The lease.
        lease: LeaseNo,
        /// When it ends.
        until: Millis,
    },
    /// A lease ended without a result.
    LeaseLost {
        /// The run.
        run: RunId,
        /// The lease.
        lease: LeaseNo,
    },
    /// A run has its result.
    Reported {
        /// What the runner signed.
        signed: Box<SignedRun>,
        /// Why it is not complete, where it is not.
        fault: Option<String>,
        /// When.
        at: Millis,
    },
    /// A report that had no effect: kept as evidence.
    Late {
        /// The run.
        run: RunId,
        /// The lease it came under.
        lease: LeaseNo,
        /// Who sent it.
        runner: RunnerId,
        /// What it said, in one line.
        said: String,
        /// When.
        at: Millis,
    },
    /// A train is red with this change and not without it: it is tried alone.
    Suspected {
        /// The train.
        train: TrainNo,
        /// The change's place in the train, from 0; the changes before it may land.
        index: usize,
        /// The runs that say so.
        runs: Vec<RunId>,
        /// When.
        at: Millis,
    },
    /// A verdict was reached.
    Judged {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// The verdict.
        verdict: Verdict,
        /// The runs that prove it.
        runs: Vec<RunId>,
        /// What failed, in a few words.
        detail: String,
        /// When.
        at: Millis,
    },
    /// A suspect was cleared: it is queued at its place.
    Cleared {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// Why.
        why: String,
    },
    /// A suspect's own base proves nothing: it is tried on main.
    OnMain {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// Why.
        why: String,
    },
    /// A change waited for its author too long: the repository is asked to close it.
    Expiring {
        /// The change.
        change: ChangeId,
    },
    /// Main itself is not green: the lane waits.
    MainBad {
        /// Main.
        head: ObjectId,
        /// Red, or without a complete result?
        verdict: Verdict,
        /// The runs that prove it.
        runs: Vec<RunId>,
        /// What failed, in a few words.
        detail: String,
        /// When.
        at: Millis,
    },
    /// Main is tried again.
    MainAgain {
        /// Main.
        head: ObjectId,
    },
    /// The notes of a train's first changes are written: landing is asked for, and asked again until
    /// there is an answer.
    Noted {
        /// The attempt.
        attempt: AttemptId,
        /// How many changes land.
        count: usize,
        /// The notes ref before.
        notes_head: Option<ObjectId>,
        /// The commit that adds the notes.
        commit: CommitNode,
        /// Its committer's time, seconds since the Unix epoch.
        seconds: u64,
        /// The pack.
        pack: PackRef,
        /// Its index.
        index: Base64,
    },
    /// The Repository's answer to a landing.
    Answered {
        /// The attempt.
        attempt: AttemptId,
        /// The answer.
        answer: LandAnswer,
        /// When.
        at: Millis,
    },
    /// A change's close was refused: it is queued again.
    CloseRefused {
        /// The change.
        change: ChangeId,
        /// The stage that was asked for.
        stage: Terminal,
        /// Why.
        refusal: Refusal,
        /// When.
        at: Millis,
    },
    /// A model is to redo a change.
    ReplayBegan {
        /// The change.
        change: ChangeId,
        /// The version that is replayed.
        version: Version,
        /// The replay's number.
        replay: ReplayNo,
        /// Why.
        cause: Cause,
        /// Only prepared, on what this train will make of main.
        early: Option<TrainNo>,
        /// When.
        at: Millis,
    },
    /// Replays were put into the queue.
    ReplaysAsked {
        /// Their numbers.
        replays: Vec<ReplayNo>,
        /// When.
        at: Millis,
    },
    /// A replay was taken up.
    ReplayTaken {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// The replay.
        replay: ReplayNo,
        /// It counts as lost after this.
        until: Millis,
    },
    /// A replay has no answer in time: it is put into the queue again.
    ReplayLost {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// The replay.
        replay: ReplayNo,
    },
    /// A replay ended; late ones count as cost alone.
    ReplayEnded {
        /// The change.
        change: ChangeId,
        /// The version that was replayed.
        version: Version,
        /// The replay.
        replay: ReplayNo,
        /// How.
        end: ReplayEnd,
        /// What it cost.
        cost: Cost,
        /// When.
        at: Millis,
    },
    /// No model is asked for a change that would need it.
    NotReplayed {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
        /// Why.
        why: String,
        /// When.
        at: Millis,
    },
    /// The own tests of a replayed change were tried without it.
    TriedWithout {
        /// The attempt.
        attempt: AttemptId,
        /// What they say.
        without: Without,
        /// When.
        at: Millis,
    },
}
