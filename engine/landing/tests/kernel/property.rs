//! Properties over random input: graphs against sets, mangled requests against the laws, turns, costs.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use yard_common::fact::{Fact, Turns};
use yard_common::landing::LandRequest;
use yard_common::submission::CommitNode;
use yard_common::{Millis, ObjectId, Version};
use yard_git::{Mode, Object, Objects};
use yard_landing::graph::Graph;
use yard_landing::{Decision, Ledger as _, LedgerMut as _, MemoryLedger, turn};

use crate::merge::Files;
use crate::rng::Rng;
use crate::simulation::world_after;
use crate::world::{World, change, files, fork, lane, path};

fn id(n: usize) -> ObjectId {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&(n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[19] = n as u8;
    ObjectId(bytes)
}

/// A random history, partly in the ledger, partly pushed; and each commit's ancestors, itself included.
fn history(rng: &mut Rng) -> (MemoryLedger, Vec<CommitNode>, Vec<BTreeSet<usize>>) {
    let (mut ledger, mut pushed, mut ancestors) =
        (MemoryLedger::default(), Vec::new(), Vec::<BTreeSet<usize>>::new());
    let known = 1 + rng.below(25);
    for n in 0..30usize {
        let count = if n == 0 { 0 } else { rng.below(3).min(n) };
        let parents: BTreeSet<usize> = (0..count).map(|_| n - 1 - rng.below(n.min(6))).collect();
        let mut all = BTreeSet::from([n]);
        parents.iter().for_each(|parent| all.extend(&ancestors[*parent]));
        ancestors.push(all);
        let parents = parents.into_iter().map(id).collect();
        let node = CommitNode { id: id(n), parents, tree: ObjectId::EMPTY_TREE };
        if n < known { ledger.put_commit(&node) } else { pushed.push(node) }
    }
    (ledger, pushed, ancestors)
}

#[test]
fn walks_by_generation_say_what_sets_of_ancestors_say() {
    let mut rng = Rng::new(11);
    for _ in 0..60 {
        let (ledger, mut pushed, ancestors) = history(&mut rng);
        pushed.reverse();
        let graph = Graph::new(&ledger, &pushed);
        for _ in 0..40 {
            let (a, b, c) = (rng.below(30), rng.below(30), rng.below(30));
            assert_eq!(graph.is_ancestor(id(a), id(b)), ancestors[b].contains(&a), "{a} {b}");
            let some = BTreeSet::from([a, b, c]);
            let maximal: BTreeSet<ObjectId> = some
                .iter()
                .filter(|one| !some.iter().any(|other| other != *one && ancestors[*other].contains(one)))
                .map(|one| id(*one))
                .collect();
            let asked = some.iter().map(|one| id(*one)).collect();
            assert_eq!(graph.maximal(&asked).into_iter().collect::<BTreeSet<_>>(), maximal);
            let common: BTreeSet<usize> = ancestors[a].intersection(&ancestors[b]).copied().collect();
            let best: Vec<ObjectId> = common
                .iter()
                .filter(|one| !common.iter().any(|other| other != *one && ancestors[*other].contains(one)))
                .map(|one| id(*one))
                .collect();
            match graph.merge_base(&[id(a)], id(b)) {
                Some(found) => assert!(best.contains(&found), "{a} {b}"),
                None => assert!(best.is_empty()),
            }
            let (lost, gained) = graph.difference(id(a), id(b));
            let only = |x: usize, y: usize| -> BTreeSet<ObjectId> {
                ancestors[x].difference(&ancestors[y]).map(|one| id(*one)).collect()
            };
            assert_eq!(lost.into_iter().collect::<BTreeSet<_>>(), only(a, b));
            assert_eq!(gained.into_iter().collect::<BTreeSet<_>>(), only(b, a));
        }
    }
}

/// Changes one leaf of a JSON value: a number, a text, or a list's length.
fn mangle(value: &mut serde_json::Value, rng: &mut Rng, words: &[String]) {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            if let Some(field) = rng.pick(&keys).and_then(|key| fields.get_mut(key)) {
                mangle(field, rng, words);
            }
        }
        Value::Array(items) if !items.is_empty() && rng.chance(75) => {
            let at = rng.below(items.len());
            mangle(&mut items[at], rng, words);
        }
        Value::Array(items) => match rng.below(3) {
            0 => drop(items.pop()),
            1 => items.reverse(),
            _ => items.extend(items.first().cloned()),
        },
        Value::Number(number) => *value = (number.as_u64().unwrap_or(0) + 1).into(),
        Value::Bool(flag) => *flag = !*flag,
        Value::String(_) if rng.chance(20) => *value = Value::Null,
        Value::String(_) | Value::Null => {
            *value = rng.pick(words).cloned().map_or(Value::Null, Value::String)
        }
    }
}

