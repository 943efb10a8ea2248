use std::sync::Arc;

use yard_common::{ObjectId, Refusal};
use yard_git::tree::encode;
use yard_git::{Kind, MemoryObjects, Object, Objects};

use super::*;

type Mode = yard_git::tree::TreeMode;
const FILE: Mode = Mode::Leaf(yard_common::submission::Mode::File);
const MODULE: Mode = Mode::Leaf(yard_common::submission::Mode::Gitlink);

/// All objects of a small repository.
#[derive(Default)]
struct Repo {
    objects: MemoryObjects,
    sizes: bool,
}

impl CommitGraph for Repo {
    fn commit(&self, _id: &ObjectId) -> Option<CommitLinks> {
        None
    }

    fn blob_size(&self, id: &ObjectId) -> Option<u64> {
        let size = self.objects.get(id)?.data.len() as u64;
        self.sizes.then_some(size)
    }
}

impl Repo {
    fn blob(&mut self, text: &str) -> ObjectId {
        self.objects.add(Kind::Blob, text.as_bytes().to_vec())
    }

    fn tree(&mut self, entries: &[(Mode, &str, ObjectId)]) -> ObjectId {
        let entries: Vec<_> = entries.iter().map(|(mode, name, id)| (*mode, name.as_bytes(), *id)).collect();
        self.objects.add(Kind::Tree, encode(&entries))
    }

    fn commit_at(&mut self, tree: ObjectId, parents: &[ObjectId], seconds: u64) -> ObjectId {
        let parents: String = parents.iter().map(|id| format!("parent {id}\n")).collect();
        let who = format!("a <a@b> {seconds} +0000");
        let text = format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\nx\n");
        self.objects.add(Kind::Commit, text.into_bytes())
    }

    fn tag(&mut self, target: ObjectId, kind: &str) -> ObjectId {
        let text = format!("object {target}\ntype {kind}\ntag t\ntagger a <a@b> 1 +0000\n\nx\n");
        self.objects.add(Kind::Tag, text.into_bytes())
    }

    /// A chain of commits, each with its own file `f` in `dir`; the ids, oldest first.
    fn chain(&mut self, length: u64) -> Vec<ObjectId> {
        let mut ids = Vec::new();
        for at in 0..length {
            let blob = self.blob(&format!("{at}"));
            let dir = self.tree(&[(FILE, "f", blob)]);
            let root = self.tree(&[(Mode::Tree, "dir", dir)]);
            let parents: Vec<ObjectId> = ids.last().copied().into_iter().collect();
            ids.push(self.commit_at(root, &parents, 1_000 + at));
        }
        ids
    }

