use yard_common::bytes::Base64;
use yard_common::landing::PackRef;
use yard_git::pack::PackWriter;
use yard_git::{Kind, hash};

use super::*;
use crate::native::{MemoryBlobs, block_on};

fn packed(blobs: &MemoryBlobs, key: &str, texts: &[Vec<u8>], inline: bool) -> IndexedPack {
    let mut writer = PackWriter::in_memory();
    for text in texts {
        writer.add(hash(Kind::Blob, text), Kind::Blob, text);
    }
    let pack = writer.finish().unwrap();
    block_on(blobs.put(key, pack.rest)).unwrap();
    if !inline {
        block_on(blobs.put(&format!("{key}.idx"), pack.index.clone())).unwrap();
    }
    IndexedPack {
        pack: PackRef { key: PackKey::new(key).unwrap(), bytes: pack.bytes, objects: pack.objects },
        index: inline.then_some(Base64(pack.index)),
    }
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as u8
        })
        .collect()
}

fn reply(packs: Vec<IndexedPack>, generation: u64, next: u64) -> CatalogueReply {
    CatalogueReply { generation, packs, next, parent: None }
}

#[test]
fn a_small_pack_is_one_read_and_what_no_pack_has_is_named() {
    let blobs = MemoryBlobs::default();
    let texts: Vec<_> = (0..100u8).map(|n| vec![n; 500]).collect();
    let set = PackSet::new(Budget::default());
    set.take("r", reply(vec![packed(&blobs, "a", &texts, true)], 0, 1)).unwrap();
    let absent = hash(Kind::Blob, b"absent");
    let mut ids: BTreeSet<_> = texts.iter().map(|text| hash(Kind::Blob, text)).collect();
    ids.insert(absent);
    let before = blobs.faults.calls();
    let mut needed = Needed::default();
    let missing = block_on(set.load(&blobs, &ids, &mut needed)).unwrap();
    assert_eq!(missing, BTreeSet::from([absent]));
    assert_eq!(blobs.faults.calls() - before, 1);
    assert!(texts.iter().all(|text| needed.get(&hash(Kind::Blob, text)).unwrap().data == *text));
    block_on(set.load(&blobs, &BTreeSet::from([hash(Kind::Blob, &texts[3])]), &mut Needed::default()))
        .unwrap();
    assert_eq!(blobs.faults.calls() - before, 1, "a cached object needs no read");
}

#[test]
fn a_large_pack_is_read_by_windows_with_its_index_from_the_bucket() {
    let blobs = MemoryBlobs::default();
    let texts: Vec<_> = (0..40).map(|n| noise(n, 200_000)).collect();
    let set = PackSet::new(Budget::default());
    set.take("r", reply(vec![packed(&blobs, "a", &texts, false)], 0, 1)).unwrap();
    let wanted = [0, 1, 39].map(|n: usize| hash(Kind::Blob, &texts[n]));
    let mut needed = Needed::default();
    let before = blobs.faults.calls();
    assert!(block_on(set.load(&blobs, &BTreeSet::from(wanted), &mut needed)).unwrap().is_empty());
    assert!(blobs.faults.calls() - before <= 5, "{}", blobs.faults.calls() - before);
    assert_eq!(needed.get(&wanted[2]).unwrap().data, texts[39]);
    let all: BTreeSet<_> = texts.iter().map(|text| hash(Kind::Blob, text)).collect();
    let mut needed = Needed::default();
    assert!(block_on(set.load(&blobs, &all, &mut needed)).unwrap().is_empty());
    assert!(all.iter().all(|id| needed.get(id).unwrap().id() == *id));
    let kept = set.objects.borrow().bytes();
    assert!(kept <= Budget::default().objects);
}

#[test]
fn a_new_generation_replaces_the_copy_of_its_source_alone() {
    let blobs = MemoryBlobs::default();
    let pack = |key: &str, n: u8| packed(&blobs, key, &[vec![n; 9]], true);
    let set = PackSet::new(Budget::default());
    set.take("r", reply(vec![pack("a", 1), pack("b", 2)], 0, 2)).unwrap();
    set.take("fork", reply(vec![pack("b", 2), pack("c", 3)], 5, 2)).unwrap();
    assert_eq!((set.ask("fork").since, set.ask("fork").generation), (2, 5));
    set.take("fork", reply(vec![pack("d", 4)], 5, 3)).unwrap();
    set.take("r", reply(vec![pack("a", 1)], 1, 2)).unwrap();
    let keys: Vec<_> = set.packs().iter().map(|pack| pack.key.to_string()).collect();
    assert_eq!(keys, ["a", "b", "c", "d"], "b is still the fork's");
    set.take("fork", reply(vec![], 6, 3)).unwrap();
    assert_eq!(set.packs().len(), 1);
}

/// Real histories, where `YARD_REAL_REPOS=dir:dir` names bare repositories: every object, deltas and all.
#[test]
fn real_packs_are_read_object_by_object() {
    let repos = std::env::var("YARD_REAL_REPOS").unwrap_or_default();
    for repo in repos.split(':').filter(|repo| !repo.is_empty()) {
        let blobs = MemoryBlobs::default();
        let set = PackSet::new(Budget { objects: 2 << 20, indexes: 1 << 20, windows: 2 << 20 });
        let mut all = Vec::new();
        for file in std::fs::read_dir(format!("{repo}/objects/pack")).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_none_or(|ext| ext != "pack") {
                continue;
            }
            let key = file.file_name().unwrap().to_str().unwrap().to_owned();
            let pack = std::fs::read(&file).unwrap();
            let index = std::fs::read(file.with_extension("idx")).unwrap();
            let parsed = PackIndex::parse(index.clone()).unwrap();
            all.extend(parsed.iter().map(|entry| entry.id));
            let objects = u32::try_from(parsed.len()).unwrap();
            let pack_ref = PackRef { key: PackKey::new(&key).unwrap(), bytes: pack.len() as u64, objects };
            block_on(blobs.put(&key, pack)).unwrap();
            block_on(blobs.put(&format!("{key}.idx"), index)).unwrap();
            set.add("r", IndexedPack { pack: pack_ref, index: None }).unwrap();
        }
        assert!(!all.is_empty(), "{repo} has no pack");
        let step = (all.len() / 5000).max(1);
        let sample: Vec<ObjectId> = all.iter().step_by(step).copied().collect();
        let before = blobs.faults.calls();
        for ids in sample.chunks(500) {
            let mut needed = Needed::default();
            let missing = block_on(set.load(&blobs, &ids.iter().copied().collect(), &mut needed)).unwrap();
            assert!(missing.is_empty());
            for id in ids {
                assert_eq!(needed.get(id).unwrap().id(), *id);
            }
        }
        println!(
            "{repo}: {} of {} objects, {} reads",
            sample.len(),
            all.len(),
            blobs.faults.calls() - before
        );
    }
}
