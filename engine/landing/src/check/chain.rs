//! Check 4: the candidate is head plus exactly one commit a change, and the notes are one a commit.

use std::collections::BTreeSet;

use yard_common::landing::LandRequest;
use yard_common::submission::Mode;
use yard_common::{ObjectId, Refusal, RepoPath};
use yard_git::commit::{self, CommitLinks};
use yard_git::{Kind, Objects, diff};

use crate::decision::Stop;
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

fn malformed<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Refusal::Malformed { why: why.into() }.into())
}

fn links(objects: &dyn Objects, id: ObjectId) -> Result<CommitLinks, Stop> {
    let Some(object) = objects.get(&id) else { return Err(Stop::Missing(BTreeSet::from([id]))) };
    if object.kind != Kind::Commit {
        return malformed(format!("{id} is no commit"));
    }
    match commit::links(&object.data) {
        Ok(links) => Ok(links),
        Err(fault) => malformed(format!("commit {id}: {fault}")),
    }
}

/// The trees of the listed commits, in order; tip's first-parent chain is head and these alone.
///
/// # Errors
/// [`Refusal::Malformed`] that names the commit; or commits to load.
pub fn commits(objects: &dyn Objects, request: &LandRequest) -> Result<Vec<ObjectId>, Stop> {
    let mut missing = BTreeSet::new();
    let mut trees = Vec::with_capacity(request.changes.len());
    let mut parent = request.head;
    for listed in &request.changes {
        match links(objects, listed.commit) {
            Ok(links) => {
                let first = links.parents.first() == Some(&parent) || off(Mutant::CommitParent);
                let alone = links.parents.len() == 1 || off(Mutant::OneParent);
                if !first || !alone {
                    return malformed(format!("{} is not one commit on top of {parent}", listed.commit));
                }
                trees.push(links.tree);
            }
            Err(Stop::Missing(ids)) => missing.extend(ids),
            Err(stop) => return Err(stop),
        }
        parent = listed.commit;
    }
    if parent != request.tip && !off(Mutant::Tip) {
        return malformed(format!("the tip {} is not the last listed commit", request.tip));
    }
    if missing.is_empty() { Ok(trees) } else { Err(Stop::Missing(missing)) }
}

/// The notes tip's parent is the notes ref, and it adds exactly one note for each listed commit.
///
/// A commit that landed before (main was rewound, and the same commit was built again) has its note.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Moved`] when the notes ref has moved; or objects to load.
pub fn notes(ledger: &dyn Ledger, objects: &dyn Objects, request: &LandRequest) -> Result<(), Stop> {
    let notes = ledger.notes();
    if request.notes_head != notes && !off(Mutant::NotesParent) {
        let head = ledger.main().unwrap_or(ObjectId::ZERO);
        return Err(Refusal::Moved { head, paths: Vec::new() }.into());
    }
    let tip = links(objects, request.notes_tip)?;
    if tip.parents.as_slice() != request.notes_head.as_slice() && !off(Mutant::NotesParent) {
        return malformed("the notes commit does not stand on the notes ref alone");
    }
    let before = match notes {
        Some(id) => links(objects, id)?.tree,
        None => ObjectId::EMPTY_TREE,
    };
    let listed: BTreeSet<ObjectId> = request.changes.iter().map(|change| change.commit).collect();
    let mut added = BTreeSet::new();
    for edit in diff::diff(&objects, before, tip.tree)? {
        let noted = noted(&edit.path).filter(|commit| listed.contains(commit));
        let is_note = edit.base.is_none() && edit.theirs.is_some_and(|entry| entry.mode == Mode::File);
        match noted {
            Some(commit) if is_note && added.insert(commit) => {}
            _ if off(Mutant::NotesOnly) => {}
            _ => {
                let path = edit.path;
                return malformed(format!(
                    "the notes change {path}, which is no new note of a listed commit"
                ));
            }
        }
    }
    let mut bare = listed.difference(&added).filter(|commit| ledger.landing_of(commit).is_none());
    match bare.next() {
        Some(commit) if !off(Mutant::NoteMissing) => malformed(format!("commit {commit} has no new note")),
        _ => Ok(()),
    }
}

/// The commit that a note belongs to: its path without slashes, whatever the fan-out.
fn noted(path: &RepoPath) -> Option<ObjectId> {
    let digits: Vec<u8> = path.as_bytes().iter().filter(|byte| **byte != b'/').copied().collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}
