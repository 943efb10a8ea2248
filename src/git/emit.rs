//! A fetch's pack on its way out: entries copied as they are stored, in pieces of some 256 KiB.
//!
//! A delta is copied only when its base has been written before, so what is sent can never hold a
//! cycle, whatever other forms the same objects have in other packs (stored packs may delta A against B
//! here and B against A there). A base that is to be sent anyway is written first; else the object is
//! written whole.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use yard_common::{ObjectId, Refusal};
use yard_git::pack::read::{Pack, PackBytes as _, Windows};
use yard_git::pack::write::RawContent;
use yard_git::pack::{PackError, PackWriter};
use yard_objects::Blobs;
use yard_objects::pack_set::PackView;
use yard_transfer::pktline::{Band, Framing};
use yard_transfer::upload::UploadPack;

use crate::hand::Source as _;
use crate::store::Store;

/// Objects of one round: their entries are read together.
const ROUND_OBJECTS: usize = 1024;
/// A piece is sent when it has this many bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// Stored bytes of one round, and of all packs that are kept between rounds: 16 MiB + one object.
const HELD_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A pack of at most this many bytes is read whole.
const WHOLE_BYTES_MAX: u64 = 1024 * 1024;
/// Ranges this near to each other are read as one.
const GAP_BYTES: u64 = 32 * 1024;
/// One read of the bucket.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Reads at once: the platform's connections.
const READS_AT_ONCE: usize = 6;

/// A pack that is being sent.
pub struct Emitter<B> {
    store: Store<B>,
    packs: PackView,
    objects: Vec<ObjectId>,
    planned: BTreeSet<ObjectId>,
    next: usize,
    writer: Option<PackWriter>,
    windows: BTreeMap<usize, Windows>,
    held: u64,
    framing: Framing,
    ready: Vec<u8>,
    buffer: Vec<u8>,
}

/// What writing an object came to.
enum Written {
    Done,
    /// Its base is written first.
    After(ObjectId),
    /// It is written whole.
    Whole,
    /// These bytes of a pack are not at hand.
    Lacks(usize, Range<u64>),
}

fn corrupt(error: PackError) -> Refusal {
    yard_objects::points::log(&format!("a fetch: {error}"));
    Refusal::Internal { during: "reading a pack for a fetch".into() }
}

impl<B: Blobs> Emitter<B> {
    /// The pack of a plan.
    #[must_use]
    pub fn new(store: Store<B>, packs: PackView, upload: UploadPack) -> Self {
        let UploadPack { head, plan, framing, progress, .. } = upload;
        let mut ready = head;
        let count = u32::try_from(plan.objects.len()).unwrap_or(u32::MAX);
        if progress && count > 0 {
            let (commits, trees, blobs) = (plan.commits, plan.trees, plan.blobs);
            let line = format!("Sending {count} objects: {commits} commits, {trees} trees, {blobs} blobs");
            framing.progress(&mut ready, &line);
        }
        Self {
            store,
            packs,
            planned: plan.objects.iter().copied().collect(),
            objects: plan.objects,
            next: 0,
            writer: Some(PackWriter::streaming(count)),
            windows: BTreeMap::new(),
            held: 0,
            framing,
            ready,
            buffer: Vec::new(),
        }
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the bucket fails; the client has been told in the side band.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        while self.ready.len() < PIECE_BYTES && self.writer.is_some() {
            if let Err(refusal) = self.round().await {
                self.writer = None;
                self.framing.error(&mut self.ready, &format!("switchyard: {refusal}"));
                if self.framing == Framing::Bare {
                    return None;
                }
            }
        }
        (!self.ready.is_empty()).then(|| std::mem::take(&mut self.ready))
    }

    async fn round(&mut self) -> Result<(), Refusal> {
        let end = (self.next + ROUND_OBJECTS).min(self.objects.len());
        let mut round: Vec<ObjectId> = self.objects.get(self.next..end).unwrap_or_default().to_vec();
        let kept = self.fetch(&mut round).await?;
        self.next += kept;
        let mut whole = BTreeSet::new();
        for id in round {
            self.write(id, &mut whole).await?;
        }
        self.write_whole(whole).await?;
        if let Some(writer) = &mut self.writer {
            let bytes = writer.take();
            self.framing.write(&mut self.ready, Band::Data, &bytes);
        }
        if self.next >= self.objects.len()
            && let Some(writer) = self.writer.take()
        {
            let rest = writer.finish().map_err(corrupt)?.rest;
            self.framing.write(&mut self.ready, Band::Data, &rest);
            self.framing.end(&mut self.ready);
        }
        Ok(())
    }

    fn place(&self, id: &ObjectId) -> Result<(usize, u64), Refusal> {
        self.packs.find(id).ok_or_else(|| Refusal::Internal { during: format!("reading object {id}") })
    }

    fn span(&self, pack: usize, offset: u64) -> Range<u64> {
        let span = self.packs.spans(pack).and_then(|spans| spans.span(offset));
        span.unwrap_or(offset..offset + 1)
    }

