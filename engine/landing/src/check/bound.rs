//! Check 2: every listed change is what was accepted, all of it and nothing else.

use std::collections::BTreeSet;

use yard_common::edit_list::EditList;
use yard_common::fact::Terminal;
use yard_common::landing::{Edit, How, LandChange, LandRequest};
use yard_common::submission::{Entry, Mode, RowEdit, Submission};
use yard_common::{ChangeId, Refusal, RepoPath};

use super::Bound;
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

/// Each listed version is the newest accepted one, owned by the lane, neither withdrawn nor held;
/// what it waits for has landed or stands earlier; its edits are the row's.
///
/// # Errors
/// The refusals named after each of these.
pub fn check<'r>(ledger: &dyn Ledger, request: &'r LandRequest) -> Result<Vec<Bound<'r>>, Refusal> {
    let bound = rows(ledger, request)?;
    standing(ledger, request, &bound)?;
    parents(ledger, &bound)?;
    for change in &bound {
        edits(change)?;
    }
    Ok(bound)
}

fn unbound<T>(change: &ChangeId, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Unbound { change: change.clone(), why: why.into() })
}

fn rows<'r>(ledger: &dyn Ledger, request: &'r LandRequest) -> Result<Vec<Bound<'r>>, Refusal> {
    let row = |listed: &'r LandChange| match ledger.row(&listed.change, listed.version) {
        Some(row) => Ok(Bound { listed, row, state: ledger.state(&listed.change) }),
        None => unbound(&listed.change, format!("there is no version {} of it", listed.version)),
    };
    request.changes.iter().map(row).collect()
}

