use super::*;
use crate::object::{Kind, hash};
use crate::testing::{Folder, git, real_repositories, sample_repository};

/// The packs of a repository after `git repack`, with their indexes.
fn packs(folder: &std::path::Path) -> Vec<(Vec<u8>, PackIndex<Vec<u8>>)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder.join("objects/pack")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "idx") {
            let index = PackIndex::parse(std::fs::read(&path).unwrap()).unwrap();
            out.push((std::fs::read(path.with_extension("pack")).unwrap(), index));
        }
    }
    out
}

fn all_read_whole(pack: &Vec<u8>, index: &PackIndex<Vec<u8>>) {
    let spans = index.spans(pack.pack_len());
    let reader = Pack { bytes: pack, index, spans: Some(&spans) };
    let mut cache = BaseCache::new(16 << 20);
    let mut known: BTreeMap<u64, ObjectId> = index.iter().map(|entry| (entry.offset, entry.id)).collect();
    let offsets: Vec<u64> = known.keys().copied().collect();
    for chunk in offsets.chunks(100) {
        let batch = reader.read(chunk, &mut cache).unwrap();
        assert!(batch.need.is_empty());
        for (offset, object) in batch.done {
            assert_eq!(Some(object.id()), known.remove(&offset));
        }
    }
    assert!(known.is_empty());
}

#[test]
fn every_object_of_a_pack_of_git_is_read_ofs_and_ref_deltas_alike() {
    let folder = sample_repository(60);
    for offsets in ["true", "false"] {
        let set = format!("repack.useDeltaBaseOffset={offsets}");
        git(&folder.0, &["-c", &set, "repack", "-adfq", "--depth=50", "--window=2"], b"");
        let packs = packs(&folder.0);
        assert_eq!(packs.len(), 1);
        let checksum = packs[0].1.pack_checksum();
        let listing =
            git(&folder.0, &["verify-pack", "-v", &format!("objects/pack/pack-{checksum}.idx")], b"");
        let listing = String::from_utf8_lossy(&listing).into_owned();
        assert!(listing.contains("chain length = 4:"), "no chains: {listing}");
        all_read_whole(&packs[0].0, &packs[0].1);
    }
}

#[test]
fn real_histories_are_read_whole() {
    for repository in real_repositories() {
        for (pack, index) in packs(&repository) {
            all_read_whole(&pack, &index);
        }
    }
}

#[test]
fn what_is_not_at_hand_is_asked_for_in_windows_until_all_is_read() {
    let folder = sample_repository(60);
    git(&folder.0, &["repack", "-adfq", "--depth=50", "--window=2"], b"");
    let (pack, index) = packs(&folder.0).remove(0);
    let spans = index.spans(pack.pack_len());
    for spans in [Some(&spans), None] {
        let mut windows = Windows::new(pack.pack_len(), usize::MAX);
        let (mut todo, mut rounds): (Vec<u64>, _) = (index.iter().map(|entry| entry.offset).collect(), 0);
        let mut cache = BaseCache::new(1 << 20);
        while !todo.is_empty() {
            let reader = Pack { bytes: &windows, index: &index, spans };
            let batch = reader.read(&todo, &mut cache).unwrap();
            for (offset, object) in &batch.done {
                assert_eq!(index.find(&object.id()), Some(*offset));
            }
            todo.retain(|offset| !batch.done.iter().any(|done| done.0 == *offset));
            for range in batch.need {
                assert!(range.end - range.start <= WINDOW_BYTES_MAX && range.start % WINDOW_BYTES_MIN == 0);
                let bytes = pack[range.start as usize..range.end as usize].to_vec();
                windows.insert(range.start, bytes);
            }
            rounds += 1;
            assert!(rounds < 60, "{} left", todo.len());
        }
    }
}

#[test]
fn windows_answer_from_whichever_holds_the_byte_and_keep_their_bound() {
    let data: Vec<u8> = (0..200u8).collect();
    let mut windows = Windows::new(200, 100);
    windows.insert(50, data[50..60].to_vec());
    windows.insert(0, data[..90].to_vec());
    assert_eq!(windows.at(70), &data[70..90]);
    windows.insert(80, data[80..120].to_vec());
    assert!(windows.at(10).is_empty(), "the oldest was let go");
    assert_eq!(windows.at(85), &data[85..120]);
    windows.insert(100, data[100..110].to_vec());
    assert_eq!(windows.at(100), &data[100..120]);
}