    /// Reads the stored entries of a round, which is cut where they become too many bytes.
    async fn fetch(&mut self, round: &mut Vec<ObjectId>) -> Result<usize, Refusal> {
        let mut wanted: BTreeMap<usize, Vec<Range<u64>>> = BTreeMap::new();
        let (mut bytes, mut kept) = (0, 0);
        for id in round.iter() {
            let (pack, offset) = self.place(id)?;
            let span = self.span(pack, offset);
            bytes += span.end - span.start;
            if kept > 0 && bytes > HELD_BYTES_MAX {
                break;
            }
            kept += 1;
            if !self.is_held(pack, &span) {
                wanted.entry(pack).or_default().push(span);
            }
        }
        round.truncate(kept);
        let mut reads = Vec::new();
        for (pack, spans) in wanted {
            let length = self.packs.pack(pack).map_or(0, |pack| pack.bytes);
            match length <= WHOLE_BYTES_MAX {
                true => reads.push((pack, 0..length)),
                false => reads.extend(joined(spans).into_iter().map(|range| (pack, range))),
            }
        }
        let more: u64 = reads.iter().map(|(_, range)| range.end - range.start).sum();
        if self.held + more > HELD_BYTES_MAX {
            // What was held may be wanted by this round as well: it is read again where it is missed.
            self.windows.clear();
            self.held = 0;
        }
        for some in reads.chunks(READS_AT_ONCE) {
            self.read(some).await?;
        }
        Ok(kept)
    }

    fn is_held(&self, pack: usize, span: &Range<u64>) -> bool {
        let Some(windows) = self.windows.get(&pack) else { return false };
        let mut at = span.start;
        while at < span.end {
            match windows.at(at).len() {
                0 => return false,
                len => at += len as u64,
            }
        }
        true
    }

    async fn read(&mut self, reads: &[(usize, Range<u64>)]) -> Result<(), Refusal> {
        let blobs = self.store.blobs();
        let parts = reads.iter().filter_map(|(pack, range)| {
            let pack_ref = self.packs.pack(*pack)?;
            let length = range.end - range.start;
            Some(async move {
                let bytes = blobs.get_range(pack_ref.key.as_str(), range.start, length).await?;
                let gone = || Refusal::Internal { during: format!("reading pack {}", pack_ref.key) };
                Ok::<_, Refusal>((*pack, range.start, pack_ref.bytes, bytes.ok_or_else(gone)?))
            })
        });
        for part in futures_util::future::join_all(parts).await {
            let (pack, start, length, bytes) = part?;
            self.held += bytes.len() as u64;
            let windows = self.windows.entry(pack).or_insert_with(|| Windows::new(length, usize::MAX));
            windows.insert(start, bytes);
        }
        Ok(())
    }

    /// Writes one object and, before it, the bases that are to be sent anyway.
    async fn write(&mut self, id: ObjectId, whole: &mut BTreeSet<ObjectId>) -> Result<(), Refusal> {
        let mut stack = vec![id];
        let mut under_way = BTreeSet::from([id]);
        while let Some(id) = stack.last().copied() {
            match self.try_write(id, whole, &under_way)? {
                Written::After(base) => {
                    under_way.insert(base);
                    stack.push(base);
                    continue;
                }
                Written::Lacks(pack, span) => {
                    let length = self.packs.pack(pack).map_or(0, |pack| pack.bytes);
                    let range = span.start..(span.end + GAP_BYTES).min(length);
                    self.read(&[(pack, range)]).await?;
                    continue;
                }
                Written::Whole => {
                    whole.insert(id);
                }
                Written::Done => {}
            }
            stack.pop();
        }
        Ok(())
    }

    fn try_write(
        &mut self,
        id: ObjectId,
        whole: &BTreeSet<ObjectId>,
        under_way: &BTreeSet<ObjectId>,
    ) -> Result<Written, Refusal> {
        let (place, offset) = self.place(&id)?;
        let span = self.span(place, offset);
        let Some(writer) = &mut self.writer else { return Ok(Written::Done) };
        if writer.contains(&id) || whole.contains(&id) {
            return Ok(Written::Done);
        }
        let Some(windows) = self.windows.get(&place) else { return Ok(Written::Lacks(place, span)) };
        let Some(pack) = self.packs.over(place, windows) else { return Ok(Written::Whole) };
        let pack: Pack<'_, Windows, Vec<u8>> = pack;
        let entry = match pack.raw(offset, &mut self.buffer).map_err(corrupt)? {
            Ok(entry) => entry,
            Err(range) => return Ok(Written::Lacks(place, range)),
        };
        if let RawContent::Delta(base) = entry.content
            && !writer.contains(&base)
        {
            let comes = self.planned.contains(&base) && !whole.contains(&base) && !under_way.contains(&base);
            return Ok(if comes { Written::After(base) } else { Written::Whole });
        }
        writer.copy(id, &entry);
        Ok(Written::Done)
    }

    /// Writes objects whole, in batches that fit into memory.
    async fn write_whole(&mut self, whole: BTreeSet<ObjectId>) -> Result<(), Refusal> {
        let ids: Vec<ObjectId> = whole.into_iter().collect();
        for some in ids.chunks(256) {
            let wanted: BTreeSet<ObjectId> = some.iter().copied().collect();
            let found = self.store.read(&wanted).await?;
            if found.len() < wanted.len() {
                return Err(Refusal::Internal { during: "reading objects for a fetch".into() });
            }
            if let Some(writer) = &mut self.writer {
                for (id, object) in found {
                    writer.add(id, object.kind, &object.data);
                }
            }
        }
        Ok(())
    }
}

/// Ranges in order, near ones joined, long ones cut.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end + GAP_BYTES && range.end - last.start <= READ_BYTES_MAX => {
                last.end = last.end.max(range.end);
            }
            _ => out.push(range),
        }
    }
    out
}
