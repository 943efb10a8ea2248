//! Objects in memory: kind, bytes, id, and stores of them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use sha1_checked::Sha1;
use yard_common::ObjectId;

use crate::cache::ByteCache;

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

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob, Self::Tag]
            .into_iter()
            .find(|kind| kind.as_str().as_bytes() == name)
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

impl Object {
    /// The object's id.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        hash(self.kind, &self.data)
    }
}

/// The bytes fed so far carry one of the known SHA-1 collision attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collision;

/// SHA-1 over an object that comes in pieces, with collision detection.
#[derive(Debug)]
pub struct Hasher(Sha1);

impl Hasher {
    /// Starts an object of a known kind and size in bytes.
    #[must_use]
    pub fn new(kind: Kind, size: u64) -> Self {
        let mut hasher = Self::raw();
        hasher.update(kind.as_str().as_bytes());
        hasher.update(b" ");
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        let mut rest = size;
        loop {
            at -= 1;
            if let (Some(place), Ok(digit)) = (digits.get_mut(at), u8::try_from(rest % 10)) {
                *place = b'0' + digit;
            }
            rest /= 10;
            if rest == 0 || at == 0 {
                break;
            }
        }
        hasher.update(digits.get(at..).unwrap_or_default());
        hasher.update(b"\0");
        hasher
    }

    /// Starts plain bytes.
    #[must_use]
    pub fn raw() -> Self {
        Self(Sha1::new())
    }

    /// Starts the checksum of a pack or an index: plain SHA-1, twice as fast, no id of anything.
    #[must_use]
    pub fn checksum() -> Self {
        Self(Sha1::builder().detect_collision(false).build())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        sha1_checked::Digest::update(&mut self.0, bytes);
    }

    /// The id.
    ///
    /// # Errors
    /// [`Collision`] when the bytes carry a collision attack.
    pub fn finish(self) -> Result<ObjectId, Collision> {
        let result = self.0.try_finalize();
        if result.has_collision() {
            return Err(Collision);
        }
        Ok(ObjectId((*result.hash()).into()))
    }

    /// The id; of colliding bytes another one than both colliding texts have in plain SHA-1.
    #[must_use]
    pub fn finish_safe(self) -> ObjectId {
        ObjectId((*self.0.try_finalize().hash()).into())
    }
}

/// The id of an object: SHA-1 of `kind size NUL data`, with collision detection.
///
/// Bytes that carry a known collision attack get a mitigated hash, which equals neither side's
/// plain SHA-1; [`Hasher::finish`] reports them instead.
#[must_use]
pub fn hash(kind: Kind, data: &[u8]) -> ObjectId {
    let mut hasher = Hasher::new(kind, data.len() as u64);
    hasher.update(data);
    hasher.finish_safe()
}

/// As [`hash`], but bytes that carry a collision attack are an error.
///
/// # Errors
/// [`Collision`].
pub fn try_hash(kind: Kind, data: &[u8]) -> Result<ObjectId, Collision> {
    let mut hasher = Hasher::new(kind, data.len() as u64);
    hasher.update(data);
    hasher.finish()
}

/// Objects that are at hand: what a pure function may look at.
///
/// A function that needs an object which is not here returns its id among the missing ones; the
/// host fetches them in one batch and calls again. Implementations answer the empty tree always.
pub trait Objects {
    /// The object, if it is at hand.
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>>;
}

impl<T: Objects + ?Sized> Objects for &T {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        (**self).get(id)
    }
}

static EMPTY_TREE: LazyLock<Arc<Object>> =
    LazyLock::new(|| Arc::new(Object { kind: Kind::Tree, data: Vec::new() }));

fn empty_tree(id: &ObjectId) -> Option<Arc<Object>> {
    (*id == ObjectId::EMPTY_TREE).then(|| Arc::clone(&EMPTY_TREE))
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

    /// Puts an object under the id that is computed here.
    pub fn add(&mut self, kind: Kind, data: Vec<u8>) -> ObjectId {
        let id = hash(kind, &data);
        self.insert(id, Arc::new(Object { kind, data }));
        id
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

    /// All objects, in id order.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectId, &Arc<Object>)> {
        self.objects.iter()
    }
}

