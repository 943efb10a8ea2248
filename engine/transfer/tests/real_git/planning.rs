//! Plans against `git rev-list`.

use std::collections::BTreeSet;
use std::path::Path;

use yard_common::ObjectId;
use yard_git::Kind;
use yard_transfer::plan::{FetchPlan, PlanRequest, Planner};

use crate::history::{make, real};
use crate::shell::{Folder, git, git_with};
use crate::store::Store;

fn reachable(dir: &Path, tips: &[ObjectId]) -> BTreeSet<ObjectId> {
    if tips.is_empty() {
        return BTreeSet::new();
    }
    let tips: Vec<String> = tips.iter().map(ToString::to_string).collect();
    let mut args = vec!["rev-list", "--objects", "--no-object-names"];
    args.extend(tips.iter().map(String::as_str));
    git(dir, &args).lines().map(|id| id.parse().unwrap()).collect()
}

fn plan(store: &mut Store, wants: &[ObjectId], haves: &[ObjectId]) -> FetchPlan {
    let request = PlanRequest { wants: wants.to_vec(), haves: haves.to_vec(), ..PlanRequest::default() };
    let mut planner = Planner::new(request);
    store.drive(|world| planner.step(world)).unwrap()
}

/// How many objects git itself would send.
fn git_sends(dir: &Path, wants: &[ObjectId], haves: &[ObjectId]) -> usize {
    let list = |ids: &[ObjectId]| ids.iter().map(|id| format!("{id}\n")).collect::<String>();
    let input = format!("{}--not\n{}", list(wants), list(haves));
    let args = ["pack-objects", "--revs", "--stdout", "-q"];
    let pack = git_with(dir, &args, input.as_bytes()).unwrap();
    u32::from_be_bytes(pack[8..12].try_into().unwrap()) as usize
}

fn commits(dir: &Path) -> Vec<ObjectId> {
    git(dir, &["rev-list", "--all"]).lines().map(|id| id.parse().unwrap()).collect()
}

/// The same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn pairs_agree(dir: &Path, rounds: usize) {
    let all = commits(dir);
    let mut store = Store::open(dir);
    let mut numbers = Numbers(7);
    let (mut sent, mut by_git) = (0, 0);
    for round in 0..rounds {
        store.with_graph = round % 2 == 0;
        let mut pick = |most: usize| -> Vec<ObjectId> {
            (0..1 + numbers.below(most)).map(|_| all[numbers.below(all.len())]).collect()
        };
        let (wants, haves) = (pick(3), pick(4));
        let planned = plan(&mut store, &wants, &haves);
        let set: BTreeSet<ObjectId> = planned.objects.iter().copied().collect();
        assert_eq!(set.len(), planned.objects.len(), "every object once");
        let closure = reachable(dir, &wants);
        let has = reachable(dir, &haves);
        let needed: BTreeSet<ObjectId> = closure.difference(&has).copied().collect();
        assert!(
            needed.is_subset(&set),
            "round {round}: {wants:?} {haves:?}: lacks {:?}",
            needed.difference(&set)
        );
        assert!(set.is_subset(&closure), "round {round}: sends what is not reachable");
        if store.with_graph {
            sent += set.len();
            by_git += git_sends(dir, &wants, &haves);
        }
    }
    assert!(sent * 100 <= by_git * 103, "{sent} objects sent where git sends {by_git}");
}

#[test]
fn plans_are_complete_and_with_a_table_as_small_as_those_of_git() {
    let folder = Folder::new("plans");
    pairs_agree(&make(&folder), 120);
}

#[test]
fn plans_of_real_histories_are_complete_and_as_small_as_those_of_git() {
    real().iter().for_each(|dir| pairs_agree(dir, 20));
}

#[test]
fn a_full_plan_is_in_pack_order() {
    let folder = Folder::new("order");
    let dir = make(&folder);
    let mut store = Store::open(&dir);
    let refs = store.refs();
    let wants: Vec<ObjectId> = refs.tips().iter().map(|tip| tip.id).collect();
    let plan = plan(&mut store, &wants, &[]);
    assert_eq!(plan.objects.len(), plan.commits + plan.tags + plan.trees + plan.blobs);
    assert_eq!(plan.objects.len(), reachable(&dir, &wants).len());
    let kinds: Vec<Kind> = plan.objects.iter().map(|id| store.kind(id).unwrap()).collect();
    let order =
        |kind: &Kind| [Kind::Commit, Kind::Tag, Kind::Tree, Kind::Blob].iter().position(|k| k == kind);
    assert!(kinds.is_sorted_by_key(|kind| order(kind).unwrap()));
    assert_eq!(plan.tags, 61);
    let times: Vec<u64> = plan.objects[..plan.commits]
        .iter()
        .map(|id| yard_git::commit::links(&store.get(id).unwrap().data).unwrap().committed_at)
        .collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older));
}

#[test]
fn a_full_plan_asks_by_whole_levels_and_in_bounded_batches() {
    let folder = Folder::new("asks");
    let mut store = Store::open(&make(&folder));
    let wants: Vec<ObjectId> = store.refs().tips().iter().map(|tip| tip.id).collect();
    plan(&mut store, &wants, &[]);
    // Tags, then the tags that they stand for, then four levels of trees.
    assert!(store.needs.len() <= 6, "{:?}", store.needs);
}

#[test]
fn full_plans_of_real_histories_are_fast() {
    for dir in real() {
        let mut store = Store::open(&dir);
        let wants: Vec<ObjectId> = store.refs().tips().iter().map(|tip| tip.id).collect();
        let begin = std::time::Instant::now();
        let plan = plan(&mut store, &wants, &[]);
        let took = begin.elapsed();
        let (asks, ids) = (store.needs.len(), store.needs.iter().sum::<usize>());
        eprintln!(
            "{}: {} commits, {} trees, {} blobs of {} objects in {took:?}, {asks} asks of {ids} ids",
            dir.display(),
            plan.commits,
            plan.trees,
            plan.blobs,
            store.len()
        );
        assert!(took.as_micros() < 300 * plan.objects.len() as u128, "{took:?}");
        assert!(store.needs.iter().all(|need| *need <= yard_transfer::plan::NEED_MAX));
    }
}
