//! The Repository's state as the kernel reads and writes it.

use std::sync::Arc;

use yard_common::fact::{Standing, Terminal, Turns};
use yard_common::landing::{AttemptId, PackRef};
use yard_common::policy::Policy;
use yard_common::submission::{CommitNode, Submission};
use yard_common::{
    ChangeId, Epoch, Fence, ForkName, IdempotencyKey, LaneName, Millis, ObjectId, OwnerEpoch, RefName,
    Refusal, RepoPath, Seq, Version,
};

/// A commit's place in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// 1 + the largest generation among its parents; larger than that of every ancestor.
    pub generation: u64,
}

/// How a change ended without landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The stage.
    pub stage: Terminal,
    /// The version it was closed at.
    pub version: Version,
}

/// What is known of a change besides its rows: one row of one table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeState {
    /// Its commit on main, while that stands there.
    pub landed: Option<Standing>,
    /// It landed so, but main was rewritten, and neither a newer version nor a requeue came since.
    pub rewritten: Option<Standing>,
    /// It ended otherwise.
    pub closed: Option<Closed>,
    /// Why a person holds it.
    pub hold: Option<String>,
    /// The version that an admin approved.
    pub approved: Option<Version>,
    /// The owning lane and the owner epoch of the hand-over to it; `None` before the first row.
    pub owner: Option<(LaneName, OwnerEpoch)>,
}

impl ChangeState {
    /// May the change still land? (It may be held or rewritten.)
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.landed.is_none() && self.closed.is_none()
    }
}

/// A lease on paths or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who; the parent repository's own agents when `None`.
    pub fork: Option<ForkName>,
    /// The paths; a directory stands for all below it.
    pub paths: Vec<RepoPath>,
    /// The task, where a task is claimed.
    pub task: Option<String>,
    /// The fencing number.
    pub fence: Fence,
    /// When it ends.
    pub until: Millis,
}

impl Claim {
    /// Does the claim concern this path: the same, one above it or one below it?
    #[must_use]
    pub fn touches(&self, path: &RepoPath) -> bool {
        self.paths.iter().any(|mine| mine == path || path.is_below(mine) || mine.is_below(path))
    }
}

/// How main came to stand on a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Main before; `None` when it was made.
    pub from: Option<ObjectId>,
    /// The paths that moved, each once, in order; `None` when unknown (a direct push).
    pub paths: Option<Vec<RepoPath>>,
}

/// What a submission was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmissionAnswer {
    /// It is this version.
    Accepted {
        /// The change.
        change: ChangeId,
        /// The version.
        version: Version,
    },
    /// It was refused.
    Refused(Refusal),
}

/// An answer under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSubmission {
    /// The digest of what the caller sent.
    pub content: String,
    /// The answer.
    pub answer: SubmissionAnswer,
}

/// What a landing request was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingAnswer {
    /// Main moved.
    Landed {
        /// To this commit.
        tip: ObjectId,
    },
    /// It was refused.
    Refused {
        /// Why.
        refusal: Refusal,
        /// End of the landing turn that came with it.
        turn_until: Option<Millis>,
    },
}

