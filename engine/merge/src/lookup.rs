//! What stands at a path of the tree that changes are put on.

use std::cell::RefCell;

use yard_common::submission::Entry;
use yard_common::{ObjectId, RepoPath};
use yard_git::tree::{Spot, spot};
use yard_git::{Objects, ReadError, RunningTree};

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// Nothing, and no file at any prefix of the path.
    Nothing,
    /// A file, link or submodule.
    Entry(Entry),
    /// A directory, with its tree's id where that is known.
    Directory(Option<ObjectId>),
    /// Nothing, because a file, link or submodule stands at this prefix of the path.
    Below(RepoPath),
}

impl At {
    /// The entry, if it is one.
    #[must_use]
    pub fn entry(&self) -> Option<Entry> {
        match self {
            Self::Entry(entry) => Some(*entry),
            _ => None,
        }
    }

    /// Is it a directory?
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// What a reader of trees found at `path`.
    #[must_use]
    pub fn from_spot(path: &RepoPath, spot: Spot) -> Self {
        match spot {
            Spot::Absent => Self::Nothing,
            Spot::Entry(entry) => Self::Entry(entry),
            Spot::Directory(id) => Self::Directory(Some(id)),
            Spot::BelowFile(bytes) => path
                .as_bytes()
                .get(..bytes)
                .and_then(|prefix| RepoPath::new(prefix).ok())
                .map_or(Self::Nothing, Self::Below),
        }
    }
}

/// The tree that changes are put on.
pub trait Lookup {
    /// What stands at `path`.
    ///
    /// # Errors
    /// The trees that have to be at hand first; a malformed tree.
    fn at(&self, path: &RepoPath) -> Result<At, ReadError>;

    /// The tree's id; its trees are among the objects that are given beside, or are asked for.
    fn root(&self) -> ObjectId;
}

/// A written tree, read through the objects at hand.
#[derive(Clone, Copy)]
pub struct TreeLookup<'a> {
    objects: &'a dyn Objects,
    root: ObjectId,
}

impl<'a> TreeLookup<'a> {
    /// The tree `root`.
    #[must_use]
    pub fn new(objects: &'a dyn Objects, root: ObjectId) -> Self {
        Self { objects, root }
    }
}

impl Lookup for TreeLookup<'_> {
    fn at(&self, path: &RepoPath) -> Result<At, ReadError> {
        Ok(At::from_spot(path, spot(&self.objects, self.root, path)?))
    }

    fn root(&self) -> ObjectId {
        self.root
    }
}

/// A lane's running tree, whose new trees are among `objects`.
pub struct RunningLookup<'a> {
    objects: &'a dyn Objects,
    tree: RefCell<&'a mut RunningTree>,
}

impl<'a> RunningLookup<'a> {
    /// The running tree as it stands.
    #[must_use]
    pub fn new(objects: &'a dyn Objects, tree: &'a mut RunningTree) -> Self {
        Self { objects, tree: RefCell::new(tree) }
    }
}

impl Lookup for RunningLookup<'_> {
    fn at(&self, path: &RepoPath) -> Result<At, ReadError> {
        Ok(At::from_spot(path, self.tree.borrow_mut().spot(&self.objects, path)?))
    }

    fn root(&self) -> ObjectId {
        self.tree.borrow().id()
    }
}