impl Objects for MemoryObjects {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.objects.get(id).cloned().or_else(|| empty_tree(id))
    }
}

/// Objects held in memory up to a number of bytes; the oldest are evicted.
///
/// An object counts as its bytes plus [`CachedObjects::OVERHEAD_BYTES`]. One that is larger than
/// the whole bound is not kept.
#[derive(Debug)]
pub struct CachedObjects(ByteCache<ObjectId>);

impl CachedObjects {
    /// What an entry costs besides its object's bytes.
    pub const OVERHEAD_BYTES: usize = crate::cache::OVERHEAD_BYTES;

    /// An empty cache of at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(ByteCache::new(bytes_max))
    }

    /// Puts an object under an id that the caller has computed or checked; evicts the oldest.
    pub fn insert(&mut self, id: ObjectId, object: Arc<Object>) {
        self.0.insert(id, object);
    }

    /// Bytes held now, overhead included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// How many objects are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is nothing held?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Lets everything go.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Objects for CachedObjects {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.0.get(id).cloned().or_else(|| empty_tree(id))
    }
}

/// New objects over a base: reads look at the new ones first.
#[derive(Debug, Clone)]
pub struct Overlay<B> {
    /// The objects that were added.
    pub new: MemoryObjects,
    /// Where the others come from.
    pub base: B,
}

impl<B: Objects> Overlay<B> {
    /// Nothing new over `base`.
    pub fn new(base: B) -> Self {
        Self { new: MemoryObjects::default(), base }
    }
}

impl<B: Objects> Objects for Overlay<B> {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.new.get(id).or_else(|| self.base.get(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        assert_eq!(hash(Kind::Blob, b"").to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(hash(Kind::Tree, b""), ObjectId::EMPTY_TREE);
        let text = vec![b'x'; 123_456];
        let mut pieces = Hasher::new(Kind::Blob, 123_456);
        text.chunks(777).for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.finish().unwrap(), hash(Kind::Blob, &text));
    }

    #[test]
    fn a_cache_keeps_its_bound_and_evicts_the_oldest() {
        let mut cache = CachedObjects::new(3 * (100 + CachedObjects::OVERHEAD_BYTES));
        let ids: Vec<_> = (0..5u8)
            .map(|n| {
                let object = Arc::new(Object { kind: Kind::Blob, data: vec![n; 100] });
                let id = object.id();
                cache.insert(id, object);
                id
            })
            .collect();
        assert_eq!(cache.len(), 3);
        assert!(cache.get(&ids[0]).is_none() && cache.get(&ids[1]).is_none());
        assert!(cache.get(&ids[2]).is_some() && cache.get(&ids[4]).is_some());
        cache.insert(ids[0], Arc::new(Object { kind: Kind::Blob, data: vec![0; 10_000] }));
        assert!(cache.get(&ids[0]).is_none(), "an object above the bound is not kept");
        assert_eq!(cache.bytes(), 3 * (100 + CachedObjects::OVERHEAD_BYTES));
    }

    #[test]
    fn an_overlay_reads_new_objects_before_its_base_and_knows_the_empty_tree() {
        let mut base = MemoryObjects::default();
        let old = base.add(Kind::Blob, b"old".to_vec());
        let mut overlay = Overlay::new(&base);
        let new = overlay.new.add(Kind::Blob, b"new".to_vec());
        assert_eq!(overlay.get(&old).unwrap().data, b"old");
        assert_eq!(overlay.get(&new).unwrap().data, b"new");
        assert!(base.get(&new).is_none());
        assert_eq!(overlay.get(&ObjectId::EMPTY_TREE).unwrap().kind, Kind::Tree);
    }
}