/// All texts of a value: what a mangled leaf may become.
fn words(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => fields.values().for_each(|field| words(field, found)),
        serde_json::Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        serde_json::Value::String(text) => found.push(text.clone()),
        _ => {}
    }
}

#[test]
fn a_mangled_request_is_refused_or_harmless() {
    let mut rng = Rng::new(5);
    let text = |top: usize, end: usize| format!("{top}\n-\n0\n--\n{end}\n");
    let start = files(&[("a", &text(0, 0)), ("b", &text(0, 0)), ("d/x", &text(0, 0))]);
    let (mut taken, mut refused) = (0, 0);
    for round in 1..=50 {
        let mut world = World::new(&start);
        let first = world.submitted("f0", "first", &[("a", Some(&text(round, 0)))]);
        let edits =
            [("a", Some(text(0, 0))), ("b", Some(text(round, 1))), ("d/x", None), ("e", Some(text(1, 1)))];
        let mut ids = Vec::new();
        for (n, at) in [1usize, 2, 3].into_iter().enumerate() {
            let other = if at == 3 { Some(text(0, 7)) } else { edits[at].1.clone() };
            let name = if at == 3 { "a" } else { edits[at].0 };
            ids.push(world.submitted(&format!("f{at}"), &format!("c{n}"), &[(name, other.as_deref())]));
        }
        world.landed(&[&first]);
        for _ in 0..24 {
            let listed: Vec<_> = ids
                .iter()
                .filter(|id| world.ledger.state(id).is_open())
                .map(|id| (id.clone(), Version(1)))
                .collect();
            let Some(mut honest) = world.assemble(&lane("main"), &listed).filter(|_| !listed.is_empty())
            else {
                break;
            };
            world.tested(&mut honest);
            let mut value = serde_json::to_value(&honest).unwrap();
            let mut found = Vec::new();
            words(&value, &mut found);
            for _ in 0..1 + rng.below(2) {
                mangle(&mut value, &mut rng, &found);
            }
            let Ok(request) = serde_json::from_value::<LandRequest>(value) else { continue };
            let landed = world.land(&request).is_ok();
            assert_eq!(world.laws(), Ok(()), "{request:?}");
            if landed { taken += 1 } else { refused += 1 }
        }
    }
    println!("{taken} taken, {refused} refused");
    assert!(refused > 80);
}

#[test]
fn a_turn_belongs_to_one_lane_until_its_end_and_comes_to_everyone_who_asked() {
    let lanes: Vec<_> = ["a", "b", "c", "d"].map(lane).to_vec();
    let mut rng = Rng::new(3);
    for _ in 0..200 {
        let (mut turns, mut now) = (Turns::default(), Millis(0));
        let mut asked: BTreeMap<usize, u64> = BTreeMap::new();
        for _ in 0..60 {
            now = now.plus(rng.below(30) as u64);
            let before = turn::holder(&turns, now);
            let at = rng.below(lanes.len());
            match rng.below(3) {
                0 => {
                    turns = turn::ask(&turns, &lanes[at], now, 50);
                    asked.entry(at).or_insert(now.0);
                }
                1 => turns = turn::finish(&turns, &lanes[at], now),
                _ => turns = turn::current(&turns, now),
            }
            let after = turn::holder(&turns, now);
            if let Some((holder, until)) = before
                && holder != lanes[at]
            {
                assert_eq!(after, Some((holder, until)), "nobody else ends a turn");
            }
            assert!(turns.queue.len() <= lanes.len());
        }
        // Nobody asks any more: after one lease for each lane the queue is empty.
        assert_eq!(turn::holder(&turns, now.plus(50 * lanes.len() as u64 + 50)), None);
    }
}

