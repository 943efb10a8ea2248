//! Objects in memory: kind, bytes, id.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_common::ObjectId;

/// The four kinds of git object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A commit.
    Commit,
    /// A tree.
    Tree,
    /// A blob.
    Blob,
    /// An annotated tag.
    Tag,
}

impl Kind {
    /// git's name of the kind, as in an object's header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// An inflated object without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The kind.
    pub kind: Kind,
    /// The bytes after the header.
    pub data: Vec<u8>,
}

/// Objects that are at hand: what a pure function may look at.
///
/// A function that needs an object which is not here returns its id among the missing ones; the
/// host fetches them in one batch and calls again. Implementations answer the empty tree always.
pub trait Objects {
    /// The object, if it is at hand.
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>>;
}

/// Objects held in memory, in id order.
#[derive(Debug, Clone, Default)]
pub struct MemoryObjects {
    objects: BTreeMap<ObjectId, Arc<Object>>,
}

impl MemoryObjects {
    /// Puts an object under an id that the caller has computed or checked.
    pub fn insert(&mut self, id: ObjectId, object: Arc<Object>) {
        self.objects.insert(id, object);
    }

    /// How many objects are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Is nothing held?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Objects for MemoryObjects {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        if *id == ObjectId::EMPTY_TREE {
            return Some(Arc::new(Object { kind: Kind::Tree, data: Vec::new() }));
        }
        self.objects.get(id).cloned()
    }
}
