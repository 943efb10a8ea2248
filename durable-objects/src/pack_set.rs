//! Objects out of the packs that a catalogue names: a copy of the catalogue, indexes, ranged reads.
//!
//! Memory of one set with [`Budget::default`], of the isolate's 128 MB: 12 MiB objects + 8 MiB indexes
//! out of the bucket + 6 MiB windows = 26 MiB, and during one load at most 24 MiB of windows for the
//! largest object that is taken. What a decision needs at once stays with its caller ([`Needed`]).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use yard_common::limits::OBJECT_BYTES_MAX;
use yard_common::{ObjectId, PackKey, Refusal};
use yard_git::pack::index::Spans;
use yard_git::pack::read::{BaseCache, Pack};
use yard_git::pack::{PackIndex, Windows};
use yard_git::{CachedObjects, Kind, MemoryObjects, Object, Objects};
use yard_wire::repository::{Catalogue, CatalogueReply, IndexedPack};

use crate::blobs::Blobs;

/// A pack of at most this many bytes is fetched whole: one read instead of several.
pub const WHOLE_PACK_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of one pack's windows during a load: the largest object, stored, and its base.
const LOAD_BYTES_MAX: usize = OBJECT_BYTES_MAX + 8 * 1024 * 1024;
/// Inflated bases that one load keeps, in bytes.
const BASE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Objects read in one round: their windows stay below [`LOAD_BYTES_MAX`] but for huge objects.
const ROUND_OBJECTS: usize = 1000;
/// Reads of the bucket under way at once: the platform's connections.
const READS_AT_ONCE: usize = 6;
/// What one decision may hold at once, in bytes: candidate (8 MiB) inflated and main's trees.
pub const NEEDED_BYTES_MAX: usize = 48 * 1024 * 1024;

const _: () = assert!(LOAD_BYTES_MAX + NEEDED_BYTES_MAX + 26 * 1024 * 1024 <= 128 * 1024 * 1024);

/// What a set may keep between loads, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Inflated objects.
    pub objects: usize,
    /// Indexes that lie in the bucket.
    pub indexes: usize,
    /// Windows of packs.
    pub windows: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { objects: 12 << 20, indexes: 8 << 20, windows: 6 << 20 }
    }
}

/// An index and where its entries end.
struct Index {
    index: PackIndex<Vec<u8>>,
    spans: Spans,
    inline: bool,
}

struct Entry {
    pack: IndexedPack,
    sources: BTreeSet<String>,
    index: Option<Rc<Index>>,
    windows: Option<Windows>,
    used: u64,
}

#[derive(Default)]
struct State {
    sources: BTreeMap<String, (u64, u64)>,
    packs: Vec<Entry>,
    uses: u64,
}

/// The packs of one or several catalogues, and the objects read from them.
pub struct PackSet {
    budget: Budget,
    state: RefCell<State>,
    objects: RefCell<CachedObjects>,
}

/// The objects that one decision needs: they stay while it is prepared, whatever the cache evicts.
#[derive(Debug, Default)]
pub struct Needed {
    /// The objects.
    pub objects: MemoryObjects,
    bytes: usize,
}

impl Needed {
    /// Adds an object.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] above [`NEEDED_BYTES_MAX`].
    pub fn insert(&mut self, id: ObjectId, object: Arc<Object>) -> Result<(), Refusal> {
        self.bytes += object.data.len() + CachedObjects::OVERHEAD_BYTES;
        if self.bytes > NEEDED_BYTES_MAX {
            let (size, limit) = (self.bytes as u64, NEEDED_BYTES_MAX as u64);
            return Err(Refusal::TooLarge { what: "what this decision needs to read".into(), size, limit });
        }
        self.objects.insert(id, object);
        Ok(())
    }
}

impl Objects for Needed {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.objects.get(id)
    }
}

/// What is cached.
impl Objects for PackSet {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.objects.borrow().get(id)
    }
}

