//! What a merge or a replay leaves in files that git itself reads, such as `.gitmodules`.
//!
//! Pushes and API changes are checked where they come in; two clean sides can still merge into a file
//! that `git fsck --strict` refuses, and then the change is no clean one.

use yard_common::RepoPath;
use yard_git::special::Special;
use yard_git::tree::TreeMode;
use yard_git::{Missing, Mode, Objects, ReadError};
use yard_merge::{Applied, Collision, CollisionKind, Lookup, Outcome, Row, Rules};

/// Puts a change on the running tree as [`yard_merge::apply_row`] does; hostile results are collisions.
///
/// # Errors
/// As there, and the contents of special files that are not at hand.
pub fn apply_row(
    objects: &dyn Objects,
    running: &dyn Lookup,
    row: Row<'_>,
    rules: &Rules,
) -> Result<Outcome, ReadError> {
    let outcome = yard_merge::apply_row(objects, running, row, rules)?;
    let Outcome::Clean(applied) = &outcome else { return Ok(outcome) };
    let found = collisions(applied, objects)?;
    Ok(if found.is_empty() { outcome } else { Outcome::Collided(found) })
}

fn collisions(applied: &Applied, objects: &dyn Objects) -> Result<Vec<Collision>, ReadError> {
    let mut missing = Missing::default();
    let mut found = Vec::new();
    for edit in applied.edits.iter().filter(|edit| edit.result != edit.ours) {
        let (Some(entry), Some(name)) = (edit.result, edit.path.components().next_back()) else { continue };
        let special = Special::of(name);
        if let Some(kind) = special.entry_fault(TreeMode::Leaf(entry.mode)).filter(|kind| kind.is_error()) {
            found.push(collision(&edit.path, kind.why()));
        }
        if special.checked().is_none() || !matches!(entry.mode, Mode::File | Mode::Executable) {
            continue;
        }
        let made = applied.new_blobs.iter().find(|blob| blob.id == entry.id);
        let held = objects.get(&entry.id);
        let bytes = made.map(|blob| &blob.bytes).or(held.as_ref().map(|object| &object.data));
        let Some(bytes) = bytes else {
            missing.insert(entry.id);
            continue;
        };
        let faults = special.faults(bytes);
        if let Some(fault) = faults.iter().find(|fault| fault.kind.is_error()) {
            found.push(collision(&edit.path, &fault.to_string()));
        }
    }
    missing.or(found)
}

fn collision(path: &RepoPath, why: &str) -> Collision {
    let sentence = format!("the merged file is one that git fsck --strict refuses: {why}");
    Collision { path: path.clone(), kind: CollisionKind::Rule, sentence, suggested: None }
}

#[cfg(test)]
mod tests;
