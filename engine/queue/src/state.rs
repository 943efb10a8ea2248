//! The state of a lane: entries, attempts, runs; a fold of lane facts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use yard_common::bytes::Base64;
use yard_common::config::ReplayPolicy;
use yard_common::fact::Terminal;
use yard_common::landing::{AttemptId, PackRef, RunResult, SignedRun};
use yard_common::replay::Cause;
use yard_common::stage::Verdict;
use yard_common::submission::{CommitNode, Submission};
use yard_common::{
    ChangeId, Epoch, FactNo, Fence, ForkName, LaneName, LeaseNo, Millis, ObjectId, OwnerEpoch, ReplayNo,
    RepoPath, RunId, RunnerId, Seq, SuiteId, TokenId, TrainNo, Version,
};

use crate::fact::{AttemptKind, Candidate, Check, Member, Purpose};
use crate::replay::{Behind, Open, Spent};
use crate::without::Without;

/// A live claim, as the repository shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who; the parent's own agents when `None`.
    pub fork: Option<ForkName>,
    /// The paths; a directory stands for all below it.
    pub paths: Vec<RepoPath>,
    /// The fencing number.
    pub fence: Fence,
    /// When it ends.
    pub until: Millis,
}

/// Main and what governs landing, as the last pull showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Main and its tree; `None` while the repository is empty.
    pub head: Option<(ObjectId, ObjectId)>,
    /// Main's epoch.
    pub epoch: Epoch,
    /// The lane's owner epoch.
    pub owner_epoch: OwnerEpoch,
    /// The notes ref and its tree.
    pub notes: Option<(ObjectId, ObjectId)>,
    /// Why landing is frozen, if it is.
    pub frozen: Option<String>,
    /// Live claims.
    pub claims: Vec<Claim>,
    /// Was main's tip tested?
    pub tip_tested: bool,
    /// The check of main's `.switchyard.toml`, or why there is none.
    pub check: Result<Check, String>,
    /// Changes in one train, as configured.
    pub train_max: usize,
    /// When and how far a model redoes changes.
    pub replay: ReplayPolicy,
    /// Patterns of test files.
    pub tests: Vec<String>,
}

/// What the lane sees of the world: never stored, read anew after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct World {
    /// The last view; `None` before the first pull.
    pub view: Option<View>,
    /// The view may be old: pull before anything is decided.
    pub stale: bool,
    /// The attempt that this host is assembling, so that one begun before a restart is known as abandoned.
    pub assembling: Option<AttemptId>,
}

/// Where an entry stands, besides what can be derived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Status {
    /// In the queue.
    Waiting,
    /// In a train.
    Aboard {
        /// The train.
        train: TrainNo,
    },
    /// Red in a train: tried alone.
    Suspect {
        /// The runs that say so.
        runs: Vec<RunId>,
        /// Changes before it in that train.
        with: Vec<ChangeId>,
        /// Try it on main, because its own base proves nothing.
        on_main: bool,
        /// The probe, once begun.
        probe: Option<TrainNo>,
    },
    /// Sent back to its author.
    SentBack {
        /// Why.
        why: Why,
        /// When.
        at: Millis,
    },
    /// Held by the lane.
    Stopped {
        /// Why.
        why: Stop,
    },
    /// A model redoes it.
    Replaying {
        /// The replay.
        open: Open,
    },
    /// The repository is asked to close it.
    Closing {
        /// How.
        stage: Terminal,
    },
}

/// Why a change was sent back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Why {
    /// It collides at these paths.
    Collided {
        /// The paths, with what went wrong at each.
        paths: Vec<(RepoPath, String)>,
    },
    /// A red run.
    Judged {
        /// The verdict.
        verdict: Verdict,
        /// The runs that prove it.
        runs: Vec<RunId>,
        /// What failed.
        detail: String,
    },
    /// It would have to be redone on main, and no model did.
    NotReplayed {
        /// Why it would have to be.
        needs: Cause,
        /// Why none did.
        why: String,
    },
    /// It landed, and main was rewritten.
    Rewritten,
    /// Merged with main it changes nothing.
    Nothing,
    /// Its `.switchyard.toml` cannot be read.
    BadConfig {
        /// What is wrong.
        why: String,
    },
    /// The change that it is built on ended without landing.
    Orphaned {
        /// That change.
        parent: ChangeId,
        /// How it ended.
        stage: Terminal,
    },
}

/// Why the lane holds a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "kebab-case")]
pub enum Stop {
    /// No complete result.
    Infra {
        /// The runs.
        runs: Vec<RunId>,
        /// What went wrong.
        detail: String,
    },
    /// A path is protected.
    Protected {
        /// The path.
        path: RepoPath,
        /// What may change it.
        rule: String,
    },
    /// Landing it failed too often.
    Quarantined {
        /// The last reason.
        why: String,
    },
}

