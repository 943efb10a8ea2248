//! Pass 2: deltas become objects.
//!
//! Depth first from the whole objects, so that a base is in the cache while its children are made;
//! one that was let go is made again from its own chain. A family of deltas may be strewn over the
//! whole pack: where not all of it is at hand, a sweep reads front to back and collects the compressed
//! streams of as many families as the stash holds, and they are resolved from there. Families come in
//! the order of their roots, and a delta stands after its base in what git writes, so a sweep starts
//! where the one before it stopped starting families.

use std::collections::BTreeSet;
use std::sync::Arc;

use yard_common::ObjectId;
use yard_common::limits::OBJECT_BYTES_MAX;

use super::super::header::{self, Content};
use super::super::index::IndexEntry;
use super::super::read::{PackBytes, Read, inflate_at};
use super::super::zlib::{Deflater, Inflater};
use super::super::{CHAIN_DEPTH_MAX, PackError, delta};
use super::stash::{Plan, Stash, cost};
use super::{
    BASES_BYTES_MAX, EXTERNAL_BYTES_MAX, Entry, Progress, READ_TIMES_MAX, REMADE_BYTES_MAX, Received,
    ReceivedObject, STASH_BYTES_MAX, Scanned, WHOLE, place,
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
    /// The streams of the present sweep.
    stash: Stash,
    /// Bytes that a sweep collects.
    pub(super) stash_bytes: u64,
    /// Is the whole pack at hand? Then there are no sweeps.
    whole: bool,
    /// Bytes of bases made again.
    remade: u64,
    /// Objects made, bases made again included: a sweep that adds none is the last.
    made: u64,
    /// Bytes of the pack asked for.
    asked_bytes: u64,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Resolver({} of {} to go)", self.unresolved, self.scanned.entries.len())
    }
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
            stash: Stash::default(),
            stash_bytes: STASH_BYTES_MAX,
            whole: false,
            remade: 0,
            made: 0,
            asked_bytes: 0,
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
        self.whole = bytes.at(0).len() as u64 >= self.scanned.end;
        loop {
            let ranges = self.stash.fill(bytes, &self.scanned)?;
            if !ranges.is_empty() {
                self.asked_bytes += ranges.iter().map(|range| range.end - range.start).sum::<u64>();
                let limit = self.scanned.bytes().saturating_mul(READ_TIMES_MAX);
                if self.asked_bytes > limit {
                    let (what, size) = ("what must be read to resolve the pack's deltas", self.asked_bytes);
                    return Err(PackError::TooLarge { what, size, limit });
                }
                return Ok(Progress::Need { ranges, bases: Missing::default() });
            }
            let made = self.made;
            self.resolve_at_hand(bytes)?;
            if self.unresolved == 0 {
                return self.finish().map(|received| Progress::Done(Box::new(received)));
            }
            if !self.todo.is_empty() {
                if self.made == made && !self.stash.is_empty() {
                    return Err(PackError::Misuse { why: "an entry's bytes end before its stream" });
                }
                self.stash = Stash::default();
                self.stash = Stash::new(&self.scanned, self.plan()?)?;
                continue;
            }
            // What the last sweep collected has no part in what comes from outside.
            self.stash = Stash::default();
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

    /// Resolves what can be resolved of `todo`, depth first; the rest stays, in its order.
    fn resolve_at_hand<B: PackBytes + ?Sized>(&mut self, bytes: &B) -> Result<(), PackError> {
        let mut later = Vec::new();
        while let Some(child) = self.todo.pop() {
            let is_at_hand = self.whole || self.stash.stream(child).is_some();
            if !is_at_hand || !self.resolve(bytes, child)? {
                later.push(child);
            }
        }
        later.reverse();
        self.todo = later;
        Ok(())
    }

    /// Resolves a delta whose base is known; `false` when bytes are not at hand.
    fn resolve<B: PackBytes + ?Sized>(&mut self, bytes: &B, child: u32) -> Result<bool, PackError> {
        let entry = *self.entry(child)?;
        let fault = |why| PackError::Entry { offset: entry.offset, why };
        let Some(base) = self.object(bytes, entry.base)? else { return Ok(false) };
        let Some(delta) = self.stream(bytes, child)? else { return Ok(false) };
        let data = delta::apply(&base.data, &delta, OBJECT_BYTES_MAX).map_err(fault)?;
        let id = try_hash(base.kind, &data).map_err(|_| fault("it carries a SHA-1 collision attack"))?;
        self.scanned.inspected.inspect(id, base.kind, &data)?;
        if let Some(entry) = self.scanned.entries.get_mut(place(child)) {
            entry.kind = Some(base.kind);
            entry.id = id;
        }
        self.made += 1;
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
                let Some(data) = self.stream(bytes, cursor)? else { return Ok(None) };
                self.made += 1;
                let object = Arc::new(Object { kind, data });
                self.cache.insert(cursor, Arc::clone(&object));
                break object;
            }
            chain.push(cursor);
            cursor = entry.base;
        };
        while let Some(link) = chain.pop() {
            let offset = self.entry(link)?.offset;
            let Some(delta) = self.stream(bytes, link)? else { return Ok(None) };
            let data = delta::apply(&object.data, &delta, OBJECT_BYTES_MAX)
                .map_err(|why| PackError::Entry { offset, why })?;
            self.made += 1;
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
    fn stream<B: PackBytes + ?Sized>(&mut self, bytes: &B, at: u32) -> Result<Option<Vec<u8>>, PackError> {
        let entry = *self.entry(at)?;
        let size = u64::from(entry.stream_size);
        let start = entry.offset + u64::from(entry.header_len);
        let read = if self.whole {
            inflate_at(&mut self.inflater, bytes, start, size)?
        } else {
            let Some(stream) = self.stash.stream(at) else { return Ok(None) };
            inflate_at(&mut self.inflater, stream, 0, size).map_err(|fault| match fault {
                PackError::Entry { why, .. } => PackError::Entry { offset: start, why },
                other => other,
            })?
        };
        match read {
            Read::Done((data, _)) => Ok(Some(data)),
            Read::Lacks(_) => Ok(None),
        }
    }

    /// Chooses what the next sweep collects.
    ///
    /// Where no delta names its base by place, families are not known beforehand: then deltas on bases that
    /// are not known yet come along, in pack order, in up to half of the stash or what else is free of it.
    fn plan(&self) -> Result<Plan, PackError> {
        let is_stray = |entry: &Entry| entry.kind.is_none() && entry.base == WHOLE;
        let by_id = self.by_id.iter().map(|pair| pair.1).filter(|_| self.by_place.is_empty());
        let mut strays: Vec<u32> = by_id.filter(|at| self.entry(*at).is_ok_and(is_stray)).collect();
        strays.sort_unstable();
        let mut stray_bytes = 0;
        for stray in &strays {
            stray_bytes += cost(&self.scanned, *stray)?;
        }
        let kept = stray_bytes.min(self.stash_bytes / 2);
        let mut plan = Plan::new(self.scanned.entries.len(), self.stash_bytes - kept);
        self.plan_families(&mut plan)?;
        plan.add_room(kept);
        for stray in strays {
            if !plan.take(&self.scanned, stray, false)? {
                break;
            }
        }
        Ok(plan)
    }

    /// Chooses the families of the deltas that come next, as far as there is room.
    fn plan_families(&self, plan: &mut Plan) -> Result<(), PackError> {
        for (nth, top) in self.todo.iter().rev().enumerate() {
            if !self.plan_base(plan, *top, nth == 0)? {
                break;
            }
            // The delta itself, and those on it that name it by place.
            let (mut below, mut even_so) = (vec![*top], nth == 0);
            while let Some(child) = below.pop() {
                if !plan.take(&self.scanned, child, even_so)? {
                    return Ok(());
                }
                even_so = false;
                below.extend(self.children_by_place(child).rev());
            }
        }
        Ok(())
    }

    /// Chooses the chain that the base of `top` is made from; `false` when there is no room for all of it.
    ///
    /// The first of a sweep gets on even if its chain is larger than the stash: it starts from what is in
    /// the cache, and the part that is made in this sweep is in the cache for the next one.
    fn plan_base(&self, plan: &mut Plan, top: u32, is_first: bool) -> Result<bool, PackError> {
        let (mut chain, mut total) = (Vec::new(), cost(&self.scanned, top)?);
        let mut cursor = self.entry(top)?.base;
        while let Some(entry) = self.scanned.entries.get(place(cursor)).filter(|_| !plan.has(cursor)) {
            total += cost(&self.scanned, cursor)?;
            chain.push(cursor);
            cursor = entry.base;
        }
        if total > plan.room() {
            if !is_first {
                return Ok(false);
            }
            let cached = chain.iter().position(|link| self.cache.get(link).is_some());
            chain.truncate(cached.unwrap_or(chain.len()));
        }
        let mut even_so = is_first;
        while let Some(link) = chain.pop() {
            if !plan.take(&self.scanned, link, even_so)? {
                return Ok(false);
            }
            even_so = false;
        }
        Ok(true)
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
        let files = self.scanned.inspected.take_files();
        let links = std::mem::take(&mut self.scanned.inspected.links);
        let (checksum, bytes) = (self.scanned.checksum, self.scanned.end + 20);
        Ok(Received { checksum, bytes, objects, commits, tags, outgoing, files, links, index, tail })
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