fn corrupt(key: &PackKey, why: impl std::fmt::Display) -> Refusal {
    crate::points::log(&format!("pack {key}: {why}"));
    Refusal::Internal { during: format!("reading pack {key}") }
}

impl PackSet {
    /// A set without packs.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        let objects = RefCell::new(CachedObjects::new(budget.objects));
        Self { budget, state: RefCell::default(), objects }
    }

    /// What to ask the Repository object `source` ([`yard_wire::names::repository`]) for next.
    #[must_use]
    pub fn ask(&self, source: &str) -> Catalogue {
        let (since, generation) = self.state.borrow().sources.get(source).copied().unwrap_or_default();
        Catalogue { since, generation, attempt: None }
    }

    /// Takes in what the Repository object `source` answered.
    ///
    /// # Errors
    /// [`Refusal::Internal`] for an inline index that cannot be read.
    pub fn take(&self, source: &str, reply: CatalogueReply) -> Result<(), Refusal> {
        let before = self.state.borrow().sources.get(source).map(|place| place.1);
        if before != Some(reply.generation) {
            let mut state = self.state.borrow_mut();
            for entry in &mut state.packs {
                entry.sources.remove(source);
            }
        }
        for pack in reply.packs {
            self.add(source, pack)?;
        }
        let mut state = self.state.borrow_mut();
        state.packs.retain(|entry| !entry.sources.is_empty());
        state.sources.insert(source.to_owned(), (reply.next, reply.generation));
        Ok(())
    }

    /// Adds one pack; one that is there already is not parsed again.
    ///
    /// # Errors
    /// As [`PackSet::take`].
    pub fn add(&self, source: &str, mut pack: IndexedPack) -> Result<(), Refusal> {
        let mut state = self.state.borrow_mut();
        if let Some(entry) = state.packs.iter_mut().find(|entry| entry.pack.pack.key == pack.pack.key) {
            entry.sources.insert(source.to_owned());
            return Ok(());
        }
        let index = match pack.index.take() {
            Some(bytes) => Some(parse(&pack, bytes.0, true)?),
            None => None,
        };
        let sources = BTreeSet::from([source.to_owned()]);
        state.packs.push(Entry { pack, sources, index, windows: None, used: 0 });
        Ok(())
    }

    /// Forgets the packs of `source` but those that another source names too.
    pub fn forget(&self, source: &str) {
        let mut state = self.state.borrow_mut();
        state.sources.remove(source);
        for entry in &mut state.packs {
            entry.sources.remove(source);
        }
        state.packs.retain(|entry| !entry.sources.is_empty());
    }

    /// The keys of the packs, oldest first.
    #[must_use]
    pub fn packs(&self) -> Vec<yard_common::landing::PackRef> {
        self.state.borrow().packs.iter().map(|entry| entry.pack.pack.clone()).collect()
    }

    /// The packs, as places for [`PackSet::index`], that hold an object, newest first; loads indexes.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails.
    pub async fn locate(&self, blobs: &impl Blobs, id: ObjectId) -> Result<Option<(PackKey, u64)>, Refusal> {
        let (found, _) = self.places(blobs, &BTreeSet::from([id])).await?;
        let place = found.into_iter().next();
        Ok(place.and_then(|(key, list)| list.first().map(|(offset, _)| (key, *offset))))
    }

    /// Those of the objects that no pack holds; loads indexes, no object.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails.
    pub async fn missing(
        &self,
        blobs: &impl Blobs,
        ids: &BTreeSet<ObjectId>,
    ) -> Result<BTreeSet<ObjectId>, Refusal> {
        if ids.is_empty() {
            return Ok(BTreeSet::new());
        }
        Ok(self.places(blobs, ids).await?.1)
    }

    /// Puts the objects at hand: into the cache and into `needed`; answers with those that no pack has.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails or a pack is corrupt; [`Refusal::TooLarge`].
    pub async fn load(
        &self,
        blobs: &impl Blobs,
        ids: &BTreeSet<ObjectId>,
        needed: &mut Needed,
    ) -> Result<BTreeSet<ObjectId>, Refusal> {
        let mut open = BTreeSet::new();
        for id in ids {
            match self.get(id) {
                Some(object) => needed.insert(*id, object)?,
                None => {
                    open.insert(*id);
                }
            }
        }
        if open.is_empty() {
            return Ok(open);
        }
        let (places, missing) = self.places(blobs, &open).await?;
        for (key, mut wanted) in places {
            wanted.sort_unstable();
            for round in wanted.chunks(ROUND_OBJECTS) {
                self.read_pack(blobs, &key, round, needed).await?;
            }
        }
        self.shrink();
        Ok(missing)
    }

    /// Runs `decide` until it needs no more objects: `Err` names those to load. Objects that no pack
    /// has end it: they come back.
    ///
    /// # Errors
    /// As [`PackSet::load`].
    pub async fn until<T>(
        &self,
        blobs: &impl Blobs,
        needed: &mut Needed,
        mut decide: impl FnMut(&Needed) -> Result<T, BTreeSet<ObjectId>>,
    ) -> Result<Result<T, BTreeSet<ObjectId>>, Refusal> {
        loop {
            match decide(needed) {
                Ok(done) => return Ok(Ok(done)),
                Err(ids) => {
                    let missing = self.load(blobs, &ids, needed).await?;
                    if !missing.is_empty() {
                        return Ok(Err(missing));
                    }
                }
            }
        }
    }

    /// The kinds of those of the objects that a pack holds, by their entries' headers; and the others.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails or a pack is corrupt.
    pub async fn kinds(
        &self,
        blobs: &impl Blobs,
        ids: &BTreeSet<ObjectId>,
    ) -> Result<(BTreeMap<ObjectId, Kind>, BTreeSet<ObjectId>), Refusal> {
        let (places, missing) = self.places(blobs, ids).await?;
        let mut kinds = BTreeMap::new();
        for (key, mut wanted) in places {
            wanted.sort_unstable();
            for round in wanted.chunks(ROUND_OBJECTS) {
                self.read_kinds(blobs, &key, round, &mut kinds).await?;
            }
        }
        self.shrink();
        Ok((kinds, missing))
    }

    async fn read_kinds(
        &self,
        blobs: &impl Blobs,
        key: &PackKey,
        wanted: &[(u64, ObjectId)],
        kinds: &mut BTreeMap<ObjectId, Kind>,
    ) -> Result<(), Refusal> {
        let Some((index, mut windows, bytes)) = self.open_pack(blobs, key).await? else {
            return Err(corrupt(key, "it left the catalogue while it was read"));
        };
        let mut left: BTreeMap<u64, ObjectId> = wanted.iter().copied().collect();
        loop {
            let offsets: Vec<u64> = left.keys().copied().collect();
            let pack = Pack { bytes: &windows, index: &index.index, spans: Some(&index.spans) };
            let found = pack.kinds(&offsets).map_err(|fault| corrupt(key, fault))?;
            for (offset, kind) in found.done {
                kinds.extend(left.remove(&offset).map(|id| (id, kind)));
            }
            if found.need.is_empty() {
                break;
            }
            self.fetch(blobs, key, bytes, &found.need, &mut windows).await?;
        }
        let mut state = self.state.borrow_mut();
        if let Some(entry) = state.packs.iter_mut().find(|entry| entry.pack.pack.key == *key) {
            entry.windows = Some(windows);
        }
        Ok(())
    }

    /// Where the objects lie, by pack; and those that lie nowhere.
    #[allow(clippy::type_complexity, reason = "a list of places by pack, and what has none")]
    async fn places(
        &self,
        blobs: &impl Blobs,
        ids: &BTreeSet<ObjectId>,
    ) -> Result<(BTreeMap<PackKey, Vec<(u64, ObjectId)>>, BTreeSet<ObjectId>), Refusal> {
        let mut places = BTreeMap::<PackKey, Vec<(u64, ObjectId)>>::new();
        let mut open = ids.clone();
        let mut after = usize::MAX;
        loop {
            let unread = self.find(&mut open, &mut places, &mut after);
            let Some(pack) = unread else { return Ok((places, open)) };
            if open.is_empty() {
                return Ok((places, open));
            }
            self.fetch_index(blobs, pack).await?;
        }
    }

    /// Looks through the packs below place `after`, newest first, up to the first whose index is not
    /// at hand.
    fn find(
        &self,
        open: &mut BTreeSet<ObjectId>,
        places: &mut BTreeMap<PackKey, Vec<(u64, ObjectId)>>,
        after: &mut usize,
    ) -> Option<IndexedPack> {
        let mut state = self.state.borrow_mut();
        state.uses += 1;
        let uses = state.uses;
        let upto = (*after).min(state.packs.len());
        for (place, entry) in state.packs.iter_mut().enumerate().take(upto).rev() {
            if open.is_empty() {
                return None;
            }
            let Some(index) = &entry.index else {
                *after = place + 1;
                return Some(entry.pack.clone());
            };
            entry.used = uses;
            let hits: Vec<(u64, ObjectId)> =
                open.iter().filter_map(|id| Some((index.index.find(id)?, *id))).collect();
            if !hits.is_empty() {
                hits.iter().for_each(|hit| {
                    open.remove(&hit.1);
                });
                places.entry(entry.pack.pack.key.clone()).or_default().extend(hits);
            }
        }
        None
    }

    async fn fetch_index(&self, blobs: &impl Blobs, pack: IndexedPack) -> Result<(), Refusal> {
        let key = format!("{}.idx", pack.pack.key);
        let bytes = blobs.get(&key).await?;
        let bytes = bytes.ok_or_else(|| corrupt(&pack.pack.key, "its index is not in the bucket"))?;
        let index = parse(&pack, bytes, false)?;
        let mut state = self.state.borrow_mut();
        let uses = state.uses;
        if let Some(entry) = state.packs.iter_mut().find(|entry| entry.pack.pack.key == pack.pack.key) {
            entry.index = Some(index);
            entry.used = uses;
        }
        evict_indexes(&mut state, self.budget.indexes, &pack.pack.key);
        Ok(())
    }

    /// Reads the objects at these offsets of one pack.
    async fn read_pack(
        &self,
        blobs: &impl Blobs,
        key: &PackKey,
        wanted: &[(u64, ObjectId)],
        needed: &mut Needed,
    ) -> Result<(), Refusal> {
        let Some((index, mut windows, bytes)) = self.open_pack(blobs, key).await? else {
            return Err(corrupt(key, "it left the catalogue while it was read"));
        };
        let mut bases = BaseCache::new(BASE_BYTES_MAX);
        let mut left: BTreeMap<u64, ObjectId> = wanted.iter().copied().collect();
        loop {
            let offsets: Vec<u64> = left.keys().copied().collect();
            let pack = Pack { bytes: &windows, index: &index.index, spans: Some(&index.spans) };
            let batch = pack.read(&offsets, &mut bases).map_err(|fault| corrupt(key, fault))?;
            for (offset, object) in batch.done {
                if let Some(id) = left.remove(&offset) {
                    self.objects.borrow_mut().insert(id, Arc::clone(&object));
                    needed.insert(id, object)?;
                }
            }
            if batch.need.is_empty() {
                break;
            }
            self.fetch(blobs, key, bytes, &batch.need, &mut windows).await?;
        }
        let mut state = self.state.borrow_mut();
        if let Some(entry) = state.packs.iter_mut().find(|entry| entry.pack.pack.key == *key) {
            entry.windows = Some(windows);
        }
        Ok(())
    }

    /// A pack's index, the windows that are kept of it, and its length.
    async fn open_pack(
        &self,
        blobs: &impl Blobs,
        key: &PackKey,
    ) -> Result<Option<(Rc<Index>, Windows, u64)>, Refusal> {
        for _ in 0..2 {
            let pack = {
                let mut state = self.state.borrow_mut();
                let Some(entry) = state.packs.iter_mut().find(|entry| entry.pack.pack.key == *key) else {
                    return Ok(None);
                };
                let bytes = entry.pack.pack.bytes;
                if let Some(index) = &entry.index {
                    let windows = entry.windows.take().unwrap_or_else(|| Windows::new(bytes, LOAD_BYTES_MAX));
                    return Ok(Some((Rc::clone(index), windows, bytes)));
                }
                entry.pack.clone()
            };
            self.fetch_index(blobs, pack).await?;
        }
        Ok(None)
    }

    async fn fetch(
        &self,
        blobs: &impl Blobs,
        key: &PackKey,
        bytes: u64,
        need: &[Range<u64>],
        windows: &mut Windows,
    ) -> Result<(), Refusal> {
        let gone = || corrupt(key, "it is not in the bucket");
        if bytes <= WHOLE_PACK_BYTES_MAX {
            let whole = blobs.get(key.as_str()).await?.ok_or_else(gone)?;
            windows.insert(0, whole);
            return Ok(());
        }
        let mut budget = LOAD_BYTES_MAX as u64;
        for ranges in need.chunks(READS_AT_ONCE) {
            let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            if length > budget {
                break;
            }
            budget -= length;
            let reads = ranges
                .iter()
                .map(|range| blobs.get_range(key.as_str(), range.start, range.end - range.start));
            for (range, part) in ranges.iter().zip(futures_util::future::join_all(reads).await) {
                windows.insert(range.start, part?.ok_or_else(gone)?);
            }
        }
        Ok(())
    }

    /// Lets the windows go that were used longest ago, down to the budget.
    fn shrink(&self) {
        let mut state = self.state.borrow_mut();
        let mut order: Vec<(u64, usize)> = state
            .packs
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.windows.is_some())
            .map(|(place, entry)| (entry.used, place))
            .collect();
        order.sort_unstable();
        let mut sum: u64 = order
            .iter()
            .filter_map(|(_, place)| state.packs.get(*place))
            .map(|entry| entry.pack.pack.bytes.min(LOAD_BYTES_MAX as u64))
            .sum();
        for (_, place) in order {
            if sum <= self.budget.windows as u64 {
                break;
            }
            if let Some(entry) = state.packs.get_mut(place) {
                entry.windows = None;
                sum -= entry.pack.pack.bytes.min(LOAD_BYTES_MAX as u64);
            }
        }
    }
}

fn parse(pack: &IndexedPack, bytes: Vec<u8>, inline: bool) -> Result<Rc<Index>, Refusal> {
    let index = PackIndex::parse(bytes).map_err(|fault| corrupt(&pack.pack.key, fault))?;
    let spans = index.spans(pack.pack.bytes);
    Ok(Rc::new(Index { index, spans, inline }))
}

fn evict_indexes(state: &mut State, budget: usize, keep: &PackKey) {
    let size = |entry: &Entry| match &entry.index {
        Some(index) if !index.inline => index.index.bytes().len() * 3 / 2,
        _ => 0,
    };
    let mut sum: usize = state.packs.iter().map(size).sum();
    while sum > budget {
        let oldest = state
            .packs
            .iter_mut()
            .filter(|entry| entry.pack.pack.key != *keep && size(entry) > 0)
            .min_by_key(|entry| entry.used);
        let Some(entry) = oldest else { return };
        sum -= size(entry);
        entry.index = None;
    }
}

mod view;

pub use view::PackView;

#[cfg(test)]
mod tests;
