//! Heads of API submissions as git objects: built when somebody asks for one or bases work on it.
//!
//! A submission by the API writes nothing to the bucket; its head is a row. Most heads land before anybody
//! looks at them, so each is built on demand: one pack for all that are asked for together.

use std::collections::BTreeSet;

use yard_common::bytes::Base64;
use yard_common::landing::PackRef;
use yard_common::limits::INLINE_INDEX_BYTES_MAX;
use yard_common::{ObjectId, PackKey, Refusal, RepoName};
use yard_git::editor::EditError;
use yard_git::pack::PackWriter;
use yard_git::{Kind, RunningTree, hash};
use yard_objects::{Blobs as _, Calls as _};
use yard_wire::names::{self, Remote};
use yard_wire::repository::{CatalogueHeads, Heads, IndexedPack, Stage, WaitingHead};

use crate::api::{Event, Platform};
use crate::hand::{Hand, Lacking, Source};
use crate::store::Store;

/// Heads that one call asks for.
const HEADS_MAX: usize = 500;

/// Builds those of `ids` that are heads without objects; says whether there was any.
///
/// # Errors
/// The Repository's refusal; [`Refusal::Internal`] when the bucket fails or a row's objects are not its own.
pub async fn build<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    ids: &BTreeSet<ObjectId>,
) -> Result<bool, Refusal> {
    let parent = Remote::parent(repo.clone());
    let object = names::repository(&parent);
    let mut left: Vec<ObjectId> = ids.iter().copied().collect();
    let mut any = false;
    while !left.is_empty() {
        let asked = Heads { ids: left.iter().copied().take(HEADS_MAX).collect() };
        let waiting = event.calls().call(&object, &asked).await?;
        if waiting.is_empty() {
            left.drain(..left.len().min(HEADS_MAX));
            continue;
        }
        let store = Store::of(event, &parent).await?;
        let mut writer = PackWriter::in_memory();
        for head in &waiting {
            add(&mut writer, head, &store).await?;
        }
        put(event, &parent, writer, waiting.iter().map(|head| head.id).collect()).await?;
        left.retain(|id| waiting.iter().all(|head| head.id != *id));
        any = true;
    }
    Ok(any)
}

fn other(head: &WaitingHead) -> Refusal {
    Refusal::Internal { during: format!("building commit {}: its row makes another", head.id) }
}

/// Adds a head's commit, the trees that its edits make on its base, and its contents.
async fn add(writer: &mut PackWriter, head: &WaitingHead, source: &impl Source) -> Result<(), Refusal> {
    if hash(Kind::Commit, &head.commit.0) != head.id {
        return Err(other(head));
    }
    let edits: Vec<_> = head.edits.iter().map(|edit| (edit.path.clone(), edit.theirs)).collect();
    let mut hand = Hand::default();
    let made = hand
        .until(source, |hand| {
            RunningTree::new(head.base_tree).apply(hand, &edits).map_err(|error| match error {
                EditError::Read(error) => Lacking::from(error),
                _ => Lacking::Refused(other(head)),
            })
        })
        .await?;
    if made.root != head.tree {
        return Err(other(head));
    }
    for (id, bytes) in &head.contents {
        writer.add(*id, Kind::Blob, &bytes.0);
    }
    for tree in made.trees {
        writer.add(tree.id, Kind::Tree, &tree.data);
    }
    writer.add(head.id, Kind::Commit, &head.commit.0);
    Ok(())
}

/// Announces the pack, puts it, has it catalogued with the refs that name its heads.
async fn put<P: Platform>(
    event: &Event<P>,
    parent: &Remote,
    writer: PackWriter,
    heads: Vec<ObjectId>,
) -> Result<(), Refusal> {
    let failed = |_| Refusal::Internal { during: "writing a pack of heads".into() };
    let pack = writer.finish().map_err(failed)?;
    let name = format!("heads-{:016x}", event.platform.random());
    let key = PackKey::new(names::push_pack(&parent.repo, &name))?;
    let object = names::repository(parent);
    event.calls().call(&object, &Stage { key: key.clone() }).await?;
    let blobs = event.platform.blobs();
    let index = if pack.index.len() <= INLINE_INDEX_BYTES_MAX {
        Some(Base64(pack.index))
    } else {
        blobs.put(&format!("{key}.idx"), pack.index).await?;
        None
    };
    blobs.put(key.as_str(), pack.rest).await?;
    let pack = IndexedPack { pack: PackRef { key, bytes: pack.bytes, objects: pack.objects }, index };
    event.calls().call(&object, &CatalogueHeads { pack, heads }).await
}