    /// Drives a machine, showing it only what it asked for last.
    fn drive<T>(
        &self,
        mut step: impl FnMut(&World<'_>) -> Result<Step<T>, Refusal>,
    ) -> Result<(T, Vec<Vec<ObjectId>>), Refusal> {
        let mut hand = MemoryObjects::default();
        let mut asks = Vec::new();
        loop {
            let exists = |id: &ObjectId| *id != ObjectId::EMPTY_TREE && self.objects.get(id).is_some();
            match step(&World { objects: &hand, exists: &exists, graph: self })? {
                Step::Done(value) => return Ok((value, asks)),
                Step::Need(ids) => {
                    assert!(asks.len() < 1_000, "no end in sight");
                    hand = MemoryObjects::default();
                    for id in &ids {
                        hand.insert(*id, self.objects.get(id).unwrap());
                    }
                    asks.push(ids);
                }
            }
        }
    }

    fn plan(&self, request: PlanRequest) -> FetchPlan {
        let mut planner = Planner::new(request);
        self.drive(|world| planner.step(world)).unwrap().0
    }

    fn kinds(&self, plan: &FetchPlan) -> String {
        let letter = |id: &ObjectId| match self.objects.get(id).unwrap().kind {
            Kind::Commit => 'c',
            Kind::Tag => 't',
            Kind::Tree => 'd',
            Kind::Blob => 'b',
        };
        plan.objects.iter().map(letter).collect()
    }
}

fn want(wants: &[ObjectId], haves: &[ObjectId]) -> PlanRequest {
    PlanRequest { wants: wants.to_vec(), haves: haves.to_vec(), ..PlanRequest::default() }
}

#[test]
fn commits_come_newest_first_then_tags_then_trees_and_blobs_by_path() {
    let mut repo = Repo::default();
    let (a, b, z) = (repo.blob("a"), repo.blob("b"), repo.blob("z"));
    let dir = repo.tree(&[(FILE, "b", b), (FILE, "z", z)]);
    let old = repo.tree(&[(FILE, "zz", a)]);
    let new = repo.tree(&[(Mode::Tree, "dir", dir), (FILE, "zz", a)]);
    let first = repo.commit_at(old, &[], 10);
    let second = repo.commit_at(new, &[first], 20);
    let tag = repo.tag(second, "commit");
    let plan = repo.plan(want(&[tag], &[]));
    assert_eq!(plan.objects, [second, first, tag, new, old, dir, b, z, a]);
    assert_eq!((plan.commits, plan.tags, plan.trees, plan.blobs), (2, 1, 3, 3));
}

#[test]
fn what_the_client_has_is_left_out_subtree_by_subtree() {
    let mut repo = Repo::default();
    let same = repo.blob("same");
    let (old, new) = (repo.blob("old"), repo.blob("new"));
    let kept = repo.tree(&[(FILE, "same", same)]);
    let (dir_old, dir_new) =
        (repo.tree(&[(FILE, "f", old)]), repo.tree(&[(FILE, "f", new), (FILE, "g", same)]));
    let root_old = repo.tree(&[(Mode::Tree, "dir", dir_old), (Mode::Tree, "kept", kept)]);
    let root_new = repo.tree(&[(Mode::Tree, "dir", dir_new), (Mode::Tree, "kept", kept)]);
    let first = repo.commit_at(root_old, &[], 10);
    let second = repo.commit_at(root_new, &[first], 20);
    let mut planner = Planner::new(want(&[second], &[first]));
    let (plan, asks) = repo.drive(|world| planner.step(world)).unwrap();
    assert_eq!(plan.objects, [second, root_new, dir_new, new, same]);
    assert!(asks.iter().flatten().all(|id| *id != kept), "an unchanged folder is never opened");
}

#[test]
fn a_clock_that_went_back_loses_nothing() {
    let mut repo = Repo::default();
    let chain = repo.chain(3);
    let tree = repo.tree(&[]);
    let early = repo.commit_at(tree, &chain[2..], 5);
    let late = repo.commit_at(tree, &[early], 2_000);
    let plan = repo.plan(want(&[late], &[chain[1]]));
    let set: BTreeSet<_> = plan.objects.iter().collect();
    assert!([late, early, chain[2]].iter().all(|id| set.contains(id)));
}

#[test]
fn a_frontier_is_asked_for_at_once_and_never_above_the_limit() {
    let mut repo = Repo::default();
    let tips: Vec<ObjectId> = (0..1_500)
        .map(|at| {
            let blob = repo.blob(&format!("{at}"));
            let tree = repo.tree(&[(FILE, "f", blob)]);
            repo.commit_at(tree, &[], at)
        })
        .collect();
    let mut planner = Planner::new(want(&tips, &[]));
    let (plan, asks) = repo.drive(|world| planner.step(world)).unwrap();
    assert_eq!((plan.commits, plan.trees, plan.blobs), (1_500, 1_500, 1_500));
    let sizes: Vec<usize> = asks.iter().map(Vec::len).collect();
    assert_eq!(sizes, [NEED_MAX, 1_500 - NEED_MAX, NEED_MAX, 1_500 - NEED_MAX]);
}

#[test]
fn a_small_fetch_asks_for_little_of_a_long_history() {
    let mut repo = Repo::default();
    let chain = repo.chain(300);
    let mut planner = Planner::new(want(&chain[299..], &chain[298..299]));
    let (plan, asks) = repo.drive(|world| planner.step(world)).unwrap();
    assert_eq!(repo.kinds(&plan), "cddb");
    // Two commits, two roots, two folders.
    assert_eq!(asks.iter().flatten().count(), 6, "{asks:?}");
}

#[test]
fn a_depth_cuts_history_and_the_next_one_moves_the_cut() {
    let mut repo = Repo::default();
    let chain = repo.chain(5);
    let deepen = |depth| Deepen { depth: Some(depth), ..Deepen::default() };
    let mut first = Planner::new(PlanRequest { deepen: deepen(2), ..want(&[chain[4]], &[]) });
    let (boundary, _) = repo.drive(|world| first.boundary(world)).unwrap();
    assert_eq!(boundary, Boundary { shallow: vec![chain[3]], unshallow: vec![] });
    let plan = repo.drive(|world| first.step(world)).unwrap().0;
    assert_eq!(repo.kinds(&plan), "ccddddbb");
    let again = PlanRequest { deepen: deepen(3), shallow: vec![chain[3]], ..want(&[chain[4]], &[chain[4]]) };
    let mut second = Planner::new(again.clone());
    let (boundary, _) = repo.drive(|world| second.boundary(world)).unwrap();
    assert_eq!(boundary, Boundary { shallow: vec![chain[2]], unshallow: vec![chain[3]] });
    assert_eq!(repo.kinds(&repo.drive(|world| second.step(world)).unwrap().0), "cddb");
    let same = PlanRequest { deepen: deepen(2), ..again.clone() };
    let mut planner = Planner::new(same);
    assert_eq!(repo.drive(|world| planner.boundary(world)).unwrap().0, Boundary::default());
    let mut alone = Planner::new(PlanRequest { haves: Vec::new(), ..again.clone() });
    let plan = repo.drive(|world| alone.step(world)).unwrap().0;
    assert_eq!(plan.objects[..plan.commits], [chain[4], chain[2]], "a boundary commit is the client's own");
    let relative = Deepen { relative: true, ..deepen(1) };
    let mut third = Planner::new(PlanRequest { deepen: relative, ..again.clone() });
    assert_eq!(repo.drive(|world| third.boundary(world)).unwrap().0, boundary);
    let all = Deepen { depth: Some(DEPTH_INFINITE), ..Deepen::default() };
    let mut whole = Planner::new(PlanRequest { deepen: all, ..again });
    let (boundary, _) = repo.drive(|world| whole.boundary(world)).unwrap();
    assert_eq!(boundary, Boundary { shallow: vec![], unshallow: vec![chain[3]] });
    assert_eq!(repo.drive(|world| whole.step(world)).unwrap().0.commits, 3);
}

#[test]
fn a_boundary_of_what_is_no_commit_or_not_here_is_passed_over() {
    let mut repo = Repo::default();
    let chain = repo.chain(3);
    let blob = repo.blob("no commit");
    for relative in [false, true] {
        let deepen = Deepen { depth: Some(DEPTH_INFINITE), relative, not: Vec::new(), since: None };
        let shallow = vec![blob, ObjectId([9; 20]), chain[1]];
        let mut planner = Planner::new(PlanRequest { deepen, shallow, ..want(&chain[2..], &[]) });
        let (boundary, _) = repo.drive(|world| planner.boundary(world)).unwrap();
        assert_eq!(boundary.unshallow, [chain[1]]);
    }
    let tag = repo.tag(blob, "blob");
    let deepen = Deepen { not: vec![tag, chain[0]], ..Deepen::default() };
    let mut planner = Planner::new(PlanRequest { deepen, ..want(&chain[2..], &[]) });
    let (boundary, _) = repo.drive(|world| planner.boundary(world)).unwrap();
    assert_eq!(boundary.shallow, [chain[1]]);
}

#[test]
fn a_time_that_leaves_nothing_is_refused() {
    let mut repo = Repo::default();
    let chain = repo.chain(2);
    let deepen = Deepen { since: Some(5_000), ..Deepen::default() };
    let mut planner = Planner::new(PlanRequest { deepen, ..want(&chain, &[]) });
    let refused = repo.drive(|world| planner.boundary(world)).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid { .. }), "{refused}");
}

