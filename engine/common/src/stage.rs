//! Where an open change stands, and what a red run means for it.

use serde::{Deserialize, Serialize};

use crate::id::ChangeId;

/// Where a change stands in the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// In the repository's log.
    Submitted,
    /// Taken by its lane.
    Queued,
    /// In a train.
    Testing,
    /// Its intent is being redone on newest main.
    Replaying,
    /// Waits for a named actor.
    Held,
    /// Sent back.
    NeedsAuthor,
    /// On main.
    Landed,
    /// Taken back.
    Withdrawn,
    /// Main has all that it wants.
    AlreadyOnMain,
    /// Waited too long.
    Expired,
}

/// What a red test run means for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Red alone on its base, twice, while the base is green.
    BrokenAlone,
    /// Red alone, green with an open change that it needs.
    StaleBase {
        /// That change.
        needs: ChangeId,
    },
    /// Green alone, red together with changes that landed first.
    Interaction {
        /// With these.
        with: Vec<ChangeId>,
    },
    /// Red only where another is aboard.
    Victim {
        /// The guilty one.
        of: ChangeId,
    },
    /// Red, then green on the same tree.
    Flaky {
        /// The tests.
        tests: Vec<String>,
    },
    /// No complete result.
    Infra,
    /// The base itself is red.
    MainRed,
}
