//! How much of a stored pack is read to resolve it.

use super::*;

/// What pass 2 took.
pub(super) struct Reading {
    pub received: Received,
    pub rounds: u64,
    pub ranges: usize,
    pub asked: u64,
    pub remade: u64,
}

/// Pass 2 over a pack of which only the windows of one step are in memory, and a stash of some bytes.
pub(super) fn resolve_by_windows(pack: &[u8], limits: Limits, stash_bytes: u64) -> Reading {
    let mut resolver = Resolver::new(scan(pack, 65536, limits).unwrap()).unwrap();
    resolver.stash_bytes = stash_bytes;
    let mut windows = Windows::new(pack.len() as u64, usize::try_from(NEED_BYTES_MAX).unwrap());
    let (mut rounds, mut ranges_asked, mut asked) = (0, 0, 0);
    loop {
        match resolver.step(&windows, &MemoryObjects::default()).unwrap() {
            Progress::Done(received) => {
                let (received, remade) = (*received, resolver.remade_bytes());
                return Reading { received, rounds, ranges: ranges_asked, asked, remade };
            }
            Progress::Need { ranges, bases } => {
                assert!(bases.is_empty() && !ranges.is_empty());
                rounds += 1;
                ranges_asked += ranges.len();
                let step: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                assert!(step <= NEED_BYTES_MAX);
                asked += step;
                for range in ranges {
                    windows.insert(range.start, pack[range.start as usize..range.end as usize].to_vec());
                }
            }
        }
    }
}

/// At most four times the pack is read, and each round but the last of a sweep asks for as much as it may.
pub(super) fn assert_read_a_few_times(reading: &Reading, pack: &[u8], name: &str) {
    let Reading { rounds, ranges, asked, remade, .. } = *reading;
    let (rows, bytes) = (reading.received.objects.len(), pack.len() as u64);
    eprintln!(
        "{name}: {rows} objects, {bytes} bytes; {rounds} rounds of {ranges} ranges, {asked} bytes asked \
         ({:.2} times the pack), {remade} remade",
        asked as f64 / bytes as f64
    );
    assert!(asked <= 4 * bytes, "{name}: {asked} of {bytes}");
    assert!(rounds <= 4 * bytes.div_ceil(NEED_BYTES_MAX) + READ_SWEEPS_MAX, "{name}: {rounds} rounds");
}

/// Each sweep may end with a short round.
const READ_SWEEPS_MAX: u64 = 8;

fn noise(random: &mut Random, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|_| random.below(u64::MAX).to_le_bytes()).take(bytes).collect()
}

/// A pack of `families` chains of `depth` deltas that no compressor makes smaller; the first of all
/// families stand before the second of all, and so on, each time in another order. Every tenth delta has
/// a brother.
fn scattered(families: usize, depth: usize, bytes: usize, by_id: bool) -> Vec<u8> {
    let mut random = Random(2026);
    let mut pack = b"PACK\0\0\0\x02\0\0\0\0".to_vec();
    let mut count = 0u32;
    let mut heads: Vec<(usize, Vec<u8>)> = vec![(0, Vec::new()); families];
    for level in 0..=depth {
        for at in (1..families).rev() {
            heads.swap(at, random.below(at as u64 + 1) as usize);
        }
        for head in &mut heads {
            let base = head.clone();
            // The brother first: the chain goes on from the last one.
            for _ in 0..if level % 10 == 1 { 2 } else { 1 } {
                let (offset, text) = (pack.len(), noise(&mut random, bytes));
                let (content, data) = match level {
                    0 => (Content::Full(Kind::Blob), text.clone()),
                    _ if by_id => (Content::Ref(hash(Kind::Blob, &base.1)), delta::make(&base.1, &text)),
                    _ => (Content::Ofs((offset - base.0) as u64), delta::make(&base.1, &text)),
                };
                header::write(&mut pack, content, data.len() as u64);
                zlib::store(&mut pack, &data);
                count += 1;
                *head = (offset, text);
            }
        }
    }
    pack[8..12].copy_from_slice(&count.to_be_bytes());
    sealed(pack)
}

fn assert_sweeps_find_what_memory_finds(pack: &[u8], stash_bytes: u64, name: &str) {
    let reading = resolve_by_windows(pack, Limits::default(), stash_bytes);
    assert_read_a_few_times(&reading, pack, name);
    assert!(reading.received == receive_with(pack, 1 << 16, &MemoryObjects::default()).unwrap(), "{name}");
}

#[test]
fn the_largest_push_is_read_four_times_at_most_even_if_all_of_it_is_scattered() {
    let pack = scattered(872, 50, 2000, false);
    assert!(pack.len() as u64 > PUSH_PACK_BYTES_MAX - (4 << 20), "{}", pack.len());
    let reading = resolve_by_windows(&pack, Limits::default(), STASH_BYTES_MAX);
    assert_read_a_few_times(&reading, &pack, "95 MiB");
    assert!(reading.received.index().is_ok());
}

#[test]
fn scattered_families_are_read_a_few_times() {
    for (pack, name) in [
        (scattered(170, 50, 2000, false), "170 chains of 50"),
        (scattered(4500, 3, 1000, false), "4,500 chains of 3"),
    ] {
        assert_sweeps_find_what_memory_finds(&pack, pack.len() as u64 / 3, name);
    }
}

