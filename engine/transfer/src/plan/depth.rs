//! Where history is cut for a shallow clone or fetch.

use std::collections::BTreeSet;

use yard_common::{ObjectId, Refusal};

use super::history::History;
use super::ids::IdSet;
use super::walk::Walk;
use super::{Boundary, DEPTH_INFINITE, Deepen, Step, World};

/// The cut, and the parents that come because it moved.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) boundary: Boundary,
    pub(super) parents: Vec<ObjectId>,
}

#[derive(Debug)]
enum Wish {
    Nothing,
    /// So many levels from the starts, which are level 1.
    Levels(u32),
    /// Newer than the time, and not reachable from what the walk paints as known.
    Recent {
        since: u64,
        not: Option<Walk>,
        allowed: Option<IdSet>,
    },
}

/// Works out the cut level by level, a whole level at a time.
#[derive(Debug)]
pub(super) struct Depth {
    wish: Wish,
    client: BTreeSet<ObjectId>,
    frontier: Vec<ObjectId>,
    level: u32,
    seen: IdSet,
    inside: BTreeSet<ObjectId>,
    cut: BTreeSet<ObjectId>,
}

impl Depth {
    pub(super) fn new(deepen: &Deepen, wants: &[ObjectId], client: BTreeSet<ObjectId>) -> Self {
        let relative = deepen.relative && deepen.depth.is_some();
        let frontier: Vec<_> = if relative { client.iter().copied().collect() } else { wants.to_vec() };
        let wish = match deepen.depth {
            Some(depth) => Wish::Levels(depth.saturating_add(u32::from(relative)).min(DEPTH_INFINITE)),
            None if deepen.is_empty() => Wish::Nothing,
            None => Wish::Recent {
                since: deepen.since.unwrap_or(0),
                not: (!deepen.not.is_empty())
                    .then(|| Walk::new(wants.iter().copied(), deepen.not.iter().copied())),
                allowed: None,
            },
        };
        let seen = frontier.iter().copied().collect();
        Self { wish, client, frontier, level: 1, seen, inside: BTreeSet::new(), cut: BTreeSet::new() }
    }

    pub(super) fn step(&mut self, history: &mut History, world: &World<'_>) -> Result<Step<Cut>, Refusal> {
        if let Wish::Recent { not: Some(walk), allowed, .. } = &mut self.wish
            && allowed.is_none()
        {
            if let Step::Need(ids) = walk.step(history, &IdSet::default(), world)? {
                return Ok(Step::Need(ids));
            }
            *allowed = Some(walk.wanted().into_iter().collect());
        }
        match self.wish {
            Wish::Nothing => return Ok(Step::Done(Cut::default())),
            // All history is wanted: no walk is needed to know that nothing is cut.
            Wish::Levels(DEPTH_INFINITE) => self.inside.clone_from(&self.client),
            Wish::Levels(_) | Wish::Recent { .. } => {
                let missing = self.walk_levels(history, world)?;
                if !missing.is_empty() {
                    return Ok(Step::Need(missing));
                }
            }
        }
        self.finish(history, world)
    }

    fn walk_levels(&mut self, history: &mut History, world: &World<'_>) -> Result<Vec<ObjectId>, Refusal> {
        while !self.frontier.is_empty() {
            let missing = history.load_all(world, self.frontier.iter())?;
            if !missing.is_empty() {
                return Ok(missing);
            }
            for id in std::mem::take(&mut self.frontier) {
                let Some(links) = history.get(&id) else { continue };
                let goes_on = match &self.wish {
                    Wish::Nothing => true,
                    Wish::Levels(levels) => self.level < *levels || links.parents.is_empty(),
                    Wish::Recent { since, allowed, .. } => {
                        let fits = |set: &IdSet| set.contains(&id);
                        links.committed_at >= *since && allowed.as_ref().is_none_or(fits)
                    }
                };
                if !goes_on {
                    self.cut.insert(id);
                    continue;
                }
                self.inside.insert(id);
                let fresh = links.parents.iter().filter(|parent| self.seen.insert(**parent));
                self.frontier.extend(fresh);
            }
            self.level += 1;
        }
        Ok(Vec::new())
    }

    fn finish(&mut self, history: &mut History, world: &World<'_>) -> Result<Step<Cut>, Refusal> {
        if let Wish::Recent { .. } = self.wish {
            if self.inside.is_empty() {
                return Err(Refusal::Invalid {
                    why: "no commits selected for shallow requests: ask for an earlier time".to_owned(),
                });
            }
            // What was found too old lies outside; the commits next to it are the cut.
            let cut = std::mem::take(&mut self.cut);
            let touches = |id: &&ObjectId| {
                history.get(id).is_some_and(|links| links.parents.iter().any(|parent| cut.contains(parent)))
            };
            self.cut = self.inside.iter().filter(touches).copied().collect();
            self.inside.retain(|id| !self.cut.contains(id));
        }
        let unshallow: Vec<ObjectId> = self.client.intersection(&self.inside).copied().collect();
        let missing = history.load_all(world, unshallow.iter())?;
        if !missing.is_empty() {
            return Ok(Step::Need(missing));
        }
        let parents =
            unshallow.iter().filter_map(|id| history.get(id)).flat_map(|links| links.parents.clone());
        let parents = parents.collect();
        let shallow = self.cut.difference(&self.client).copied().collect();
        Ok(Step::Done(Cut { boundary: Boundary { shallow, unshallow }, parents }))
    }
}
