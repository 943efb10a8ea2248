//! Check 1: the request stands where main stands, and it is its lane's turn.
//!
//! (The key is looked at before all else, in [`crate::land::land`].)

use std::collections::BTreeSet;

use yard_common::landing::LandRequest;
use yard_common::{Millis, ObjectId, Refusal, RepoPath};

use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};
use crate::turn;

/// Most paths that a refusal lists.
const PATHS_SHOWN_MAX: usize = 100;
/// Most landings that a walk over main's steps looks at.
const STEPS_MAX: usize = 1000;

/// Epoch, owner epoch and head are as expected; no other lane holds a live landing turn.
///
/// # Errors
/// [`Refusal::NotOwner`], [`Refusal::Moved`] (the lane assembles anew, and gets a turn), [`Refusal::Turn`].
pub fn check(ledger: &dyn Ledger, request: &LandRequest, now: Millis) -> Result<(), Refusal> {
    let lane = &request.key.lane;
    if request.owner_epoch != ledger.lane_epoch(lane) && !off(Mutant::OwnerEpoch) {
        return Err(Refusal::NotOwner { change: None });
    }
    let Some(head) = ledger.main() else {
        return Err(Refusal::Malformed { why: "there is no main to land on".into() });
    };
    let other_epoch = request.epoch != ledger.epoch() && !off(Mutant::Epoch);
    let other_head = request.head != head && !off(Mutant::Head);
    if other_epoch || other_head {
        let mut paths = moved_paths(ledger, request.head, head).unwrap_or_default();
        while paths.len() > PATHS_SHOWN_MAX {
            paths.pop_last();
        }
        return Err(Refusal::Moved { head, paths: paths.into_iter().collect() });
    }
    match turn::holder(&ledger.turns(), now) {
        Some((holder, until)) if holder != *lane && !off(Mutant::Turn) => {
            Err(Refusal::Turn { lane: holder, until })
        }
        _ => Ok(()),
    }
}

/// The paths that landed between two mains; `None` when main did not go from one to the other by
/// landings alone.
#[must_use]
pub fn moved_paths(ledger: &dyn Ledger, from: ObjectId, to: ObjectId) -> Option<BTreeSet<RepoPath>> {
    let mut paths = BTreeSet::new();
    let mut at = to;
    for _ in 0..STEPS_MAX {
        if at == from {
            return Some(paths);
        }
        let step = ledger.step(&at)?;
        paths.extend(step.paths?);
        at = step.from?;
    }
    None
}
