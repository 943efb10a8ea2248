//! A model's replay of a change: why it is asked for, and what is kept of how it came about.

use serde::{Deserialize, Serialize};

use crate::id::{ChangeId, LaneName, ReplayNo, RunId, Version};
use crate::path::RepoPath;

/// Why a change is replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Cause {
    /// Its edits do not merge with what stands at these paths.
    Collision {
        /// The paths, with what went wrong at each, at most 100.
        paths: Vec<(RepoPath, String)>,
    },
    /// It merges, but is red together with changes that landed first.
    Interaction {
        /// Those changes.
        with: Vec<ChangeId>,
        /// The runs that prove it.
        runs: Vec<RunId>,
        /// What failed, in a few words.
        detail: String,
    },
}

/// What a replay's model calls cost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// The model, as the provider names it; empty where none was called.
    pub model: String,
    /// Tokens of the prompts.
    pub tokens_in: u64,
    /// Tokens of the answers.
    pub tokens_out: u64,
    /// The price in millionths of a US dollar, by the platform's configured prices.
    pub micro_usd: u64,
    /// Calls of the model. At the end of a replay, 0 when the answer was at hand already; on a version, all that
    /// its answer took.
    pub calls: u32,
}

/// How a replay ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum ReplayEnd {
    /// A next version of the change was accepted.
    Proposed {
        /// That version.
        version: Version,
    },
    /// The answer of an early replay is at hand.
    Prepared,
    /// There is none: the change goes back to its author.
    Failed {
        /// Why.
        why: String,
    },
}

/// How a version came about by a model: kept on its row, and so on its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The lane that asked.
    pub lane: LaneName,
    /// Its number there.
    pub no: ReplayNo,
    /// The version that was replayed.
    pub of: Version,
    /// The version that was reviewed: the newest one that no model made.
    pub reviewed: Version,
    /// Why.
    pub cause: Cause,
    /// Changes that landed meanwhile on its paths, as the model was shown them.
    pub rivals: Vec<ChangeId>,
    /// Reviewed paths that main has renamed since, with their names there.
    pub renames: Vec<(RepoPath, RepoPath)>,
    /// What it cost.
    pub cost: Cost,
    /// The hash of the prompt: prompt and answer are kept under it.
    pub prompt: String,
    /// In one sentence, how the replayed diff differs from the reviewed one.
    pub compared: String,
    /// The two diffs compared, as text; cut where it is long.
    pub range_diff: String,
    /// Lines that the replay added, dropped or changed against what was reviewed.
    pub differing_lines: u32,
}
