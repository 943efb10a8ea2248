//! The trees and blobs of the wanted commits that the known commits do not have.
//!
//! Level by level, and path by path: trees of known commits are opened only where a wanted tree of the
//! same path is opened (the idea of git's `pack.useSparse`), so the cost follows what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use yard_common::submission::Mode;
use yard_common::{ObjectId, Refusal};
use yard_git::Kind;
use yard_git::tree::{TreeEntry, TreeMode, entries};

use super::ids::IdSet;
use super::{Filter, NEED_MAX, Step, World, damaged};

/// The kind of object an entry names; `None` for a submodule's commit.
pub(super) fn entry_kind(entry: &TreeEntry<'_>) -> Option<Kind> {
    match entry.mode {
        TreeMode::Tree => Some(Kind::Tree),
        TreeMode::Leaf(Mode::Gitlink) => None,
        TreeMode::Leaf(_) => Some(Kind::Blob),
    }
}

/// A number for each path, so that an object costs four bytes of path.
#[derive(Debug, Default)]
struct Paths {
    numbers: BTreeMap<(u32, Box<[u8]>), u32>,
}

const ROOT: u32 = 0;

impl Paths {
    fn below(&mut self, folder: u32, name: &[u8]) -> u32 {
        let next = u32::try_from(self.numbers.len() + 1).unwrap_or(u32::MAX);
        *self.numbers.entry((folder, name.into())).or_insert(next)
    }

    /// The place of each number in path order.
    fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.numbers.len() + 1];
        let mut rank = 0;
        let mut open = vec![ROOT];
        while let Some(folder) = open.pop() {
            if let Some(place) = ranks.get_mut(folder as usize) {
                *place = rank;
            }
            rank += 1;
            let from = Bound::Included((folder, Box::from([])));
            let to =
                folder.checked_add(1).map_or(Bound::Unbounded, |next| Bound::Excluded((next, Box::from([]))));
            let inside: Vec<u32> = self.numbers.range((from, to)).map(|(_, number)| *number).collect();
            open.extend(inside.into_iter().rev());
        }
        ranks
    }
}

/// The walk.
#[derive(Debug)]
pub(super) struct TreeWalk {
    filter: Filter,
    paths: Paths,
    level: u32,
    listed: IdSet,
    /// Wanted by their own ids: sent even where the client should have them.
    named: IdSet,
    known: IdSet,
    known_opened: IdSet,
    wanted_now: Vec<(ObjectId, u32)>,
    wanted_next: Vec<(ObjectId, u32)>,
    known_now: Vec<(ObjectId, u32)>,
    known_next: Vec<(ObjectId, u32)>,
    trees: Vec<(u32, ObjectId)>,
    blobs: Vec<(u32, ObjectId)>,
}

impl TreeWalk {
    pub(super) fn new(filter: Filter) -> Self {
        Self {
            filter,
            paths: Paths::default(),
            level: 0,
            listed: IdSet::default(),
            named: IdSet::default(),
            known: IdSet::default(),
            known_opened: IdSet::default(),
            wanted_now: Vec::new(),
            wanted_next: Vec::new(),
            known_now: Vec::new(),
            known_next: Vec::new(),
            trees: Vec::new(),
            blobs: Vec::new(),
        }
    }

    pub(super) fn add_known(&mut self, id: ObjectId) {
        self.known.insert(id);
    }

    pub(super) fn add_known_root(&mut self, id: ObjectId) {
        self.known.insert(id);
        self.known_now.push((id, ROOT));
    }

    /// A commit's tree; known ones come before.
    pub(super) fn add_root(&mut self, id: ObjectId) {
        if self.filter.tree_depth != Some(0) && !self.known.contains(&id) && self.listed.insert(id) {
            self.trees.push((ROOT, id));
            self.wanted_now.push((id, ROOT));
        }
    }

    pub(super) fn add_wanted_tree(&mut self, id: ObjectId) {
        if self.named.insert(id) && self.listed.insert(id) {
            self.trees.push((ROOT, id));
            self.wanted_now.push((id, ROOT));
        }
    }

    pub(super) fn add_wanted_blob(&mut self, id: ObjectId) {
        if self.named.insert(id) && self.listed.insert(id) {
            self.blobs.push((ROOT, id));
        }
    }

    pub(super) fn step(&mut self, world: &World<'_>) -> Result<Step<()>, Refusal> {
        // Opening the last level of a filtered walk would list nothing.
        while !self.wanted_now.is_empty() && !self.stops_below() {
            let mut missing = self.open_known(world)?;
            if missing.is_empty() {
                missing = self.open_wanted(world)?;
            } else {
                let more = self.wanted_now.iter().filter(|(id, _)| world.objects.get(id).is_none());
                let room = NEED_MAX.saturating_sub(missing.len());
                missing.extend(more.take(room).map(|(id, _)| *id));
            }
            if !missing.is_empty() {
                missing.sort_unstable();
                missing.dedup();
                return Ok(Step::Need(missing));
            }
            self.go_down();
        }
        Ok(Step::Done(()))
    }