/// One open change of the lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The newest accepted row.
    pub row: Box<Submission>,
    /// When the lane took this version.
    pub since: Millis,
    /// Where it stands.
    pub status: Status,
    /// Held by a person, with the reason.
    pub held: Option<String>,
    /// Open changes that it waits for.
    pub waits_for: BTreeSet<ChangeId>,
    /// Landing failed so often.
    pub failures: u32,
    /// What happened to it last that its author should know.
    pub told: Option<String>,
    /// Replaced while it was aboard, then: others go first until this time has passed.
    pub churned: Option<Millis>,
    /// Its place in the order of age: a replay keeps the one of what it replays.
    #[serde(default)]
    pub place: Seq,
    /// Replays of this change since its author's last version.
    #[serde(default)]
    pub replays: u32,
    /// No other change of its paths goes first until this time.
    #[serde(default)]
    pub reserved: Option<Millis>,
    /// It collides with a change ahead of it in an open train.
    #[serde(default)]
    pub behind: Option<Behind>,
    /// What its own tests say without it, for a replay.
    #[serde(default)]
    pub without: Option<Without>,
}

/// A lease on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its number.
    pub no: LeaseNo,
    /// Who holds it.
    pub runner: RunnerId,
    /// Hash of the runner's environment.
    pub environment: String,
    /// When it ends.
    pub until: Millis,
    /// The token that it was given to; any may speak for one that names none.
    #[serde(default)]
    pub token: Option<TokenId>,
}

/// One test run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What it is for.
    pub purpose: Purpose,
    /// The commit.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// How many of the train's changes are aboard.
    pub count: usize,
    /// The check.
    pub check: Check,
    /// Who has it.
    pub lease: Option<Lease>,
    /// Leases that were lost.
    pub lost: u32,
    /// The number of the last lease.
    pub last_lease: LeaseNo,
    /// The result, when there is one.
    pub ended: Option<Ended>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What the runner signed; `None` when all leases were lost.
    pub signed: Option<Box<SignedRun>>,
    /// Why it is not complete, where it is not.
    pub fault: Option<String>,
}

/// A landing that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landing {
    /// How many changes land.
    pub count: usize,
    /// The notes ref before.
    pub notes_head: Option<ObjectId>,
    /// The commit that adds the notes.
    pub commit: CommitNode,
    /// Its committer's time, seconds since the Unix epoch.
    pub seconds: u64,
    /// The notes' pack.
    pub pack: PackRef,
    /// Its index.
    pub index: Base64,
}

/// One train, probe or confirmation, at its newest attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number.
    pub id: AttemptId,
    /// The number under which the candidate was staged.
    pub staged: AttemptId,
    /// What it is.
    pub kind: AttemptKind,
    /// When it began.
    pub began: Millis,
    /// What was built, once it is.
    pub candidate: Option<Box<Candidate>>,
    /// So many changes of the candidate may still land.
    pub limit: usize,
    /// Its runs, in order of opening.
    pub runs: Vec<Run>,
    /// The landing that is asked for.
    pub landing: Option<Landing>,
    /// Landing is not asked for before this time.
    pub after: Millis,
}

/// Main is not green.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadMain {
    /// Main.
    pub head: ObjectId,
    /// Red, or without a complete result?
    pub verdict: Verdict,
    /// The runs that prove it.
    pub runs: Vec<RunId>,
    /// What failed.
    pub detail: String,
    /// When.
    pub at: Millis,
}

/// An ended run that is still shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// The run.
    pub run: RunId,
    /// What it was for.
    pub purpose: Purpose,
    /// The attempt it belonged to.
    pub attempt: AttemptId,
    /// The tree.
    pub tree: ObjectId,
    /// The changes aboard.
    pub changes: Vec<ChangeId>,
    /// Who ran it.
    pub runner: Option<RunnerId>,
    /// The result; `None` when its leases were lost.
    pub result: Option<RunResult>,
}

/// A tree known to be green.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Green {
    /// The tree.
    pub tree: ObjectId,
    /// Command, configuration, environment.
    pub suite: SuiteId,
    /// The run.
    pub signed: Box<SignedRun>,
}

/// The state of one lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its name.
    pub name: LaneName,
    /// The repository's log is read up to here.
    pub cursor: FactNo,
    /// How many facts that matter to decisions were applied; leases and their renewals do not.
    pub state: FactNo,
    /// Open changes.
    pub entries: BTreeMap<ChangeId, Entry>,
    /// Changes whose rows must be asked for.
    pub wanted: BTreeSet<ChangeId>,
    /// Open attempts.
    pub attempts: BTreeMap<TrainNo, Attempt>,
    /// The last train number given.
    pub last_train: TrainNo,
    /// Why landing is frozen, if it is.
    pub frozen: Option<String>,
    /// Main is not green.
    pub bad_main: Option<BadMain>,
    /// At most this many changes in the next train, while a failure that names nobody is narrowed down.
    pub narrow: Option<usize>,
    /// Hash of the environment of the last lease.
    pub environment: Option<String>,
    /// Trees known to be green, oldest first.
    pub greens: VecDeque<Green>,
    /// Tests that were red and then green on one tree, with how often.
    pub flaky: BTreeMap<String, u32>,
    /// Changes that landed, oldest first, each with main after it.
    pub landings: VecDeque<(ChangeId, ObjectId)>,
    /// Ended runs, newest first.
    pub past_runs: VecDeque<PastRun>,
    /// The last replay number given.
    #[serde(default)]
    pub last_replay: ReplayNo,
    /// What models cost today.
    #[serde(default)]
    pub spent: Spent,
    /// Landed changes with the paths that they touched, oldest first.
    #[serde(default)]
    pub touched: VecDeque<(ChangeId, Vec<RepoPath>)>,
}

