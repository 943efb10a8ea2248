//! Pass 1: the pack as it streams by.

use yard_common::ObjectId;

use super::super::header::{self, Content, HEADER_BYTES_MAX, Header};
use super::super::zlib::Inflater;
use super::super::{PackError, delta, object_size};
use super::inspect::Inspected;
use super::{Entry, Limits, Scanned, WHOLE};
use crate::object::{Hasher, Kind, try_hash};

/// Bytes inflated at a time.
const SCRATCH_BYTES: usize = 32 * 1024;
/// The two sizes at a delta's start take at most this many bytes.
const DELTA_SIZES_BYTES: usize = 20;

/// What comes next in the stream.
enum State {
    PackHeader,
    EntryHeader,
    Body(Box<Body>),
    Trailer,
    Done,
    Failed,
}

/// The entry whose stream is being inflated.
struct Body {
    header: Header,
    crc: crc32fast::Hasher,
    inflated: u64,
    /// A blob's hash; other objects are hashed from `data`.
    hasher: Option<Hasher>,
    /// Commits, trees and tags whole; the start of a delta.
    data: Vec<u8>,
}

/// Takes a pack in pieces of any size and keeps only a row for each entry.
pub struct Scanner {
    limits: Limits,
    state: State,
    carry: Vec<u8>,
    count: u32,
    offset: u64,
    entry_start: u64,
    inflated: u64,
    checksum: Hasher,
    inflater: Inflater,
    scratch: Vec<u8>,
    entries: Vec<Entry>,
    deltas: Vec<(u32, Content)>,
    inspected: Inspected,
}

impl std::fmt::Debug for Scanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scanner({} of {} objects)", self.entries.len(), self.count)
    }
}

