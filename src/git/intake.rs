//! A pushed pack: stored while it arrives, indexed, completed, checked.
//!
//! Memory of one push: the pack up to [`MEMORY_BYTES_MAX`], a part of 8 MiB, and what the indexer takes.

use std::ops::Range;

use yard_common::bytes::Base64;
use yard_common::landing::PackRef;
use yard_common::limits::{INLINE_INDEX_BYTES_MAX, PUSH_PACK_BYTES_MAX};
use yard_common::{ObjectId, PackKey, Refusal};
use yard_git::Kind;
use yard_git::pack::read::{PackBytes, Windows};
use yard_git::pack::receive::{Limits, Progress, Received, Resolver, Scanner};
use yard_objects::{Blobs as _, Calls as _};
use yard_wire::names::{self, Remote};
use yard_wire::repository::{CommitInfo, IndexedPack, Stage};

use super::sink::{PART_BYTES, Sink};
use super::{Body, content};
use crate::api::{Event, Platform};
use crate::hand::{Hand, Source as _};
use crate::store::Store;

/// A pack of at most this many bytes stays in memory for pass 2; a larger one is read from the bucket.
pub const MEMORY_BYTES_MAX: usize = 24 * 1024 * 1024;
/// Windows of a larger pack: what one step of pass 2 asks for at most; nothing is looked at twice.
const WINDOWS_BYTES_MAX: usize = yard_git::pack::receive::NEED_BYTES_MAX as usize;

/// A pack that was taken: stored, and everything known about it.
pub struct Intake {
    /// The pack; `None` when the client sent one without objects.
    pub pack: Option<IndexedPack>,
    /// What is in it.
    pub received: Received,
    /// What the pusher should know of it.
    pub warnings: Vec<String>,
}

impl Intake {
    /// The kind of an object of the pack.
    #[must_use]
    pub fn kind(&self, id: &ObjectId) -> Option<Kind> {
        let objects = &self.received.objects;
        let at = objects.binary_search_by_key(id, |object| object.id).ok()?;
        objects.get(at).map(|object| object.kind)
    }

    /// The pack's commits.
    #[must_use]
    pub fn commits(&self) -> Vec<CommitInfo> {
        let info = |(id, links): &(ObjectId, yard_git::commit::CommitLinks)| CommitInfo {
            id: *id,
            tree: links.tree,
            parents: links.parents.clone(),
            seconds: links.committed_at,
        };
        self.received.commits.iter().map(info).collect()
    }
}

/// A pack on its way into the bucket, which must not stay there if anything fails.
struct Arrival<'a, P: Platform> {
    event: &'a Event<P>,
    remote: &'a Remote,
    push: &'a str,
    held: Vec<u8>,
    bytes: u64,
    sink: Option<P::Sink>,
    keys: Vec<PackKey>,
}

/// Takes the pack of a push: the part that came with its commands, then the rest of the body.
///
/// # Errors
/// What is wrong with the pack, in a sentence for the pusher; then nothing of it stays.
pub async fn take<P: Platform>(
    event: &Event<P>,
    remote: &Remote,
    store: &Store<P::Blobs>,
    push: &str,
    start: Vec<u8>,
    body: &mut impl Body,
) -> Result<Intake, Refusal> {
    let mut arrival =
        Arrival { event, remote, push, held: Vec::new(), bytes: 0, sink: None, keys: Vec::new() };
    match arrival.run(store, start, body).await {
        Ok(intake) => Ok(intake),
        Err(refusal) => {
            if let Some(sink) = arrival.sink.take() {
                sink.abort().await;
            }
            discard(event, &arrival.keys).await;
            Err(refusal)
        }
    }
}

/// Deletes packs that no catalogue names; what stays is found by the sweep.
pub async fn discard<P: Platform>(event: &Event<P>, keys: &[PackKey]) {
    let all: Vec<String> = keys.iter().flat_map(|key| [key.to_string(), format!("{key}.idx")]).collect();
    if !all.is_empty() && event.platform.blobs().delete(&all).await.is_err() {
        yard_objects::points::log("a pack that was not taken stays in the bucket for the sweep");
    }
}

