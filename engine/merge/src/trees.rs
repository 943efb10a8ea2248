//! The merge of three whole trees, renames included.

use std::collections::BTreeSet;

use yard_common::{ObjectId, RepoPath};
use yard_git::diff::diff;
use yard_git::{Objects, ReadError};

use crate::changes::{Change, Changes, RenameHints, Side, Wanted};
use crate::content::{Step, Three, merge_contents};
use crate::lookup::{At, Lookup, TreeLookup};
use crate::outcome::{Collision, CollisionKind, Gathered, Outcome};
use crate::renames;
use crate::rules::Rules;

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
/// is a collision. Renames are looked for only where they can matter, among at most
/// [`renames::LIMIT`]² pairs a side.
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
        renames::merge(objects, trees, sides, &renames::Work { moving, in_place, hints }, &mut out)?;
    } else if out.collisions.is_empty() {
        refuse_clashes(objects, &lookup, &theirs, &mut out)?;
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

/// Refuses a file where ours has a directory that stays, and one below a file that stays.
fn refuse_clashes(
    objects: &dyn Objects,
    ours: &TreeLookup<'_>,
    theirs: &Changes,
    out: &mut Gathered,
) -> Result<(), ReadError> {
    let mut wanted = Wanted::default();
    for (path, _) in theirs.added() {
        let Some(at) = wanted.take(ours.at(path))? else { continue };
        let clash = match at {
            At::Below(file) => theirs.get(&file).is_none_or(|change| change.side.is_some()).then_some(file),
            At::Directory(Some(tree)) => match wanted.take(diff(&objects, ObjectId::EMPTY_TREE, tree))? {
                None => None,
                Some(files) => files.into_iter().find_map(|file| {
                    let mut full = path.as_bytes().to_vec();
                    full.push(b'/');
                    full.extend_from_slice(file.path.as_bytes());
                    let full = RepoPath::new(full).ok()?;
                    theirs.get(&full).is_none_or(|change| change.side.is_some()).then_some(full)
                }),
            },
            At::Directory(None) | At::Nothing | At::Entry(_) => None,
        };
        if let Some(other) = clash {
            let why = format!("the change adds a file here, and main has {other}");
            out.collisions.push(Collision::new(path, CollisionKind::FileDirectory, why));
        }
    }
    wanted.check()
}