#[test]
fn filters_leave_out_blobs_and_trees_but_never_what_is_named() {
    let mut repo = Repo { sizes: true, ..Repo::default() };
    let (small, large) = (repo.blob("12"), repo.blob("1234567"));
    let dir = repo.tree(&[(FILE, "large", large)]);
    let root = repo.tree(&[(Mode::Tree, "dir", dir), (FILE, "small", small)]);
    let commit = repo.commit_at(root, &[], 1);
    let plan = |wants: &[ObjectId], blob_limit, tree_depth| {
        let filter = Filter { blob_limit, tree_depth };
        repo.plan(PlanRequest { filter, ..want(wants, &[]) }).objects
    };
    assert_eq!(plan(&[commit], Some(0), None), [commit, root, dir]);
    assert_eq!(plan(&[commit], Some(7), None), [commit, root, dir, small]);
    assert_eq!(plan(&[commit], Some(8), None), [commit, root, dir, large, small]);
    assert_eq!(plan(&[commit], None, Some(0)), [commit]);
    assert_eq!(plan(&[commit], None, Some(1)), [commit, root]);
    assert_eq!(plan(&[commit], None, Some(2)), [commit, root, dir, small]);
    assert_eq!(plan(&[large, dir], Some(0), None), [dir, large]);
    let other = repo.tree(&[(FILE, "small", large)]);
    let next = repo.commit_at(other, &[commit], 2);
    assert_eq!(repo.plan(want(&[next, small], &[commit])).objects, [next, other, small, large]);
}

