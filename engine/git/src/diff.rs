//! Differences of two trees, path by path; equal subtrees are never opened.

use yard_common::submission::{Entry, RowEdit};
use yard_common::{ObjectId, RepoPath};

use crate::error::{Missing, ReadError};
use crate::object::Objects;
use crate::tree::{self, TreeEntry, TreeMode};

/// Paths of one difference: twice a large repository; trees nested to a bomb are refused.
pub const DIFF_PATHS_MAX: usize = 500_000;

/// A pair of directories still to be compared: a side without the directory is `None`.
struct Pair {
    path: Vec<u8>,
    base: Option<ObjectId>,
    theirs: Option<ObjectId>,
}

/// The walk's state: what was found, what was not at hand.
struct Walk {
    edits: Vec<RowEdit>,
    missing: Missing,
    limit: usize,
    todo: Vec<Pair>,
}

/// The paths at which the entries of the trees `base` and `theirs` differ, in path order.
///
/// Directories do not show, only what is in them. An entry whose odd mode digits mean the same as
/// the other side's does not differ. [`ObjectId::EMPTY_TREE`] as `base` lists a whole tree.
///
/// # Errors
/// [`ReadError::Missing`] with all trees of the next levels that are not at hand (one batch);
/// [`ReadError::Malformed`] also for a name that no [`RepoPath`] takes, and above [`DIFF_PATHS_MAX`] paths.
pub fn diff(objects: &impl Objects, base: ObjectId, theirs: ObjectId) -> Result<Vec<RowEdit>, ReadError> {
    let walk = walk(objects, base, theirs, DIFF_PATHS_MAX + 1)?;
    if walk.edits.len() > DIFF_PATHS_MAX {
        return Err(ReadError::Malformed { id: theirs, why: "more than 500000 paths differ" });
    }
    let mut edits = walk.missing.or(walk.edits)?;
    edits.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(edits)
}

/// How many paths differ, counted up to `limit`.
///
/// # Errors
/// As [`diff`]; but once `limit` paths are found, trees that are not at hand do not matter.
pub fn count(
    objects: &impl Objects,
    base: ObjectId,
    theirs: ObjectId,
    limit: usize,
) -> Result<usize, ReadError> {
    let walk = walk(objects, base, theirs, limit)?;
    let found = walk.edits.len().min(limit);
    if found == limit { Ok(found) } else { walk.missing.or(found) }
}

/// The entries of a whole tree, in path order.
///
/// # Errors
/// As [`diff`].
pub fn list(objects: &impl Objects, root: ObjectId) -> Result<Vec<(RepoPath, Entry)>, ReadError> {
    let edits = diff(objects, ObjectId::EMPTY_TREE, root)?;
    Ok(edits.into_iter().filter_map(|edit| edit.theirs.map(|entry| (edit.path, entry))).collect())
}

fn walk(objects: &impl Objects, base: ObjectId, theirs: ObjectId, limit: usize) -> Result<Walk, ReadError> {
    let mut walk = Walk { edits: Vec::new(), missing: Missing::default(), limit, todo: Vec::new() };
    if base != theirs {
        walk.todo.push(Pair { path: Vec::new(), base: Some(base), theirs: Some(theirs) });
    }
    while let Some(pair) = walk.todo.pop() {
        if walk.edits.len() >= walk.limit {
            break;
        }
        let mut open = |id: Option<ObjectId>| {
            let id = id?;
            let object = objects.get(&id);
            if object.is_none() {
                walk.missing.insert(id);
            }
            object.map(|object| (id, object))
        };
        let (base, theirs) = (open(pair.base), open(pair.theirs));
        if base.is_some() != pair.base.is_some() || theirs.is_some() != pair.theirs.is_some() {
            continue;
        }
        let base = base.as_ref().map(|(id, object)| entries_of(*id, object)).transpose()?;
        let theirs = theirs.as_ref().map(|(id, object)| entries_of(*id, object)).transpose()?;
        let holder = pair.theirs.or(pair.base).unwrap_or(ObjectId::ZERO);
        walk.compare(holder, &pair.path, &base.unwrap_or_default(), &theirs.unwrap_or_default())?;
    }
    Ok(walk)
}

fn entries_of(id: ObjectId, object: &crate::object::Object) -> Result<Vec<TreeEntry<'_>>, ReadError> {
    if object.kind != crate::object::Kind::Tree {
        return Err(ReadError::Malformed { id, why: "it stands where a tree should be" });
    }
    tree::parse(&object.data).map_err(|fault| ReadError::malformed(id, fault))
}

impl Walk {
    fn compare(
        &mut self,
        holder: ObjectId,
        path: &[u8],
        base: &[TreeEntry<'_>],
        theirs: &[TreeEntry<'_>],
    ) -> Result<(), ReadError> {
        let (mut base, mut theirs) = (base.iter().peekable(), theirs.iter().peekable());
        loop {
            let order = match (base.peek(), theirs.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => tree::compare((a.name, a.mode), (b.name, b.mode)),
            };
            let old = if order.is_le() { base.next() } else { None };
            let new = if order.is_ge() { theirs.next() } else { None };
            self.differ(holder, path, old, new)?;
        }
    }

    /// Two entries of one name that are both trees or both not (or one of them alone).
    fn differ(
        &mut self,
        holder: ObjectId,
        path: &[u8],
        old: Option<&TreeEntry<'_>>,
        new: Option<&TreeEntry<'_>>,
    ) -> Result<(), ReadError> {
        let Some(entry) = new.or(old) else { return Ok(()) };
        if let (Some(old), Some(new)) = (old, new)
            && old.id == new.id
            && old.mode == new.mode
        {
            return Ok(());
        }
        let mut full = Vec::with_capacity(path.len() + 1 + entry.name.len());
        full.extend_from_slice(path);
        if !path.is_empty() {
            full.push(b'/');
        }
        full.extend_from_slice(entry.name);
        if entry.mode == TreeMode::Tree {
            if full.len() > yard_common::path::PATH_BYTES_MAX {
                return Err(ReadError::Malformed { id: holder, why: "a path has at most 3500 bytes" });
            }
            self.todo.push(Pair { path: full, base: old.map(|e| e.id), theirs: new.map(|e| e.id) });
            return Ok(());
        }
        let path = RepoPath::new(full).map_err(|bad| ReadError::Malformed { id: holder, why: bad.rule })?;
        let (base, theirs) = (old.and_then(TreeEntry::leaf), new.and_then(TreeEntry::leaf));
        self.edits.push(RowEdit { path, base, theirs });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