impl Scanner {
    /// Starts a pack.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::PackHeader,
            carry: Vec::new(),
            count: 0,
            offset: 0,
            entry_start: 0,
            inflated: 0,
            checksum: Hasher::checksum(),
            inflater: Inflater::new(),
            scratch: vec![0; SCRATCH_BYTES],
            entries: Vec::new(),
            deltas: Vec::new(),
            inspected: Inspected::default(),
        }
    }

    /// Is the pack complete, its checksum right?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Objects seen so far, and objects announced: for progress.
    #[must_use]
    pub fn progress(&self) -> (usize, u32) {
        (self.entries.len(), self.count)
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The first fault; the scanner is of no use then.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        let size = self.offset + bytes.len() as u64;
        if size > self.limits.pack_bytes_max {
            let limit = self.limits.pack_bytes_max;
            return Err(PackError::TooLarge { what: "the pack", size, limit });
        }
        let mut rest = bytes;
        // Everything before the trailer is under the checksum; hashed in runs as long as they come.
        let mut unhashed = bytes;
        while !rest.is_empty() {
            let in_trailer = matches!(self.state, State::Trailer | State::Done);
            let taken = self.take(rest)?;
            self.offset += taken as u64;
            rest = rest.get(taken..).unwrap_or_default();
            let now_in_trailer = matches!(self.state, State::Trailer | State::Done);
            if !in_trailer && now_in_trailer {
                let run = unhashed.len() - rest.len();
                self.checksum.update(unhashed.get(..run).unwrap_or_default());
            }
            if now_in_trailer {
                unhashed = &[];
            }
        }
        self.checksum.update(unhashed);
        Ok(())
    }

    /// Takes some bytes in the present state; says how many.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, PackError> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::PackHeader => {
                self.state = State::PackHeader;
                let taken = self.fill_carry(bytes, 12);
                if self.carry.len() == 12 {
                    self.begin_pack()?;
                }
                Ok(taken)
            }
            State::EntryHeader => {
                let before = self.carry.len();
                let taken = self.fill_carry(bytes, HEADER_BYTES_MAX);
                let fault = |why| PackError::Entry { offset: self.entry_start, why };
                let Some(header) = header::parse(&self.carry).map_err(fault)? else {
                    self.state = State::EntryHeader;
                    return Ok(taken);
                };
                self.begin_entry(header)?;
                Ok(header.len - before)
            }
            State::Body(body) => self.take_body(body, bytes),
            State::Trailer => {
                self.state = State::Trailer;
                let taken = self.fill_carry(bytes, 20);
                if self.carry.len() == 20 {
                    let checksum = std::mem::replace(&mut self.checksum, Hasher::checksum()).finish_safe();
                    if checksum.as_bytes().as_slice() != self.carry.as_slice() {
                        return Err(PackError::Checksum);
                    }
                    self.state = State::Done;
                }
                Ok(taken)
            }
            State::Done | State::Failed => Err(PackError::Length { reading: "bytes after its end" }),
        }
    }

    fn fill_carry(&mut self, bytes: &[u8], len: usize) -> usize {
        let taken = bytes.len().min(len.saturating_sub(self.carry.len()));
        self.carry.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        taken
    }

    fn begin_pack(&mut self) -> Result<(), PackError> {
        let Some(b"PACK\0\0\0\x02" | b"PACK\0\0\0\x03") = self.carry.get(..8) else {
            return Err(PackError::Version);
        };
        let count = self.carry.get(8..).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes);
        if count > self.limits.objects_max {
            let limit = u64::from(self.limits.objects_max);
            return Err(PackError::TooManyObjects { count: u64::from(count), limit });
        }
        self.count = count;
        self.carry.clear();
        self.entry_start = 12;
        self.state = if count == 0 { State::Trailer } else { State::EntryHeader };
        Ok(())
    }

    fn begin_entry(&mut self, header: Header) -> Result<(), PackError> {
        self.grow_inflated(header.size)?;
        object_size(header.size)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.carry.get(..header.len).unwrap_or_default());
        self.carry.clear();
        self.inflater.reset();
        let hasher =
            (header.content == Content::Full(Kind::Blob)).then(|| Hasher::new(Kind::Blob, header.size));
        self.state = State::Body(Box::new(Body { header, crc, inflated: 0, hasher, data: Vec::new() }));
        Ok(())
    }

    fn grow_inflated(&mut self, size: u64) -> Result<(), PackError> {
        self.inflated = self.inflated.saturating_add(size);
        if self.inflated > self.limits.inflated_bytes_max {
            let (size, limit) = (self.inflated, self.limits.inflated_bytes_max);
            return Err(PackError::TooLarge { what: "the inflated pack", size, limit });
        }
        Ok(())
    }

    fn take_body(&mut self, mut body: Box<Body>, bytes: &[u8]) -> Result<usize, PackError> {
        let offset = self.entry_start;
        let fault = |why| PackError::Entry { offset, why };
        let step = self.inflater.step(bytes, &mut self.scratch).map_err(fault)?;
        body.crc.update(bytes.get(..step.read).unwrap_or_default());
        body.inflated += step.written as u64;
        if body.inflated > body.header.size {
            return Err(fault("an object is larger than its entry declares"));
        }
        let inflated = self.scratch.get(..step.written).unwrap_or_default();
        match (&mut body.hasher, body.header.content) {
            (Some(hasher), _) => hasher.update(inflated),
            (None, Content::Full(_)) => body.data.extend_from_slice(inflated),
            (None, _) => {
                let room = DELTA_SIZES_BYTES.saturating_sub(body.data.len()).min(inflated.len());
                body.data.extend_from_slice(inflated.get(..room).unwrap_or_default());
            }
        }
        if step.ended {
            if body.inflated != body.header.size {
                return Err(fault("an object is smaller than its entry declares"));
            }
            self.end_entry(*body, self.offset + step.read as u64)?;
        } else if step.read == 0 && step.written == 0 {
            return Err(fault("its zlib stream does not end"));
        } else {
            self.state = State::Body(body);
        }
        Ok(step.read)
    }

    fn end_entry(&mut self, body: Body, end: u64) -> Result<(), PackError> {
        let offset = self.entry_start;
        let fault = |why| PackError::Entry { offset, why };
        let stream_size = u32::try_from(body.header.size).unwrap_or(u32::MAX);
        let number = u32::try_from(self.entries.len()).unwrap_or(WHOLE);
        let (kind, size, id) = match body.header.content {
            Content::Full(kind) => {
                let id = match body.hasher {
                    Some(hasher) => hasher.finish(),
                    None => try_hash(kind, &body.data),
                };
                let id = id.map_err(|_| fault("it carries a SHA-1 collision attack"))?;
                self.inspected.inspect(id, kind, &body.data)?;
                (Some(kind), stream_size, id)
            }
            delta => {
                let (_, result, _) = delta::sizes(&body.data).ok_or(fault("a delta's sizes are cut"))?;
                self.grow_inflated(result)?;
                object_size(result)?;
                self.deltas.push((number, delta));
                (None, u32::try_from(result).unwrap_or(u32::MAX), ObjectId::ZERO)
            }
        };
        self.entries.push(Entry {
            offset,
            crc32: body.crc.finalize(),
            stream_size,
            size,
            header_len: u8::try_from(body.header.len).unwrap_or(0),
            kind,
            id,
            base: WHOLE,
            depth: 0,
        });
        self.entry_start = end;
        let is_last = self.entries.len() as u64 == u64::from(self.count);
        self.state = if is_last { State::Trailer } else { State::EntryHeader };
        Ok(())
    }

    /// Ends pass 1.
    ///
    /// # Errors
    /// [`PackError::Length`] when the pack is not complete.
    pub fn finish(self) -> Result<Scanned, PackError> {
        let reading = match self.state {
            State::Done => {
                return Ok(Scanned {
                    entries: self.entries,
                    deltas: self.deltas,
                    end: self.offset - 20,
                    checksum: ObjectId::from_bytes(&self.carry).unwrap_or(ObjectId::ZERO),
                    inspected: self.inspected,
                });
            }
            State::PackHeader => "its header",
            State::EntryHeader | State::Body(_) => "its objects",
            State::Trailer | State::Failed => "its checksum",
        };
        Err(PackError::Length { reading })
    }
}