#[test]
fn submodules_are_not_followed_and_an_empty_tree_needs_no_object() {
    let mut repo = Repo::default();
    let root = repo.tree(&[(MODULE, "module", ObjectId([0xab; 20]))]);
    let commit = repo.commit_at(root, &[], 1);
    let empty = repo.commit_at(ObjectId::EMPTY_TREE, &[commit], 2);
    let plan = repo.plan(want(&[empty], &[]));
    assert_eq!(plan.objects, [empty, commit, root]);
}

#[test]
fn tags_follow_what_is_sent_with_the_tags_they_stand_for() {
    let mut repo = Repo::default();
    let chain = repo.chain(3);
    let inner = repo.tag(chain[2], "commit");
    let outer = repo.tag(inner, "tag");
    let old = repo.tag(chain[0], "commit");
    let tags = vec![(outer, chain[2]), (old, chain[0])];
    let plan = repo.plan(PlanRequest { tags, ..want(&[chain[2]], &[chain[1]]) });
    assert_eq!(repo.kinds(&plan), "cttddb");
    let sent: BTreeSet<_> = plan.objects.iter().collect();
    assert!(sent.contains(&inner) && sent.contains(&outer) && !sent.contains(&old));
}

#[test]
fn an_object_that_the_catalogue_lacks_or_garbles_stops_the_plan() {
    let mut repo = Repo::default();
    let gone = repo.commit_at(ObjectId([7; 20]), &[], 1);
    let mut planner = Planner::new(want(&[gone], &[]));
    let refused = repo.drive(|world| planner.step(world)).unwrap_err();
    assert!(refused.to_string().contains(&ObjectId([7; 20]).to_string()), "{refused}");
    let broken = ObjectId([8; 20]);
    repo.objects.insert(broken, Arc::new(Object { kind: Kind::Tree, data: b"100644 cut".to_vec() }));
    let commit = repo.commit_at(broken, &[], 1);
    let mut planner = Planner::new(want(&[commit], &[]));
    assert!(matches!(repo.drive(|world| planner.step(world)), Err(Refusal::Internal { .. })));
}

