//! Time as an argument: milliseconds since the Unix epoch.

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// This point plus `span` milliseconds, saturating.
    #[must_use]
    pub fn plus(self, span: u64) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Milliseconds from `earlier` to this point; 0 when `earlier` lies later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole seconds since the Unix epoch, as git writes them.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0 / 1000
    }
}
