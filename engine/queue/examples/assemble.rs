//! Changes per second of one train, natively:
//! `cargo run --release -p yard-queue --example assemble [changes] [files]`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use yard_common::intent::{Intent, Signature};
use yard_common::landing::AttemptId;
use yard_common::submission::{Base, Entry, Mode, RowEdit, Submission, Via};
use yard_common::*;
use yard_git::{Kind, MemoryObjects, RunningTree};
use yard_merge::Rules;
use yard_queue::assemble::{Assembly, Order, Passenger};
use yard_queue::{Candidate, Check, note};

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<usize>().unwrap());
    let (changes, files) = (args.next().unwrap_or(500), args.next().unwrap_or(5_000));
    let mut objects = MemoryObjects::default();
    let mut tree = RunningTree::new(ObjectId::EMPTY_TREE);
    let path = |n: usize| RepoPath::new(format!("src/d{}/e{}/file{n}.rs", n % 20, n / 20 % 10)).unwrap();
    let blob = |text: String| text.into_bytes();
    let mut edits = Vec::new();
    for n in 0..files {
        let id = objects.add(Kind::Blob, blob(format!("file {n}\n").repeat(40)));
        edits.push((path(n), Some(Entry { mode: Mode::File, id })));
    }
    let applied = tree.apply(&objects, &edits).unwrap();
    for made in applied.trees {
        objects.add(Kind::Tree, made.data);
    }
    let head = (ObjectId([1; 20]), applied.root);
    let passengers: Vec<Passenger> = (0..changes)
        .map(|n| {
            let base = edits[n * 7 % files].1;
            let id = objects.add(Kind::Blob, blob(format!("change {n}\n").repeat(40)));
            Passenger {
                row: Arc::new(row(n, head, path(n * 7 % files), base, id)),
                waits_for: BTreeSet::new(),
            }
        })
        .collect();
    let attempt =
        AttemptId { lane: LaneName::new("main").unwrap(), train: TrainNo(1), attempt: AttemptNo(1) };
    let rows: BTreeMap<ChangeId, Submission> =
        passengers.iter().map(|one| (one.row.change.clone(), (*one.row).clone())).collect();
    let order = Order {
        attempt: attempt.clone(),
        head,
        base: None,
        epoch: Epoch(0),
        owner_epoch: OwnerEpoch(0),
        check: Check { config: None, command: "true".into(), junit: None, timeout_seconds: 1 },
        rules: Rules::new(Vec::new()),
        passengers,
        now: Millis(1_700_000_000_000),
    };
    let start = Instant::now();
    let mut assembly = Assembly::new(order);
    assembly.run(&objects).unwrap();
    let built = assembly.finish(PackKey::new("k").unwrap()).unwrap();
    let assembled = start.elapsed();
    let (candidate, pack) = (built.candidate.unwrap(), built.pack.unwrap());
    let start = Instant::now();
    let notes = noted(&objects, &candidate, &rows, attempt);
    let spent = start.elapsed();
    let rate = |time: std::time::Duration| changes as f64 / time.as_secs_f64();
    println!(
        "{} of {changes} changes on {files} files: assemble {:.0}/s ({:.1} ms, pack {} kB, {} objects); \
         notes {:.0}/s ({:.1} ms, pack {} kB); together {:.0}/s",
        candidate.members.len(),
        rate(assembled),
        assembled.as_secs_f64() * 1e3,
        pack.bytes / 1000,
        pack.objects,
        rate(spent),
        spent.as_secs_f64() * 1e3,
        notes.pack.bytes / 1000,
        rate(assembled + spent),
    );
}

fn noted(
    objects: &MemoryObjects,
    candidate: &Candidate,
    rows: &BTreeMap<ChangeId, Submission>,
    attempt: AttemptId,
) -> note::Notes {
    let landing = candidate.members.iter().map(|member| (member, &rows[&member.change])).collect();
    let (proofs, now) = (BTreeMap::new(), Millis(1_700_000_000_000));
    let order = note::Order { attempt, notes: None, landing, runs: &[], proofs, now };
    note::write(objects, &order, PackKey::new("n").unwrap()).unwrap()
}

fn row(
    n: usize,
    head: (ObjectId, ObjectId),
    path: RepoPath,
    base: Option<Entry>,
    id: ObjectId,
) -> Submission {
    Submission {
        seq: Seq(n as u64 + 1),
        change: ChangeId::new(format!("change-{n:06}")).unwrap(),
        version: Version(1),
        fork: Some(ForkName::new("agent").unwrap()),
        author: Signature {
            name: "Agent".into(),
            email: "agent@example.org".into(),
            seconds: 1,
            offset_minutes: 0,
        },
        head: ObjectId([2; 20]),
        head_tree: ObjectId([3; 20]),
        commits: vec![],
        base: Base { commits: vec![head.0], tree: head.1 },
        edits: vec![RowEdit { path, base, theirs: Some(Entry { mode: Mode::File, id }) }],
        list: None,
        fences: BTreeMap::new(),
        reverts: vec![],
        lane: LaneName::new("main").unwrap(),
        owner_epoch: OwnerEpoch(0),
        waits_for: vec![],
        key: IdempotencyKey::new("k").unwrap(),
        at: Millis(0),
        via: Via::Api,
        intent: Intent {
            title: format!("Change number {n}"),
            body: "It was asked for, and it is done.".into(),
            task: "Do it".into(),
            agent: "agent".into(),
            model: "model".into(),
            ..Intent::default()
        },
        warnings: vec![],
        content: String::new(),
        replay: None,
    }
}
