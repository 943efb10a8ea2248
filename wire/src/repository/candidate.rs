//! How a lane announces a candidate.

use serde::{Deserialize, Serialize};
use yard_common::landing::AttemptId;
use yard_common::{ChangeId, ObjectId, Version};

use super::{CommitInfo, IndexedPack};
use crate::method;

/// Stages a candidate: its pack is served to runners as a hidden ref, and deleted unless it lands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCandidate {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its pack.
    pub pack: IndexedPack,
    /// Its tip.
    pub tip: ObjectId,
    /// Its commits.
    pub commits: Vec<CommitInfo>,
    /// The changes aboard: claims that they were made under are lengthened.
    #[serde(default)]
    pub changes: Vec<(ChangeId, Version)>,
    /// For how long, in milliseconds.
    #[serde(default)]
    pub for_ms: u64,
}
method!(StageCandidate, "stage-candidate", ());