#[test]
fn asked_ranges_are_rounded_merged_and_cut() {
    let k = 1024;
    let asked = [70 * k..71 * k, 10..20, 3000 * k..5000 * k, 100 * k..130 * k];
    let pack_len = 4500 * k + 7;
    let windows = windows(&asked, pack_len);
    assert_eq!(windows[0], 0..192 * k);
    assert_eq!(windows.last().unwrap().end, pack_len);
    assert!(windows.iter().all(|w| w.end - w.start <= WINDOW_BYTES_MAX));
    assert!(windows.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

/// A pack of hand-made entries, and its index (all ids invented).
fn crafted(entries: &[(Content, u64, Vec<u8>)]) -> (Vec<u8>, PackIndex<Vec<u8>>, Vec<u64>) {
    let mut pack = b"PACK\0\0\0\x02\0\0\0\0".to_vec();
    let mut list = Vec::new();
    for (n, (content, size, stream)) in entries.iter().enumerate() {
        list.push(crate::pack::IndexEntry {
            id: ObjectId([n as u8; 20]),
            crc32: 0,
            offset: pack.len() as u64,
        });
        header::write(&mut pack, *content, *size);
        pack.extend(stream);
    }
    pack.extend([0; 20]);
    let offsets = list.iter().map(|entry| entry.offset).collect();
    let index = PackIndex::parse(crate::pack::index::write(list, ObjectId::ZERO).unwrap()).unwrap();
    (pack, index, offsets)
}

fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    super::super::zlib::store(&mut out, data);
    out
}

#[test]
fn bombs_cycles_and_corrupt_entries_are_refused() {
    let big = OBJECT_BYTES_MAX as u64 + 1;
    let cycle = |n: u8| (Content::Ref(ObjectId([n; 20])), 3, stored(&[1, 1, 0x90]));
    for (entries, wants) in [
        (vec![(Content::Full(Kind::Blob), 5, stored(&[7; 100]))], "larger than its entry"),
        (vec![(Content::Full(Kind::Blob), 50, stored(&[7; 10]))], "smaller than its entry"),
        (vec![(Content::Full(Kind::Blob), big, stored(b"x"))], "at most"),
        (vec![(Content::Full(Kind::Blob), 1, b"no zlib".to_vec())], "corrupt"),
        (vec![(Content::Full(Kind::Blob), 9, stored(b"123456789")[..8].to_vec())], "corrupt"),
        (vec![(Content::Ofs(500), 1, stored(b"x"))], "base is not in the pack"),
        (vec![(Content::Ofs(0), 1, stored(b"x"))], "base is not in the pack"),
        (vec![(Content::Ref(ObjectId([99; 20])), 1, stored(b"x"))], "base is not in the pack"),
        (vec![cycle(1), cycle(0)], "too deep"),
    ] {
        let (pack, index, offsets) = crafted(&entries);
        let reader = Pack { bytes: &pack, index: &index, spans: None };
        let fault = reader.read(&offsets, &mut BaseCache::new(1 << 20)).unwrap_err().to_string();
        assert!(fault.contains(wants), "{wants}: {fault}");
    }
}

#[test]
fn copied_entries_make_a_pack_that_git_takes() {
    let folder = sample_repository(40);
    git(&folder.0, &["repack", "-adfq", "--depth=50", "--window=2"], b"");
    let (pack, index) = packs(&folder.0).remove(0);
    let spans = index.spans(pack.pack_len());
    let reader = Pack { bytes: &pack, index: &index, spans: Some(&spans) };
    // In id order a base may come after its delta: those go by id.
    let in_pack_order: Vec<u64> = spans.in_pack_order().iter().map(|start| start.0).collect();
    let in_id_order: Vec<u64> = index.iter().map(|entry| entry.offset).collect();
    for order in [in_pack_order, in_id_order] {
        let mut writer = super::super::PackWriter::streaming(u32::try_from(order.len()).unwrap());
        let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
        for offset in order {
            let id = index.id(spans.place(offset).unwrap()).unwrap();
            let entry = reader.raw(offset, &mut buffer).unwrap().unwrap();
            assert!(writer.copy(id, &entry));
            bytes.extend(writer.take());
        }
        let finished = writer.finish().unwrap();
        bytes.extend(&finished.rest);
        let other = Folder::new();
        git(&other.0, &["init", "-q", "--bare"], b"");
        let out = git(&other.0, &["index-pack", "--stdin", "--strict"], &bytes);
        assert!(String::from_utf8(out).unwrap().contains(&finished.checksum.to_string()));
        let idx = other.0.join(format!("objects/pack/pack-{}.idx", finished.checksum));
        assert_eq!(std::fs::read(idx).unwrap(), finished.index);
    }
}

#[test]
fn a_blob_id_is_the_hash_of_what_is_read() {
    let (pack, index, offsets) = crafted(&[(Content::Full(Kind::Blob), 4, stored(b"text"))]);
    let reader = Pack { bytes: &pack, index: &index, spans: None };
    let batch = reader.read(&offsets, &mut BaseCache::new(0)).unwrap();
    assert_eq!(batch.done[0].1.id(), hash(Kind::Blob, b"text"));
}
