//! The seven checks of a landing, one module each, numbered as in DESIGN 3.
//!
//! Those that need the ledger alone run first (1, 2, 5, 6), so that a request which cannot land
//! asks for no objects; then those that read trees and commits (3, 4), and the proof of the
//! test (7), which needs the tree that 3 has made. All must pass, so the order shows only in which
//! of several refusals is given.

use std::sync::Arc;

use yard_common::landing::LandChange;
use yard_common::submission::Submission;

use crate::ledger::ChangeState;

pub mod bound;
pub mod chain;
pub mod fence;
pub mod folded;
pub mod once;
pub mod place;
pub mod proof;

/// A listed change with its accepted row.
#[derive(Debug, Clone)]
pub struct Bound<'r> {
    /// What the lane lists.
    pub listed: &'r LandChange,
    /// The row of that version.
    pub row: Arc<Submission>,
    /// What else is known of the change.
    pub state: ChangeState,
}
