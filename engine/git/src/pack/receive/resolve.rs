//! Pass 2: deltas become objects.
//!
//! Depth first from the whole objects, so that a base is in the cache while its children are made;
//! one that was let go is made again from its own chain.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use yard_common::ObjectId;
use yard_common::limits::OBJECT_BYTES_MAX;

use super::super::header::{self, Content};
use super::super::index::IndexEntry;
use super::super::read::{PackBytes, Read, WINDOW_BYTES_MIN, inflate_at, windows};
use super::super::zlib::{Deflater, Inflater};
use super::super::{CHAIN_DEPTH_MAX, PackError, delta};
use super::{
    BASES_BYTES_MAX, EXTERNAL_BYTES_MAX, Entry, NEED_BYTES_MAX, Progress, REMADE_BYTES_MAX, Received,
    ReceivedObject, Scanned, WHOLE,
};
use crate::cache::ByteCache;
use crate::error::Missing;
use crate::object::{Object, Objects, try_hash};

/// Resolves the deltas of a scanned pack, step by step.
pub struct Resolver {
    scanned: Scanned,
    /// (base entry, child entry), sorted: deltas that name their base by place.
    by_place: Vec<(u32, u32)>,
    /// (base id, child entry), sorted: deltas that name their base by id.
    by_id: Vec<(ObjectId, u32)>,
    /// Deltas whose base is known, the next one last.
    todo: Vec<u32>,
    /// How many entries are not resolved.
    unresolved: usize,
    /// Objects from outside; number `entries.len() + n` as a base.
    externals: Vec<(ObjectId, Arc<Object>)>,
    external_bytes: u64,
    asked: BTreeSet<ObjectId>,
    cache: ByteCache<u32>,
    inflater: Inflater,
    /// Bytes of bases made again.
    remade: u64,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Resolver({} of {} to go)", self.unresolved, self.scanned.entries.len())
    }
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(WHOLE)
}

impl Resolver {
    /// Starts pass 2.
    ///
    /// # Errors
    /// [`PackError::Entry`] for a delta whose base is no entry of the pack.
    pub fn new(mut scanned: Scanned) -> Result<Self, PackError> {
        let (mut by_place, mut by_id) = (Vec::new(), Vec::new());
        let deltas = std::mem::take(&mut scanned.deltas);
        for (child, content) in &deltas {
            let offset = scanned.entries.get(place(*child)).map_or(0, |entry| entry.offset);
            match content {
                Content::Ref(id) => by_id.push((*id, *child)),
                Content::Ofs(back) => {
                    let base = offset.checked_sub(*back).filter(|_| *back > 0);
                    let base = base.and_then(|base| {
                        scanned.entries.binary_search_by_key(&base, |entry| entry.offset).ok()
                    });
                    let why = "a delta's base is not in the pack";
                    by_place.push((number(base.ok_or(PackError::Entry { offset, why })?), *child));
                }
                Content::Full(_) => {}
            }
        }
        by_place.sort_unstable();
        by_id.sort_unstable();
        let unresolved = deltas.len();
        let mut resolver = Self {
            scanned,
            by_place,
            by_id,
            todo: Vec::new(),
            unresolved,
            externals: Vec::new(),
            external_bytes: 0,
            asked: BTreeSet::new(),
            cache: ByteCache::new(BASES_BYTES_MAX),
            inflater: Inflater::new(),
            remade: 0,
        };
        for at in (0..resolver.scanned.entries.len()).rev() {
            if let Some(entry) = resolver.scanned.entries.get(at).filter(|entry| entry.kind.is_some()) {
                resolver.push_children(number(at), entry.id, 0)?;
            }
        }
        Ok(resolver)
    }

    /// Bytes of bases that were made again, because the cache had let them go.
    #[must_use]
    pub fn remade_bytes(&self) -> u64 {
        self.remade
    }

    /// Deltas still to be resolved.
    #[must_use]
    pub fn left(&self) -> usize {
        self.unresolved
    }

