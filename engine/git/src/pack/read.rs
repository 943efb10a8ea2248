//! Reading objects out of a pack of which only some bytes are at hand.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use yard_common::ObjectId;
use yard_common::limits::OBJECT_BYTES_MAX;

use super::header::{self, Content, HEADER_BYTES_MAX, Header};
use super::index::{PackIndex, Spans};
use super::write::{RawContent, RawEntry};
use super::zlib::Inflater;
use super::{CHAIN_DEPTH_MAX, PackError, delta};
use crate::cache::ByteCache;
use crate::object::{Kind, Object};

/// Ranges that are asked for start and end at multiples of this many bytes (but at the pack's end).
pub const WINDOW_BYTES_MIN: u64 = 64 * 1024;
/// No asked range is longer, in bytes.
pub const WINDOW_BYTES_MAX: u64 = 1024 * 1024;

/// The bytes of a pack that are at hand.
pub trait PackBytes {
    /// Length of the whole pack in bytes, trailer included.
    fn pack_len(&self) -> u64;

    /// The bytes at hand from `offset` on, without a gap; empty when that byte is not at hand.
    fn at(&self, offset: u64) -> &[u8];
}

impl PackBytes for [u8] {
    fn pack_len(&self) -> u64 {
        self.len() as u64
    }

    fn at(&self, offset: u64) -> &[u8] {
        usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default()
    }
}

impl PackBytes for Vec<u8> {
    fn pack_len(&self) -> u64 {
        self.as_slice().pack_len()
    }

    fn at(&self, offset: u64) -> &[u8] {
        self.as_slice().at(offset)
    }
}

/// Ranges of a pack in memory, up to a number of bytes; the oldest are let go.
#[derive(Debug)]
pub struct Windows {
    pack_len: u64,
    bytes_max: usize,
    bytes: usize,
    windows: BTreeMap<u64, Vec<u8>>,
    order: VecDeque<u64>,
}

