//! What an all-seeing eye reads of the bucket: every object that was ever put there, whoever may see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_common::{ObjectId, RepoPath};
use yard_git::pack::index::PackIndex;
use yard_git::pack::read::{BaseCache, Pack};
use yard_git::pack::receive::{Limits, Progress, Resolver, Scanner};
use yard_git::{MemoryObjects, Object, Objects, diff};

/// Files by path; bytes as text.
pub type Files = BTreeMap<String, String>;

/// All objects.
#[derive(Default)]
pub struct God {
    store: MemoryObjects,
}

impl God {
    /// Takes a pack's objects; one that is no pack is left alone.
    pub fn take_pack(&mut self, bytes: &[u8]) {
        let mut read = || -> Option<()> {
            let mut scanner = Scanner::new(Limits::default());
            scanner.feed(bytes).ok()?;
            let mut resolver = Resolver::new(scanner.finish().ok()?).ok()?;
            let Progress::Done(received) = resolver.step(bytes, &self.store).ok()? else { return None };
            let (pack, index) = received.complete(bytes).ok()?;
            let index = PackIndex::parse(index).ok()?;
            let pack = Pack { bytes: pack.as_slice(), index: &index, spans: None };
            let ids: BTreeMap<u64, ObjectId> =
                received.objects.iter().map(|object| (object.offset, object.id)).collect();
            let offsets: Vec<u64> = ids.keys().copied().collect();
            for (offset, object) in pack.read(&offsets, &mut BaseCache::new(1 << 20)).ok()?.done {
                self.store.insert(*ids.get(&offset)?, object);
            }
            Some(())
        };
        let _ = read();
    }

    /// Takes one object.
    pub fn take(&mut self, id: ObjectId, object: Object) {
        self.store.insert(id, Arc::new(object));
    }

    /// An object.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.store.get(id)
    }

    /// A commit's tree and first parent.
    #[must_use]
    pub fn commit(&self, id: &ObjectId) -> Option<(ObjectId, Option<ObjectId>)> {
        let links = yard_git::commit::links(&self.store.get(id)?.data).ok()?;
        Some((links.tree, links.parents.first().copied()))
    }

    /// All files of a tree with their blobs.
    #[must_use]
    pub fn entries(&self, tree: ObjectId) -> Option<Vec<(RepoPath, ObjectId)>> {
        let list = diff::list(&self.store, tree).ok()?;
        Some(list.into_iter().map(|(path, entry)| (path, entry.id)).collect())
    }

    /// All files of a tree.
    #[must_use]
    pub fn files(&self, tree: ObjectId) -> Option<Files> {
        let mut files = Files::new();
        for (path, id) in self.entries(tree)? {
            let text = String::from_utf8_lossy(&self.store.get(&id)?.data).into_owned();
            files.insert(path.to_string(), text);
        }
        Some(files)
    }
}
