//! The commit graph: what the ledger knows, and the commits that a push brings along.
//!
//! Walks go by generation number, highest first, so that a commit is met after all its descendants
//! and a walk can stop without reading history to its root (the method of git's commit-graph file).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use yard_common::ObjectId;
use yard_common::submission::CommitNode;

use crate::ledger::{CommitInfo, Ledger};

/// The graph of the ledger and of the pushed commits together.
pub struct Graph<'a> {
    ledger: &'a dyn Ledger,
    pushed: BTreeMap<ObjectId, CommitInfo>,
}

impl<'a> Graph<'a> {
    /// The graph; generations of the pushed commits are counted here.
    #[must_use]
    pub fn new(ledger: &'a dyn Ledger, pushed: &[CommitNode]) -> Self {
        let nodes: BTreeMap<ObjectId, &CommitNode> = pushed.iter().map(|node| (node.id, node)).collect();
        let mut graph = Self { ledger, pushed: BTreeMap::new() };
        for start in nodes.keys() {
            graph.count(&nodes, *start);
        }
        graph
    }

    fn count(&mut self, nodes: &BTreeMap<ObjectId, &CommitNode>, start: ObjectId) {
        let mut entered = BTreeSet::new();
        let mut todo = vec![start];
        while let Some(id) = todo.last().copied() {
            let Some(node) = nodes.get(&id).filter(|_| !self.pushed.contains_key(&id)) else {
                todo.pop();
                continue;
            };
            let first_time = entered.insert(id);
            let open: Vec<ObjectId> = node
                .parents
                .iter()
                .filter(|parent| nodes.contains_key(*parent) && !self.pushed.contains_key(*parent))
                .copied()
                .collect();
            if first_time && !open.is_empty() {
                todo.extend(open);
                continue;
            }
            let generation = 1 + self.highest(&node.parents);
            let info = CommitInfo { tree: node.tree, parents: node.parents.clone(), generation };
            self.pushed.insert(id, info);
            todo.pop();
        }
    }

    fn highest(&self, commits: &[ObjectId]) -> u64 {
        commits.iter().filter_map(|id| self.info(id)).map(|info| info.generation).max().unwrap_or(0)
    }

    /// The commit's place in the graph, if it is known or pushed.
    #[must_use]
    pub fn info(&self, id: &ObjectId) -> Option<CommitInfo> {
        self.pushed.get(id).cloned().or_else(|| self.ledger.commit(id))
    }

    /// Is `old` the same as `new` or an ancestor of it?
    #[must_use]
    pub fn is_ancestor(&self, old: ObjectId, new: ObjectId) -> bool {
        let floor = self.info(&old).map_or(0, |info| info.generation);
        let mut walk = Walk::new(self, [new]);
        while let Some((id, info)) = walk.next() {
            if id == old {
                return true;
            }
            if info.generation > floor {
                walk.extend(&info.parents);
            }
        }
        false
    }

    /// Those of `commits` that are no proper ancestor of another one, in id order.
    #[must_use]
    pub fn maximal(&self, commits: &BTreeSet<ObjectId>) -> Vec<ObjectId> {
        if commits.len() < 2 {
            return commits.iter().copied().collect();
        }
        let infos: Vec<CommitInfo> = commits.iter().filter_map(|id| self.info(id)).collect();
        let floor = infos.iter().map(|info| info.generation).min().unwrap_or(0);
        let mut walk = Walk::new(self, infos.iter().flat_map(|info| info.parents.iter().copied()));
        let mut below = BTreeSet::new();
        while let Some((id, info)) = walk.next() {
            below.insert(id);
            if info.generation > floor {
                walk.extend(&info.parents);
            }
        }
        commits.difference(&below).copied().collect()
    }

