//! Commits seen so far, and what wanted and known ids are.

use yard_common::{ObjectId, Refusal};
use yard_git::commit::{CommitLinks, links};
use yard_git::{Kind, Tag};

use super::ids::{IdMap, IdSet};
use super::{NEED_MAX, World, damaged};

/// Links of all commits that were looked at.
#[derive(Debug, Default)]
pub(super) struct History {
    nodes: IdMap<CommitLinks>,
}

impl History {
    pub(super) fn get(&self, id: &ObjectId) -> Option<&CommitLinks> {
        self.nodes.get(id)
    }

    /// Makes the commit known; false when its object is needed for that.
    pub(super) fn load(&mut self, world: &World<'_>, id: &ObjectId) -> Result<bool, Refusal> {
        if self.nodes.contains_key(id) {
            return Ok(true);
        }
        let found = match world.graph.commit(id) {
            Some(found) => found,
            None => match world.objects.get(id) {
                Some(object) if object.kind == Kind::Commit => {
                    links(&object.data).map_err(|fault| damaged(id, fault.why))?
                }
                Some(_) => return Err(damaged(id, "is no commit")),
                None if (world.exists)(id) => return Ok(false),
                None => return Err(damaged(id, "is missing")),
            },
        };
        self.nodes.insert(*id, found);
        Ok(true)
    }

    /// Makes these commits known; the ones that are needed for that, in id order, at most [`NEED_MAX`].
    pub(super) fn load_all<'a>(
        &mut self,
        world: &World<'_>,
        ids: impl Iterator<Item = &'a ObjectId>,
    ) -> Result<Vec<ObjectId>, Refusal> {
        let mut missing = Vec::new();
        for id in ids {
            if missing.len() < NEED_MAX && !self.load(world, id)? {
                missing.push(*id);
            }
        }
        missing.sort_unstable();
        missing.dedup();
        Ok(missing)
    }
}

/// Sorts ids into commits, trees and blobs, following tags.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    open: Vec<ObjectId>,
    seen: IdSet,
    pub(super) commits: Vec<ObjectId>,
    pub(super) tags: Vec<ObjectId>,
    pub(super) trees: Vec<ObjectId>,
    pub(super) blobs: Vec<ObjectId>,
}

impl Resolver {
    pub(super) fn new(ids: impl Iterator<Item = ObjectId>) -> Self {
        Self { open: ids.collect(), ..Self::default() }
    }

    /// Forgets what is not sorted yet and does not fit.
    pub(super) fn keep(&mut self, fits: impl Fn(&ObjectId) -> bool) {
        self.open.retain(fits);
    }

    /// Sorts what can be sorted; the objects needed for more, at most `most`.
    pub(super) fn step(
        &mut self,
        history: &mut History,
        world: &World<'_>,
        most: usize,
    ) -> Result<Vec<ObjectId>, Refusal> {
        let mut missing = Vec::new();
        let mut left = Vec::new();
        while let Some(id) = self.open.pop() {
            if self.seen.contains(&id) {
                continue;
            }
            if self.place(history, world, id)? {
                self.seen.insert(id);
                continue;
            }
            left.push(id);
            if missing.len() < most {
                missing.push(id);
            }
        }
        self.open = left;
        missing.sort_unstable();
        missing.dedup();
        Ok(missing)
    }

    fn place(&mut self, history: &mut History, world: &World<'_>, id: ObjectId) -> Result<bool, Refusal> {
        if history.get(&id).is_some() || world.graph.commit(&id).is_some() {
            history.load(world, &id)?;
            self.commits.push(id);
            return Ok(true);
        }
        let kind = match world.graph.kind(&id) {
            Some(kind @ (Kind::Tree | Kind::Blob)) => kind,
            _ => match world.objects.get(&id) {
                Some(object) if object.kind == Kind::Tag => {
                    let tag = Tag::parse(&object.data).map_err(|fault| damaged(&id, fault.why))?;
                    self.open.push(tag.target);
                    Kind::Tag
                }
                Some(object) => object.kind,
                None if (world.exists)(&id) => return Ok(false),
                None => return Err(damaged(&id, "is missing")),
            },
        };
        match kind {
            Kind::Commit => {
                history.load(world, &id)?;
                self.commits.push(id);
            }
            Kind::Tag => self.tags.push(id),
            Kind::Tree => self.trees.push(id),
            Kind::Blob => self.blobs.push(id),
        }
        Ok(true)
    }
}
