//! Writing packs: whole objects, deltas against an object of the same pack, entries copied as they are.

use std::collections::BTreeMap;

use yard_common::ObjectId;

use super::header::{self, Content};
use super::index::{self, IndexEntry};
use super::zlib::Deflater;
use super::{PackError, delta};
use crate::object::{Hasher, Kind};

/// Deltas on deltas that are written: as git packs, so that a reader's work stays small.
const DEPTH_MAX: u16 = 50;
/// Bytes of the header: `PACK`, version, count.
const HEADER_BYTES: usize = 12;

/// A compressed entry of another pack, to be copied without inflating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEntry<'a> {
    /// What it holds.
    pub content: RawContent,
    /// Inflated bytes of the object or the delta, as the entry's header has it.
    pub size: u64,
    /// The zlib stream.
    pub compressed: &'a [u8],
}

/// What a copied entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawContent {
    /// An object.
    Full(Kind),
    /// A delta against the object of this id.
    Delta(ObjectId),
}

/// A pack that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedPack {
    /// The bytes that were not taken before; all of them when none were.
    pub rest: Vec<u8>,
    /// The pack's checksum: its last 20 bytes.
    pub checksum: ObjectId,
    /// Length of the whole pack in bytes.
    pub bytes: u64,
    /// How many objects are in it.
    pub objects: u32,
    /// Its index, version 2.
    pub index: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Placed {
    offset: u64,
    depth: u16,
}

/// Builds a pack: objects in, bytes out.
///
/// With the count announced, bytes can be taken while it grows ([`PackWriter::take`]); without,
/// the pack stays in memory until it is finished.
#[derive(Debug)]
pub struct PackWriter {
    out: Vec<u8>,
    taken: u64,
    announced: Option<u32>,
    hasher: Hasher,
    hashed: usize,
    entries: Vec<IndexEntry>,
    placed: BTreeMap<ObjectId, Placed>,
    deflater: Deflater,
}

impl PackWriter {
    /// A pack of exactly `count` objects, which can be taken in pieces.
    #[must_use]
    pub fn streaming(count: u32) -> Self {
        Self::with(Some(count))
    }

    /// A pack that is built in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with(None)
    }

    fn with(announced: Option<u32>) -> Self {
        let mut out = b"PACK\0\0\0\x02".to_vec();
        out.extend_from_slice(&announced.unwrap_or(0).to_be_bytes());
        Self {
            out,
            taken: 0,
            announced,
            hasher: Hasher::checksum(),
            hashed: 0,
            entries: Vec::new(),
            placed: BTreeMap::new(),
            deflater: Deflater::new(),
        }
    }

    /// Length so far in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.taken + self.out.len() as u64
    }

    /// How many objects are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Is nothing in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Is the object in it?
    #[must_use]
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.placed.contains_key(id)
    }

    /// Adds a whole object, deflated at level 1. `false`: it is in the pack already.
    pub fn add(&mut self, id: ObjectId, kind: Kind, data: &[u8]) -> bool {
        if self.contains(&id) {
            return false;
        }
        let start = self.begin(id, 0, Content::Full(kind), data.len() as u64);
        self.deflater.deflate(&mut self.out, data);
        self.end(start);
        true
    }

    /// Adds an object as a delta against `near`, where that is in this pack, not too deep and worth
    /// it; else whole. `false`: it is in the pack already.
    ///
    /// Made for a tree (or a notes tree) and the tree that stood at its place before.
    pub fn add_near(
        &mut self,
        id: ObjectId,
        kind: Kind,
        data: &[u8],
        near: Option<(ObjectId, &[u8])>,
    ) -> bool {
        let base = near.and_then(|(base, bytes)| self.placed.get(&base).map(|placed| (*placed, bytes)));
        let Some((placed, base)) = base.filter(|(placed, _)| placed.depth < DEPTH_MAX) else {
            return self.add(id, kind, data);
        };
        if self.contains(&id) {
            return false;
        }
        let delta = delta::make(base, data);
        if delta.len() * 2 > data.len() {
            return self.add(id, kind, data);
        }
        let back = self.bytes() - placed.offset;
        let start = self.begin(id, placed.depth + 1, Content::Ofs(back), delta.len() as u64);
        self.deflater.deflate(&mut self.out, &delta);
        self.end(start);
        true
    }

    /// Copies an entry of another pack. `false`: the object is in the pack already.
    ///
    /// A delta whose base stands earlier in this pack points to it by offset, else by id: the base
    /// must then come later, or the reader must have it (a thin pack).
    pub fn copy(&mut self, id: ObjectId, entry: &RawEntry<'_>) -> bool {
        if self.contains(&id) {
            return false;
        }
        let (content, depth) = match entry.content {
            RawContent::Full(kind) => (Content::Full(kind), 0),
            RawContent::Delta(base) => match self.placed.get(&base) {
                Some(placed) => {
                    (Content::Ofs(self.bytes() - placed.offset), placed.depth.saturating_add(1))
                }
                // How deep a base elsewhere is nobody knows here: build no deltas on it.
                None => (Content::Ref(base), DEPTH_MAX),
            },
        };
        let start = self.begin(id, depth, content, entry.size);
        self.out.extend_from_slice(entry.compressed);
        self.end(start);
        true
    }

    fn begin(&mut self, id: ObjectId, depth: u16, content: Content, size: u64) -> usize {
        let offset = self.bytes();
        self.entries.push(IndexEntry { id, crc32: 0, offset });
        self.placed.insert(id, Placed { offset, depth });
        let start = self.out.len();
        header::write(&mut self.out, content, size);
        start
    }

    fn end(&mut self, start: usize) {
        let crc32 = crc32fast::hash(self.out.get(start..).unwrap_or_default());
        if let Some(entry) = self.entries.last_mut() {
            entry.crc32 = crc32;
        }
        if self.announced.is_some() {
            self.hash_new();
        }
    }

    fn hash_new(&mut self) {
        self.hasher.update(self.out.get(self.hashed..).unwrap_or_default());
        self.hashed = self.out.len();
    }

    /// The bytes that were not taken before; nothing while the count is not announced.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        if self.announced.is_none() {
            return Vec::new();
        }
        self.hash_new();
        self.hashed = 0;
        self.taken += self.out.len() as u64;
        std::mem::take(&mut self.out)
    }

    /// Ends the pack: checksum and index.
    ///
    /// # Errors
    /// [`PackError::Misuse`] when another count was announced, [`PackError::TooManyObjects`] above
    /// 2^32 - 1 objects.
    pub fn finish(mut self) -> Result<FinishedPack, PackError> {
        let objects = super::object_count(self.entries.len())?;
        match self.announced {
            Some(count) if count != objects => {
                return Err(PackError::Misuse { why: "another number of objects was announced" });
            }
            Some(_) => {}
            None => {
                if let Some(place) = self.out.get_mut(HEADER_BYTES - 4..HEADER_BYTES) {
                    place.copy_from_slice(&objects.to_be_bytes());
                }
            }
        }
        self.hash_new();
        let checksum = self.hasher.finish_safe();
        self.out.extend_from_slice(checksum.as_bytes());
        let bytes = self.taken + self.out.len() as u64;
        let index = index::write(self.entries, checksum)?;
        Ok(FinishedPack { rest: self.out, checksum, bytes, objects, index })
    }
}

#[cfg(test)]
mod tests;