#[test]
fn families_that_are_only_known_by_id_are_read_once_if_the_stash_holds_them() {
    let pack = scattered(350, 50, 600, true);
    assert_sweeps_find_what_memory_finds(&pack, pack.len() as u64, "350 chains of 50 by id");
    let reading = resolve_by_windows(&pack, Limits::default(), pack.len() as u64);
    assert_eq!(reading.rounds, (pack.len() as u64).div_ceil(NEED_BYTES_MAX));
}

#[test]
fn families_that_are_only_known_by_id_are_found_in_more_sweeps_if_it_does_not() {
    let pack = scattered(350, 50, 600, true);
    let reading = resolve_by_windows(&pack, Limits::default(), pack.len() as u64 / 2);
    eprintln!(
        "by id, stash of half the pack: {} rounds, {} of {}",
        reading.rounds,
        reading.asked,
        pack.len()
    );
    assert!(reading.asked <= 6 * pack.len() as u64, "{} of {}", reading.asked, pack.len());
}

#[test]
fn families_larger_than_the_stash_are_read_a_few_times() {
    assert_sweeps_find_what_memory_finds(&scattered(2, 50, 400_000, false), 8 << 20, "large families");
    assert_sweeps_find_what_memory_finds(&scattered(1, 4, 9 << 20, false), 8 << 20, "large objects");
}

#[test]
fn what_no_delta_builds_on_is_not_read() {
    let mut random = Random(7);
    let alone: Vec<_> = (0..40).map(|_| blob(&noise(&mut random, 500_000))).collect();
    let reading = resolve_by_windows(&crafted(&alone), Limits::default(), STASH_BYTES_MAX);
    assert_eq!((reading.rounds, reading.asked), (0, 0));
}

#[test]
fn a_delta_padded_with_empty_blocks_is_refused_before_it_is_kept() {
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x02".to_vec();
    header::write(&mut pack, Content::Full(Kind::Blob), 1);
    zlib::store(&mut pack, b"x");
    let delta = delta::make(b"x", b"y");
    header::write(&mut pack, Content::Ref(hash(Kind::Blob, b"x")), delta.len() as u64);
    pack.extend([0x78, 1]);
    pack.extend([0, 0, 0, 0xff, 0xff].repeat(4 << 20));
    let mut rest = Vec::new();
    zlib::store(&mut rest, &delta);
    pack.extend(&rest[2..]);
    let pack = sealed(pack);
    let mut resolver = Resolver::new(scan(&pack, 1 << 16, Limits::default()).unwrap()).unwrap();
    let nowhere = Windows::new(pack.len() as u64, 1 << 20);
    let fault = resolver.step(&nowhere, &MemoryObjects::default()).unwrap_err().to_string();
    assert!(fault.contains("padded"), "{fault}");
}

#[test]
fn a_pack_that_would_be_read_on_and_on_is_refused() {
    let pack = scattered(350, 50, 600, true);
    let mut resolver = Resolver::new(scan(&pack, 1 << 16, Limits::default()).unwrap()).unwrap();
    resolver.stash_bytes = pack.len() as u64 / 60;
    let (mut windows, mut asked) = (Windows::new(pack.len() as u64, 1 << 20), 0);
    let fault = loop {
        match resolver.step(&windows, &MemoryObjects::default()) {
            Ok(Progress::Need { ranges, .. }) => {
                for range in ranges {
                    asked += range.end - range.start;
                    windows.insert(range.start, pack[range.start as usize..range.end as usize].to_vec());
                }
                assert!(asked <= READ_TIMES_MAX * pack.len() as u64);
            }
            Ok(Progress::Done(_)) => panic!("{asked} bytes were enough"),
            Err(fault) => break fault,
        }
    };
    assert!(fault.to_string().contains("must be read"), "{fault}");
}

#[test]
fn a_thin_pack_in_storage_is_resolved_as_one_in_memory() {
    let folder = sample_repository(60);
    let pack = pack_objects(&folder.0, &["--thin", "--delta-base-offset"], "main\n^main~20\n");
    let base = objects_of(&folder.0, &["main~20"]);
    let mut resolver = Resolver::new(scan(&pack, 1000, Limits::default()).unwrap()).unwrap();
    resolver.stash_bytes = 2000;
    let mut windows = Windows::new(pack.len() as u64, 64 * 1024);
    let (mut hand, mut rounds) = (MemoryObjects::default(), 0);
    let received = loop {
        rounds += 1;
        assert!(rounds < 100);
        match resolver.step(&windows, &hand).unwrap() {
            Progress::Done(received) => break *received,
            Progress::Need { ranges, bases } => {
                for range in ranges {
                    // One byte short of the whole pack, which would need no sweep.
                    let from = (range.start as usize).max(1);
                    windows = Windows::new(pack.len() as u64, 64 * 1024);
                    windows.insert(from as u64, pack[from..range.end as usize].to_vec());
                }
                for id in bases.0 {
                    hand.insert(id, base.get(&id).unwrap());
                }
            }
        }
    };
    let expected = receive_with(&pack, 1000, &base).unwrap();
    assert!(received.is_thin() && received.outgoing == expected.outgoing);
    assert_eq!(received.objects.len(), expected.objects.len());
    let (complete, index) = received.complete(&pack).unwrap();
    assert_eq!(index, index_by_git(&complete, false));
}
