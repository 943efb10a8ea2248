//! What is asked before a submission is prepared, and what its head is built from.

use serde::{Deserialize, Serialize};
use yard_common::bytes::Base64;
use yard_common::submission::RowEdit;
use yard_common::{ChangeId, ForkName, IdempotencyKey, ObjectId, Refusal, TokenId};

use super::{Accepted, CommitInfo, IndexedPack};
use crate::method;

/// What the edge needs to prepare submissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// New commits between the known world and the head, head last; empty for an API submission.
    pub commits: Vec<CommitInfo>,
    /// The pushed head, or an API submission's base commit (`is_base`).
    pub head: ObjectId,
    /// `head` is a base commit itself: it must be known.
    pub is_base: bool,
    /// The change, if its id was given.
    pub change: Option<ChangeId>,
    /// The fork that offers it.
    pub fork: Option<ForkName>,
}
/// The base, as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepareReply {
    /// All maximal known proper ancestors and their trees, in commit-id order.
    pub bases: Vec<CommitInfo>,
    /// Merge bases of the ones above, pairwise in fold order: one fewer than `bases`.
    pub merge_bases: Vec<CommitInfo>,
    /// Open changes that the bases belong to.
    pub waits_for: Vec<ChangeId>,
    /// Trees of the mains before the base on main, one landing before first, at most 12.
    pub mains_before: Vec<ObjectId>,
    /// Those of `bases` that are heads of API submissions without objects: to be built first.
    #[serde(default)]
    pub without_objects: Vec<ObjectId>,
}
method!(Prepare, "prepare", PrepareReply);

/// What these keys were answered before, and where main stands: asked before anything is prepared, so that
/// a repeated request gets its answer although main has moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// The callers' keys with the digests of their requests.
    pub keys: Vec<(IdempotencyKey, String)>,
    /// The bearer's token id.
    pub token: Option<TokenId>,
}
/// Answers in the order of the keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedReply {
    /// `None`: the key is new.
    pub answers: Vec<Option<Result<Accepted, Refusal>>>,
    /// Main; `None` while the repository is empty.
    pub main: Option<ObjectId>,
}
method!(Offered, "offered", OfferedReply);

/// What the heads of API submissions among these commits are built from, where they are no objects yet;
/// some of them, when all would be more than 8 MiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heads {
    /// Commit ids.
    pub ids: Vec<ObjectId>,
}
/// A head that is a row and no object yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingHead {
    /// The commit.
    pub id: ObjectId,
    /// The commit, encoded.
    pub commit: Base64,
    /// The tree that its edits are measured from; its objects are in the catalogue.
    pub base_tree: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its edits.
    pub edits: Vec<RowEdit>,
    /// Its new blobs.
    pub contents: Vec<(ObjectId, Base64)>,
}
method!(Heads, "heads", Vec<WaitingHead>);

/// Catalogues a pack with these heads and all that they need; `refs/changes/ID/VERSION` name them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogueHeads {
    /// The pack.
    pub pack: IndexedPack,
    /// The heads in it.
    pub heads: Vec<ObjectId>,
}
method!(CatalogueHeads, "catalogue-heads", ());