impl Lane {
    /// A lane that has read nothing.
    #[must_use]
    pub fn new(name: LaneName) -> Self {
        Self {
            name,
            cursor: FactNo::default(),
            state: FactNo::default(),
            entries: BTreeMap::new(),
            wanted: BTreeSet::new(),
            attempts: BTreeMap::new(),
            last_train: TrainNo::default(),
            frozen: None,
            bad_main: None,
            narrow: None,
            environment: None,
            greens: VecDeque::new(),
            flaky: BTreeMap::new(),
            landings: VecDeque::new(),
            past_runs: VecDeque::new(),
            last_replay: ReplayNo::default(),
            spent: Spent::default(),
            touched: VecDeque::new(),
        }
    }

    /// The open train, if there is one.
    #[must_use]
    pub fn train(&self) -> Option<&Attempt> {
        self.attempts.values().find(|attempt| attempt.kind == AttemptKind::Train)
    }

    /// An open run with its attempt.
    #[must_use]
    pub fn run(&self, id: &RunId) -> Option<(&Attempt, &Run)> {
        self.attempts
            .values()
            .find_map(|attempt| attempt.runs.iter().find(|run| run.id == *id).map(|run| (attempt, run)))
    }

    pub(crate) fn run_mut(&mut self, id: &RunId) -> Option<(TrainNo, &mut Run)> {
        self.attempts
            .iter_mut()
            .find_map(|(no, attempt)| attempt.runs.iter_mut().find(|run| run.id == *id).map(|run| (*no, run)))
    }

    /// The entry, if it still stands at this version.
    pub(crate) fn entry_at(&mut self, change: &ChangeId, version: Version) -> Option<&mut Entry> {
        self.entries.get_mut(change).filter(|entry| entry.row.version == version)
    }
}

impl Lease {
    /// May the bearer of this token speak for it?
    #[must_use]
    pub fn is_of(&self, token: Option<&TokenId>) -> bool {
        self.token.is_none() || self.token.as_ref() == token
    }
}

impl Run {
    pub(crate) fn open(
        id: RunId,
        purpose: Purpose,
        at: (ObjectId, ObjectId),
        count: usize,
        check: Check,
    ) -> Self {
        Self {
            id,
            purpose,
            commit: at.0,
            tree: at.1,
            count,
            check,
            lease: None,
            lost: 0,
            last_lease: LeaseNo::default(),
            ended: None,
        }
    }

    /// The result, when a runner gave one.
    #[must_use]
    pub fn result(&self) -> Option<&RunResult> {
        self.ended.as_ref()?.signed.as_ref().map(|signed| &signed.result)
    }
}

impl Attempt {
    /// Is it the proof of a replay?
    #[must_use]
    pub fn is_without(&self) -> bool {
        matches!(self.kind, AttemptKind::Without { .. })
    }

    /// The first `count` changes of the candidate.
    #[must_use]
    pub fn aboard(&self, count: usize) -> Vec<ChangeId> {
        self.candidate
            .iter()
            .flat_map(|candidate| candidate.members.iter().take(count))
            .map(|member| member.change.clone())
            .collect()
    }

    /// The changes before the one at `index`, those first that touch its paths, then those that touch
    /// its directories, else in order: when it is red only together with them, likelier ones come first.
    #[must_use]
    pub fn nearest_first(&self, index: usize) -> Vec<ChangeId> {
        let members = self.candidate.as_ref().map_or(&[][..], |candidate| &candidate.members);
        let Some(suspect) = members.get(index) else { return self.aboard(index) };
        let paths: BTreeSet<&[u8]> = suspect.edits.iter().map(|edit| edit.path.as_bytes()).collect();
        let folders: BTreeSet<&[u8]> = paths.iter().map(|path| folder_of(path)).collect();
        let far = |member: &Member| {
            let mut touched = member.edits.iter().map(|edit| edit.path.as_bytes());
            if touched.clone().any(|path| paths.contains(path)) {
                return 0;
            }
            if touched.any(|path| folders.contains(folder_of(path))) { 1 } else { 2 }
        };
        let mut before: Vec<&Member> = members.iter().take(index).collect();
        before.sort_by_key(|member| far(member));
        before.into_iter().map(|member| member.change.clone()).collect()
    }
}

fn folder_of(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    path.get(..end).unwrap_or_default()
}
