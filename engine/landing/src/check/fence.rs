//! Check 6: claims, freeze and protection allow it.

use yard_common::policy::CONFIG_PATH;
use yard_common::{Fence, Millis, Refusal, RepoPath};

use super::Bound;
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

/// Nothing is frozen; path by path, no live claim of another fork has a higher number than the row's.
///
/// # Errors
/// [`Refusal::Frozen`], [`Refusal::Fence`] with the holder, [`Refusal::Protected`].
pub fn check(ledger: &dyn Ledger, bound: &[Bound<'_>], now: Millis) -> Result<(), Refusal> {
    if let Some(reason) = ledger.frozen()
        && !off(Mutant::Freeze)
    {
        return Err(Refusal::Frozen { reason });
    }
    for change in bound {
        for edit in &change.listed.edits {
            let row_path = edit.from.as_ref().unwrap_or(&edit.path);
            fenced(ledger, change, &edit.path, row_path, now)?;
            if row_path != &edit.path {
                fenced(ledger, change, row_path, row_path, now)?;
            }
        }
        configuration(change)?;
        second_review(ledger, change)?;
    }
    Ok(())
}

fn fenced(
    ledger: &dyn Ledger,
    change: &Bound<'_>,
    path: &RepoPath,
    row_path: &RepoPath,
    now: Millis,
) -> Result<(), Refusal> {
    let row = &change.row;
    let held = if off(Mutant::FencePath) {
        row.fences.values().max().copied().unwrap_or_default()
    } else {
        row.fences.get(row_path).copied().unwrap_or(Fence(0))
    };
    let mut claims = ledger.claims_touching(path, now).into_iter();
    match claims.find(|claim| claim.fork != row.fork && claim.fence > held) {
        Some(claim) if !off(Mutant::Fence) => Err(Refusal::Fence {
            change: row.change.clone(),
            path: path.clone(),
            holder: claim.fork,
            until: claim.until,
        }),
        _ => Ok(()),
    }
}

/// The configuration says what may land, so an admin approves each version that changes it.
fn configuration(change: &Bound<'_>) -> Result<(), Refusal> {
    let touches = change
        .listed
        .edits
        .iter()
        .find(|edit| edit.result != edit.ours && edit.path.as_bytes() == CONFIG_PATH.as_bytes());
    let Some(edit) = touches else { return Ok(()) };
    let approved = change.state.approved == Some(change.listed.version);
    if approved || off(Mutant::ConfigAdmin) {
        return Ok(());
    }
    let (change, path) = (change.listed.change.clone(), edit.path.clone());
    Err(Refusal::Protected { change, path, rule: "an admin approves this version".into() })
}

/// A replay that differs from what was reviewed in more lines than main's policy allows.
fn second_review(ledger: &dyn Ledger, change: &Bound<'_>) -> Result<(), Refusal> {
    let Some(allowed) = ledger.policy().review_lines else { return Ok(()) };
    let lines = change.row.replay.as_ref().map_or(0, |origin| origin.differing_lines);
    let approved = change.state.approved == Some(change.listed.version);
    if lines <= allowed || approved || off(Mutant::SecondReview) {
        return Ok(());
    }
    let Some(edit) = change.listed.edits.first() else { return Ok(()) };
    let rule = format!(
        "its replay differs in {lines} lines from what was reviewed, {allowed} are allowed: an admin approves \
         this version"
    );
    Err(Refusal::Protected { change: change.listed.change.clone(), path: edit.path.clone(), rule })
}
