//! What one side changed, and whether a rename could matter to the merge.

use std::collections::BTreeMap;

use yard_common::submission::Entry;
use yard_common::{ObjectId, RepoPath};
use yard_git::diff::diff;
use yard_git::{Missing, Objects, ReadError};

use crate::lookup::{Lookup, TreeLookup};

/// One changed path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub base: Option<Entry>,
    pub side: Option<Entry>,
}

/// Everything that differs between the base tree and one side's.
#[derive(Debug, Default)]
pub(crate) struct Changes(pub BTreeMap<RepoPath, Change>);

impl Changes {
    pub fn between(objects: &dyn Objects, base: ObjectId, side: ObjectId) -> Result<Self, ReadError> {
        let edits = diff(&objects, base, side)?;
        let paths = edits.into_iter().map(|edit| (edit.path, Change { base: edit.base, side: edit.theirs }));
        Ok(Self(paths.collect()))
    }

    pub fn added(&self) -> impl Iterator<Item = (&RepoPath, Entry)> {
        self.0.iter().filter(|(_, c)| c.base.is_none()).filter_map(|(path, c)| Some((path, c.side?)))
    }

    pub fn deleted(&self) -> impl Iterator<Item = (&RepoPath, Entry)> {
        self.0.iter().filter(|(_, c)| c.side.is_none()).filter_map(|(path, c)| Some((path, c.base?)))
    }

    pub fn get(&self, path: &RepoPath) -> Option<&Change> {
        self.0.get(path)
    }

    fn is_deleted(&self, path: &RepoPath) -> bool {
        self.get(path).is_some_and(|change| change.side.is_none())
    }
}

/// Collects what several readings miss, so that one round asks for all of it.
#[derive(Debug, Default)]
pub(crate) struct Wanted(Missing);

impl Wanted {
    /// The value, or `None` when it needs objects, which are noted.
    pub fn take<T>(&mut self, result: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(ReadError::Missing(more)) => {
                self.0.0.extend(more.0);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Notes the object unless it is at hand.
    pub fn need(&mut self, objects: &dyn Objects, id: ObjectId) {
        if objects.get(&id).is_none() {
            self.0.insert(id);
        }
    }

    pub fn check(self) -> Result<(), ReadError> {
        self.0.or(())
    }
}

/// A file that one side added to a directory which the other side removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stranded {
    pub path: RepoPath,
    pub directory: RepoPath,
    /// Did ours add it (and theirs remove the directory)?
    pub by_ours: bool,
}

/// What makes renames matter; when both are empty, the merge is the same without looking for them.
#[derive(Debug, Default)]
pub(crate) struct RenameHints {
    /// A path that one side deleted is touched by the other, and files were added beside.
    pub touched: bool,
    pub stranded: Vec<Stranded>,
}

impl RenameHints {
    pub fn matter(&self) -> bool {
        self.touched || !self.stranded.is_empty()
    }

    pub fn find(
        objects: &dyn Objects,
        base: ObjectId,
        ours: Side<'_>,
        theirs: Side<'_>,
    ) -> Result<Self, ReadError> {
        let touched = touched(ours.changes, theirs.changes) || touched(theirs.changes, ours.changes);
        let mut stranded = Vec::new();
        let mut wanted = Wanted::default();
        let base = TreeLookup::new(objects, base);
        for (adder, remover, by_ours) in [(theirs, ours, false), (ours, theirs, true)] {
            if remover.changes.added().next().is_none() || remover.changes.deleted().next().is_none() {
                continue;
            }
            let after = TreeLookup::new(objects, remover.tree);
            for (path, _) in adder.changes.added() {
                if let Some(Some(directory)) = wanted.take(removed_directory(&base, &after, path))? {
                    stranded.push(Stranded { path: path.clone(), directory, by_ours });
                }
            }
        }
        wanted.check()?;
        Ok(Self { touched, stranded })
    }
}

/// One side: its tree and what it changed.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub tree: ObjectId,
    pub changes: &'a Changes,
}

/// Did `side` delete a path that `other` touches, such that a rename could join the two?
fn touched(side: &Changes, other: &Changes) -> bool {
    let adds = side.added().next().is_some();
    let other_adds = other.added().next().is_some();
    side.deleted().any(|(path, _)| match other.get(path) {
        None => false,
        Some(_) if other.is_deleted(path) => adds || other_adds,
        Some(_) => adds,
    })
}

/// The nearest directory above `path` that the base has and `after` has not.
pub(crate) fn removed_directory(
    base: &dyn Lookup,
    after: &dyn Lookup,
    path: &RepoPath,
) -> Result<Option<RepoPath>, ReadError> {
    for directory in std::iter::successors(path.parent(), RepoPath::parent) {
        if base.at(&directory)?.is_directory() {
            return Ok((!after.at(&directory)?.is_directory()).then_some(directory));
        }
    }
    Ok(None)
}
