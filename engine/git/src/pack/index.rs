//! Pack indexes, version 2: read without copying, write.

use std::ops::Range;

use yard_common::ObjectId;

use super::PackError;
use crate::error::Malformed;
use crate::object::Hasher;

const MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const FANOUT_BYTES: usize = 256 * 4;
const TABLES_AT: usize = MAGIC.len() + FANOUT_BYTES;
const TRAILER_BYTES: usize = 40;
const LARGE: u32 = 0x8000_0000;

/// What an index says of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The object.
    pub id: ObjectId,
    /// CRC-32 of the entry's bytes as they stand in the pack.
    pub crc32: u32,
    /// Where the entry starts, in bytes from the start of the pack.
    pub offset: u64,
}

/// The bytes of an index over these entries, in whatever order they come.
///
/// # Errors
/// [`PackError::TooManyObjects`] above 2^32 - 1 entries.
pub fn write(mut entries: Vec<IndexEntry>, pack_checksum: ObjectId) -> Result<Vec<u8>, PackError> {
    entries.sort_unstable();
    super::object_count(entries.len())?;
    let mut out = Vec::with_capacity(TABLES_AT + entries.len() * 28 + TRAILER_BYTES);
    out.extend_from_slice(&MAGIC);
    let mut below = 0usize;
    for first in 0..=255u8 {
        below += entries.get(below..).unwrap_or_default().partition_point(|entry| entry.id.0[0] <= first);
        out.extend_from_slice(&u32::try_from(below).unwrap_or(u32::MAX).to_be_bytes());
    }
    for entry in &entries {
        out.extend_from_slice(entry.id.as_bytes());
    }
    for entry in &entries {
        out.extend_from_slice(&entry.crc32.to_be_bytes());
    }
    let mut large: Vec<u64> = Vec::new();
    for entry in &entries {
        let short = u32::try_from(entry.offset).ok().filter(|offset| *offset < LARGE);
        let word = short.unwrap_or_else(|| {
            large.push(entry.offset);
            LARGE | u32::try_from(large.len() - 1).unwrap_or(0)
        });
        out.extend_from_slice(&word.to_be_bytes());
    }
    for offset in large {
        out.extend_from_slice(&offset.to_be_bytes());
    }
    out.extend_from_slice(pack_checksum.as_bytes());
    let mut hasher = Hasher::checksum();
    hasher.update(&out);
    out.extend_from_slice(hasher.finish_safe().as_bytes());
    Ok(out)
}

/// A parsed index over whatever holds its bytes (`Vec<u8>`, `Arc<[u8]>`, `&[u8]`).
#[derive(Debug, Clone)]
pub struct PackIndex<D> {
    data: D,
    count: usize,
}

impl<D: AsRef<[u8]>> PackIndex<D> {
    /// Reads the index: magic, fan-out table and lengths are checked, not the checksum.
    ///
    /// # Errors
    /// [`Malformed`] when it is no version 2 index, cut, or its tables do not fit together.
    pub fn parse(data: D) -> Result<Self, Malformed> {
        let bad = |why| Malformed { why };
        let bytes = data.as_ref();
        if !bytes.starts_with(&MAGIC) {
            return Err(bad("no pack index of version 2"));
        }
        let fanout = bytes.get(MAGIC.len()..TABLES_AT).ok_or(bad("the index is cut"))?;
        let mut before = 0;
        for word in fanout.chunks_exact(4) {
            let now = word.try_into().map(u32::from_be_bytes).unwrap_or(0);
            if now < before {
                return Err(bad("the index's fan-out table goes down"));
            }
            before = now;
        }
        let count = usize::try_from(before).map_err(|_| bad("the index is too large"))?;
        let least = count.checked_mul(28).and_then(|tables| tables.checked_add(TABLES_AT + TRAILER_BYTES));
        let rest = least.and_then(|least| bytes.len().checked_sub(least)).ok_or(bad("the index is cut"))?;
        if rest % 8 != 0 || rest / 8 > count {
            return Err(bad("the index is of the wrong length"));
        }
        Ok(Self { data, count })
    }