    /// Goes on as far as the bytes at hand allow.
    ///
    /// `objects` is asked for the bases of a thin pack only.
    ///
    /// # Errors
    /// The first fault, among them a base that was asked for and is nowhere; nothing can be kept then.
    pub fn step<B: PackBytes + ?Sized>(
        &mut self,
        bytes: &B,
        objects: &impl Objects,
    ) -> Result<Progress, PackError> {
        loop {
            while let Some(child) = self.todo.last().copied() {
                if !self.resolve(bytes, child)? {
                    let ranges = self.needed(bytes);
                    if ranges.is_empty() {
                        return Err(PackError::Misuse { why: "an entry's bytes end before its stream" });
                    }
                    return Ok(Progress::Need { ranges, bases: Missing::default() });
                }
            }
            if self.unresolved == 0 {
                return self.finish().map(|received| Progress::Done(Box::new(received)));
            }
            let bases = self.take_externals(objects)?;
            if !self.todo.is_empty() {
                continue;
            }
            if let Some(id) = bases.0.first().filter(|_| bases.0.is_subset(&self.asked)) {
                return Err(PackError::Object { id: *id, why: "the pack builds on it and it is not here" });
            }
            if bases.is_empty() {
                return Err(PackError::Misuse { why: "a delta waits for nothing" });
            }
            self.asked.extend(bases.0.iter().copied());
            return Ok(Progress::Need { ranges: Vec::new(), bases });
        }
    }

    /// Takes what there is of the bases that are in no whole entry; gives the ids that are not at hand.
    fn take_externals(&mut self, objects: &impl Objects) -> Result<Missing, PackError> {
        let mut missing = Missing::default();
        let mut wanted: Vec<ObjectId> = self
            .by_id
            .iter()
            .filter(|(_, child)| self.entry(*child).is_ok_and(|entry| entry.kind.is_none()))
            .map(|(id, _)| *id)
            .collect();
        wanted.dedup();
        for id in wanted {
            let Some(object) = objects.get(&id) else {
                missing.insert(id);
                continue;
            };
            self.external_bytes += object.data.len() as u64;
            if self.external_bytes > EXTERNAL_BYTES_MAX {
                let (size, limit) = (self.external_bytes, EXTERNAL_BYTES_MAX);
                return Err(PackError::TooLarge { what: "what the thin pack builds on", size, limit });
            }
            let base = number(self.scanned.entries.len() + self.externals.len());
            self.externals.push((id, object));
            self.push_children(base, id, 0)?;
        }
        Ok(missing)
    }

    fn entry(&self, at: u32) -> Result<&Entry, PackError> {
        self.scanned.entries.get(place(at)).ok_or(PackError::Misuse { why: "an entry's number is wrong" })
    }

