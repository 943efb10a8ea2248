//! What a push brings besides its own objects' form: the files that git reads out of trees, and whether
//! what it names outside of the pack is of the kind that it says.
//!
//! A pack keeps no blobs while it streams by: the indexer notes what its trees name `.gitmodules` or
//! `.gitattributes`, and these few are read from the stored pack, or from wherever they lie, for a blob that
//! came earlier as some other file may be named so only now. All that is catalogued has been checked, so one
//! step outside the pack is enough.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use yard_common::submission::Mode;
use yard_common::{ObjectId, Refusal};
use yard_git::Kind;
use yard_git::pack::receive::Received;
use yard_git::special::{Special, WARNINGS_MAX};
use yard_git::tree::{self, TreeMode};
use yard_objects::pack_set::PackSet;
use yard_transfer::plan::CommitGraph;
use yard_wire::repository::IndexedPack;

use crate::hand::Source as _;
use crate::store::{Ancestry, EVENT_BUDGET, Store};

/// Special files of one push: 20,000 versions of them are more than the oldest histories have.
const FILES_MAX: usize = 20_000;
/// Special files read at once: 48 MiB may be held, so 1.5 MiB each.
const FILES_AT_ONCE: usize = 32;
/// Verdicts that an isolate keeps: 4,096 * some 50 bytes = 200 kB.
const CHECKED_MAX: usize = 4_096;
/// Trees looked at to name the place of a fault, and to learn what is known to be of its kind.
const TREES_MAX: usize = 512;