    /// Checks the index's own checksum.
    ///
    /// # Errors
    /// [`Malformed`] when it does not match.
    pub fn verify(&self) -> Result<(), Malformed> {
        let bytes = self.data.as_ref();
        let (body, sum) = bytes.split_at_checked(bytes.len() - 20).unwrap_or_default();
        let mut hasher = Hasher::checksum();
        hasher.update(body);
        if hasher.finish_safe().as_bytes() == sum {
            return Ok(());
        }
        Err(Malformed { why: "the index's checksum does not match" })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.data.as_ref()
    }

    /// How many objects it lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Does it list none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The checksum of the pack it belongs to.
    #[must_use]
    pub fn pack_checksum(&self) -> ObjectId {
        let bytes = self.data.as_ref();
        let at = bytes.len() - TRAILER_BYTES;
        bytes.get(at..at + 20).and_then(ObjectId::from_bytes).unwrap_or(ObjectId::ZERO)
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.data.as_ref().get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// The id at a place in id order.
    #[must_use]
    pub fn id(&self, place: usize) -> Option<ObjectId> {
        if place >= self.count {
            return None;
        }
        let at = TABLES_AT + place * 20;
        self.data.as_ref().get(at..at + 20).and_then(ObjectId::from_bytes)
    }

    /// The entry at a place in id order.
    #[must_use]
    pub fn entry(&self, place: usize) -> Option<IndexEntry> {
        let id = self.id(place)?;
        let crc32 = self.word(TABLES_AT + self.count * 20 + place * 4)?;
        let word = self.word(TABLES_AT + self.count * 24 + place * 4)?;
        let offset = if word & LARGE == 0 {
            u64::from(word)
        } else {
            let at = TABLES_AT + self.count * 28 + usize::try_from(word & !LARGE).ok()? * 8;
            if at + 8 > self.data.as_ref().len() - TRAILER_BYTES {
                return None;
            }
            self.data.as_ref().get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes)?
        };
        Some(IndexEntry { id, crc32, offset })
    }

    /// The place of an id in id order.
    #[must_use]
    pub fn position(&self, id: &ObjectId) -> Option<usize> {
        let first = usize::from(id.0[0]);
        let below =
            |slot: usize| self.word(MAGIC.len() + slot * 4).and_then(|word| usize::try_from(word).ok());
        let mut low = if first == 0 { 0 } else { below(first - 1)? };
        let mut high = below(first)?;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.id(middle)?.cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// Where the object's entry starts in the pack.
    #[must_use]
    pub fn find(&self, id: &ObjectId) -> Option<u64> {
        self.entry(self.position(id)?).map(|entry| entry.offset)
    }

    /// All entries, in id order.
    pub fn iter(&self) -> impl Iterator<Item = IndexEntry> {
        (0..self.count).filter_map(|place| self.entry(place))
    }

    /// Where the entries lie, for a pack of `pack_bytes` (trailer included); O(n log n), 12 bytes an entry.
    #[must_use]
    pub fn spans(&self, pack_bytes: u64) -> Spans {
        let mut starts: Vec<(u64, u32)> = self
            .iter()
            .enumerate()
            .map(|(place, entry)| (entry.offset, u32::try_from(place).unwrap_or(u32::MAX)))
            .collect();
        starts.sort_unstable();
        Spans { starts, end: pack_bytes.saturating_sub(20) }
    }
}

/// The entries of a pack in the order they lie in it.
#[derive(Debug, Clone)]
pub struct Spans {
    starts: Vec<(u64, u32)>,
    end: u64,
}

impl Spans {
    /// The bytes of the entry that starts at `offset`; `None` when none does.
    #[must_use]
    pub fn span(&self, offset: u64) -> Option<Range<u64>> {
        let at = self.starts.binary_search_by_key(&offset, |start| start.0).ok()?;
        Some(offset..self.starts.get(at + 1).map_or(self.end, |next| next.0))
    }

    /// The place in the index (in id order) of the entry that starts at `offset`.
    #[must_use]
    pub fn place(&self, offset: u64) -> Option<usize> {
        let at = self.starts.binary_search_by_key(&offset, |start| start.0).ok()?;
        self.starts.get(at).and_then(|start| usize::try_from(start.1).ok())
    }

    /// All entries as (start, place in the index), in pack order.
    #[must_use]
    pub fn in_pack_order(&self) -> &[(u64, u32)] {
        &self.starts
    }
}

#[cfg(test)]
mod tests;
