//! The submission row: one accepted version of a change, as the parent repository stores it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::edit_list::EditList;
use crate::id::{
    ChangeId, Fence, ForkName, IdempotencyKey, LaneName, ObjectId, OwnerEpoch, Seq, Version,
};
use crate::intent::{Intent, Signature};
use crate::path::RepoPath;
use crate::replay::Origin;
use crate::time::Millis;

/// The kind of a tree entry that is not a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// A file, `100644`.
    #[serde(rename = "100644")]
    File,
    /// A file with the executable bit, `100755`.
    #[serde(rename = "100755")]
    Executable,
    /// A symbolic link, `120000`.
    #[serde(rename = "120000")]
    Symlink,
    /// A submodule's commit, `160000`: its object lives elsewhere.
    #[serde(rename = "160000")]
    Gitlink,
}

/// What stands at a path: mode and object id. "Absent" is `None` around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The mode.
    pub mode: Mode,
    /// The blob (or, for a submodule, the commit of the other repository).
    pub id: ObjectId,
}

/// One path of a submitted version: what stood there in its base, and what it puts there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowEdit {
    /// The path, in the submitted version's own tree (renames are an absent and an added path).
    pub path: RepoPath,
    /// The entry in the base tree.
    pub base: Option<Entry>,
    /// The entry in the version's tree; differs from `base`.
    pub theirs: Option<Entry>,
}

/// What a version's edits are measured from; fixed at acceptance, never recomputed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// All maximal known proper ancestors of the head, in commit-id order.
    pub commits: Vec<ObjectId>,
    /// Their tree, or the clean three-way merge of their trees, folded in commit-id order.
    pub tree: ObjectId,
}

/// A commit as the ancestry of a repository needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitNode {
    /// The commit.
    pub id: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// Its tree.
    pub tree: ObjectId,
}

/// How a submission came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// `git push ... HEAD:refs/for/main`.
    Git,
    /// `POST /api/repos/{repo}/changes`.
    Api,
    /// A model's replay of the version before.
    Replay,
}

impl Via {
    /// Do the contents lie in the repository's table until they land, in no pack?
    #[must_use]
    pub fn is_inline(self) -> bool {
        match self {
            Self::Git => false,
            Self::Api | Self::Replay => true,
        }
    }
}

/// One accepted version of a change. Acceptance = this row is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Its place in the submissions log.
    pub seq: Seq,
    /// The change.
    pub change: ChangeId,
    /// The version, numbered by the log alone.
    pub version: Version,
    /// The fork that made the change; the parent itself when `None`.
    pub fork: Option<ForkName>,
    /// Author of the head commit.
    pub author: Signature,
    /// The head: the pushed commit, or the one built from an API submission.
    pub head: ObjectId,
    /// The head's tree.
    pub head_tree: ObjectId,
    /// All commits from base (exclusive) to head (inclusive); they are "known" afterwards.
    pub commits: Vec<ObjectId>,
    /// What the edits are measured from.
    pub base: Base,
    /// The paths that differ between base tree and head tree, in path order; never empty, but where they are
    /// the value of `list` and that was not read.
    pub edits: Vec<RowEdit>,
    /// Where the edits are, when they are too many for a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<EditList>,
    /// Fence numbers that the author's fork held by path when the row was stored.
    pub fences: BTreeMap<RepoPath, Fence>,
    /// Changes that this one declares to revert (trailer `Reverts`).
    pub reverts: Vec<ChangeId>,
    /// The owning lane.
    pub lane: LaneName,
    /// The owner epoch under which it was given to that lane.
    pub owner_epoch: OwnerEpoch,
    /// Open changes whose commits lie in the base: they land first.
    pub waits_for: Vec<ChangeId>,
    /// The caller's key.
    pub key: IdempotencyKey,
    /// When it was stored.
    pub at: Millis,
    /// How it came in.
    pub via: Via,
    /// What was asked.
    pub intent: Intent,
    /// Sentences kept with the row and shown to the author (a near-stale tree, a foreign id, ...).
    pub warnings: Vec<String>,
    /// A digest of what the caller sent, by which a reused key is told from a repeat.
    #[serde(default)]
    pub content: String,
    /// How a model made this version, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Origin>>,
}