    fn children_by_place(&self, base: u32) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let from = self.by_place.partition_point(|pair| pair.0 < base);
        let to = self.by_place.partition_point(|pair| pair.0 <= base);
        self.by_place.get(from..to).unwrap_or_default().iter().map(|pair| pair.1)
    }

    fn children_by_id(&self, id: &ObjectId) -> &[(ObjectId, u32)] {
        let from = self.by_id.partition_point(|pair| pair.0 < *id);
        let to = self.by_id.partition_point(|pair| pair.0 <= *id);
        self.by_id.get(from..to).unwrap_or_default()
    }

    /// The deltas on a base that is known now: they come next. Says whether there are any.
    fn push_children(&mut self, base: u32, id: ObjectId, depth: u16) -> Result<bool, PackError> {
        let by_id = self.children_by_id(&id).iter().map(|pair| pair.1);
        let children: Vec<u32> = self.children_by_place(base).chain(by_id).collect();
        for child in children.iter().rev() {
            let entry = self.scanned.entries.get_mut(place(*child));
            let entry = entry.ok_or(PackError::Misuse { why: "an entry's number is wrong" })?;
            if entry.base != WHOLE {
                // Two objects of one id would be its base: the pack has a double, found at the end.
                continue;
            }
            if depth >= CHAIN_DEPTH_MAX {
                return Err(PackError::Entry {
                    offset: entry.offset,
                    why: "its chain of deltas is too deep",
                });
            }
            entry.base = base;
            entry.depth = depth + 1;
            self.todo.push(*child);
        }
        Ok(!children.is_empty())
    }

    /// Resolves the last of `todo`; `false` when bytes are not at hand.
    fn resolve<B: PackBytes + ?Sized>(&mut self, bytes: &B, child: u32) -> Result<bool, PackError> {
        let entry = *self.entry(child)?;
        let fault = |why| PackError::Entry { offset: entry.offset, why };
        let Some(base) = self.object(bytes, entry.base)? else { return Ok(false) };
        let Some(delta) = self.stream(bytes, &entry)? else { return Ok(false) };
        let data = delta::apply(&base.data, &delta, OBJECT_BYTES_MAX).map_err(fault)?;
        let id = try_hash(base.kind, &data).map_err(|_| fault("it carries a SHA-1 collision attack"))?;
        self.scanned.inspected.inspect(id, base.kind, &data)?;
        if let Some(entry) = self.scanned.entries.get_mut(place(child)) {
            entry.kind = Some(base.kind);
            entry.id = id;
        }
        self.todo.pop();
        self.unresolved -= 1;
        if self.push_children(child, id, entry.depth)? {
            self.cache.insert(child, Arc::new(Object { kind: base.kind, data }));
        }
        Ok(true)
    }

    /// A resolved object again: from the cache, from outside, or made from its chain.
    fn object<B: PackBytes + ?Sized>(
        &mut self,
        bytes: &B,
        at: u32,
    ) -> Result<Option<Arc<Object>>, PackError> {
        let (mut chain, mut cursor) = (Vec::new(), at);
        let mut object = loop {
            if let Some(object) = self.cache.get(&cursor) {
                break Arc::clone(object);
            }
            if let Some(outside) = place(cursor).checked_sub(self.scanned.entries.len()) {
                let external = self.externals.get(outside).map(|(_, object)| Arc::clone(object));
                break external.ok_or(PackError::Misuse { why: "an entry's number is wrong" })?;
            }
            let entry = *self.entry(cursor)?;
            if entry.base == WHOLE {
                let kind = entry.kind.ok_or(PackError::Misuse { why: "a base is not resolved" })?;
                let Some(data) = self.stream(bytes, &entry)? else { return Ok(None) };
                let object = Arc::new(Object { kind, data });
                self.cache.insert(cursor, Arc::clone(&object));
                break object;
            }
            chain.push(cursor);
            cursor = entry.base;
        };
        while let Some(link) = chain.pop() {
            let entry = *self.entry(link)?;
            let Some(delta) = self.stream(bytes, &entry)? else { return Ok(None) };
            let data = delta::apply(&object.data, &delta, OBJECT_BYTES_MAX)
                .map_err(|why| PackError::Entry { offset: entry.offset, why })?;
            self.remade += data.len() as u64;
            if self.remade > REMADE_BYTES_MAX {
                let (what, limit) = ("the work on the pack's deltas", REMADE_BYTES_MAX);
                return Err(PackError::TooLarge { what, size: self.remade, limit });
            }
            object = Arc::new(Object { kind: object.kind, data });
            self.cache.insert(link, Arc::clone(&object));
        }
        Ok(Some(object))
    }

    /// The inflated stream of an entry; `None` when its bytes are not at hand.
    fn stream<B: PackBytes + ?Sized>(
        &mut self,
        bytes: &B,
        entry: &Entry,
    ) -> Result<Option<Vec<u8>>, PackError> {
        let start = entry.offset + u64::from(entry.header_len);
        match inflate_at(&mut self.inflater, bytes, start, u64::from(entry.stream_size))? {
            Read::Done((data, _)) => Ok(Some(data)),
            Read::Lacks(_) => Ok(None),
        }
    }

    fn span(&self, at: u32) -> Option<Range<u64>> {
        let start = self.scanned.entries.get(place(at))?.offset;
        let end = self.scanned.entries.get(place(at) + 1).map_or(self.scanned.end, |next| next.offset);
        Some(start..end)
    }

    /// The ranges that the next deltas need, in the order they will be made, up to [`NEED_BYTES_MAX`].
    fn needed<B: PackBytes + ?Sized>(&self, bytes: &B) -> Vec<Range<u64>> {
        let mut grid: BTreeSet<u64> = BTreeSet::new();
        let mut ask = |span: Range<u64>| {
            let mut at = span.start;
            while at < span.end {
                let there = bytes.at(at).len() as u64;
                if there == 0 {
                    grid.insert(at / WINDOW_BYTES_MIN);
                    at = (at / WINDOW_BYTES_MIN + 1) * WINDOW_BYTES_MIN;
                }
                at += there;
            }
            grid.len() as u64 * WINDOW_BYTES_MIN
        };
        let mut asked = 0;
        let mut seen = BTreeSet::new();
        'next: for top in self.todo.iter().rev() {
            // The base again, down its chain to what is in the cache.
            let mut cursor = self.scanned.entries.get(place(*top)).map_or(WHOLE, |entry| entry.base);
            while self.cache.get(&cursor).is_none() && seen.insert(cursor) {
                let Some(span) = self.span(cursor) else { break };
                asked = ask(span);
                cursor = self.scanned.entries.get(place(cursor)).map_or(WHOLE, |entry| entry.base);
            }
            // The delta itself, and those on it that name it by place.
            let mut below = vec![*top];
            while let Some(child) = below.pop() {
                asked = self.span(child).map_or(asked, &mut ask);
                if asked >= NEED_BYTES_MAX {
                    break 'next;
                }
                below.extend(self.children_by_place(child).rev());
            }
        }
        let ranges: Vec<_> =
            grid.into_iter().map(|cell| cell * WINDOW_BYTES_MIN..(cell + 1) * WINDOW_BYTES_MIN).collect();
        windows(&ranges, self.scanned.end + 20)
    }

    fn finish(&mut self) -> Result<Received, PackError> {
        let mut objects = Vec::with_capacity(self.scanned.entries.len());
        let mut index = Vec::with_capacity(self.scanned.entries.len());
        for entry in std::mem::take(&mut self.scanned.entries) {
            let kind = entry.kind.ok_or(PackError::Misuse { why: "an object is not resolved" })?;
            objects.push(ReceivedObject { id: entry.id, kind, size: entry.size, offset: entry.offset });
            index.push(IndexEntry { id: entry.id, crc32: entry.crc32, offset: entry.offset });
        }
        objects.sort_unstable_by_key(|object| object.id);
        let double = objects.iter().zip(objects.iter().skip(1)).find(|(a, b)| a.id == b.id);
        if let Some((object, _)) = double {
            return Err(PackError::Object { id: object.id, why: "it stands twice in the pack" });
        }
        let outgoing = outgoing(self.scanned.inspected.references(), &objects)?;
        let tail = self.append_externals(&mut objects, &mut index)?;
        let mut commits = std::mem::take(&mut self.scanned.inspected.commits);
        commits.sort_unstable_by_key(|commit| commit.0);
        let mut tags = std::mem::take(&mut self.scanned.inspected.tags);
        tags.sort_unstable();
        let (checksum, bytes) = (self.scanned.checksum, self.scanned.end + 20);
        Ok(Received { checksum, bytes, objects, commits, tags, outgoing, index, tail })
    }

    /// The entries that complete a thin pack, and their rows.
    fn append_externals(
        &mut self,
        objects: &mut Vec<ReceivedObject>,
        index: &mut Vec<IndexEntry>,
    ) -> Result<Vec<u8>, PackError> {
        let (mut tail, mut deflater) = (Vec::new(), Deflater::new());
        for (id, object) in std::mem::take(&mut self.externals) {
            let Err(at) = objects.binary_search_by_key(&id, |object| object.id) else { continue };
            let start = tail.len();
            let offset = self.scanned.end + start as u64;
            header::write(&mut tail, Content::Full(object.kind), object.data.len() as u64);
            deflater.deflate(&mut tail, &object.data);
            let crc32 = crc32fast::hash(tail.get(start..).unwrap_or_default());
            let size = u32::try_from(object.data.len()).unwrap_or(u32::MAX);
            objects.insert(at, ReceivedObject { id, kind: object.kind, size, offset });
            index.push(IndexEntry { id, crc32, offset });
        }
        Ok(tail)
    }
}

/// The references that no object of the pack answers; one that is of another kind is an error.
fn outgoing(
    references: &[(ObjectId, crate::Kind)],
    objects: &[ReceivedObject],
) -> Result<Vec<(ObjectId, crate::Kind)>, PackError> {
    let mut out = Vec::new();
    for (id, kind) in references {
        match objects.binary_search_by_key(id, |object| object.id).ok().and_then(|at| objects.get(at)) {
            // Every repository has the empty tree.
            None if *id == ObjectId::EMPTY_TREE => {}
            None => out.push((*id, *kind)),
            Some(object) if object.kind == *kind => {}
            Some(_) => {
                return Err(PackError::Object {
                    id: *id,
                    why: "it is referred to as an object of another kind",
                });
            }
        }
    }
    Ok(out)
}
