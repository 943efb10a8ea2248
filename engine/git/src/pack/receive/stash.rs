//! Compressed streams of one sweep: chosen first, then filled while the pack is read front to back.

use std::ops::Range;

use yard_common::limits::OBJECT_BYTES_MAX;

use super::super::PackError;
use super::super::read::{PackBytes, WINDOW_BYTES_MIN, windows};
use super::{NEED_BYTES_MAX, Scanned};

/// Longest stream that is read: stored blocks are the longest form of an object, and add 1 in 1,000.
const STREAM_BYTES_MAX: u64 = OBJECT_BYTES_MAX as u64 + OBJECT_BYTES_MAX as u64 / 16;
/// Cells between two wanted ones that are read along: one request costs more than 256 KiB of bytes.
const GAP_CELLS_MAX: u64 = 4;

/// Which entries a sweep collects.
pub(super) struct Plan {
    chosen: Vec<bool>,
    members: Vec<u32>,
    /// Bytes that may still be chosen.
    room: u64,
}

impl Plan {
    pub(super) fn new(entries: usize, room: u64) -> Self {
        Self { chosen: vec![false; entries], members: Vec::new(), room }
    }

    pub(super) fn has(&self, at: u32) -> bool {
        usize::try_from(at).is_ok_and(|at| self.chosen.get(at).copied().unwrap_or(false))
    }

    pub(super) fn room(&self) -> u64 {
        self.room
    }

    pub(super) fn add_room(&mut self, bytes: u64) {
        self.room += bytes;
    }

    /// Chooses an entry if there is room; `even_so` if there is none.
    pub(super) fn take(&mut self, scanned: &Scanned, at: u32, even_so: bool) -> Result<bool, PackError> {
        if self.has(at) {
            return Ok(true);
        }
        let cost = cost(scanned, at)?;
        if cost > self.room && !even_so {
            return Ok(false);
        }
        self.room = self.room.saturating_sub(cost);
        if let Some(chosen) = usize::try_from(at).ok().and_then(|at| self.chosen.get_mut(at)) {
            *chosen = true;
            self.members.push(at);
        }
        Ok(true)
    }
}

/// What an entry takes of the stash, in bytes.
pub(super) fn cost(scanned: &Scanned, at: u32) -> Result<u64, PackError> {
    let stream = scanned.stream_range(at)?;
    let length = stream.end.saturating_sub(stream.start);
    if length > STREAM_BYTES_MAX {
        return Err(PackError::Entry { offset: stream.start, why: "its zlib stream is padded" });
    }
    Ok(length)
}

/// An entry of the sweep, and where its stream starts in the stash.
struct Member {
    entry: u32,
    start: usize,
}

/// The streams of the chosen entries, in pack order.
#[derive(Default)]
pub(super) struct Stash {
    members: Vec<Member>,
    bytes: Vec<u8>,
    /// How many members are complete.
    filled: usize,
}

impl Stash {
    /// An empty stash for what was chosen, with memory for all of it.
    pub(super) fn new(scanned: &Scanned, plan: Plan) -> Result<Self, PackError> {
        let mut chosen = plan.members;
        chosen.sort_unstable();
        let (mut members, mut total) = (Vec::with_capacity(chosen.len()), 0);
        for entry in chosen {
            members.push(Member { entry, start: total });
            let stream = scanned.stream_range(entry)?;
            total += usize::try_from(stream.end.saturating_sub(stream.start)).unwrap_or(usize::MAX);
        }
        Ok(Self { members, bytes: Vec::with_capacity(total), filled: 0 })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The stream of an entry, if it was chosen and has been read.
    pub(super) fn stream(&self, entry: u32) -> Option<&[u8]> {
        let at = self.members.binary_search_by_key(&entry, |member| member.entry).ok()?;
        let start = self.members.get(at).filter(|_| at < self.filled)?.start;
        let end = self.members.get(at + 1).map_or(self.bytes.len(), |next| next.start);
        self.bytes.get(start..end)
    }

    /// Takes what is at hand of the next streams; gives the ranges that come next, none when all is here.
    ///
    /// Every byte is taken once and in pack order: a window that was passed is of no use any more.
    pub(super) fn fill<B: PackBytes + ?Sized>(
        &mut self,
        bytes: &B,
        scanned: &Scanned,
    ) -> Result<Vec<Range<u64>>, PackError> {
        while let Some(member) = self.members.get(self.filled) {
            let stream = scanned.stream_range(member.entry)?;
            let mut at = stream.start + (self.bytes.len() - member.start) as u64;
            while at < stream.end {
                let piece = bytes.at(at);
                if piece.is_empty() {
                    return self.needed(at, scanned);
                }
                let wanted = usize::try_from(stream.end - at).unwrap_or(usize::MAX);
                let piece = piece.get(..wanted).unwrap_or(piece);
                self.bytes.extend_from_slice(piece);
                at += piece.len() as u64;
            }
            self.filled += 1;
        }
        Ok(Vec::new())
    }

    /// The windows from `at` on that have bytes of members, up to [`NEED_BYTES_MAX`].
    fn needed(&self, at: u64, scanned: &Scanned) -> Result<Vec<Range<u64>>, PackError> {
        let mut cells: Vec<u64> = Vec::new();
        let cells_max = usize::try_from(NEED_BYTES_MAX / WINDOW_BYTES_MIN).unwrap_or(usize::MAX);
        'members: for member in self.members.iter().skip(self.filled) {
            let stream = scanned.stream_range(member.entry)?;
            let first = stream.start.max(at) / WINDOW_BYTES_MIN;
            let near = cells.last().filter(|last| first <= **last + GAP_CELLS_MAX).map_or(first, |l| l + 1);
            for cell in near..stream.end.div_ceil(WINDOW_BYTES_MIN) {
                if cells.len() >= cells_max {
                    break 'members;
                }
                cells.push(cell);
            }
        }
        let ranges: Vec<_> =
            cells.into_iter().map(|cell| cell * WINDOW_BYTES_MIN..(cell + 1) * WINDOW_BYTES_MIN).collect();
        Ok(windows(&ranges, scanned.bytes()))
    }
}