impl Windows {
    /// No bytes yet of a pack of `pack_len` bytes; keeps at most `bytes_max`, but always the newest.
    #[must_use]
    pub fn new(pack_len: u64, bytes_max: usize) -> Self {
        Self { pack_len, bytes_max, bytes: 0, windows: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Puts the bytes from `offset` on.
    pub fn insert(&mut self, offset: u64, bytes: Vec<u8>) {
        let end = offset + bytes.len() as u64;
        let end_of = |(start, window): (&u64, &Vec<u8>)| *start + window.len() as u64;
        if self.windows.range(..=offset).next_back().is_some_and(|window| end_of(window) >= end) {
            return;
        }
        // No window lies within another, so the last that starts before a byte reaches furthest.
        let inside: Vec<u64> =
            self.windows.range(offset..).take_while(|window| end_of(*window) <= end).map(|w| *w.0).collect();
        inside.into_iter().for_each(|start| self.remove(start));
        self.bytes += bytes.len();
        self.windows.insert(offset, bytes);
        self.order.push_back(offset);
        while self.bytes > self.bytes_max && self.windows.len() > 1 {
            let Some(oldest) = self.order.pop_front() else { break };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, start: u64) {
        if let Some(gone) = self.windows.remove(&start) {
            self.bytes -= gone.len();
            self.order.retain(|other| *other != start);
        }
    }
}

impl PackBytes for Windows {
    fn pack_len(&self) -> u64 {
        self.pack_len
    }

    fn at(&self, offset: u64) -> &[u8] {
        let Some((start, window)) = self.windows.range(..=offset).next_back() else { return &[] };
        usize::try_from(offset - start).ok().and_then(|skip| window.get(skip..)).unwrap_or_default()
    }
}

/// Rounds ranges to windows, merges those that touch, cuts those that are too long.
pub(super) fn windows(ranges: &[Range<u64>], pack_len: u64) -> Vec<Range<u64>> {
    let mut rounded: Vec<Range<u64>> = ranges
        .iter()
        .map(|range| {
            let start = range.start / WINDOW_BYTES_MIN * WINDOW_BYTES_MIN;
            start..range.end.div_ceil(WINDOW_BYTES_MIN).saturating_mul(WINDOW_BYTES_MIN).min(pack_len)
        })
        .filter(|range| range.start < range.end)
        .collect();
    rounded.sort_unstable_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for mut range in rounded {
        if let Some(last) = out.last_mut() {
            range.start = range.start.max(last.end);
            let room = WINDOW_BYTES_MAX - (last.end - last.start);
            if range.start == last.end && range.start < range.end {
                last.end += room.min(range.end - range.start);
                range.start = last.end;
            }
        }
        while range.start < range.end {
            let end = range.end.min(range.start + WINDOW_BYTES_MAX);
            out.push(range.start..end);
            range.start = end;
        }
    }
    out
}

/// What an attempt to read some bytes gave.
pub(super) enum Read<T> {
    /// All that was asked.
    Done(T),
    /// The bytes from here on are not at hand.
    Lacks(u64),
}

/// Reads the entry header at `offset`, across windows.
pub(super) fn header_at<B: PackBytes + ?Sized>(bytes: &B, offset: u64) -> Result<Read<Header>, PackError> {
    let fault = |why| PackError::Entry { offset, why };
    let end = bytes.pack_len().saturating_sub(20);
    if offset < 12 || offset >= end {
        return Err(fault("an entry lies outside the pack"));
    }
    let first = bytes.at(offset);
    if let Some(header) = header::parse(first.get(..HEADER_BYTES_MAX).unwrap_or(first)).map_err(fault)? {
        return Ok(Read::Done(header));
    }
    let mut joined = Vec::with_capacity(HEADER_BYTES_MAX);
    while joined.len() < HEADER_BYTES_MAX {
        let at = offset + joined.len() as u64;
        let more = bytes.at(at);
        if at >= end || more.is_empty() {
            break;
        }
        joined.extend_from_slice(more.get(..HEADER_BYTES_MAX - joined.len()).unwrap_or(more));
    }
    match header::parse(&joined).map_err(fault)? {
        Some(header) => Ok(Read::Done(header)),
        None if offset + joined.len() as u64 >= end => Err(fault("an entry is cut")),
        None => Ok(Read::Lacks(offset + joined.len() as u64)),
    }
}

/// Inflates the stream at `offset` to exactly `size` bytes, across windows; gives the stream's end too.
pub(super) fn inflate_at<B: PackBytes + ?Sized>(
    inflater: &mut Inflater,
    bytes: &B,
    offset: u64,
    size: u64,
) -> Result<Read<(Vec<u8>, u64)>, PackError> {
    let fault = |why| PackError::Entry { offset, why };
    // One byte more than declared: whatever fills it is more than declared.
    let room = super::object_size(size)?.saturating_add(1);
    let mut out = vec![0; room];
    let (mut at, mut filled) = (offset, 0);
    inflater.reset();
    loop {
        let input = bytes.at(at);
        if input.is_empty() {
            if at >= bytes.pack_len() {
                return Err(fault("an entry is cut"));
            }
            return Ok(Read::Lacks(at));
        }
        let step = inflater.step(input, out.get_mut(filled..).unwrap_or_default()).map_err(fault)?;
        at += step.read as u64;
        filled += step.written;
        if filled >= room {
            return Err(fault("an object is larger than its entry declares"));
        }
        if step.ended {
            if filled + 1 != room {
                return Err(fault("an object is smaller than its entry declares"));
            }
            out.truncate(filled);
            return Ok(Read::Done((out, at)));
        }
        if step.read == 0 && step.written == 0 {
            return Err(fault("its zlib stream does not end"));
        }
    }
}

/// Bases that were inflated, by offset: reading neighbours of one chain inflates it once.
#[derive(Debug)]
pub struct BaseCache(pub(super) ByteCache<u64>);

impl BaseCache {
    /// At most `bytes_max` bytes; one cache per pack.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(ByteCache::new(bytes_max))
    }
}

/// What reading several objects gave.
#[derive(Debug, Default)]
pub struct Batch {
    /// The objects that could be read, with the offsets of their entries, as they were asked for.
    pub done: Vec<(u64, Arc<Object>)>,
    /// The ranges that the others need next (not more than one base of a chain can be foreseen).
    pub need: Vec<Range<u64>>,
}

/// What looking for kinds gave.
#[derive(Debug, Default)]
pub struct Kinds {
    /// The kinds that are known, with the offsets of the entries.
    pub done: Vec<(u64, Kind)>,
    /// The ranges that the others need next.
    pub need: Vec<Range<u64>>,
}

/// A pack to read from: bytes at hand, index, and (for exact ranges) where entries end.
#[derive(Debug, Clone, Copy)]
pub struct Pack<'a, B: ?Sized, D> {
    /// The bytes at hand.
    pub bytes: &'a B,
    /// The index, for deltas that name their base by id.
    pub index: &'a PackIndex<D>,
    /// Entry ends; without them more is asked for than needed (up to an object's inflated size).
    pub spans: Option<&'a Spans>,
}

/// One entry of a chain that waits for its base.
struct Link {
    offset: u64,
    header: Header,
}

impl<B: PackBytes + ?Sized, D: AsRef<[u8]>> Pack<'_, B, D> {
    /// Reads the objects whose entries start at `offsets`, deltas resolved.
    ///
    /// # Errors
    /// The first fault found: corrupt entries, objects above [`OBJECT_BYTES_MAX`], chains deeper than
    /// [`CHAIN_DEPTH_MAX`], a base that is not in this pack.
    pub fn read(&self, offsets: &[u64], cache: &mut BaseCache) -> Result<Batch, PackError> {
        let mut inflater = Inflater::new();
        let (mut batch, mut need) = (Batch::default(), Vec::new());
        for offset in offsets {
            if let Some(object) = self.read_one(*offset, &mut inflater, cache, &mut need)? {
                batch.done.push((*offset, object));
            }
        }
        batch.need = windows(&need, self.bytes.pack_len());
        Ok(batch)
    }

