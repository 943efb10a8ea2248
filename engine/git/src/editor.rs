//! A root tree that edits are applied to, one list after another, loading only the directories touched.
//!
//! One edit re-encodes and hashes the trees on its path and nothing else. Directories are shared
//! between clones, so a clone is a cheap point to go back to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use yard_common::submission::Entry;
use yard_common::{ObjectId, RepoPath};

use crate::error::{Missing, ReadError};
use crate::object::{Kind, Objects};
use crate::tree::{Spot, TreeMode};

mod dir;

use dir::Dir;

/// A tree that an apply made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTree {
    /// Its id.
    pub id: ObjectId,
    /// Its bytes.
    pub data: Vec<u8>,
    /// The tree that stood at that directory before, a good base for a delta; `None` for a new directory.
    pub before: Option<ObjectId>,
}

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The root tree after it.
    pub root: ObjectId,
    /// The trees that were not there before, each directory's before its parent's.
    pub trees: Vec<NewTree>,
}

/// One edit with what it expects to find.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The path.
    pub path: &'a RepoPath,
    /// What must stand there; `None`: absent (no entry, no blob at any prefix, no tree at the path).
    pub ours: Option<Entry>,
    /// What stands there afterwards.
    pub result: Option<Entry>,
}

/// Why edits were not applied; the tree is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditError {
    /// Trees are not at hand, or malformed.
    Read(ReadError),
    /// A file and a directory would stand at one path.
    Clash {
        /// The path of the edit.
        path: RepoPath,
        /// What is in its way.
        why: &'static str,
    },
    /// Something else stands there than the step expects.
    NotThere {
        /// The path of the step.
        path: RepoPath,
        /// What stands there.
        found: Spot,
    },
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Clash { path, why } => write!(f, "{path}: {why}"),
            Self::NotThere { path, .. } => write!(f, "{path}: something else stands there"),
        }
    }
}

impl std::error::Error for EditError {}

impl From<ReadError> for EditError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// A root tree under edit.
#[derive(Debug, Clone)]
pub struct RunningTree {
    root_id: ObjectId,
    root: Option<Arc<Dir>>,
}

/// Directories that an apply touched: their path, and the tree that stood there before.
type Touched = BTreeMap<Vec<u8>, Option<ObjectId>>;

impl RunningTree {
    /// The tree `root`, nothing of it loaded yet.
    #[must_use]
    pub fn new(root: ObjectId) -> Self {
        Self { root_id: root, root: None }
    }

