//! Files that one side added to a directory which the other side renamed.
//!
//! git stops there by default (`merge.directoryRenames=conflict`) and names the place where the file
//! would have to go. A directory counts as renamed when it is gone and at least one of its files can
//! be found again elsewhere; the most frequent new place is the suggestion.

use std::collections::BTreeMap;

use yard_common::{ObjectId, RepoPath};
use yard_git::Objects;

use crate::changes::{Changes, Stranded};
use crate::outcome::{Collision, CollisionKind};
use crate::renames::candidates;
use crate::trees::Sides;

/// Two files of at least this many percent common bytes may be one renamed file: below git's 50, as
/// a rename that git would find must not be missed.
const ALIKE_PERCENT: usize = 40;

pub(crate) fn collision(path: &RepoPath, suggested: Option<RepoPath>) -> Collision {
    let why = match &suggested {
        Some(place) => {
            format!("this file was added to a directory that the other side renamed: move it to {place}")
        }
        None => "this file was added to a directory that the other side renamed".to_owned(),
    };
    Collision { suggested, ..Collision::new(path, CollisionKind::DirectoryRename, why) }
}

/// The stranded files whose directory was renamed and not just deleted.
pub(crate) fn collisions(objects: &dyn Objects, sides: Sides<'_>, stranded: &[Stranded]) -> Vec<Collision> {
    let mut targets: BTreeMap<(bool, RepoPath), Option<Option<RepoPath>>> = BTreeMap::new();
    let mut out = Vec::new();
    for file in stranded {
        let remover = if file.by_ours { sides.theirs.changes } else { sides.ours.changes };
        let target = targets
            .entry((file.by_ours, file.directory.clone()))
            .or_insert_with(|| renamed_to(objects, remover, &file.directory));
        if let Some(target) = target {
            out.push(collision(
                &file.path,
                target.as_ref().and_then(|to| carried(&file.path, &file.directory, to)),
            ));
        }
    }
    out
}

fn carried(path: &RepoPath, from: &RepoPath, to: &RepoPath) -> Option<RepoPath> {
    let rest = path.as_bytes().strip_prefix(from.as_bytes())?;
    RepoPath::new([to.as_bytes(), rest].concat()).ok()
}

/// The directory that most files of `directory` went to (`Some(None)`: the top), if any did.
fn renamed_to(objects: &dyn Objects, side: &Changes, directory: &RepoPath) -> Option<Option<RepoPath>> {
    let outside: Vec<_> = side.added().filter(|(path, _)| !path.is_below(directory)).collect();
    let (sources, targets) = candidates(side);
    let mut votes: BTreeMap<Option<RepoPath>, usize> = BTreeMap::new();
    for (path, was) in side.deleted().filter(|(path, _)| path.is_below(directory)) {
        let similar = sources.iter().any(|(source, _)| *source == path);
        let found = outside
            .iter()
            .find(|(_, is)| is.id == was.id)
            .or_else(|| outside.iter().find(|(other, _)| name(other) == name(path)))
            .or_else(|| {
                targets.iter().find(|(other, is)| {
                    similar && !other.is_below(directory) && alike(objects, was.id, is.id, ALIKE_PERCENT)
                })
            });
        if let Some((other, _)) = found {
            *votes.entry(new_place(path, directory, other)).or_default() += 1;
        }
    }
    let most = votes.values().max().copied()?;
    votes.into_iter().find(|(_, count)| *count == most).map(|(place, _)| place)
}

fn name(path: &RepoPath) -> &[u8] {
    path.components().next_back().unwrap_or_default()
}

/// `directory` after the move of one of its files: the same components at the end fall away.
fn new_place(from: &RepoPath, directory: &RepoPath, to: &RepoPath) -> Option<RepoPath> {
    let rest = from.as_bytes().strip_prefix(directory.as_bytes())?;
    match to.as_bytes().strip_suffix(rest) {
        Some(place) if !place.is_empty() => RepoPath::new(place).ok(),
        _ => to.parent(),
    }
}

/// Do the two files have enough bytes in common lines?
pub(crate) fn alike(objects: &dyn Objects, a: ObjectId, b: ObjectId, percent: usize) -> bool {
    let (Some(a), Some(b)) = (objects.get(&a), objects.get(&b)) else {
        return false;
    };
    let mut lines: BTreeMap<&[u8], usize> = BTreeMap::new();
    for line in a.data.split_inclusive(|byte| *byte == b'\n') {
        *lines.entry(line).or_default() += 1;
    }
    let mut common = 0;
    for line in b.data.split_inclusive(|byte| *byte == b'\n') {
        if let Some(left) = lines.get_mut(line)
            && *left > 0
        {
            *left -= 1;
            common += line.len();
        }
    }
    common * 100 >= a.data.len().max(b.data.len()) * percent && common > 0
}
