//! Check 5: `landed(change)` is a primary key.

use std::collections::BTreeSet;

use yard_common::Refusal;

use super::Bound;
use crate::mutant::{Mutant, off};

/// No change lands twice, whatever lane or version it comes in.
///
/// # Errors
/// [`Refusal::AlreadyLanded`] with all that have; [`Refusal::Malformed`] for one listed twice.
pub fn check(bound: &[Bound<'_>]) -> Result<(), Refusal> {
    if off(Mutant::Landed) {
        return Ok(());
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = bound.iter().find(|change| !seen.insert(&change.listed.change)) {
        return Err(Refusal::Malformed { why: format!("change {} is listed twice", twice.listed.change) });
    }
    let landed = |change: &&Bound<'_>| change.state.landed.is_some();
    let changes: Vec<_> = bound.iter().filter(landed).map(|change| change.listed.change.clone()).collect();
    if changes.is_empty() { Ok(()) } else { Err(Refusal::AlreadyLanded { changes }) }
}
