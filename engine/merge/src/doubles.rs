//! Files with a double: where a side moved one of several that are alike, git and gitoxide may see different
//! pairs, and an edit of the other side would arrive in the wrong one.

use yard_common::submission::Mode;
use yard_common::{ObjectId, RepoPath};
use yard_git::{Kind, Objects, hash};

use crate::changes::Changes;
use crate::outcome::{Collision, CollisionKind};
use crate::renames::{Placed, candidates};
use crate::stranded::alike;
use crate::trees::Sides;

/// Common bytes, in percent, from which git might take one file for another: below its limit of 50, as the
/// measures differ by a few percent.
const MAYBE_PERCENT: usize = 40;

/// The paths that one side touches, the other moved, and whose new place has more than one claim.
pub(crate) fn collisions(objects: &dyn Objects, sides: Sides<'_>) -> Vec<Collision> {
    let (ours, theirs) = (sides.ours.changes, sides.theirs.changes);
    let mut paths = doubtful(objects, ours, theirs);
    paths.extend(doubtful(objects, theirs, ours));
    paths.sort();
    paths.dedup();
    let why = "this file was moved beside others that are like it, and which one is which cannot be told";
    paths.iter().map(|path| Collision::new(path, CollisionKind::Rename, why)).collect()
}

fn doubtful(objects: &dyn Objects, side: &Changes, other: &Changes) -> Vec<RepoPath> {
    let empty = hash(Kind::Blob, b"");
    let touched: Vec<Placed<'_>> = side
        .deleted()
        .filter(|(path, was)| other.get(path).is_some() && was.mode != Mode::Gitlink && was.id != empty)
        .collect();
    if touched.is_empty() {
        return Vec::new();
    }
    let (deleted, added) = candidates(side);
    let is_doubtful = |(path, was): &Placed<'_>| {
        let exact = side.added().filter(|(_, is)| is.id == was.id).count();
        if exact > 0 {
            return exact > 1 || side.deleted().filter(|(_, entry)| entry.id == was.id).count() > 1;
        }
        let like = |list: &[Placed<'_>], id: ObjectId, but: Option<&RepoPath>| -> Vec<ObjectId> {
            let others = list.iter().filter(|(path, _)| Some(*path) != but);
            others
                .map(|(_, entry)| entry.id)
                .filter(|other| alike(objects, id, *other, MAYBE_PERCENT))
                .collect()
        };
        let targets = like(&added, was.id, None);
        targets.len() > 1 || targets.iter().any(|target| !like(&deleted, *target, Some(path)).is_empty())
    };
    touched.iter().filter(|placed| is_doubtful(placed)).map(|(path, _)| (*path).clone()).collect()
}