    /// The best common ancestor of one of `left` and of `right`: highest generation, then lowest id.
    #[must_use]
    pub fn merge_base(&self, left: &[ObjectId], right: ObjectId) -> Option<ObjectId> {
        let mut sides: BTreeMap<ObjectId, u8> = left.iter().map(|id| (*id, 1)).collect();
        *sides.entry(right).or_default() |= 2;
        let mut walk = Walk::new(self, sides.keys().copied().collect::<Vec<_>>());
        while let Some((id, info)) = walk.next() {
            let side = sides.get(&id).copied().unwrap_or(0);
            if side == 3 {
                return Some(id);
            }
            for parent in &info.parents {
                *sides.entry(*parent).or_default() |= side;
            }
            walk.extend(&info.parents);
        }
        None
    }

    /// The commits that only `old` reaches, and those that only `new` reaches.
    #[must_use]
    pub fn difference(&self, old: ObjectId, new: ObjectId) -> (Vec<ObjectId>, Vec<ObjectId>) {
        let mut sides: BTreeMap<ObjectId, u8> = BTreeMap::from([(old, 1)]);
        *sides.entry(new).or_default() |= 2;
        let mut walk = Walk::new(self, sides.keys().copied().collect::<Vec<_>>());
        let mut open = sides.values().filter(|side| **side != 3).count();
        let (mut lost, mut gained) = (Vec::new(), Vec::new());
        while open > 0 {
            let Some((id, info)) = walk.next() else { break };
            let side = sides.get(&id).copied().unwrap_or(3);
            match side {
                1 => lost.push(id),
                2 => gained.push(id),
                _ => {}
            }
            open -= usize::from(side != 3);
            for parent in &info.parents {
                let before = sides.get(parent).copied();
                let after = before.unwrap_or(0) | side;
                sides.insert(*parent, after);
                let waiting = |side: Option<u8>| usize::from(side.is_some_and(|side| side != 3));
                if self.info(parent).is_some() {
                    open = open + waiting(Some(after)) - waiting(before);
                }
            }
            walk.extend(&info.parents);
        }
        (lost, gained)
    }

    /// The first commit that `wanted` picks, met on a walk from `starts` by falling generation.
    #[must_use]
    pub fn nearest(&self, starts: &[ObjectId], wanted: impl Fn(&ObjectId) -> bool) -> Option<ObjectId> {
        let mut walk = Walk::new(self, starts.to_vec());
        while let Some((id, info)) = walk.next() {
            if wanted(&id) {
                return Some(id);
            }
            walk.extend(&info.parents);
        }
        None
    }
}

/// The commits with parents before children, as [`crate::LedgerMut::put_commit`] wants them.
#[must_use]
pub fn parents_first(ledger: &dyn Ledger, nodes: &[CommitNode]) -> Vec<CommitNode> {
    let graph = Graph::new(ledger, nodes);
    let mut nodes = nodes.to_vec();
    nodes.sort_by_key(|node| (graph.info(&node.id).map_or(0, |info| info.generation), node.id));
    nodes
}

/// A walk by falling generation, then rising id; each commit once; unknown commits are passed over.
struct Walk<'g> {
    graph: &'g Graph<'g>,
    heap: BinaryHeap<(u64, Reverse<ObjectId>)>,
    seen: BTreeMap<ObjectId, CommitInfo>,
}

impl<'g> Walk<'g> {
    fn new(graph: &'g Graph<'g>, starts: impl IntoIterator<Item = ObjectId>) -> Self {
        let mut walk = Self { graph, heap: BinaryHeap::new(), seen: BTreeMap::new() };
        let starts: Vec<ObjectId> = starts.into_iter().collect();
        walk.extend(&starts);
        walk
    }

    fn extend(&mut self, commits: &[ObjectId]) {
        for id in commits {
            if !self.seen.contains_key(id)
                && let Some(info) = self.graph.info(id)
            {
                self.heap.push((info.generation, Reverse(*id)));
                self.seen.insert(*id, info);
            }
        }
    }

    fn next(&mut self) -> Option<(ObjectId, CommitInfo)> {
        let (_, Reverse(id)) = self.heap.pop()?;
        let info = self.seen.get(&id).cloned()?;
        Some((id, info))
    }
}