impl<P: Platform> Arrival<'_, P> {
    async fn run(
        &mut self,
        store: &Store<P::Blobs>,
        start: Vec<u8>,
        body: &mut impl Body,
    ) -> Result<Intake, Refusal> {
        let mut scanner = Scanner::new(Limits::default());
        let mut chunk = Some(start);
        while let Some(bytes) = chunk {
            scanner.feed(&bytes)?;
            self.keep(bytes).await?;
            chunk = body.next().await?;
        }
        let resolver = Resolver::new(scanner.finish()?)?;
        if let Some(sink) = self.sink.take() {
            sink.finish().await?;
        }
        let received = self.resolve(resolver, store).await?;
        if received.objects.is_empty() {
            return Ok(Intake { pack: None, received, warnings: Vec::new() });
        }
        let pack = self.store(&received).await?;
        let warnings = content::files(&received, &pack, store).await?;
        Ok(Intake { pack: Some(pack), received, warnings })
    }

    /// A new key, announced before its first byte.
    async fn key(&mut self) -> Result<PackKey, Refusal> {
        let suffix = if self.keys.is_empty() { "" } else { "-whole" };
        let key = PackKey::new(names::push_pack(&self.remote.repo, &format!("{}{suffix}", self.push)))?;
        let stage = Stage { key: key.clone() };
        self.event.calls().call(&names::repository(self.remote), &stage).await?;
        self.keys.push(key.clone());
        Ok(key)
    }

    async fn keep(&mut self, bytes: Vec<u8>) -> Result<(), Refusal> {
        self.bytes += bytes.len() as u64;
        if self.bytes > PUSH_PACK_BYTES_MAX {
            let what = "the pack (push in smaller steps)".to_owned();
            return Err(Refusal::TooLarge { what, size: self.bytes, limit: PUSH_PACK_BYTES_MAX });
        }
        if self.sink.is_none() && self.held.len() + bytes.len() > PART_BYTES {
            let key = self.key().await?;
            let mut sink = self.event.platform.sink(key.as_str());
            sink.write(&self.held).await?;
            self.sink = Some(sink);
        }
        if let Some(sink) = &mut self.sink {
            sink.write(&bytes).await?;
        }
        if self.bytes <= MEMORY_BYTES_MAX as u64 {
            self.held.extend_from_slice(&bytes);
        } else {
            self.held = Vec::new();
        }
        Ok(())
    }

    /// Pass 2.
    async fn resolve(&self, mut resolver: Resolver, store: &Store<P::Blobs>) -> Result<Received, Refusal> {
        let mut windows = Windows::new(self.bytes, WINDOWS_BYTES_MAX);
        let mut hand = Hand::default();
        loop {
            let in_memory = self.bytes <= MEMORY_BYTES_MAX as u64;
            let bytes: &dyn PackBytes = if in_memory { &self.held } else { &windows };
            let (ranges, bases) = match resolver.step(bytes, &hand)? {
                Progress::Done(received) => return Ok(*received),
                Progress::Need { ranges, bases } => (ranges, bases),
            };
            for (start, part) in self.read(&ranges).await? {
                windows.insert(start, part);
            }
            for (id, object) in store.read(&bases.0).await? {
                hand.insert(id, object);
            }
        }
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<(u64, Vec<u8>)>, Refusal> {
        let mut parts = Vec::new();
        let key = self.keys.last().map_or("", PackKey::as_str);
        for range in ranges {
            let part =
                self.event.platform.blobs().get_range(key, range.start, range.end - range.start).await?;
            let gone = || Refusal::Internal { during: "reading a pushed pack".into() };
            parts.push((range.start, part.ok_or_else(gone)?));
        }
        Ok(parts)
    }

    /// Stores what is not stored yet: a small pack, a thin one's completion, a large index.
    async fn store(&mut self, received: &Received) -> Result<IndexedPack, Refusal> {
        let stored = self.keys.last().cloned();
        let (key, bytes, index) = match stored {
            Some(key) if !received.is_thin() => (key, self.bytes, received.index()?),
            Some(from) => {
                let (key, bytes, index) = self.complete(&from, received).await?;
                discard(self.event, &[from]).await;
                (key, bytes, index)
            }
            None => {
                let (pack, index) = received.complete(&self.held)?;
                let key = self.key().await?;
                let bytes = pack.len() as u64;
                self.event.platform.blobs().put(key.as_str(), pack).await?;
                (key, bytes, index)
            }
        };
        let objects = u32::try_from(received.objects.len()).unwrap_or(u32::MAX);
        let pack = PackRef { key: key.clone(), bytes, objects };
        if index.len() <= INLINE_INDEX_BYTES_MAX {
            return Ok(IndexedPack { pack, index: Some(Base64(index)) });
        }
        self.event.platform.blobs().put(&format!("{key}.idx"), index).await?;
        Ok(IndexedPack { pack, index: None })
    }

    /// Writes a stored thin pack again, complete, under another key.
    async fn complete(
        &mut self,
        from: &PackKey,
        received: &Received,
    ) -> Result<(PackKey, u64, Vec<u8>), Refusal> {
        let key = self.key().await?;
        let mut completion = received.completion()?;
        let mut sink = self.event.platform.sink(key.as_str());
        sink.write(completion.header()).await?;
        let (mut at, end) = (12, self.bytes - 20);
        while at < end {
            let length = (end - at).min(PART_BYTES as u64);
            let part = self.event.platform.blobs().get_range(from.as_str(), at, length).await?;
            let gone = || Refusal::Internal { during: "reading a pushed pack".into() };
            let part = part.ok_or_else(gone)?;
            completion.feed(&part)?;
            sink.write(&part).await?;
            at += part.len() as u64;
        }
        let (tail, index) = completion.finish()?;
        sink.write(&tail).await?;
        Ok((key, sink.finish().await?, index))
    }
}

/// The objects that a received pack names and that must be here: the first that is not.
#[must_use]
pub fn first_missing(received: &Received, exists: impl Fn(&ObjectId) -> bool) -> Option<ObjectId> {
    let here = |id: &ObjectId| *id == ObjectId::EMPTY_TREE || exists(id);
    received.outgoing.iter().map(|(id, _)| *id).find(|id| !here(id))
}