/// Synchronous read access to the state of a Repository, at one moment.
///
/// An implementation whose store fails keeps the error, answers as if nothing were there, and its
/// host throws the decision away.
pub trait Ledger {
    /// Main's head; `None` while the repository is empty.
    fn main(&self) -> Option<ObjectId>;
    /// Main's epoch.
    fn epoch(&self) -> Epoch;
    /// Where the notes ref stands.
    fn notes(&self) -> Option<ObjectId>;
    /// The policy in force: the one that main's head carries.
    fn policy(&self) -> Arc<Policy>;
    /// Why landing is frozen, if it is.
    fn frozen(&self) -> Option<String>;
    /// Are direct pushes to main forbidden?
    fn protected(&self) -> bool;
    /// The landing turns as they were last stored (time may have passed since).
    fn turns(&self) -> Turns;
    /// The place that the next row of the submissions log gets.
    fn next_seq(&self) -> Seq;
    /// The newest accepted row of a change.
    fn newest(&self, change: &ChangeId) -> Option<Arc<Submission>>;
    /// The version of the newest accepted row; a host answers it without reading the row.
    fn newest_version(&self, change: &ChangeId) -> Option<Version> {
        self.newest(change).map(|row| row.version)
    }
    /// One row.
    fn row(&self, change: &ChangeId, version: Version) -> Option<Arc<Submission>>;
    /// What is known of a change; the default for an unknown one.
    fn state(&self, change: &ChangeId) -> ChangeState;
    /// The changes of a fork whose newest row has this path, in id order; ended ones may be among them.
    fn on_path(&self, fork: Option<&ForkName>, path: &RepoPath) -> Vec<ChangeId>;
    /// The versions that have this commit among theirs, in order.
    fn versions_with(&self, commit: &ObjectId) -> Vec<(ChangeId, Version)>;
    /// Is or was the commit ever on main, in any epoch?
    fn was_on_main(&self, commit: &ObjectId) -> bool;
    /// A commit that is or was on main, or belongs to a version, or lies in a catalogued pack.
    fn commit(&self, commit: &ObjectId) -> Option<CommitInfo>;
    /// The change that landed as this commit, in any epoch.
    fn landing_of(&self, commit: &ObjectId) -> Option<Standing>;
    /// How main came to stand on this commit, the last time it did.
    fn step(&self, commit: &ObjectId) -> Option<Step>;
    /// Claims that end after `now` and touch the path ([`Claim::touches`]), in fence order.
    fn claims_touching(&self, path: &RepoPath, now: Millis) -> Vec<Claim>;
    /// The claim on a task that ends after `now`.
    fn task_claim(&self, task: &str, now: Millis) -> Option<Claim>;
    /// A claim by its number, ended or not.
    fn claim(&self, fence: Fence) -> Option<Claim>;
    /// A fencing number larger than every one given.
    fn next_fence(&self) -> Fence;
    /// The lane's owner epoch: the largest that it was ever given a change under.
    fn lane_epoch(&self, lane: &LaneName) -> OwnerEpoch;
    /// The answer that this key got.
    fn submission_answer(&self, key: &IdempotencyKey) -> Option<StoredSubmission>;
    /// The answer that this attempt got.
    fn landing_answer(&self, key: &AttemptId) -> Option<LandingAnswer>;
}

/// The setters that [`crate::fold::fold`] writes with; each replaces what was there.
pub trait LedgerMut: Ledger {
    /// Main stands on `tip` now, and came there so; `tip` and all its ancestors were on main from now on.
    fn set_main(&mut self, tip: ObjectId, epoch: Epoch, step: &Step);
    /// The notes ref stands here now.
    fn set_notes(&mut self, tip: ObjectId);
    /// A ref other than main and the notes ref moved; `None` deletes it.
    fn set_ref(&mut self, name: &RefName, target: Option<ObjectId>);
    /// The policy in force.
    fn set_policy(&mut self, policy: &Policy);
    /// Why landing is frozen; `None` thaws it.
    fn set_frozen(&mut self, reason: Option<&str>);
    /// Are direct pushes to main forbidden?
    fn set_protected(&mut self, protected: bool);
    /// The landing turns.
    fn set_turns(&mut self, turns: &Turns);
    /// A commit of the graph, after its parents; the same one may come again, and changes nothing.
    fn put_commit(&mut self, node: &CommitNode);
    /// A new row: the newest of its change, found by its commits and paths.
    fn put_row(&mut self, row: &Submission);
    /// What is known of a change.
    fn set_state(&mut self, change: &ChangeId, state: &ChangeState);
    /// A change landed as this commit; kept for ever.
    fn put_landing(&mut self, landing: &Standing);
    /// A claim, new or renewed, by its number.
    fn put_claim(&mut self, claim: &Claim);
    /// The claim of this number is over.
    fn end_claim(&mut self, fence: Fence);
    /// The lane's owner epoch is at least this.
    fn raise_lane_epoch(&mut self, lane: &LaneName, epoch: OwnerEpoch);
    /// A submission's answer; the first one under a key stays.
    fn put_submission_answer(&mut self, key: &IdempotencyKey, stored: &StoredSubmission);
    /// A landing's answer; the first one under a key stays.
    fn put_landing_answer(&mut self, key: &AttemptId, answer: &LandingAnswer);
    /// A pack belongs to main's catalogue now.
    fn put_pack(&mut self, pack: &PackRef);
}