    /// The root tree's id.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.root_id
    }

    /// Loads the directories on these paths.
    ///
    /// # Errors
    /// [`ReadError::Missing`] with all trees of the next level that are not at hand; what is at
    /// hand stays loaded.
    pub fn prefetch<'a>(
        &mut self,
        objects: &impl Objects,
        paths: impl IntoIterator<Item = &'a RepoPath>,
    ) -> Result<(), ReadError> {
        let mut missing = Missing::default();
        for path in paths {
            if let Err(error) = self.load(objects, path) {
                match error {
                    ReadError::Missing(more) => missing.0.extend(more.0),
                    ReadError::Malformed { .. } => return Err(error),
                }
            }
        }
        missing.or(())
    }

    /// Are all directories on the path loaded? Looking first keeps directories shared with clones.
    fn is_loaded(&self, path: &RepoPath) -> bool {
        let Some(mut dir) = self.root.as_ref() else { return false };
        let mut components = path.components();
        components.next_back();
        for name in components {
            match dir.child(name) {
                Some(child) => dir = child,
                None => return dir.tree(name).is_none(),
            }
        }
        true
    }

    fn load(&mut self, objects: &impl Objects, path: &RepoPath) -> Result<(), ReadError> {
        if self.is_loaded(path) {
            return Ok(());
        }
        let root = match &mut self.root {
            Some(root) => root,
            none => none.insert(load_dir(objects, self.root_id)?),
        };
        let mut dir = root;
        let mut components = path.components();
        components.next_back();
        for name in components {
            let Some(id) = dir.tree(name) else { return Ok(()) };
            if dir.child(name).is_none() {
                let child = load_dir(objects, id)?;
                Arc::make_mut(dir).put_child(name, child);
            }
            match Arc::make_mut(dir).child_mut(name) {
                Some(child) => dir = child,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// What stands at a path.
    ///
    /// # Errors
    /// [`ReadError::Missing`] with the one tree that is not at hand.
    pub fn spot(&mut self, objects: &impl Objects, path: &RepoPath) -> Result<Spot, ReadError> {
        self.load(objects, path)?;
        Ok(self.loaded_spot(path))
    }

    /// The entry at a path; `None` where there is none (also for a directory).
    ///
    /// # Errors
    /// As [`RunningTree::spot`].
    pub fn lookup(&mut self, objects: &impl Objects, path: &RepoPath) -> Result<Option<Entry>, ReadError> {
        self.spot(objects, path).map(|spot| spot.entry())
    }

    fn loaded_spot(&self, path: &RepoPath) -> Spot {
        let mut dir = self.root.as_ref();
        let mut bytes = 0;
        let mut components = path.components().peekable();
        while let (Some(name), Some(at)) = (components.next(), dir) {
            bytes += name.len();
            let last = components.peek().is_none();
            match (at.leaf(name), at.tree(name)) {
                (Some(entry), _) if last => return Spot::Entry(entry),
                (Some(_), _) => return Spot::BelowFile(bytes),
                (None, Some(id)) if last => return Spot::Directory(id),
                (None, Some(_)) => dir = at.child(name),
                (None, None) => return Spot::Absent,
            }
            bytes += 1;
        }
        Spot::Absent
    }

    /// Puts entries at paths (`None` deletes), deletes first; all or nothing.
    ///
    /// Deleting what is absent changes nothing. Directories that become empty vanish.
    ///
    /// # Errors
    /// [`EditError::Read`] with all missing trees; [`EditError::Clash`] with the first path.
    pub fn apply(
        &mut self,
        objects: &impl Objects,
        edits: &[(RepoPath, Option<Entry>)],
    ) -> Result<Applied, EditError> {
        self.prefetch(objects, edits.iter().map(|edit| &edit.0))?;
        self.all_or_nothing(|tree, touched| {
            for (path, _) in edits.iter().filter(|edit| edit.1.is_none()) {
                tree.delete(path, touched)?;
            }
            for (path, entry) in edits {
                if let Some(entry) = entry {
                    tree.put(path, *entry, touched)?;
                }
            }
            Ok(())
        })
    }

    /// As [`RunningTree::apply`], and each step's `ours` must be what stands there when its turn comes.
    ///
    /// Steps with an absent result come first, as deletes do; then an addition whose place they
    /// made free finds it absent.
    ///
    /// # Errors
    /// Besides those of [`RunningTree::apply`], [`EditError::NotThere`] with the first step that finds
    /// something else, mode included.
    pub fn fold(&mut self, objects: &impl Objects, steps: &[Step<'_>]) -> Result<Applied, EditError> {
        self.prefetch(objects, steps.iter().map(|step| step.path))?;
        self.all_or_nothing(|tree, touched| {
            for step in steps.iter().filter(|step| step.result.is_none()) {
                tree.expect(step)?;
                tree.delete(step.path, touched)?;
            }
            for step in steps {
                if let Some(entry) = step.result {
                    tree.expect(step)?;
                    tree.put(step.path, entry, touched)?;
                }
            }
            Ok(())
        })
    }

    fn expect(&self, step: &Step<'_>) -> Result<(), EditError> {
        let found = self.loaded_spot(step.path);
        let as_expected = match step.ours {
            Some(entry) => found == Spot::Entry(entry),
            None => found == Spot::Absent,
        };
        if as_expected { Ok(()) } else { Err(EditError::NotThere { path: step.path.clone(), found }) }
    }

    fn all_or_nothing(
        &mut self,
        edit: impl FnOnce(&mut Self, &mut Touched) -> Result<(), EditError>,
    ) -> Result<Applied, EditError> {
        let before = self.clone();
        let mut touched = Touched::new();
        if let Err(error) = edit(self, &mut touched) {
            *self = before;
            return Err(error);
        }
        drop(before);
        Ok(self.seal(&touched))
    }

    fn delete(&mut self, path: &RepoPath, touched: &mut Touched) -> Result<(), EditError> {
        let clash = |why| EditError::Clash { path: path.clone(), why };
        match self.loaded_spot(path) {
            Spot::Absent => return Ok(()),
            Spot::Directory(_) => return Err(clash("a directory stands where a file should be deleted")),
            Spot::BelowFile(_) => {
                return Err(clash("a file stands where a directory of this path should be"));
            }
            Spot::Entry(_) => {}
        }
        if let Some((dir, name)) = self.open(path, touched) {
            dir.remove(name, false);
        }
        self.vanish_empty(path, touched);
        Ok(())
    }

    /// Removes the directories above a deleted path that have become empty.
    fn vanish_empty(&mut self, path: &RepoPath, touched: &mut Touched) {
        let mut at = path.parent();
        while let Some(directory) = at {
            let Some((dir, name)) = self.open(&directory, touched) else { return };
            if !dir.child(name).is_some_and(|child| child.is_empty()) {
                return;
            }
            dir.remove(name, true);
            at = directory.parent();
        }
    }

    fn put(&mut self, path: &RepoPath, entry: Entry, touched: &mut Touched) -> Result<(), EditError> {
        let clash = |why| EditError::Clash { path: path.clone(), why };
        match self.loaded_spot(path) {
            Spot::Directory(_) => return Err(clash("a directory stands where a file should be")),
            Spot::BelowFile(_) => {
                return Err(clash("a file stands where a directory of this path should be"));
            }
            Spot::Entry(old) if old == entry => return Ok(()),
            Spot::Entry(_) | Spot::Absent => {}
        }
        if let Some((dir, name)) = self.open(path, touched) {
            dir.set(name, TreeMode::Leaf(entry.mode), entry.id);
        }
        Ok(())
    }

    /// The directory that holds `path`, made where it is not there, and the path's last component.
    fn open<'p>(&mut self, path: &'p RepoPath, touched: &mut Touched) -> Option<(&mut Dir, &'p [u8])> {
        let bytes = path.as_bytes();
        touched.entry(Vec::new()).or_insert(Some(self.root_id));
        let mut dir = Arc::make_mut(self.root.get_or_insert_with(Arc::default));
        let mut start = 0;
        while let Some(slash) = bytes.get(start..)?.iter().position(|byte| *byte == b'/') {
            let name = bytes.get(start..start + slash)?;
            start += slash + 1;
            touched.entry(bytes.get(..start - 1)?.to_vec()).or_insert_with(|| dir.tree(name));
            if dir.child(name).is_none() {
                // A directory that is there was loaded before the first edit: never write over it.
                if dir.tree(name).is_some() {
                    return None;
                }
                dir.set(name, TreeMode::Tree, ObjectId::EMPTY_TREE);
                dir.put_child(name, Arc::default());
            }
            dir = Arc::make_mut(dir.child_mut(name)?);
        }
        Some((dir, bytes.get(start..)?))
    }

    /// Hashes the touched directories, children before parents, and collects the new trees.
    fn seal(&mut self, touched: &Touched) -> Applied {
        let mut trees = Vec::with_capacity(touched.len());
        let mut known = BTreeSet::new();
        // A directory's path is a prefix of its children's, so it sorts before them.
        for (path, before) in touched.iter().rev() {
            let Some((id, data)) = self.seal_one(path) else { continue };
            if Some(id) != *before && id != ObjectId::EMPTY_TREE && known.insert(id) {
                trees.push(NewTree { id, data, before: *before });
            }
        }
        Applied { root: self.root_id, trees }
    }

    fn seal_one(&mut self, path: &[u8]) -> Option<(ObjectId, Vec<u8>)> {
        let mut dir = self.root.as_mut()?;
        if path.is_empty() {
            let data = dir.data().to_vec();
            self.root_id = crate::object::hash(Kind::Tree, &data);
            return Some((self.root_id, data));
        }
        let mut names = path.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                let data = dir.child(name)?.data().to_vec();
                let id = crate::object::hash(Kind::Tree, &data);
                Arc::make_mut(dir).set(name, TreeMode::Tree, id);
                return Some((id, data));
            }
            dir = Arc::make_mut(dir).child_mut(name)?;
        }
        None
    }
}

fn load_dir(objects: &impl Objects, id: ObjectId) -> Result<Arc<Dir>, ReadError> {
    let object = objects.get(&id).ok_or_else(|| Missing::from(id))?;
    if object.kind != Kind::Tree {
        return Err(ReadError::Malformed { id, why: "it stands where a tree should be" });
    }
    Dir::load(&object.data).map(Arc::new).map_err(|fault| ReadError::malformed(id, fault))
}

#[cfg(test)]
mod tests;
