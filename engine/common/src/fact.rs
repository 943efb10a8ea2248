//! What happened: the stored, append-only vocabulary of the Repository object.
//!
//! One decision is one fact; every table of the object is a fold of its facts. Stored as JSON;
//! fields are only ever added, with a default.

use serde::{Deserialize, Serialize};

use crate::id::{
    ChangeId, Epoch, Fence, ForkName, IdempotencyKey, LaneName, ObjectId, OwnerEpoch, RefName,
    Version,
};
use crate::landing::{AttemptId, LandRequest};
use crate::path::RepoPath;
use crate::refusal::Refusal;
use crate::submission::Submission;
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

/// One thing that happened in a Repository object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
pub enum Fact {
    /// A version of a change was accepted.
    Submitted {
        /// The row.
        row: Box<Submission>,
    },
    /// A submission was refused; the same key gets the same answer.
    SubmissionRefused {
        /// The caller's key.
        key: IdempotencyKey,
        /// Why.
        refusal: Refusal,
    },
    /// Main moved to a tested candidate.
    Landed {
        /// What was asked; its edits are the proof.
        request: Box<LandRequest>,
        /// The untested part of the tip, if any.
        untested: Option<Untested>,
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
        /// When.
        at: Millis,
    },
    /// A change was held or released by a person.
    HoldSet {
        /// The change.
        change: ChangeId,
        /// The reason; `None` releases it.
        reason: Option<String>,
    },
    /// An author or admin offers a rewritten change again as it is.
    Requeued {
        /// The change.
        change: ChangeId,
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
        /// The paths.
        paths: Vec<RepoPath>,
        /// The fencing number.
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