    /// The kinds of the objects whose entries start at `offsets`, by their headers alone: nothing is inflated.
    ///
    /// # Errors
    /// As [`Pack::read`].
    pub fn kinds(&self, offsets: &[u64]) -> Result<Kinds, PackError> {
        let (mut kinds, mut need) = (Kinds::default(), Vec::new());
        for offset in offsets {
            let (mut at, mut depth) = (*offset, 0);
            loop {
                let Read::Done(header) = header_at(self.bytes, at)? else {
                    need.push(at..at.saturating_add(HEADER_BYTES_MAX as u64).min(self.bytes.pack_len()));
                    break;
                };
                if let Content::Full(kind) = header.content {
                    kinds.done.push((*offset, kind));
                    break;
                }
                if depth >= CHAIN_DEPTH_MAX {
                    return Err(PackError::Entry { offset: *offset, why: "its chain of deltas is too deep" });
                }
                depth += 1;
                at = self.base_of(at, &header)?;
            }
        }
        kinds.need = windows(&need, self.bytes.pack_len());
        Ok(kinds)
    }

    /// The bytes that an entry may take, as exactly as they are known.
    fn range(&self, offset: u64, header: Option<&Header>) -> Range<u64> {
        if let Some(span) = self.spans.and_then(|spans| spans.span(offset)) {
            return span;
        }
        // Stored blocks are the longest form: 5 bytes for each 64 KiB, and header and trailer.
        let length = header
            .map_or(WINDOW_BYTES_MIN, |header| header.len as u64 + header.size + header.size / 1000 + 64);
        offset..offset.saturating_add(length).min(self.bytes.pack_len())
    }

    fn read_one(
        &self,
        offset: u64,
        inflater: &mut Inflater,
        cache: &mut BaseCache,
        need: &mut Vec<Range<u64>>,
    ) -> Result<Option<Arc<Object>>, PackError> {
        let mut chain: Vec<Link> = Vec::new();
        let (mut at, needed_before) = (offset, need.len());
        let mut object = loop {
            if let Some(object) = cache.0.get(&at) {
                break Some(Arc::clone(object));
            }
            let Read::Done(header) = header_at(self.bytes, at)? else {
                need.push(self.range(at, None));
                return Ok(None);
            };
            super::object_size(header.size)?;
            if let Content::Full(kind) = header.content {
                let data = self.inflate(at, &header, inflater, need)?;
                break data.map(|data| Arc::new(Object { kind, data }));
            }
            if chain.len() >= usize::from(CHAIN_DEPTH_MAX) {
                return Err(PackError::Entry { offset, why: "its chain of deltas is too deep" });
            }
            if !self.is_at_hand(at, &header) {
                need.push(self.range(at, Some(&header)));
            }
            chain.push(Link { offset: at, header });
            at = self.base_of(at, &header)?;
        };
        if let Some(base) = &object {
            cache.0.insert(at, Arc::clone(base));
        }
        if need.len() > needed_before {
            return Ok(None);
        }
        while let (Some(base), Some(link)) = (&object, chain.pop()) {
            let Some(bytes) = self.inflate(link.offset, &link.header, inflater, need)? else {
                return Ok(None);
            };
            let data = delta::apply(&base.data, &bytes, OBJECT_BYTES_MAX)
                .map_err(|why| PackError::Entry { offset: link.offset, why })?;
            let made = Arc::new(Object { kind: base.kind, data });
            cache.0.insert(link.offset, Arc::clone(&made));
            object = Some(made);
        }
        Ok(object)
    }

