//! The commits from a change's base to its head.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use yard_common::{ObjectId, Refusal};
use yard_transfer::plan::CommitGraph;

/// Commits in one change.
pub const COMMITS_MAX: usize = 1000;

/// Commits of the base looked at after the last of the head's, for clocks that go wrong (git has 5).
const SLOP: usize = 32;

/// All commits that `head` reaches and no commit of `known` does, parents before children: the head last.
///
/// Newest first by date, as `git rev-list head --not known` walks; with clocks that go wrong a commit of
/// the base may be listed too, never one of the head left out.
///
/// # Errors
/// [`Refusal::TooLarge`] above [`COMMITS_MAX`]; [`Refusal::Internal`] when the graph lacks a commit.
pub fn between(
    graph: &dyn CommitGraph,
    head: ObjectId,
    known: &[ObjectId],
) -> Result<Vec<ObjectId>, Refusal> {
    let lacks = |id: &ObjectId| Refusal::Internal { during: format!("reading commit {id}") };
    let mut queue = BinaryHeap::new();
    let mut boring: BTreeSet<ObjectId> = known.iter().copied().collect();
    let mut seen: BTreeMap<ObjectId, Vec<ObjectId>> = BTreeMap::new();
    let mut interesting_queued = 0usize;
    for id in known.iter().chain([&head]) {
        let links = graph.commit(id).ok_or_else(|| lacks(id))?;
        interesting_queued += usize::from(!boring.contains(id));
        if seen.insert(*id, links.parents).is_none() {
            queue.push((links.committed_at, *id));
        }
    }
    let (mut found, mut slop) = (Vec::new(), SLOP);
    while let Some((_, id)) = queue.pop() {
        let bored = boring.contains(&id);
        if !bored {
            interesting_queued -= 1;
            found.push(id);
            if found.len() > COMMITS_MAX {
                let what = "the change (offer it as several changes, or squash it): its number of commits"
                    .to_owned();
                return Err(Refusal::TooLarge { what, size: found.len() as u64, limit: COMMITS_MAX as u64 });
            }
        }
        let parents = seen.get(&id).cloned().unwrap_or_default();
        for parent in parents {
            let first = !seen.contains_key(&parent);
            if bored && boring.insert(parent) && !first {
                // It waits in the queue as one of the head's: it is none.
                interesting_queued = interesting_queued.saturating_sub(usize::from(!found.contains(&parent)));
            }
            if first {
                let links = graph.commit(&parent).ok_or_else(|| lacks(&parent))?;
                interesting_queued += usize::from(!boring.contains(&parent));
                seen.insert(parent, links.parents);
                queue.push((links.committed_at, parent));
            }
        }
        match (interesting_queued, slop) {
            (0, 0) => break,
            (0, left) => slop = left - 1,
            _ => slop = SLOP,
        }
    }
    found.retain(|id| !boring.contains(id));
    Ok(parents_first(head, &found.into_iter().collect(), &seen))
}

fn parents_first(
    head: ObjectId,
    wanted: &BTreeSet<ObjectId>,
    parents: &BTreeMap<ObjectId, Vec<ObjectId>>,
) -> Vec<ObjectId> {
    let (mut out, mut done, mut stack) = (Vec::new(), BTreeSet::new(), vec![(head, false)]);
    while let Some((id, opened)) = stack.pop() {
        if opened {
            out.push(id);
            continue;
        }
        if !wanted.contains(&id) || !done.insert(id) {
            continue;
        }
        stack.push((id, true));
        let parents = parents.get(&id).map(Vec::as_slice).unwrap_or_default();
        stack.extend(parents.iter().rev().map(|parent| (*parent, false)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_git::commit::CommitLinks;

    struct Graph(BTreeMap<ObjectId, CommitLinks>);

    impl CommitGraph for Graph {
        fn commit(&self, id: &ObjectId) -> Option<CommitLinks> {
            self.0.get(id).cloned()
        }
    }

    fn id(n: u8) -> ObjectId {
        ObjectId([n; 20])
    }

    /// Commits by number: (commit, parents, seconds).
    fn graph(commits: &[(u8, &[u8], u64)]) -> Graph {
        let links = |parents: &[u8], seconds| CommitLinks {
            tree: ObjectId::EMPTY_TREE,
            parents: parents.iter().map(|parent| id(*parent)).collect(),
            committed_at: seconds,
        };
        Graph(commits.iter().map(|(n, parents, seconds)| (id(*n), links(parents, *seconds))).collect())
    }

    #[test]
    fn a_line_of_work_is_listed_from_its_base_on() {
        let graph = graph(&[(1, &[], 1), (2, &[1], 2), (3, &[2], 3), (4, &[3], 4)]);
        assert_eq!(between(&graph, id(4), &[id(2)]).unwrap(), [id(3), id(4)]);
        assert_eq!(between(&graph, id(2), &[id(1)]).unwrap(), [id(2)]);
    }

    #[test]
    fn what_a_merge_brings_from_main_is_left_out_and_both_sides_of_own_work_are_in() {
        // Main: 1, 2, 5. Own work: 3 and 4 on 1, merged in 6, then main merged in 7.
        let graph = graph(&[
            (1, &[], 1),
            (2, &[1], 2),
            (5, &[2], 5),
            (3, &[1], 3),
            (4, &[1], 4),
            (6, &[3, 4], 6),
            (7, &[6, 5], 7),
        ]);
        let list = between(&graph, id(7), &[id(5), id(1)]).unwrap();
        assert_eq!(list, [id(3), id(4), id(6), id(7)]);
    }

    #[test]
    fn ancestors_of_the_base_that_were_dated_late_are_found_to_be_no_part_of_it() {
        let graph = graph(&[(1, &[], 50), (2, &[1], 2), (3, &[2, 1], 3)]);
        assert_eq!(between(&graph, id(3), &[id(2)]).unwrap(), [id(3)]);
    }

    #[test]
    fn a_commit_that_is_nowhere_is_told() {
        assert!(between(&graph(&[(3, &[2], 3)]), id(3), &[]).is_err());
    }
}
