//! Prints how fast the hot paths are: hashing, trees, edits, deltas, packs.
//!
//! `cargo run --release -p yard-git --example speed`; production CPU is about ten times slower.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

use yard_common::{ObjectId, RepoPath};
use yard_git::pack::receive::{Limits, Progress, Resolver, Scanner};
use yard_git::pack::{PackWriter, delta};
use yard_git::tree::{TreeMode, encode, parse};
use yard_git::{Entry, Kind, MemoryObjects, Mode, Objects, RunningTree, hash};

/// Seconds of CPU that this thread has used (Linux): other processes do not disturb it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Runs `work` for about half a second of CPU; gives seconds for one run.
fn time(mut work: impl FnMut()) -> f64 {
    work();
    let start = cpu_seconds();
    let mut runs = 0u32;
    while cpu_seconds() - start < 0.5 {
        work();
        runs += 1;
    }
    (cpu_seconds() - start) / f64::from(runs)
}

fn blob(n: u32) -> Entry {
    Entry { mode: Mode::File, id: hash(Kind::Blob, &n.to_le_bytes()) }
}

fn path(n: u32) -> RepoPath {
    RepoPath::new(format!("package{:02}/module_{:03}.rs", n / 100 % 50, n % 100)).unwrap()
}

/// A tree of 50 directories with 100 files each.
fn five_thousand_files() -> (MemoryObjects, RunningTree) {
    let mut objects = MemoryObjects::default();
    let mut tree = RunningTree::new(ObjectId::EMPTY_TREE);
    let edits: Vec<_> = (0..5000).map(|n| (path(n), Some(blob(n)))).collect();
    for new in tree.apply(&objects, &edits).unwrap().trees {
        objects.add(Kind::Tree, new.data);
    }
    (objects, tree)
}

fn hashing() {
    let large = vec![7u8; 4 << 20];
    let small = vec![7u8; 300];
    let mib = 4.0 / time(|| assert!(!hash(Kind::Blob, &large).is_zero()));
    let each = time(|| assert!(!hash(Kind::Blob, &small).is_zero()));
    println!("hash: {mib:.0} MiB/s in large, {:.0} objects/s of 300 bytes", 1.0 / each);
}

fn trees() {
    let names: Vec<String> = (0..100).map(|n| format!("module_{n:03}.rs")).collect();
    let list: Vec<_> =
        names.iter().map(|name| (TreeMode::Leaf(Mode::File), name.as_bytes(), blob(1).id)).collect();
    let data = encode(&list);
    let parsing = time(|| assert_eq!(parse(&data).unwrap().len(), 100));
    let encoding = time(|| assert_eq!(encode(&list).len(), data.len()));
    println!("trees of 100: {:.0}/s parsed, {:.0}/s encoded", 1.0 / parsing, 1.0 / encoding);
}

fn edits() {
    let (objects, mut tree) = five_thousand_files();
    let mut n = 0u32;
    let each = time(|| {
        n += 1;
        tree.apply(&objects, &[(path(n.wrapping_mul(7919) % 5000), Some(blob(n + 5000)))]).unwrap();
    });
    println!("editor: {:.0} one-file edits/s in 5,000 files ({:.0} us each)", 1.0 / each, each * 1e6);
    let (_, other) = five_thousand_files();
    let all = MemoryObjects::clone(&objects);
    let each = time(|| assert_eq!(yard_git::diff::list(&all, other.id()).unwrap().len(), 5000));
    println!("diff: {:.1} ms to list 5,000 files", each * 1e3);
}

/// The objects of 500 changes of one file each: blobs, trees with the tree before, commits of 300 bytes.
struct Train {
    blobs: Vec<Vec<u8>>,
    trees: Vec<(ObjectId, Vec<u8>, Option<ObjectId>)>,
    before: MemoryObjects,
}

fn train() -> Train {
    let (mut objects, mut tree) = five_thousand_files();
    let (mut blobs, mut trees) = (Vec::new(), Vec::new());
    for n in 0..500u32 {
        let text = format!("fn function_{n}() -> u32 {{ {n} + {} }}\n", n * 31).repeat(60).into_bytes();
        let entry = Entry { mode: Mode::File, id: hash(Kind::Blob, &text) };
        blobs.push(text);
        for new in tree.apply(&objects, &[(path(n * 7919 % 5000), Some(entry))]).unwrap().trees {
            objects.add(Kind::Tree, new.data.clone());
            trees.push((new.id, new.data, new.before));
        }
    }
    Train { blobs, trees, before: objects }
}

fn packs() {
    let train = train();
    let bases: Vec<_> =
        train.trees.iter().map(|tree| tree.2.and_then(|id| train.before.get(&id))).collect();
    let making = time(|| {
        for (tree, base) in train.trees.iter().zip(&bases) {
            assert!(!delta::make(&base.as_ref().unwrap().data, &tree.1).is_empty());
        }
    }) / train.trees.len() as f64;
    println!("deltas of trees: {:.0}/s made", 1.0 / making);
    let write = |with_deltas: bool| {
        let mut writer = PackWriter::in_memory();
        for ((id, data, before), base) in train.trees.iter().zip(&bases) {
            let near = before.zip(base.as_ref().map(|base| base.data.as_slice()));
            writer.add_near(*id, Kind::Tree, data, near.filter(|_| with_deltas));
        }
        writer.finish().unwrap()
    };
    for with_deltas in [true, false] {
        let each = time(|| assert!(write(with_deltas).bytes > 0)) / train.trees.len() as f64;
        let bytes = write(with_deltas).bytes as f64 / train.trees.len() as f64;
        println!("pack of trees, deltas {with_deltas}: {:.0}/s written, {bytes:.0} bytes each", 1.0 / each);
    }
    let write_blobs = || {
        let mut writer = PackWriter::in_memory();
        for text in &train.blobs {
            writer.add(hash(Kind::Blob, text), Kind::Blob, text);
        }
        writer.finish().unwrap()
    };
    let size: usize = train.blobs.iter().map(Vec::len).sum();
    let each = time(|| assert!(write_blobs().bytes > 0));
    println!("pack of blobs: {:.0} MiB/s hashed and deflated", size as f64 / each / 1048576.0);
    let pack = write(true);
    let receive = || {
        let mut scanner = Scanner::new(Limits::default());
        scanner.feed(&pack.rest).unwrap();
        let mut resolver = Resolver::new(scanner.finish().unwrap()).unwrap();
        let Progress::Done(received) = resolver.step(&pack.rest, &MemoryObjects::default()).unwrap() else {
            unreachable!()
        };
        received.objects.len()
    };
    let each = time(|| assert!(receive() > 0)) / train.trees.len() as f64;
    println!("received: {:.0} trees/s (deltas made, hashed, checked)", 1.0 / each);
}

fn main() {
    hashing();
    trees();
    edits();
    packs();
}
