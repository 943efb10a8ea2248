//! Receiving a pushed pack: the indexer.
//!
//! Pass 1 ([`Scanner`]) takes the bytes as they stream by and keeps a row for each entry, not the
//! bytes; whole objects are hashed and checked on the way. Pass 2 ([`Resolver`]) resolves deltas,
//! asking for ranges of the stored pack and, for a thin pack, for the objects that it builds on.
//! The outcome ([`Received`]) has the object table, the index, and what the pack's objects refer to.
//!
//! Reads: where the pack is not whole at hand, pass 2 reads it in sweeps, front to back, each byte of a
//! sweep once: one for each 24 MiB of deltas and their bases, so at most four times the pack in all where
//! deltas name their bases by place. By id, families show only as they are resolved; if they do not fit in
//! the stash together it takes more, [`READ_TIMES_MAX`] times the pack at most.
//!
//! Memory: 90 bytes an entry, 21 for each distinct reference, the stash of a sweep, the cache of bases, a
//! delta and the object it makes: with the default limits 250,000 * 90 B + 10 MB + 24 MiB + 16 MiB +
//! 2 * 16 MiB = 108 MB at the very worst, a few MB for a usual push. The caller's windows come on top, and
//! [`NEED_BYTES_MAX`] of them are enough: a byte of a sweep is not looked at again.

use std::ops::Range;

use yard_common::ObjectId;
use yard_common::limits::{OBJECT_BYTES_MAX, PUSH_OBJECTS_MAX, PUSH_PACK_BYTES_MAX};

use super::PackError;
use super::header::Content;
use super::index::{self, IndexEntry};
use crate::commit::CommitLinks;
use crate::error::Missing;
use crate::object::{Hasher, Kind};
use crate::special::Special;

mod inspect;
mod resolve;
mod scan;
mod stash;

pub use resolve::Resolver;
pub use scan::Scanner;

/// Inflated bytes of all objects of one pack: 4 GiB, 95 MiB of pack 43 times over; a bomb has 1,000 times.
pub const INFLATED_BYTES_MAX: u64 = 4 << 30;
/// Bytes of bases that are made again because the cache let them go: a bound on a hostile pack's work.
pub const REMADE_BYTES_MAX: u64 = 8 << 30;
/// Bytes asked for in all, as times the pack's: a bound for the host on what a hostile pack makes it read.
pub const READ_TIMES_MAX: u64 = 64;
/// Inflated bases kept while deltas are resolved: one of the largest, or many.
pub const BASES_BYTES_MAX: usize = OBJECT_BYTES_MAX + 64 * 1024;
/// Compressed bytes that one sweep collects: four sweeps see all of 95 MiB.
pub const STASH_BYTES_MAX: u64 = 24 * 1024 * 1024;
/// Ranges asked for in one step, in bytes; the caller must hold them all for the next one.
pub const NEED_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Objects that a thin pack builds on, in bytes: they are held until the pack is complete.
pub const EXTERNAL_BYTES_MAX: u64 = 32 * 1024 * 1024;

const _: () = assert!(STASH_BYTES_MAX * 4 >= PUSH_PACK_BYTES_MAX);

/// What is taken at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the pack.
    pub pack_bytes_max: u64,
    /// Objects in the pack.
    pub objects_max: u32,
    /// Inflated bytes of all objects.
    pub inflated_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pack_bytes_max: PUSH_PACK_BYTES_MAX,
            objects_max: PUSH_OBJECTS_MAX,
            inflated_bytes_max: INFLATED_BYTES_MAX,
        }
    }
}

/// One entry of the pack, as far as it is known.
#[derive(Debug, Clone, Copy)]
struct Entry {
    offset: u64,
    crc32: u32,
    /// Inflated size of the entry's own stream.
    stream_size: u32,
    /// Inflated size of the object.
    size: u32,
    header_len: u8,
    /// `None` until a delta is resolved.
    kind: Option<Kind>,
    id: ObjectId,
    /// The entry (or, above their number, the external object) that a delta builds on; `WHOLE` for none.
    base: u32,
    depth: u16,
}

/// No base.
const WHOLE: u32 = u32::MAX;

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What pass 1 knows of the pack.
#[derive(Debug)]
pub struct Scanned {
    entries: Vec<Entry>,
    /// For each delta: its entry's number and its base as the header has it.
    deltas: Vec<(u32, Content)>,
    /// Where the entries end and the checksum starts.
    end: u64,
    checksum: ObjectId,
    inspected: inspect::Inspected,
}

impl Scanned {
    /// How many objects are in the pack.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.entries.len()
    }

    /// Length of the pack in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end + 20
    }

    /// Where an entry's compressed stream lies.
    fn stream_range(&self, at: u32) -> Result<Range<u64>, PackError> {
        let wrong = PackError::Misuse { why: "an entry's number is wrong" };
        let entry = self.entries.get(place(at)).ok_or(wrong)?;
        let end = self.entries.get(place(at) + 1).map_or(self.end, |next| next.offset);
        Ok(entry.offset + u64::from(entry.header_len)..end)
    }

    /// Objects that deltas name as their base and that are not whole in the pack: what pass 2 is likely
    /// to ask for. Some may be deltas of the pack themselves.
    #[must_use]
    pub fn likely_bases(&self) -> Missing {
        let mut bases = Missing::default();
        for (_, content) in &self.deltas {
            if let Content::Ref(id) = content {
                bases.insert(*id);
            }
        }
        for entry in self.entries.iter().filter(|entry| entry.kind.is_some()) {
            bases.0.remove(&entry.id);
        }
        bases
    }
}

