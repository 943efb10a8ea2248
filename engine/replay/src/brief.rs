//! What a replay is about: all that a prompt is made of, and nothing else.

use serde::{Deserialize, Serialize};
use yard_common::intent::Intent;
use yard_common::{ChangeId, RepoPath};

use crate::text::readable;

/// Why the change is replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "cause")]
pub enum Cause {
    /// Its merge onto newest main is not clean.
    Collision {
        /// Where, and why there.
        at: Vec<CollidedPath>,
    },
    /// It merges clean, and the tests are red together with changes that landed first.
    Interaction {
        /// These changes.
        with: Vec<ChangeId>,
        /// The tests that fail with them and pass without.
        failing: Vec<String>,
        /// The end of the red run's log.
        log: String,
    },
}

/// One path at which a merge is not clean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollidedPath {
    /// The path on newest main.
    pub path: RepoPath,
    /// What happened there.
    pub why: String,
}

/// One reviewed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BriefFile {
    /// The path in the reviewed version.
    pub reviewed: RepoPath,
    /// The path on newest main: another one where main renamed the file meanwhile.
    pub path: RepoPath,
    /// The contents in the reviewed version's base.
    pub base: Option<Vec<u8>>,
    /// The contents in the reviewed version.
    pub theirs: Option<Vec<u8>>,
    /// The contents on newest main.
    pub main: Option<Vec<u8>>,
    /// What stands there before the model's edits.
    pub start: Start,
    /// A link or a submodule, which no model edits; its contents here are its target.
    pub special: bool,
    /// Does the reviewed change, merged, set another mode than main has?
    pub mode_moved: bool,
}

/// What stands at a reviewed path before the model's edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The merge is not clean here: main's contents, and the model has to say something.
    Main,
    /// The reviewed change merges clean here, or a rule merged it: the merged contents; the model may leave
    /// them alone.
    Merged(Option<Vec<u8>>),
}

impl BriefFile {
    /// The contents that the model's edits apply to.
    #[must_use]
    pub fn start(&self) -> Option<&[u8]> {
        match &self.start {
            Start::Main => self.main.as_deref(),
            Start::Merged(merged) => merged.as_deref(),
        }
    }

    /// Must the answer say something about this path?
    #[must_use]
    pub fn is_collided(&self) -> bool {
        self.start == Start::Main
    }

    /// Can a model read and write this file?
    #[must_use]
    pub fn is_text(&self) -> bool {
        let all = [self.base.as_deref(), self.theirs.as_deref(), self.main.as_deref(), self.start()];
        !self.special && all.into_iter().flatten().all(|bytes| readable(bytes).is_some())
    }
}

/// A change that landed meanwhile on these paths, or is about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// The change.
    pub change: ChangeId,
    /// What was asked of it.
    pub intent: Intent,
    /// What it did at the reviewed paths.
    pub files: Vec<RivalFile>,
}

/// One file of a rival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RivalFile {
    /// The path on main.
    pub path: RepoPath,
    /// The contents before it landed.
    pub before: Option<Vec<u8>>,
    /// The contents that it landed.
    pub after: Option<Vec<u8>>,
}

/// All that a prompt is made of. No token, no address, no name of a person is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// The reviewed intent.
    pub intent: Intent,
    /// Why it is replayed.
    pub cause: Cause,
    /// The reviewed paths; these and no others may be edited.
    pub files: Vec<BriefFile>,
    /// What landed meanwhile.
    pub rivals: Vec<Rival>,
    /// The contract that the files keep with others, where there is one.
    pub contract: Option<String>,
    /// Further files of main, to be read only.
    pub context: Vec<(RepoPath, Vec<u8>)>,
}
