//! Does every start reach a target (as git's `can_all_from_reach`), is every target reached from a start?

use std::collections::BTreeSet;

use yard_common::{ObjectId, Refusal};

use super::history::History;
use super::ids::{IdMap, IdSet};
use super::{Step, World};

/// The walk from all starts at once; what reaches a target tells its children.
#[derive(Debug)]
pub(super) struct Reach {
    starts: Vec<ObjectId>,
    targets: BTreeSet<ObjectId>,
    oldest_target: Option<u64>,
    frontier: Vec<ObjectId>,
    seen: IdSet,
    children: IdMap<Vec<ObjectId>>,
    reaching: IdSet,
}

impl Reach {
    pub(super) fn new(starts: &[ObjectId], targets: &[ObjectId]) -> Self {
        Self {
            starts: starts.to_vec(),
            targets: targets.iter().copied().collect(),
            oldest_target: None,
            frontier: starts.to_vec(),
            seen: starts.iter().copied().collect(),
            children: IdMap::default(),
            reaching: IdSet::default(),
        }
    }

    pub(super) fn step(
        &mut self,
        history: &mut History,
        grafts: &IdSet,
        world: &World<'_>,
    ) -> Result<Step<bool>, Refusal> {
        let oldest = match self.oldest_target(history, world)? {
            Step::Need(ids) => return Ok(Step::Need(ids)),
            Step::Done(oldest) => oldest,
        };
        while !self.frontier.is_empty() {
            let missing = history.load_all(world, self.frontier.iter())?;
            if !missing.is_empty() {
                return Ok(Step::Need(missing));
            }
            for id in std::mem::take(&mut self.frontier) {
                self.visit(history, grafts, oldest, id);
            }
            if self.starts.iter().all(|id| self.reaching.contains(id)) {
                return Ok(Step::Done(true));
            }
        }
        Ok(Step::Done(self.starts.iter().all(|id| self.reaching.contains(id))))
    }

    fn oldest_target(&mut self, history: &mut History, world: &World<'_>) -> Result<Step<u64>, Refusal> {
        if let Some(oldest) = self.oldest_target {
            return Ok(Step::Done(oldest));
        }
        let missing = history.load_all(world, self.targets.iter())?;
        if !missing.is_empty() {
            return Ok(Step::Need(missing));
        }
        let times = self.targets.iter().filter_map(|id| history.get(id)).map(|links| links.committed_at);
        let oldest = times.min().unwrap_or(0);
        self.oldest_target = Some(oldest);
        Ok(Step::Done(oldest))
    }

    /// The first target that no start reaches.
    pub(super) fn step_to_all(
        &mut self,
        history: &mut History,
        grafts: &IdSet,
        world: &World<'_>,
    ) -> Result<Step<Option<ObjectId>>, Refusal> {
        let oldest = match self.oldest_target(history, world)? {
            Step::Need(ids) => return Ok(Step::Need(ids)),
            Step::Done(oldest) => oldest,
        };
        while !self.targets.iter().all(|id| self.seen.contains(id)) && !self.frontier.is_empty() {
            let missing = history.load_all(world, self.frontier.iter())?;
            if !missing.is_empty() {
                return Ok(Step::Need(missing));
            }
            for id in std::mem::take(&mut self.frontier) {
                self.pass(history, grafts, oldest, id);
            }
        }
        Ok(Step::Done(self.targets.iter().find(|id| !self.seen.contains(*id)).copied()))
    }

    /// Goes on to the parents, through targets too.
    fn pass(&mut self, history: &History, grafts: &IdSet, oldest: u64, id: ObjectId) {
        let Some(links) = history.get(&id).filter(|links| links.committed_at >= oldest) else { return };
        if !grafts.contains(&id) {
            let fresh = links.parents.iter().filter(|parent| self.seen.insert(**parent));
            self.frontier.extend(fresh);
        }
    }

    fn visit(&mut self, history: &History, grafts: &IdSet, oldest: u64, id: ObjectId) {
        if self.targets.contains(&id) {
            return self.tell(id);
        }
        let Some(links) = history.get(&id).filter(|links| links.committed_at >= oldest) else { return };
        if grafts.contains(&id) {
            return;
        }
        for parent in &links.parents {
            if self.reaching.contains(parent) {
                self.tell(id);
                return;
            }
            self.children.entry(*parent).or_default().push(id);
            if self.seen.insert(*parent) {
                self.frontier.push(*parent);
            }
        }
    }

    fn tell(&mut self, id: ObjectId) {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if self.reaching.insert(id) {
                open.extend(self.children.remove(&id).unwrap_or_default());
            }
        }
    }
}