#[test]
fn a_simulated_log_of_facts_rebuilds_every_table() {
    for seed in [21, 22] {
        let (world, _) = world_after(seed, 300).unwrap();
        let mut again =
            MemoryLedger::new(yard_common::policy::Policy { command: "test".into(), ..Default::default() });
        let mut known = BTreeSet::new();
        for fact in &world.facts {
            if let Fact::DirectPush { new, .. } = fact {
                let mut nodes: Vec<ObjectId> = world.store.history(*new).iter().copied().collect();
                nodes.sort_by_key(|commit| world.store.history(*commit).len());
                for commit in nodes.into_iter().filter(|commit| known.insert(*commit)) {
                    again.put_commit(&world.store.node(commit));
                }
            }
            again.apply(&serde_json::from_str(&serde_json::to_string(fact).unwrap()).unwrap());
        }
        assert_eq!(again, world.ledger);
    }
}

/// Counts what is read.
struct Counting<'a> {
    inner: &'a dyn Objects,
    reads: Cell<usize>,
}

impl Objects for Counting<'_> {
    fn get(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.reads.set(self.reads.get() + 1);
        self.inner.get(id)
    }
}

/// A train of `n` one-file changes on a tree of 5,000 files in 50 directories; its reads and milliseconds.
fn cost(n: usize) -> (usize, u128) {
    let mut start = Files::new();
    for file in 0..5000 {
        start.insert(path(&format!("d{}/f{}", file % 50, file)), (Mode::File, format!("{file}\n")));
    }
    let mut world = World::new(&start);
    world.judged = false;
    let main = world.main();
    let root = world.store.links(main).0;
    let mut listed = Vec::new();
    let mut tree = root;
    for k in 0..n {
        let at = path(&format!("d{}/f{}", k % 50, k));
        let entry = world.store.entry(&Some((Mode::File, format!("edit {k}\n"))));
        let head_tree = world.store.apply(root, &[(at.clone(), entry)]);
        let head = world.store.commit(&[main], head_tree, &format!("work {k}\n"));
        let id = change(&format!("c{k}"));
        let push = crate::world::Push {
            key: format!("k{k}"),
            change: Some(id.clone()),
            new_change: false,
            replay_of: None,
            reviewed: None,
            renames: Vec::new(),
            differing_lines: 0,
            fork: fork("f1"),
            head,
            lane: lane("main"),
            reverts: Vec::new(),
            meant: crate::model::Meant { from: Files::new(), to: Files::new() },
        };
        let proposal = world.prepare_on(&push, root);
        world.offer(&proposal, &push.meant).unwrap();
        let edits = world.merge(&id, Version(1), tree).unwrap();
        tree = world.store.apply(tree, &[(at, entry)]);
        listed.push((id, Version(1), edits, tree));
    }
    let mut request = world.request(&lane("main"), main, listed);
    world.tested(&mut request);
    let counting = Counting { inner: &world.store.objects, reads: Cell::new(0) };
    let begin = Instant::now();
    let decision = world.decide(&request, &counting);
    let spent = begin.elapsed().as_millis();
    assert!(matches!(decision, Decision::Fact(fact) if matches!(*fact, Fact::Landed { .. })));
    (counting.reads.get(), spent)
}

#[test]
fn a_train_of_500_on_5000_files_reads_each_object_once() {
    let (reads, spent) = cost(500);
    println!("500 changes: {reads} objects read, {spent} ms in this build");
    // 500 commits, root and 50 directories, and the notes: commit, root and at most 256 directories.
    assert!(reads <= 500 + 51 + 2 + 256 + 10, "{reads}");
}
