//! Check 3: nothing goes back. Folded in order from head's tree, each edit finds what it was made on.

use yard_common::landing::Edit;
use yard_common::{ObjectId, Refusal};
use yard_git::editor::{EditError, Step};
use yard_git::tree::Spot;
use yard_git::{Objects, RunningTree};

use super::Bound;
use crate::decision::Stop;
use crate::mutant::{Mutant, off};

/// Loads what the folding of these changes reads, as far as it is at hand.
///
/// # Errors
/// All trees of the next level that are missing.
pub fn prefetch(tree: &mut RunningTree, objects: &dyn Objects, bound: &[Bound<'_>]) -> Result<(), Stop> {
    let edits = || bound.iter().flat_map(|change| &change.listed.edits);
    let from = edits().filter_map(|edit| edit.from.as_ref());
    tree.prefetch(&objects, edits().map(|edit| &edit.path).chain(from))?;
    Ok(())
}

/// Folds the changes, deletes before adds within each; `found` is each change's commit's tree.
///
/// About one hash for each directory that a change touches, and no other cost.
///
/// # Errors
/// [`Refusal::GoesBack`] where something else stands than `ours`, mode included, or where a moved
/// path's old place is still there; [`Refusal::OtherTree`] when a commit's tree is not the fold.
pub fn check(
    tree: &mut RunningTree,
    objects: &dyn Objects,
    bound: &[Bound<'_>],
    found: &[ObjectId],
) -> Result<(), Stop> {
    let last = bound.len().saturating_sub(1);
    for (place, (change, found)) in bound.iter().zip(found).enumerate() {
        old_places(tree, objects, change)?;
        fold(tree, objects, change)?;
        let compared = (place == last || !off(Mutant::EachTree)) && !off(Mutant::Tree);
        if tree.id() != *found && compared {
            let (change, expected) = (change.listed.change.clone(), tree.id());
            return Err(Refusal::OtherTree { change, expected, found: *found }.into());
        }
        if off(Mutant::Tree) || off(Mutant::EachTree) {
            *tree = RunningTree::new(*found);
        }
    }
    Ok(())
}

/// With `from`, the row's path is absent on the running tree.
fn old_places(tree: &mut RunningTree, objects: &dyn Objects, change: &Bound<'_>) -> Result<(), Stop> {
    for from in change.listed.edits.iter().filter_map(|edit| edit.from.as_ref()) {
        if tree.spot(&objects, from)? != Spot::Absent && !off(Mutant::FromAbsent) {
            let (change, path) = (change.listed.change.clone(), from.clone());
            return Err(Refusal::GoesBack { change, path }.into());
        }
    }
    Ok(())
}

fn fold(tree: &mut RunningTree, objects: &dyn Objects, change: &Bound<'_>) -> Result<(), Stop> {
    let edits = &change.listed.edits;
    let mut steps = Vec::with_capacity(edits.len());
    for edit in edits {
        steps.push(Step { path: &edit.path, ours: expected(tree, objects, edit)?, result: edit.result });
    }
    let folded = if off(Mutant::DeletesFirst) {
        steps.sort_by(|a, b| a.path.cmp(b.path));
        steps.iter().try_for_each(|step| tree.fold(&objects, std::slice::from_ref(step)).map(drop))
    } else {
        tree.fold(&objects, &steps).map(drop)
    };
    folded.map_err(|error| match error {
        EditError::Read(error) => Stop::from(error),
        EditError::Clash { path, .. } | EditError::NotThere { path, .. } => {
            Stop::No(Refusal::GoesBack { change: change.listed.change.clone(), path })
        }
    })
}

/// What an edit expects to find: its `ours`.
#[cfg(not(feature = "mutants"))]
fn expected(_: &mut RunningTree, _: &dyn Objects, edit: &Edit) -> Result<Option<yard_git::Entry>, Stop> {
    Ok(edit.ours)
}

/// What an edit expects to find: its `ours`, but for what a test has switched off.
#[cfg(feature = "mutants")]
fn expected(
    tree: &mut RunningTree,
    objects: &dyn Objects,
    edit: &Edit,
) -> Result<Option<yard_git::Entry>, Stop> {
    if !(off(Mutant::Ours) || off(Mutant::Mode) || off(Mutant::Absent)) {
        return Ok(edit.ours);
    }
    let found = tree.spot(&objects, &edit.path)?;
    let same_id = |entry: yard_git::Entry| edit.ours.is_some_and(|ours| ours.id == entry.id);
    Ok(match found {
        Spot::Entry(entry) if off(Mutant::Ours) || (off(Mutant::Mode) && same_id(entry)) => Some(entry),
        Spot::Directory(_) | Spot::BelowFile(_) if off(Mutant::Absent) && edit.ours.is_none() => {
            clear_way(tree, objects, edit)?;
            None
        }
        _ => edit.ours,
    })
}

/// A test's kernel without the look below and above: what is in the way goes.
#[cfg(feature = "mutants")]
fn clear_way(tree: &mut RunningTree, objects: &dyn Objects, edit: &Edit) -> Result<(), Stop> {
    let mut way: Vec<_> = yard_git::diff::list(&objects, tree.id())?
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.is_below(&edit.path) || edit.path.is_below(path))
        .map(|path| (path, None))
        .collect();
    way.dedup();
    tree.apply(&objects, &way).map(drop).map_err(|error| Refusal::Malformed { why: error.to_string() }.into())
}