    /// Are an entry's bytes at hand? Without spans the inflater finds out.
    fn is_at_hand(&self, offset: u64, header: &Header) -> bool {
        let Some(span) = self.spans.and_then(|spans| spans.span(offset)) else {
            return !self.bytes.at(offset + header.len as u64).is_empty();
        };
        let mut at = span.start;
        while at < span.end {
            match self.bytes.at(at).len() {
                0 => return false,
                len => at += len as u64,
            }
        }
        true
    }

    fn inflate(
        &self,
        offset: u64,
        header: &Header,
        inflater: &mut Inflater,
        need: &mut Vec<Range<u64>>,
    ) -> Result<Option<Vec<u8>>, PackError> {
        match inflate_at(inflater, self.bytes, offset + header.len as u64, header.size)? {
            Read::Done((data, _)) => Ok(Some(data)),
            Read::Lacks(at) => {
                let range = self.range(offset, Some(header));
                // Past the estimate: ask for what follows.
                need.push(if range.contains(&at) { range } else { at..at + WINDOW_BYTES_MIN });
                Ok(None)
            }
        }
    }

    fn base_of(&self, offset: u64, header: &Header) -> Result<u64, PackError> {
        let base = match header.content {
            Content::Ofs(back) => offset.checked_sub(back).filter(|base| back > 0 && *base >= 12),
            Content::Ref(id) => self.index.find(&id),
            Content::Full(_) => None,
        };
        base.ok_or(PackError::Entry { offset, why: "a delta's base is not in the pack" })
    }

    /// An entry as it stands in the pack, for [`super::PackWriter::copy`]; its stream comes back in `buffer`.
    ///
    /// # Errors
    /// `Ok(Err(range))` when those bytes are not at hand; faults as [`Pack::read`]. Needs spans.
    pub fn raw<'b>(
        &self,
        offset: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Result<RawEntry<'b>, Range<u64>>, PackError> {
        let missing_spans = PackError::Misuse { why: "an entry's end is not known" };
        let span = self.spans.and_then(|spans| spans.span(offset)).ok_or(missing_spans)?;
        let Read::Done(header) = header_at(self.bytes, offset)? else { return Ok(Err(span)) };
        let content = match header.content {
            Content::Full(kind) => RawContent::Full(kind),
            Content::Ref(id) => RawContent::Delta(id),
            Content::Ofs(_) => RawContent::Delta(self.id_at(self.base_of(offset, &header)?)?),
        };
        buffer.clear();
        let mut at = offset + header.len as u64;
        while at < span.end {
            let piece = self.bytes.at(at);
            if piece.is_empty() {
                return Ok(Err(span));
            }
            let wanted = usize::try_from(span.end - at).unwrap_or(usize::MAX);
            let piece = piece.get(..wanted).unwrap_or(piece);
            buffer.extend_from_slice(piece);
            at += piece.len() as u64;
        }
        Ok(Ok(RawEntry { content, size: header.size, compressed: buffer }))
    }

    fn id_at(&self, offset: u64) -> Result<ObjectId, PackError> {
        let place = self.spans.and_then(|spans| spans.place(offset));
        place
            .and_then(|place| self.index.id(place))
            .ok_or(PackError::Entry { offset, why: "a delta's base is not in the pack" })
    }
}

#[cfg(test)]
mod tests;
