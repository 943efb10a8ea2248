//! One submitted change put on the running tree: the call that a lane makes for each change.

use std::collections::BTreeSet;

use yard_common::submission::RowEdit;
use yard_common::{ObjectId, RepoPath};
use yard_git::{Objects, ReadError};
use yard_rules::Rules;

use crate::changes::{Wanted, removed_directory};
use crate::content::{Step, Three, merge_contents};
use crate::lookup::{At, Lookup, TreeLookup};
use crate::outcome::{Collision, CollisionKind, Gathered, Outcome};
use crate::trees::{Trees, merge_trees};

/// What a submission row says of its change.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The paths that differ between base and the submitted version, in path order.
    pub edits: &'a [RowEdit],
    /// The row's base tree.
    pub base_tree: ObjectId,
    /// The submitted version's tree.
    pub theirs_tree: ObjectId,
}

/// Puts a change on the running tree, as edits that each carry all four values.
///
/// Edits with `ours` = `base` or `ours` = `theirs` cost one lookup each. Only a path that went or
/// moved on one side, or a file in the way of a directory, loads and merges whole trees.
///
/// # Errors
/// All objects that could be found out to be missing so far: fetch them and call again. A malformed
/// tree or blob.
pub fn apply_row(
    objects: &dyn Objects,
    running: &dyn Lookup,
    row: Row<'_>,
    rules: &Rules,
) -> Result<Outcome, ReadError> {
    let Some(found) = look_up(running, row.edits)? else {
        return whole_trees(objects, running, row, rules);
    };
    if moves_matter(objects, running, row, &found)? {
        return whole_trees(objects, running, row, rules);
    }
    let mut out = Gathered::default();
    let mut contents = Vec::new();
    for three in found {
        match three.step(rules) {
            Step::Done(edit) => out.edits.push((edit.path.clone(), edit)),
            Step::Content(content) => contents.push(content),
            Step::Collide(collision) => out.collisions.push(collision),
        }
    }
    merge_contents(objects, running, &contents, &mut out)?;
    Ok(out.outcome())
}

/// The entries of all paths on the running tree; `None` where a file or a directory is in the way.
fn look_up(running: &dyn Lookup, edits: &[RowEdit]) -> Result<Option<Vec<Three>>, ReadError> {
    let mut wanted = Wanted::default();
    let mut found = Vec::with_capacity(edits.len());
    let mut clash = false;
    for edit in edits {
        let Some(at) = wanted.take(running.at(&edit.path))? else { continue };
        clash |= match &at {
            At::Directory(_) => true,
            At::Below(file) => !is_deleted_by(edits, file),
            At::Nothing | At::Entry(_) => false,
        };
        let ours = at.entry();
        found.push(Three { path: edit.path.clone(), base: edit.base, ours, theirs: edit.theirs });
    }
    wanted.check()?;
    Ok((!clash).then_some(found))
}

fn is_deleted_by(edits: &[RowEdit], path: &RepoPath) -> bool {
    let found = edits.binary_search_by(|edit| edit.path.cmp(path)).ok().and_then(|at| edits.get(at));
    found.is_some_and(|edit| edit.base.is_some() && edit.theirs.is_none())
}

/// Could a rename on one side join with what the other did?
fn moves_matter(
    objects: &dyn Objects,
    running: &dyn Lookup,
    row: Row<'_>,
    found: &[Three],
) -> Result<bool, ReadError> {
    // Main deleted the path, perhaps by a rename; or the change did, and main edited it. Without a
    // new path in the change the latter is no rename.
    let adds = found.iter().any(|three| three.base.is_none());
    let deletes = found.iter().any(|three| three.theirs.is_none());
    let gone = |three: &Three| {
        three.base.is_some()
            && (three.ours.is_none() || (adds && three.theirs.is_none() && three.ours != three.base))
    };
    if found.iter().any(gone) {
        return Ok(true);
    }
    let mut wanted = Wanted::default();
    let base = TreeLookup::new(objects, row.base_tree);
    for three in found.iter().filter(|three| three.base.is_none() && three.ours.is_none()) {
        if wanted.take(stranded(running, &base, &three.path))?.unwrap_or(false) {
            return Ok(true);
        }
    }
    if adds && deletes {
        let theirs = TreeLookup::new(objects, row.theirs_tree);
        let mut seen = BTreeSet::new();
        for three in found.iter().filter(|three| three.theirs.is_none()) {
            for directory in std::iter::successors(three.path.parent(), RepoPath::parent) {
                if !seen.insert(directory.clone()) {
                    break;
                }
                if wanted.take(outgrown(running, &base, &theirs, &directory))?.unwrap_or(false) {
                    return Ok(true);
                }
            }
        }
    }
    wanted.check()?;
    Ok(false)
}

/// Is `path` new in a directory that the base had and main has no more?
fn stranded(running: &dyn Lookup, base: &dyn Lookup, path: &RepoPath) -> Result<bool, ReadError> {
    match path.parent() {
        Some(parent) if !running.at(&parent)?.is_directory() => {
            Ok(removed_directory(base, running, path)?.is_some())
        }
        _ => Ok(false),
    }
}

/// Did the change remove a directory that main has put something into?
fn outgrown(
    running: &dyn Lookup,
    base: &dyn Lookup,
    theirs: &dyn Lookup,
    directory: &RepoPath,
) -> Result<bool, ReadError> {
    if theirs.at(directory)?.is_directory() {
        return Ok(false);
    }
    Ok(match (base.at(directory)?, running.at(directory)?) {
        (At::Directory(Some(was)), At::Directory(Some(is))) => was != is,
        (_, now) => now.is_directory(),
    })
}

fn whole_trees(
    objects: &dyn Objects,
    running: &dyn Lookup,
    row: Row<'_>,
    rules: &Rules,
) -> Result<Outcome, ReadError> {
    let trees = Trees { base: row.base_tree, ours: running.root(), theirs: row.theirs_tree };
    let outcome = merge_trees(objects, trees, rules)?;
    if let Outcome::Clean(applied) = &outcome {
        let told = |edit: &RowEdit| (edit.path.clone(), edit.base, edit.theirs);
        let row_edits: BTreeSet<_> = row.edits.iter().map(told).collect();
        let own = |edit: &yard_common::landing::Edit| {
            (edit.from.as_ref().unwrap_or(&edit.path).clone(), edit.base, edit.theirs)
        };
        let made: BTreeSet<_> = applied.edits.iter().map(own).collect();
        if let Some((path, ..)) = row_edits.symmetric_difference(&made).next() {
            let why = "the row's edits are not the difference of its two trees";
            return Ok(Outcome::Collided(vec![Collision::new(path, CollisionKind::Undecided, why)]));
        }
    }
    Ok(outcome)
}