/// What a step of pass 2 gave.
#[derive(Debug)]
pub enum Progress {
    /// All objects are known.
    Done(Box<Received>),
    /// Not yet: give these and call again.
    Need {
        /// Ranges of the pack in order, at most [`NEED_BYTES_MAX`] together.
        ranges: Vec<Range<u64>>,
        /// Objects from outside the pack. Give those that are known; some may be in the pack itself.
        bases: Missing,
    },
}

/// One object of a received pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedObject {
    /// Its id.
    pub id: ObjectId,
    /// Its kind.
    pub kind: Kind,
    /// Its inflated size in bytes.
    pub size: u32,
    /// Where its entry starts, in the completed pack.
    pub offset: u64,
}

/// A received pack: everything about its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Checksum of the pack as it came.
    pub checksum: ObjectId,
    /// Length of the pack as it came, in bytes.
    pub bytes: u64,
    /// All objects, in id order; those that complete a thin pack included.
    pub objects: Vec<ReceivedObject>,
    /// All commits of the push with their tree and parents, in id order.
    pub commits: Vec<(ObjectId, CommitLinks)>,
    /// All annotated tags: id, target, kind of the target; in id order.
    pub tags: Vec<(ObjectId, ObjectId, Kind)>,
    /// What the pack's objects refer to and the pack does not have, with the kind it must be of; in id
    /// order. The push is connected if the repository has all of them.
    pub outgoing: Vec<(ObjectId, Kind)>,
    /// What the pack's trees have as `.gitmodules` or `.gitattributes`, in id order; some may lie outside the
    /// pack. Their contents are the caller's to check, with [`Special::faults`].
    pub files: Vec<(ObjectId, Special)>,
    /// Names of special files that are symbolic links: git does not read them.
    pub links: Vec<String>,
    index: Vec<IndexEntry>,
    tail: Vec<u8>,
}

impl Received {
    /// Does the pack build on objects outside it? Then it must be completed before it is indexed.
    #[must_use]
    pub fn is_thin(&self) -> bool {
        !self.tail.is_empty()
    }

    /// The index of a pack that is not thin, version 2.
    ///
    /// # Errors
    /// [`PackError::Misuse`] for a thin pack.
    pub fn index(&self) -> Result<Vec<u8>, PackError> {
        if self.is_thin() {
            return Err(PackError::Misuse { why: "a thin pack must be completed before it is indexed" });
        }
        index::write(self.index.clone(), self.checksum)
    }

    /// Starts completing the pack as `git index-pack --fix-thin` does: bases appended, count and checksum
    /// made new.
    ///
    /// # Errors
    /// [`PackError::TooManyObjects`] above 2^32 - 1 objects.
    pub fn completion(&self) -> Result<Completion<'_>, PackError> {
        let count = super::object_count(self.index.len())?;
        let mut header = *b"PACK\0\0\0\x02\0\0\0\0";
        header.iter_mut().skip(8).zip(count.to_be_bytes()).for_each(|(place, byte)| *place = byte);
        let mut hasher = Hasher::checksum();
        hasher.update(&header);
        Ok(Completion { received: self, header, hasher, left: self.bytes.saturating_sub(32) })
    }

    /// The completed pack and its index, where the pack as it came is in memory; also of one not thin.
    ///
    /// # Errors
    /// [`PackError::Misuse`] when `pack` is of another length than the pack that came.
    pub fn complete(&self, pack: &[u8]) -> Result<(Vec<u8>, Vec<u8>), PackError> {
        if !self.is_thin() {
            return Ok((pack.to_vec(), self.index()?));
        }
        let mut completion = self.completion()?;
        let wrong = PackError::Misuse { why: "these are not the bytes of the received pack" };
        let body = pack.len().checked_sub(20).and_then(|end| pack.get(12..end)).ok_or(wrong)?;
        completion.feed(body)?;
        let mut out = Vec::with_capacity(pack.len() + self.tail.len());
        out.extend_from_slice(completion.header());
        out.extend_from_slice(body);
        let (tail, index) = completion.finish()?;
        out.extend_from_slice(&tail);
        Ok((out, index))
    }
}

/// A thin pack on its way to a complete one: new first 12 bytes, the old middle, a new end.
#[derive(Debug)]
pub struct Completion<'a> {
    received: &'a Received,
    header: [u8; 12],
    hasher: Hasher,
    left: u64,
}

impl Completion<'_> {
    /// The completed pack's first 12 bytes.
    #[must_use]
    pub fn header(&self) -> &[u8; 12] {
        &self.header
    }

    /// Takes the pack's bytes as they came, in order, without the first 12 and the last 20.
    ///
    /// # Errors
    /// [`PackError::Misuse`] when there are more than the pack had.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        let wrong = PackError::Misuse { why: "these are not the bytes of the received pack" };
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(wrong)?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// The bytes that stand in place of the old checksum, and the completed pack's index.
    ///
    /// # Errors
    /// [`PackError::Misuse`] when bytes were left out.
    pub fn finish(mut self) -> Result<(Vec<u8>, Vec<u8>), PackError> {
        if self.left > 0 {
            return Err(PackError::Misuse { why: "bytes of the received pack were left out" });
        }
        self.hasher.update(&self.received.tail);
        let checksum = self.hasher.finish_safe();
        let mut tail = self.received.tail.clone();
        tail.extend_from_slice(checksum.as_bytes());
        Ok((tail, index::write(self.received.index.clone(), checksum)?))
    }
}

#[cfg(test)]
mod tests;