#[test]
fn negotiation_ends_when_every_want_reaches_a_known_commit() {
    let mut repo = Repo::default();
    let chain = repo.chain(4);
    let tree = repo.tree(&[]);
    let apart = repo.commit_at(tree, &[], 9_000);
    let ready = |wants: &[ObjectId], haves: &[ObjectId]| {
        let mut planner = Planner::new(want(wants, haves));
        repo.drive(|world| planner.ready(world)).unwrap().0
    };
    assert!(ready(&[chain[3]], &[chain[0]]));
    assert!(ready(&[chain[3], chain[1]], &[chain[1]]));
    assert!(!ready(&[chain[3], apart], &[chain[1]]));
    assert!(!ready(&[chain[1]], &[chain[3]]));
    assert!(!ready(&[chain[1]], &[]));
}

#[test]
fn what_no_tip_reaches_is_found() {
    let mut repo = Repo::default();
    let chain = repo.chain(4);
    let tree = repo.tree(&[]);
    let apart = repo.commit_at(tree, &[chain[0]], 1_000);
    let unreached = |asked: &[ObjectId]| {
        let mut planner = Planner::new(want(&chain[3..], asked));
        repo.drive(|world| planner.unreached(world)).unwrap().0
    };
    assert_eq!(unreached(&[chain[0], chain[2]]), None);
    assert_eq!(unreached(&[chain[3]]), None);
    assert_eq!(unreached(&[chain[0], apart]), Some(apart));
}

fn gather(repo: &Repo, ids: &[ObjectId]) -> Connectivity {
    let mut all = Connectivity::default();
    for id in ids {
        let object = repo.objects.get(id).unwrap();
        all.object(*id, object.kind, &object.data).unwrap();
    }
    all
}

#[test]
fn what_a_push_names_and_does_not_bring_must_be_there() {
    let mut repo = Repo::default();
    let blob = repo.blob("x");
    let root = repo.tree(&[(FILE, "f", blob), (MODULE, "module", ObjectId([0xab; 20]))]);
    let parent = repo.commit_at(root, &[], 1);
    let commit = repo.commit_at(root, &[parent], 2);
    let elsewhere = ObjectId([9; 20]);
    let outside = gather(&repo, &[commit, root]).outside(&[commit, elsewhere, ObjectId::ZERO]).unwrap();
    let found: BTreeSet<_> = outside.iter().map(|outside| (outside.id, outside.kind)).collect();
    let expected = [(parent, Some(Kind::Commit)), (blob, Some(Kind::Blob)), (elsewhere, None)];
    assert_eq!(found, BTreeSet::from(expected));
    assert!(gather(&repo, &[commit, root, blob, parent]).outside(&[commit]).unwrap().is_empty());
    let of_blob = outside.iter().find(|outside| outside.id == blob).unwrap().refusal().to_string();
    assert!(of_blob.contains(&root.to_string()) && of_blob.contains(&blob.to_string()), "{of_blob}");
}

#[test]
fn an_object_of_another_kind_than_it_is_named_is_refused() {
    let mut repo = Repo::default();
    let blob = repo.blob("x");
    let root = repo.tree(&[(Mode::Tree, "f", blob)]);
    assert!(gather(&repo, &[root, blob]).outside(&[]).unwrap_err().to_string().contains("is a blob"));
    let other = repo.tree(&[(FILE, "f", blob)]);
    let mut both = gather(&repo, &[root]);
    let data = repo.objects.get(&other).unwrap();
    assert!(both.object(other, Kind::Tree, &data.data).is_err());
    assert!(both.object(blob, Kind::Commit, b"nonsense").is_err());
}