    fn stops_below(&self) -> bool {
        self.filter.tree_depth.is_some_and(|depth| self.level + 1 >= depth)
    }

    fn go_down(&mut self) {
        self.level += 1;
        self.wanted_now = std::mem::take(&mut self.wanted_next);
        let paths: BTreeSet<u32> = self.wanted_now.iter().map(|(_, path)| *path).collect();
        self.known_now = std::mem::take(&mut self.known_next);
        self.known_now.retain(|(_, path)| paths.contains(path));
    }

    fn open_known(&mut self, world: &World<'_>) -> Result<Vec<ObjectId>, Refusal> {
        let mut missing = Vec::new();
        for (id, path) in std::mem::take(&mut self.known_now) {
            if self.known_opened.contains(&id) {
                continue;
            }
            let Some(object) = world.objects.get(&id) else {
                if (world.exists)(&id) {
                    self.known_now.push((id, path));
                    push_capped(&mut missing, id);
                }
                continue;
            };
            self.known_opened.insert(id);
            for entry in entries(&object.data) {
                let entry = entry.map_err(|fault| damaged(&id, fault.why))?;
                self.known.insert(entry.id);
                if entry.mode.is_tree() {
                    let below = self.paths.below(path, entry.name);
                    self.known_next.push((entry.id, below));
                }
            }
        }
        Ok(missing)
    }

    /// Does the client have it, so that it need not be sent?
    fn has(&self, id: &ObjectId) -> bool {
        self.known.contains(id) && !self.named.contains(id)
    }

    fn open_wanted(&mut self, world: &World<'_>) -> Result<Vec<ObjectId>, Refusal> {
        let mut missing = Vec::new();
        for (id, path) in std::mem::take(&mut self.wanted_now) {
            if self.has(&id) {
                continue;
            }
            let Some(object) = world.objects.get(&id) else {
                if !(world.exists)(&id) {
                    return Err(damaged(&id, "is missing"));
                }
                self.wanted_now.push((id, path));
                push_capped(&mut missing, id);
                continue;
            };
            if object.kind != Kind::Tree {
                return Err(damaged(&id, "is no tree"));
            }
            for entry in entries(&object.data) {
                let entry = entry.map_err(|fault| damaged(&id, fault.why))?;
                self.list(world, path, &entry);
            }
        }
        Ok(missing)
    }

    fn list(&mut self, world: &World<'_>, folder: u32, entry: &TreeEntry<'_>) {
        let Some(kind) = entry_kind(entry) else { return };
        if self.known.contains(&entry.id) || self.listed.contains(&entry.id) {
            return;
        }
        if kind == Kind::Blob && self.leaves_out(world, &entry.id) {
            return;
        }
        self.listed.insert(entry.id);
        let path = self.paths.below(folder, entry.name);
        match kind {
            Kind::Tree => {
                self.trees.push((path, entry.id));
                self.wanted_next.push((entry.id, path));
            }
            _ => self.blobs.push((path, entry.id)),
        }
    }

    fn leaves_out(&self, world: &World<'_>, blob: &ObjectId) -> bool {
        match self.filter.blob_limit {
            None => false,
            Some(0) => true,
            Some(limit) => world.graph.blob_size(blob).is_some_and(|size| size >= limit),
        }
    }

    /// Trees and blobs to send, each in path order.
    pub(super) fn finish(&self, world: &World<'_>) -> (Vec<ObjectId>, Vec<ObjectId>) {
        let ranks = self.paths.ranks();
        let sorted = |mut list: Vec<(u32, ObjectId)>| -> Vec<ObjectId> {
            list.sort_by_key(|(path, _)| ranks.get(*path as usize).copied().unwrap_or(u32::MAX));
            list.into_iter().map(|(_, id)| id).filter(|id| !self.has(id) && is_stored(world, id)).collect()
        };
        (sorted(self.trees.clone()), sorted(self.blobs.clone()))
    }
}

/// The empty tree is there for every reader, stored or not; only a stored one can be sent.
fn is_stored(world: &World<'_>, id: &ObjectId) -> bool {
    *id != ObjectId::EMPTY_TREE || (world.exists)(id)
}

fn push_capped(missing: &mut Vec<ObjectId>, id: ObjectId) {
    if missing.len() < NEED_MAX {
        missing.push(id);
    }
}
