//! What a merge answers: edits and new blobs, or collisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yard_common::landing::Edit;
use yard_common::{ObjectId, RepoPath};

/// A blob that a merge made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBlob {
    /// Its id.
    pub id: ObjectId,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A clean merge: the edits to put on ours, and the blobs that they need beyond both sides'.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// One edit for each path that differs between base and theirs, in that path's order.
    pub edits: Vec<Edit>,
    /// Blobs that lie on neither side, in id order, each once.
    pub new_blobs: Vec<NewBlob>,
}

/// Why a path cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CollisionKind {
    /// Both sides changed the same or touching lines.
    Content,
    /// The merged text depends on the diff algorithm.
    Ambiguous,
    /// Both sides added the path with other contents.
    AddAdd,
    /// One side changed what the other deleted.
    ModifyDelete,
    /// A file stands where the other side has a directory.
    FileDirectory,
    /// The two sides made entries of different kinds.
    TypeChange,
    /// A binary file, or one that `.gitattributes` calls binary, was changed by both.
    Binary,
    /// A submodule was changed by both.
    Submodule,
    /// A symbolic link was changed by both.
    Symlink,
    /// A rename on one side cannot be combined with what the other side did.
    Rename,
    /// A file was added to a directory that the other side renamed.
    DirectoryRename,
    /// `.gitattributes` asks for `merge=union`, which is not honoured.
    Union,
    /// The path's rule refuses its contents.
    Rule,
    /// The merge cannot decide; it says why.
    Undecided,
}

/// One path that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Collision {
    /// The path.
    pub path: RepoPath,
    /// Why.
    pub kind: CollisionKind,
    /// What happened, for the author.
    pub sentence: String,
    /// Where the file would have to go, for [`CollisionKind::DirectoryRename`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested: Option<RepoPath>,
}

impl Collision {
    pub(crate) fn new(path: &RepoPath, kind: CollisionKind, sentence: impl Into<String>) -> Self {
        Self { path: path.clone(), kind, sentence: sentence.into(), suggested: None }
    }
}

/// What became of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every path merged.
    Clean(Applied),
    /// At least one path did not; in path order, never empty. Paths found only after these are not listed.
    Collided(Vec<Collision>),
}

/// Collects edits, blobs and collisions path by path.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub edits: Vec<(RepoPath, Edit)>,
    pub blobs: BTreeMap<ObjectId, Vec<u8>>,
    pub collisions: Vec<Collision>,
}

impl Gathered {
    pub fn outcome(mut self) -> Outcome {
        if self.collisions.is_empty() {
            self.edits.sort_by(|(a, _), (b, _)| a.cmp(b));
            let edits = self.edits.into_iter().map(|(_, edit)| edit).collect();
            let new_blobs = self.blobs.into_iter().map(|(id, bytes)| NewBlob { id, bytes }).collect();
            return Outcome::Clean(Applied { edits, new_blobs });
        }
        self.collisions.sort();
        self.collisions.dedup_by(|a, b| a.path == b.path && a.kind == b.kind);
        Outcome::Collided(self.collisions)
    }
}
