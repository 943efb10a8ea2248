use super::*;

fn entries(count: u32) -> Vec<IndexEntry> {
    (0..count)
        .map(|n| {
            let mut id = [0; 20];
            id[..4].copy_from_slice(&n.wrapping_mul(0x9E37_79B9).to_be_bytes());
            id[19] = n as u8;
            IndexEntry { id: ObjectId(id), crc32: n ^ 0x5555, offset: 12 + u64::from(n) * 77 }
        })
        .collect()
}

#[test]
fn an_index_finds_every_object_and_no_other() {
    for count in [0, 1, 2, 1000] {
        let list = entries(count);
        let index = PackIndex::parse(write(list.clone(), ObjectId([3; 20])).unwrap()).unwrap();
        assert_eq!((index.len(), index.pack_checksum()), (count as usize, ObjectId([3; 20])));
        index.verify().unwrap();
        for entry in &list {
            assert_eq!(index.find(&entry.id), Some(entry.offset));
            let mut other = entry.id;
            other.0[18] ^= 1;
            assert_eq!(index.find(&other), None);
        }
        let ids: Vec<_> = index.iter().map(|entry| entry.id).collect();
        assert!(ids.is_sorted());
        let spans = index.spans(12 + u64::from(count) * 77 + 20);
        for entry in &list {
            assert_eq!(spans.span(entry.offset), Some(entry.offset..entry.offset + 77));
            assert_eq!(spans.place(entry.offset), index.position(&entry.id));
        }
        assert_eq!(spans.span(13), None);
    }
}

#[test]
fn offsets_above_2_gib_go_to_the_large_table() {
    let mut list = entries(5);
    list[2].offset = 3 << 30;
    list[4].offset = 9 << 40;
    let index = PackIndex::parse(write(list.clone(), ObjectId::ZERO).unwrap()).unwrap();
    for entry in list {
        assert_eq!(index.find(&entry.id), Some(entry.offset));
    }
}

#[test]
fn a_cut_or_changed_index_is_malformed() {
    let data = write(entries(9), ObjectId::ZERO).unwrap();
    for cut in [0, 7, 8, 500, 1032, data.len() - 1, data.len() - 8] {
        assert!(PackIndex::parse(&data[..cut]).is_err(), "{cut}");
    }
    let mut longer = data.clone();
    longer.extend([0; 80]);
    assert!(PackIndex::parse(longer).is_err());
    let mut flipped = data.clone();
    flipped[1100] ^= 1;
    assert!(PackIndex::parse(flipped).unwrap().verify().is_err());
    let mut fanout = data;
    fanout[8] = 0xff;
    assert!(PackIndex::parse(fanout).is_err());
}