thread_local! {
    // A blob's bytes never change, so neither does what is said of them.
    static CHECKED: RefCell<BTreeSet<(ObjectId, Special)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Checks the special files of a stored pack; gives warnings for the pusher.
///
/// # Errors
/// [`Refusal::Invalid`] for what `git fsck --strict` calls an error, with the path, the line and what to do.
pub async fn files<B: yard_objects::Blobs + Clone>(
    received: &Received,
    pack: &IndexedPack,
    store: &Store<B>,
) -> Result<Vec<String>, Refusal> {
    let mut warnings: Vec<String> = received
        .links
        .iter()
        .map(|name| format!("Warning: {name} is a symbolic link: git does not read it so"))
        .collect();
    let mut open: Vec<(ObjectId, Special)> = received.files.clone();
    CHECKED.with_borrow(|checked| open.retain(|file| !checked.contains(file)));
    if open.len() > FILES_MAX {
        let what = "the list of .gitmodules and .gitattributes files (push in smaller steps)".to_owned();
        return Err(Refusal::TooLarge { what, size: open.len() as u64, limit: FILES_MAX as u64 });
    }
    if open.is_empty() {
        return Ok(warnings);
    }
    let set = PackSet::new(EVENT_BUDGET);
    set.add("push", pack.clone())?;
    let store = store.with(Rc::new(set));
    for some in open.chunks(FILES_AT_ONCE) {
        let ids: BTreeSet<ObjectId> = some.iter().map(|(id, _)| *id).collect();
        let objects: BTreeMap<ObjectId, _> = store.read(&ids).await?.into_iter().collect();
        for (id, special) in some {
            // One that is nowhere is found by the check of what the push names.
            let Some(object) = objects.get(id) else { continue };
            let faults = special.faults(&object.data);
            if let Some(fault) = faults.iter().find(|fault| fault.kind.is_error()) {
                let place = place(received, *id, &store).await?;
                let why = format!(
                    "{place}, {fault}; git fsck --strict refuses it: mend it in that commit (git rebase -i or git \
                     commit --amend), then push again"
                );
                return Err(Refusal::Invalid { why });
            }
            for fault in faults {
                warnings.push(format!("Warning: blob {id}, {fault}"));
            }
        }
        remember(some);
    }
    warnings.truncate(WARNINGS_MAX);
    Ok(warnings)
}

fn remember(files: &[(ObjectId, Special)]) {
    CHECKED.with_borrow_mut(|checked| {
        if checked.len() + files.len() > CHECKED_MAX {
            checked.clear();
        }
        checked.extend(files);
    });
}

/// `PATH in commit ID`, or the blob where a short search does not find its name.
async fn place<B: yard_objects::Blobs>(
    received: &Received,
    blob: ObjectId,
    store: &Store<B>,
) -> Result<String, Refusal> {
    let is_pushed = |id: &ObjectId| received.objects.binary_search_by_key(id, |object| object.id).is_ok();
    let (mut seen, mut level) = (BTreeSet::new(), Vec::new());
    for (commit, links) in &received.commits {
        if level.len() < TREES_MAX && is_pushed(&links.tree) && seen.insert(links.tree) {
            level.push((links.tree, *commit, Vec::new()));
        }
    }
    while !level.is_empty() && seen.len() <= TREES_MAX {
        let mut next = Vec::new();
        for (tree, commit, path) in level {
            let found = store.read(&BTreeSet::from([tree])).await?;
            let Some((_, object)) = found.first() else { continue };
            for entry in tree::entries(&object.data).filter_map(Result::ok) {
                let path: Vec<u8> = [path.as_slice(), entry.name].concat();
                if entry.id == blob && !Special::of(entry.name).checked().is_none() {
                    return Ok(format!("{} in commit {commit}", String::from_utf8_lossy(&path)));
                }
                if entry.mode.is_tree() && is_pushed(&entry.id) && seen.insert(entry.id) {
                    next.push((entry.id, commit, [path.as_slice(), b"/"].concat()));
                }
            }
        }
        level = next;
    }
    Ok(format!("blob {blob} (git log --all --find-object={blob} finds it)"))
}

/// Checks that what a push names outside of its pack is of the kind that it is named as.
///
/// Commits are known by the graph. A tree's unchanged entries stand in the trees of the commits that the
/// push builds on, which are read first, and only below directories that the push changes; for the others
/// the headers of their entries in the packs are read.
///
/// # Errors
/// [`Refusal::Invalid`] that names the object and both kinds.
pub async fn kinds<B: yard_objects::Blobs>(
    received: &Received,
    store: &Store<B>,
    graph: &Ancestry,
) -> Result<(), Refusal> {
    let mut open: BTreeMap<ObjectId, Kind> = BTreeMap::new();
    for (id, kind) in &received.outgoing {
        if let Some(other) = open.insert(*id, *kind) {
            return Err(wrong(id, *kind, other));
        }
        if graph.commit(id).is_some() && *kind != Kind::Commit {
            return Err(wrong(id, *kind, Kind::Commit));
        }
    }
    open.retain(|id, kind| *kind != Kind::Commit || graph.commit(id).is_none());
    standing(received, &mut open, store, graph).await?;
    let ids: BTreeSet<ObjectId> = open.keys().copied().collect();
    let kinds = store.kinds(&ids).await?;
    match open.iter().find_map(|(id, kind)| kinds.get(id).filter(|is| *is != kind).map(|is| (id, kind, is))) {
        Some((id, kind, is)) => Err(wrong(id, *kind, *is)),
        None => Ok(()),
    }
}

fn wrong(id: &ObjectId, named: Kind, is: Kind) -> Refusal {
    let (named, is) = (named.as_str(), is.as_str());
    Refusal::Invalid {
        why: format!(
            "{id} is named as a {named} and is a {is}: the pushed history is damaged (git fsck tells where)"
        ),
    }
}

/// Takes out what stands, under the same kind, in the trees that the push builds on.
async fn standing<B: yard_objects::Blobs>(
    received: &Received,
    open: &mut BTreeMap<ObjectId, Kind>,
    store: &Store<B>,
    graph: &Ancestry,
) -> Result<(), Refusal> {
    let parents = received.commits.iter().flat_map(|(_, links)| &links.parents);
    let mut level: BTreeSet<ObjectId> =
        parents.filter_map(|parent| graph.commit(parent)).map(|links| links.tree).collect();
    let mut seen: BTreeSet<ObjectId> = BTreeSet::new();
    while !open.is_empty() && !level.is_empty() && seen.len() < TREES_MAX {
        seen.extend(&level);
        for id in &level {
            drop_if(open, *id, Kind::Tree);
        }
        let mut next = BTreeSet::new();
        let ids: Vec<ObjectId> = level.into_iter().collect();
        for some in ids.chunks(FILES_AT_ONCE) {
            let trees = store.read(&some.iter().copied().collect()).await?;
            for (_, object) in trees.iter().filter(|(_, object)| object.kind == Kind::Tree) {
                below(&object.data, open, &mut next);
            }
        }
        level = next.into_iter().filter(|id| !seen.contains(id)).take(TREES_MAX).collect();
    }
    Ok(())
}

fn drop_if(open: &mut BTreeMap<ObjectId, Kind>, id: ObjectId, kind: Kind) -> bool {
    let stands = open.get(&id) == Some(&kind);
    if stands {
        open.remove(&id);
    }
    stands
}

/// Takes out what a tree has; what it has of directories that the push does not name comes next.
fn below(data: &[u8], open: &mut BTreeMap<ObjectId, Kind>, next: &mut BTreeSet<ObjectId>) {
    for entry in tree::entries(data).filter_map(Result::ok) {
        let kind = match entry.mode {
            TreeMode::Tree => Kind::Tree,
            TreeMode::Leaf(Mode::Gitlink) => continue,
            TreeMode::Leaf(_) => Kind::Blob,
        };
        if !drop_if(open, entry.id, kind) && kind == Kind::Tree {
            next.insert(entry.id);
        }
    }
}
