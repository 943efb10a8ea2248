//! What happened: the stored, append-only vocabulary of the Repository object.
//!
//! One decision is one fact; every table of the object is a fold of its facts. Stored as JSON;
//! fields are only ever added, with a default.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::id::{
    ChangeId, Epoch, Fence, ForkName, IdempotencyKey, LaneName, ObjectId, OwnerEpoch, RefName,
    Version,
};
use crate::landing::{AttemptId, LandRequest};
use crate::path::RepoPath;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::submission::{CommitNode, Submission};
use crate::time::Millis;

/// A stage that ends a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Terminal {
    /// Its commit is on main.
    Landed,
    /// Its author or an admin took it back.
    Withdrawn,
    /// Main has all that it wants.
    AlreadyOnMain,
    /// It waited for its author too long.
    Expired,
}

/// Whose turn it is to land, after a lane was refused because main had moved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Turns {
    /// Lanes in order of asking; the first one holds the turn.
    pub queue: Vec<LaneName>,
    /// When the first one's lease ends.
    pub until: Millis,
    /// Length of a lease, in milliseconds: one assembly and test.
    pub span: u64,
}

/// One exception to "main's tip is a tested tree", named in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Untested {
    /// Other lanes' tested, disjoint paths came in between.
    Paths,
    /// Commutative rules were re-applied.
    Operations,
    /// An admin pushed directly.
    DirectPush,
}

/// The commit by which a change stands on main.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Standing {
    /// The change.
    pub change: ChangeId,
    /// The version that landed.
    pub version: Version,
    /// Its commit on main.
    pub commit: ObjectId,
}

/// One thing that happened in a Repository object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
pub enum Fact {
    /// A version of a change was accepted.
    Submitted {
        /// The row.
        row: Box<Submission>,
        /// The row's commits with their parents and trees.
        #[serde(default)]
        nodes: Vec<CommitNode>,
    },
    /// A submission was refused; the same key gets the same answer.
    SubmissionRefused {
        /// The caller's key.
        key: IdempotencyKey,
        /// The digest of what the caller sent.
        #[serde(default)]
        content: String,
        /// Why.
        refusal: Refusal,
    },
    /// Main moved to a tested candidate.
    Landed {
        /// What was asked; its edits are the proof.
        request: Box<LandRequest>,
        /// The untested part of the tip, if any.
        untested: Option<Untested>,
        /// The trees of the changes' commits, in the request's order.
        #[serde(default)]
        trees: Vec<ObjectId>,
        /// The policy in force from now on, where the train changes the configuration.
        #[serde(default)]
        policy: Option<Box<Policy>>,
        /// The landing turns after it.
        #[serde(default)]
        turns: Turns,
        /// When.
        at: Millis,
    },
    /// A landing request was refused; the same key gets the same answer.
    LandingRefused {
        /// The attempt.
        key: AttemptId,
        /// Why.
        refusal: Refusal,
        /// A landing turn that the lane got with it: end of its lease.
        turn_until: Option<Millis>,
        /// The landing turns after it.
        #[serde(default)]
        turns: Turns,
    },
    /// Main was pushed to directly.
    DirectPush {
        /// Main before; `None` when it was made.
        old: Option<ObjectId>,
        /// Main after.
        new: ObjectId,
        /// The epoch after; larger when it was not a fast-forward.
        epoch: Epoch,
        /// Why, required when it was not a fast-forward.
        reason: String,
        /// Landed changes whose commits are off main now.
        rewritten: Vec<ChangeId>,
        /// Rewritten changes whose commits are on main again.
        restored: Vec<ChangeId>,
        /// The commits by which the restored changes stand on main.
        #[serde(default)]
        standing: Vec<Standing>,
        /// The policy in force from now on, where the push changes the configuration.
        #[serde(default)]
        policy: Option<Box<Policy>>,
        /// When.
        at: Millis,
    },
    /// A ref other than main moved.
    RefMoved {
        /// The ref.
        name: RefName,
        /// Before; `None` when it was made.
        old: Option<ObjectId>,
        /// After; `None` when it was deleted.
        new: Option<ObjectId>,
    },
    /// A change reached a terminal stage other than landed.
    Closed {
        /// The change.
        change: ChangeId,
        /// The version it was closed at.
        version: Version,
        /// How it ended.
        stage: Terminal,
        /// Who or what ended it.
        by: String,
        /// Why, where somebody said so.
        #[serde(default)]
        reason: String,
        /// When.
        at: Millis,
    },
    /// A change was held or released by a person.
    HoldSet {
        /// The change.
        change: ChangeId,
        /// The reason; `None` releases it.
        reason: Option<String>,
        /// Who did it.
        #[serde(default)]
        by: String,
    },
    /// An author or admin offers a rewritten change again as it is.
    Requeued {
        /// The change.
        change: ChangeId,
        /// Who did it.
        #[serde(default)]
        by: String,
    },
    /// An admin allowed a version to change what only admins may change.
    Approved {
        /// The change.
        change: ChangeId,
        /// The version; a newer one needs its own approval.
        version: Version,
        /// Who allowed it.
        by: String,
    },
    /// Landing was frozen or thawed.
    FreezeSet {
        /// The reason; `None` thaws.
        reason: Option<String>,
    },
    /// A fork got a lease on paths.
    Claimed {
        /// Who; the parent's own agents when `None`.
        fork: Option<ForkName>,
        /// The paths; a directory stands for all below it.
        paths: Vec<RepoPath>,
        /// The task, where a task is claimed.
        #[serde(default)]
        task: Option<String>,
        /// The fencing number; one that exists already renews its lease.
        fence: Fence,
        /// When the lease ends.
        until: Millis,
    },
    /// A claim was given back.
    ClaimReleased {
        /// The fencing number.
        fence: Fence,
    },
    /// A change got another owner.
    OwnerSet {
        /// The change.
        change: ChangeId,
        /// The lane.
        lane: LaneName,
        /// The owner epoch.
        owner_epoch: OwnerEpoch,
    },
    /// Direct pushes to main were allowed or forbidden.
    ProtectedSet {
        /// Are they forbidden?
        protected: bool,
    },
}

impl Fact {
    /// The fact as it is stored: without the edits that are values of the bucket.
    #[must_use]
    pub fn stored(&self) -> Cow<'_, Self> {
        match self {
            Self::Submitted { row, nodes } if row.list.is_some() => {
                let row = Box::new(Submission { edits: Vec::new(), ..(**row).clone() });
                Cow::Owned(Self::Submitted { row, nodes: nodes.clone() })
            }
            Self::Landed { request, untested, trees, policy, turns, at }
                if request.changes.iter().any(|listed| listed.list.is_some()) =>
            {
                Cow::Owned(Self::Landed {
                    request: Box::new(request.without_lists().into_owned()),
                    untested: untested.clone(),
                    trees: trees.clone(),
                    policy: policy.clone(),
                    turns: turns.clone(),
                    at: *at,
                })
            }
            other => Cow::Borrowed(other),
        }
    }
}