/// The newest versions, of changes that are this lane's and free to land.
fn standing(ledger: &dyn Ledger, request: &LandRequest, bound: &[Bound<'_>]) -> Result<(), Refusal> {
    let (mut old, mut gone, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for Bound { listed, state, .. } in bound {
        let change = &listed.change;
        let owned = state.owner.as_ref().is_some_and(|(lane, _)| *lane == request.key.lane);
        if !owned && !off(Mutant::OwnerLane) {
            return Err(Refusal::NotOwner { change: Some(change.clone()) });
        }
        let newest = ledger.newest_version(change) == Some(listed.version);
        if !newest && !off(Mutant::Newest) {
            old.push(change.clone());
        }
        if state.closed.is_some() && !off(Mutant::Withdrawn) {
            gone.push(change.clone());
        }
        let on_hold = state.hold.is_some() && !off(Mutant::Held);
        if on_hold || (state.rewritten.is_some() && !off(Mutant::Rewritten)) {
            held.push(change.clone());
        }
    }
    if !gone.is_empty() {
        return Err(Refusal::Withdrawn { changes: gone });
    }
    if !old.is_empty() {
        return Err(Refusal::Superseded { changes: old });
    }
    if held.is_empty() { Ok(()) } else { Err(Refusal::Held { changes: held }) }
}

fn parents(ledger: &dyn Ledger, bound: &[Bound<'_>]) -> Result<(), Refusal> {
    let mut earlier = BTreeSet::new();
    for Bound { listed, row, .. } in bound {
        for waits_for in &row.waits_for {
            let state = ledger.state(waits_for);
            let on_main = state.closed.is_some_and(|closed| closed.stage == Terminal::AlreadyOnMain);
            if state.landed.is_none() && !on_main && !earlier.contains(waits_for) && !off(Mutant::Parent) {
                let (change, waits_for) = (listed.change.clone(), waits_for.clone());
                return Err(Refusal::ParentOpen { change, waits_for });
            }
        }
        earlier.insert(listed.change.clone());
    }
    Ok(())
}

fn edits(Bound { listed, row, .. }: &Bound<'_>) -> Result<(), Refusal> {
    let change = &listed.change;
    let whole = EditList::is_whole(row.list.as_ref(), row.edits.len());
    if !whole || !EditList::is_whole(listed.list.as_ref(), listed.edits.len()) {
        return Err(Refusal::Malformed { why: format!("the list of edits of change {change} was not read") });
    }
    let (mut paths, mut row_paths) = (BTreeSet::new(), BTreeSet::new());
    for edit in &listed.edits {
        let row_path = edit.from.as_ref().unwrap_or(&edit.path);
        if !off(Mutant::OnlyRowPaths) && (!paths.insert(&edit.path) || !row_paths.insert(row_path)) {
            return unbound(change, format!("{} comes twice", edit.path));
        }
        row_paths.insert(row_path);
        match row_edit(row, row_path) {
            Some(accepted) => values(change, edit, accepted)?,
            None if off(Mutant::OnlyRowPaths) => {}
            None => return unbound(change, format!("{row_path} is not one of its paths")),
        }
        how(listed, edit)?;
    }
    let left_out = row.edits.iter().find(|accepted| !row_paths.contains(&accepted.path));
    match left_out {
        Some(accepted) if !off(Mutant::EveryPath) => {
            unbound(change, format!("{} is left out", accepted.path))
        }
        _ => Ok(()),
    }
}

fn row_edit<'s>(row: &'s Submission, path: &RepoPath) -> Option<&'s RowEdit> {
    let place = row.edits.binary_search_by(|edit| edit.path.cmp(path)).ok()?;
    row.edits.get(place)
}

fn values(change: &ChangeId, edit: &Edit, accepted: &RowEdit) -> Result<(), Refusal> {
    if edit.base != accepted.base && !off(Mutant::Base) {
        return unbound(change, format!("{}: its base is another one", edit.path));
    }
    if edit.theirs != accepted.theirs && !off(Mutant::Theirs) {
        return unbound(change, format!("{}: it wants something else there", edit.path));
    }
    Ok(())
}

/// The rules of each kind of result, as far as ids can tell; that a merge of contents is a right
/// one is what `fsck --landings` proves.
fn how(listed: &LandChange, edit: &Edit) -> Result<(), Refusal> {
    let change = &listed.change;
    let Edit { path, from, base, ours, theirs, result, how } = edit;
    match how {
        How::Theirs if from.is_some() && !off(Mutant::FromHow) => {
            return unbound(change, format!("{path}: a moved path is merged or follows a rule"));
        }
        How::Theirs if (ours != base || result != theirs) && !off(Mutant::HowTheirs) => {
            return unbound(change, format!("{path}: 'theirs' needs ours = base and result = theirs"));
        }
        How::Same if from.is_some() && !off(Mutant::FromHow) => {
            return unbound(change, format!("{path}: a moved path is merged or follows a rule"));
        }
        How::Same if result != ours && !off(Mutant::HowSame) => {
            return unbound(change, format!("{path}: 'same' needs result = ours"));
        }
        How::Merge if !off(Mutant::HowMerge) => trivial_merge(listed, edit)?,
        _ => {}
    }
    let module = |entry: &Option<Entry>| entry.is_some_and(|entry| entry.mode == Mode::Gitlink);
    let made = matches!(how, How::Merge | How::Rule(_));
    let chosen = ours == base && result == theirs || ours == theirs && result == ours;
    if made && !chosen && [base, ours, theirs, result].into_iter().any(module) && !off(Mutant::Gitlink) {
        return unbound(change, format!("{path}: a submodule is never merged"));
    }
    Ok(())
}

/// Where one side changed nothing, or both did the same, only one result is a merge; but for a path to
/// which the change moves a file that main has edited: main's edit arrives there.
fn trivial_merge(listed: &LandChange, edit: &Edit) -> Result<(), Refusal> {
    let Edit { path, base, ours, theirs, result, .. } = edit;
    let wrong = (ours == base && result != theirs) || (ours == theirs && result != ours);
    let arrives = base.is_none() && ours.is_none() && theirs.is_some() && result.is_some();
    if !wrong || (arrives && listed.edits.iter().any(moved_away)) {
        return Ok(());
    }
    unbound(&listed.change, format!("{path}: this is not what a merge gives"))
}

/// Does the edit take away a file that main has edited, as a rename by the change does?
fn moved_away(edit: &Edit) -> bool {
    let Edit { base, ours, theirs, result, how, .. } = edit;
    let edited = base.is_some() && ours.is_some() && ours != base;
    edited && theirs.is_none() && result.is_none() && *how == How::Merge
}
