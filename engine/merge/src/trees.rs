//! The merge of three whole trees, renames included.

use std::collections::BTreeSet;

use yard_common::{ObjectId, RepoPath};
use yard_git::editor::{self, EditError};
use yard_git::{Objects, ReadError, RunningTree};
use yard_rules::Rules;

use crate::changes::{Change, Changes, RenameHints, Side, Wanted};
use crate::content::{Step, Three, merge_contents};
use crate::lookup::TreeLookup;
use crate::outcome::{Collision, CollisionKind, Gathered, Outcome};
use crate::renames;

/// Three trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trees {
    /// What both sides come from.
    pub base: ObjectId,
    /// The tree that theirs is put on.
    pub ours: ObjectId,
    /// The tree whose changes are taken.
    pub theirs: ObjectId,
}

/// Merges the changes base -> theirs into ours, as edits of ours.
///
/// Clean means what `git merge-tree` calls clean, with the same tree; where this cannot be sure, it
/// is a collision. Renames are looked for only where they can matter, among at most 100 × 100 pairs a side.
///
/// # Errors
/// All objects that could be found out to be missing so far; a malformed tree or blob.
pub fn merge_trees(objects: &dyn Objects, trees: Trees, rules: &Rules) -> Result<Outcome, ReadError> {
    let mut wanted = Wanted::default();
    let ours = wanted.take(Changes::between(objects, trees.base, trees.ours))?.unwrap_or_default();
    let theirs = wanted.take(Changes::between(objects, trees.base, trees.theirs))?.unwrap_or_default();
    wanted.check()?;
    let sides = Sides {
        ours: Side { tree: trees.ours, changes: &ours },
        theirs: Side { tree: trees.theirs, changes: &theirs },
    };
    let hints = RenameHints::find(objects, trees.base, sides.ours, sides.theirs)?;
    let lookup = TreeLookup::new(objects, trees.ours);
    let mut out = Gathered::default();
    let (mut in_place, mut contents, mut moving) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (path, change) in &theirs.0 {
        let three = three(path, *change, &ours);
        let stays = three.base.is_some() && three.ours.is_some() && three.theirs.is_some();
        if stays {
            in_place.insert(path.clone());
        } else if hints.matter() {
            moving.push(three);
            continue;
        }
        match three.step(rules) {
            Step::Done(edit) => out.edits.push((path.clone(), edit)),
            Step::Content(content) => contents.push(content),
            Step::Collide(collision) => out.collisions.push(collision),
        }
    }
    merge_contents(objects, &lookup, &contents, &mut out)?;
    if out.collisions.is_empty() && hints.matter() {
        renames::merge(
            objects,
            trees,
            sides,
            &renames::Work { moving, in_place, hints, rules: rules.clone() },
            &mut out,
        )?;
    }
    if out.collisions.is_empty() {
        check_fold(objects, trees.ours, &mut out)?;
    }
    Ok(out.outcome())
}

/// Both sides of a merge.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub ours: Side<'a>,
    pub theirs: Side<'a>,
}

fn three(path: &RepoPath, change: Change, ours: &Changes) -> Three {
    let ours = ours.get(path).map_or(change.base, |own| own.side);
    Three { path: path.clone(), base: change.base, ours, theirs: change.side }
}

/// Puts the edits on ours as the landing kernel will: each must find what it says, and no file may
/// stand where a directory is.
fn check_fold(objects: &dyn Objects, ours: ObjectId, out: &mut Gathered) -> Result<(), ReadError> {
    let edits = out.edits.iter().map(|(_, edit)| edit);
    let steps: Vec<_> =
        edits.map(|edit| editor::Step { path: &edit.path, ours: edit.ours, result: edit.result }).collect();
    let fault = match RunningTree::new(ours).fold(&objects, &steps) {
        Ok(_) => return Ok(()),
        Err(EditError::Read(error)) => return Err(error),
        Err(EditError::Clash { path, .. } | EditError::NotThere { path, .. }) => path,
    };
    let why = "the change has a file here where main has a directory, or the other way round";
    out.collisions.push(Collision::new(&fault, CollisionKind::FileDirectory, why));
    Ok(())
}
