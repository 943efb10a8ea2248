use std::path::Path;

use super::super::header;
use super::super::read::Windows;
use super::super::write::PackWriter;
use super::super::{PackIndex, delta, zlib};
use super::*;
use crate::object::{MemoryObjects, hash};
use crate::testing::{Folder, Random, git, git_text, real_repositories, run, sample_repository};
use crate::tree::{TreeMode, encode};
use crate::{Mode, Objects};

mod sweeps;

use sweeps::{assert_read_a_few_times, resolve_by_windows};

const FILE: TreeMode = TreeMode::Leaf(Mode::File);

fn scan(pack: &[u8], chunk: usize, limits: Limits) -> Result<Scanned, PackError> {
    let mut scanner = Scanner::new(limits);
    for piece in pack.chunks(chunk) {
        scanner.feed(piece)?;
    }
    scanner.finish()
}

fn receive_with(pack: &[u8], chunk: usize, objects: &impl Objects) -> Result<Received, PackError> {
    let mut resolver = Resolver::new(scan(pack, chunk, Limits::default())?)?;
    match resolver.step(pack, objects)? {
        Progress::Done(received) => Ok(*received),
        Progress::Need { ranges, bases } => {
            assert!(ranges.is_empty(), "all bytes are at hand");
            match resolver.step(pack, objects)? {
                Progress::Done(_) => panic!("{bases:?} were not given"),
                Progress::Need { .. } => panic!("asked twice"),
            }
        }
    }
}

fn receive(pack: &[u8]) -> Result<Received, PackError> {
    receive_with(pack, 4096, &MemoryObjects::default())
}

/// Everything of `revs` as git packs it.
fn pack_objects(folder: &Path, args: &[&str], revs: &str) -> Vec<u8> {
    let mut all = vec!["pack-objects", "--revs", "--stdout", "-q"];
    all.extend(args);
    git(folder, &all, revs.as_bytes())
}

/// The index that git writes for a pack, in a repository that has `objects_of` as alternate.
fn index_by_git(pack: &[u8], strict: bool) -> Vec<u8> {
    let folder = Folder::new();
    git(&folder.0, &["init", "-q", "--bare"], b"");
    std::fs::write(folder.0.join("x.pack"), pack).unwrap();
    let mut args = vec!["index-pack", "-o", "x.idx"];
    if strict {
        args.push("--strict");
    }
    args.push("x.pack");
    git(&folder.0, &args, b"");
    std::fs::read(folder.0.join("x.idx")).unwrap()
}

fn objects_of(folder: &Path, revs: &[&str]) -> MemoryObjects {
    let mut args = vec!["rev-list", "--objects"];
    args.extend(revs);
    let mut objects = MemoryObjects::default();
    for line in git_text(folder, &args, b"").lines() {
        let id = line.split(' ').next().unwrap();
        let kind = git_text(folder, &["cat-file", "-t", id], b"");
        let kind = Kind::from_name(kind.as_bytes()).unwrap();
        let data = git(folder, &["cat-file", kind.as_str(), id], b"");
        assert_eq!(objects.add(kind, data).to_string(), id);
    }
    objects
}

#[test]
fn the_index_is_the_one_that_git_writes_whatever_the_pieces() {
    let folder = sample_repository(60);
    for args in [&["--depth=50", "--window=2"][..], &["--delta-base-offset", "--depth=50"], &["--window=0"]]
    {
        let pack = pack_objects(&folder.0, args, "main\nv1\n");
        let by_git = index_by_git(&pack, true);
        for chunk in [1, 7, 4096, pack.len()] {
            let received = receive_with(&pack, chunk, &MemoryObjects::default()).unwrap();
            assert!(!received.is_thin());
            assert_eq!(received.index().unwrap(), by_git, "pieces of {chunk}");
            assert_eq!(received.outgoing, []);
            assert_eq!(received.commits.len(), 60);
            assert_eq!(received.tags.len(), 1);
        }
    }
}

#[test]
fn every_object_is_named_with_its_kind_and_size() {
    let folder = sample_repository(30);
    let pack = pack_objects(&folder.0, &[], "main\nv1\n");
    let received = receive(&pack).unwrap();
    let ours: Vec<String> =
        received.objects.iter().map(|o| format!("{} {} {}", o.id, o.kind.as_str(), o.size)).collect();
    let format = "--batch-check=%(objectname) %(objecttype) %(objectsize)";
    let by_git = git_text(&folder.0, &["cat-file", "--batch-all-objects", format], b"");
    assert_eq!(ours.join("\n"), by_git);
    for (id, links) in &received.commits {
        let shown = git_text(&folder.0, &["show", "-s", "--format=%T %P %ct", &id.to_string()], b"");
        let parents: Vec<_> = links.parents.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            format!("{} {} {}", links.tree, parents.join(" "), links.committed_at).replace("  ", "  ")
        );
    }
}

#[test]
fn a_thin_pack_is_completed_and_git_takes_it() {
    let folder = sample_repository(60);
    let pack = pack_objects(&folder.0, &["--thin", "--delta-base-offset"], "main\n^main~4\n");
    let base = objects_of(&folder.0, &["main~4"]);
    let scanned = scan(&pack, 1000, Limits::default()).unwrap();
    let likely = scanned.likely_bases();
    assert!(!likely.is_empty(), "the sample gives a thin pack");
    let mut resolver = Resolver::new(scanned).unwrap();
    let Progress::Need { bases, .. } = resolver.step(pack.as_slice(), &MemoryObjects::default()).unwrap()
    else {
        panic!("bases must be asked for")
    };
    assert!(bases.0.is_subset(&likely.0));
    let Progress::Done(received) = resolver.step(pack.as_slice(), &base).unwrap() else { panic!() };
    assert!(received.is_thin() && received.index().is_err());
    let (complete, index) = received.complete(&pack).unwrap();
    assert_eq!(index, index_by_git(&complete, false));
    let parsed = PackIndex::parse(index).unwrap();
    for object in &received.objects {
        assert_eq!(parsed.find(&object.id), Some(object.offset));
    }
    // What the push refers to outside itself is all in the base, and is of the kind that is said.
    for (id, kind) in &received.outgoing {
        assert!(base.get(id).is_some_and(|object| object.kind == *kind), "{id}");
    }
    let parent = git_text(&folder.0, &["rev-parse", "main~4"], b"").parse().unwrap();
    assert!(received.outgoing.contains(&(parent, Kind::Commit)));
    assert_eq!(received.commits.len(), 4 + usize::from(received.commits.len() > 4));
}

#[test]
fn a_base_that_is_nowhere_is_an_error_not_a_loop() {
    let folder = sample_repository(60);
    let pack = pack_objects(&folder.0, &["--thin"], "main\n^main~4\n");
    let mut resolver = Resolver::new(scan(&pack, 4096, Limits::default()).unwrap()).unwrap();
    let nothing = MemoryObjects::default();
    assert!(matches!(resolver.step(pack.as_slice(), &nothing), Ok(Progress::Need { .. })));
    let fault = resolver.step(pack.as_slice(), &nothing).unwrap_err();
    assert!(matches!(fault, PackError::Object { .. }), "{fault}");
}

#[test]
fn a_pack_in_storage_is_resolved_by_ranges_with_few_windows_in_memory() {
    let folder = sample_repository(200);
    let pack = pack_objects(&folder.0, &["--depth=50", "--window=10"], "main\nv1\n");
    let (by_git, mut rounds) = (index_by_git(&pack, true), 0);
    let mut resolver = Resolver::new(scan(&pack, 9999, Limits::default()).unwrap()).unwrap();
    let mut windows = Windows::new(pack.len() as u64, 2 * usize::try_from(NEED_BYTES_MAX).unwrap());
    let received = loop {
        match resolver.step(&windows, &MemoryObjects::default()).unwrap() {
            Progress::Done(received) => break received,
            Progress::Need { ranges, .. } => {
                assert!(!ranges.is_empty());
                for range in ranges {
                    windows.insert(range.start, pack[range.start as usize..range.end as usize].to_vec());
                }
            }
        }
        rounds += 1;
        assert!(rounds < 20);
    };
    assert_eq!(received.index().unwrap(), by_git);
    assert!(rounds >= 1);
}

#[test]
fn a_cut_pack_is_an_error_at_every_length_and_so_is_one_that_goes_on() {
    let folder = sample_repository(3);
    let pack = pack_objects(&folder.0, &[], "main\nv1\n");
    for cut in 0..pack.len() {
        assert!(
            matches!(scan(&pack[..cut], 512, Limits::default()), Err(PackError::Length { .. })),
            "{cut}"
        );
    }
    let longer = [pack.as_slice(), b"x"].concat();
    assert!(matches!(scan(&longer, 512, Limits::default()), Err(PackError::Length { .. })));
}

#[test]
fn every_flipped_byte_is_found() {
    let folder = sample_repository(3);
    let pack = pack_objects(&folder.0, &[], "main\nv1\n");
    let mut random = Random(99);
    for at in 0..pack.len() {
        let mut bad = pack.clone();
        bad[at] ^= 1 << random.below(8);
        assert!(receive(&bad).is_err(), "byte {at} of {}", pack.len());
    }
}

#[test]
fn a_changed_pack_with_a_right_checksum_is_taken_only_where_git_takes_it() {
    let folder = sample_repository(4);
    let pack = pack_objects(&folder.0, &["--delta-base-offset"], "main\nv1\n");
    let (mut random, mut taken) = (Random(4242), 0);
    for _ in 0..400 {
        let mut bad = pack[..pack.len() - 20].to_vec();
        for _ in 0..=random.below(2) {
            let at = random.below(bad.len() as u64) as usize;
            bad[at] ^= 1 << random.below(8);
        }
        let bad = sealed(bad);
        if scan(&bad, 4096, Limits::default()).is_err() {
            continue;
        }
        let Ok(mut resolver) = Resolver::new(scan(&bad, 4096, Limits::default()).unwrap()) else {
            continue;
        };
        if let Ok(Progress::Done(received)) = resolver.step(bad.as_slice(), &MemoryObjects::default()) {
            taken += 1;
            assert_eq!(received.index().unwrap(), index_by_git(&bad, false));
        }
    }
    assert!(taken < 40, "zlib's checksum finds nearly all: {taken}");
}

/// A pack of entries made by hand, with a right checksum.
fn crafted(entries: &[(Content, Vec<u8>)]) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    for (content, data) in entries {
        header::write(&mut pack, *content, data.len() as u64);
        zlib::store(&mut pack, data);
    }
    sealed(pack)
}

fn sealed(mut pack: Vec<u8>) -> Vec<u8> {
    let mut hasher = Hasher::checksum();
    hasher.update(&pack);
    let checksum = hasher.finish_safe();
    pack.extend(checksum.as_bytes());
    pack
}

fn blob(data: &[u8]) -> (Content, Vec<u8>) {
    (Content::Full(Kind::Blob), data.to_vec())
}

fn fault_of(pack: &[u8]) -> String {
    receive(pack).unwrap_err().to_string()
}

#[test]
fn hostile_packs_get_an_error_that_names_the_fault() {
    let tree = |list: &[(TreeMode, &[u8], ObjectId)]| (Content::Full(Kind::Tree), encode(list));
    let x = hash(Kind::Blob, b"x");
    let commit = format!("tree {x}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nm\n").into_bytes();
    let by_id = |id: ObjectId, base: &[u8], target: &[u8]| (Content::Ref(id), delta::make(base, target));
    for (entries, wants) in [
        (vec![blob(b"x"), blob(b"x")], "twice"),
        (vec![tree(&[(FILE, b".git", x)])], "'.git'"),
        (vec![tree(&[(FILE, b"..", x)])], "'..'"),
        (vec![tree(&[(FILE, b"a/b", x)])], "full pathnames"),
        (vec![tree(&[(FILE, b"a", x), (FILE, b"a", x)])], "duplicate"),
        (vec![(Content::Full(Kind::Tree), b"100644 a".to_vec())], "cut"),
        (vec![(Content::Full(Kind::Commit), b"tree 12\n".to_vec())], "valid tree line"),
        (vec![(Content::Full(Kind::Tag), b"object 12\n".to_vec())], "valid object line"),
        (vec![blob(b"x"), (Content::Full(Kind::Commit), commit)], "another kind"),
        (vec![blob(b"x"), tree(&[(TreeMode::Tree, b"a", x)])], "another kind"),
        (vec![(Content::Ofs(3), delta::make(b"", b""))], "base is not in the pack"),
        (vec![(Content::Ofs(0), delta::make(b"", b""))], "base is not in the pack"),
        (vec![blob(b"y"), by_id(hash(Kind::Blob, b"y"), b"other", b"z")], "another size"),
        // A tree made by a delta is checked as any other.
        (
            vec![tree(&[(FILE, b"ab", x)]), {
                let (old, new) = (encode(&[(FILE, b"ab", x)]), encode(&[(FILE, b"..", x)]));
                by_id(hash(Kind::Tree, &old), &old, &new)
            }],
            "'..'",
        ),
    ] {
        let fault = fault_of(&crafted(&entries));
        assert!(fault.contains(wants), "{wants}: {fault}");
    }
    assert!(fault_of(&sealed(b"PACK\0\0\0\x04\0\0\0\0".to_vec())).contains("version 2"));
    assert!(fault_of(b"not a pack at all, is it?").contains("version 2"));
}

#[test]
fn bombs_are_refused_by_what_they_declare_and_by_what_they_inflate_to() {
    // Declares little, inflates to much.
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    header::write(&mut pack, Content::Full(Kind::Blob), 10);
    zlib::Deflater::new().deflate(&mut pack, &vec![0; 10 << 20]);
    let fault = fault_of(&sealed(pack));
    assert!(fault.contains("larger than its entry"), "{fault}");
    // Declares too much.
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    header::write(&mut pack, Content::Full(Kind::Blob), 17 << 20);
    assert!(fault_of(&pack).contains("an object has"));
    // A delta that makes too much of little.
    let mut huge = vec![1, 0x80, 0x80, 0x80, 0x80, 0x01];
    huge.extend([0x90, 1]);
    let fault = fault_of(&crafted(&[blob(b"x"), (Content::Ref(hash(Kind::Blob, b"x")), huge)]));
    assert!(fault.contains("an object has"), "{fault}");
    // Limits of the whole.
    let pack = crafted(&[blob(b"x"), blob(b"y")]);
    for (limits, wants) in [
        (Limits { objects_max: 1, ..Limits::default() }, "pack has 2 objects"),
        (Limits { pack_bytes_max: 40, ..Limits::default() }, "the pack has"),
        (Limits { inflated_bytes_max: 1, ..Limits::default() }, "the inflated pack has"),
    ] {
        let fault = scan(&pack, 9, limits).unwrap_err();
        assert!(fault.to_string().contains(wants), "{fault}");
        let refusal = yard_common::Refusal::from(fault).to_string();
        assert!(refusal.contains("at most"), "{refusal}");
    }
}

#[test]
fn deltas_on_each_other_are_an_error_not_a_loop() {
    let (a, b) = (ObjectId([1; 20]), ObjectId([2; 20]));
    let pack =
        crafted(&[(Content::Ref(a), delta::make(b"x", b"y")), (Content::Ref(b), delta::make(b"x", b"z"))]);
    let mut resolver = Resolver::new(scan(&pack, 4096, Limits::default()).unwrap()).unwrap();
    let nothing = MemoryObjects::default();
    assert!(matches!(resolver.step(pack.as_slice(), &nothing), Ok(Progress::Need { .. })));
    assert!(resolver.step(pack.as_slice(), &nothing).is_err());
}

fn chain(depth: u32) -> Vec<u8> {
    let text = |n: u32| format!("{n} {}", "same text ".repeat(20)).into_bytes();
    let mut entries = vec![blob(&text(0))];
    for n in 1..=depth {
        entries.push((Content::Ref(hash(Kind::Blob, &text(n - 1))), delta::make(&text(n - 1), &text(n))));
    }
    // The deepest first, so that nothing comes in the order of the pack.
    entries.reverse();
    crafted(&entries)
}

#[test]
fn chains_of_4096_deltas_are_followed_and_longer_ones_refused() {
    let received = receive(&chain(4096)).unwrap();
    assert_eq!(received.objects.len(), 4097);
    assert!(fault_of(&chain(4097)).contains("too deep"));
}

#[test]
fn our_own_packs_are_received_as_written() {
    let mut writer = PackWriter::in_memory();
    let (mut before, mut ids) = (None::<(ObjectId, Vec<u8>)>, Vec::new());
    for n in 0..200u8 {
        let blob = hash(Kind::Blob, &[n]);
        writer.add(blob, Kind::Blob, &[n]);
        let names: Vec<Vec<u8>> = (0..=n).map(|name| format!("file{name:03}").into_bytes()).collect();
        let list: Vec<_> =
            names.iter().map(|name| (FILE, name.as_slice(), hash(Kind::Blob, &[n]))).collect();
        let data = encode(&list);
        let id = hash(Kind::Tree, &data);
        writer.add_near(id, Kind::Tree, &data, before.as_ref().map(|(id, data)| (*id, data.as_slice())));
        ids.extend([blob, id]);
        before = Some((id, data));
    }
    let pack = writer.finish().unwrap();
    let received = receive(&pack.rest).unwrap();
    ids.sort_unstable();
    assert_eq!(received.objects.iter().map(|object| object.id).collect::<Vec<_>>(), ids);
    assert_eq!((received.index().unwrap(), received.checksum), (pack.index, pack.checksum));
}

#[test]
fn an_empty_pack_is_complete() {
    let received = receive(&crafted(&[])).unwrap();
    assert!(received.objects.is_empty() && !received.is_thin());
    assert_eq!(received.index().unwrap(), index_by_git(&crafted(&[]), true));
}

#[test]
fn real_histories_are_indexed_as_git_does_whole_and_thin() {
    let limits = Limits { pack_bytes_max: 1 << 30, ..Limits::default() };
    for repository in real_repositories() {
        for file in std::fs::read_dir(repository.join("objects/pack")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "pack") {
                continue;
            }
            let pack = std::fs::read(&path).unwrap();
            let reading = resolve_by_windows(&pack, limits, STASH_BYTES_MAX);
            assert_read_a_few_times(&reading, &pack, &path.display().to_string());
            let received = reading.received;
            assert!(received.index().unwrap() == std::fs::read(path.with_extension("idx")).unwrap());
            // Some mirrors lack their largest files: exactly those are referred to and not there.
            for (id, _) in &received.outgoing {
                let there = run(&repository, &["cat-file", "-e", &id.to_string()], b"");
                assert!(!there.status.success(), "{id} is in the repository");
            }
        }
        thin_push_of(&repository);
    }
}

/// Objects of a real repository, one call of git each.
struct OfGit<'a>(&'a Path);

impl Objects for OfGit<'_> {
    fn get(&self, id: &ObjectId) -> Option<std::sync::Arc<crate::Object>> {
        let kind = run(self.0, &["cat-file", "-t", &id.to_string()], b"");
        let kind = Kind::from_name(kind.stdout.trim_ascii_end()).filter(|_| kind.status.success())?;
        let data = git(self.0, &["cat-file", kind.as_str(), &id.to_string()], b"");
        Some(std::sync::Arc::new(crate::Object { kind, data }))
    }
}

fn thin_push_of(repository: &Path) {
    let tips = git_text(
        repository,
        &["for-each-ref", "--count=1", "--sort=-committerdate", "--format=%(objectname)"],
        b"",
    );
    let revs = format!("{tips}\n^{tips}~30\n");
    let pack = pack_objects(repository, &["--thin", "--delta-base-offset"], &revs);
    let received = receive_with(&pack, 1 << 16, &OfGit(repository)).unwrap();
    assert!(received.is_thin());
    let (complete, index) = received.complete(&pack).unwrap();
    assert_eq!(index, index_by_git(&complete, false));
    for (id, kind) in &received.outgoing {
        assert_eq!(OfGit(repository).get(id).map(|object| object.kind), Some(*kind), "{id}");
    }
    let count = git_text(repository, &["rev-list", "--count", &format!("{tips}~30..{tips}")], b"");
    assert!(received.commits.len() >= count.parse::<usize>().unwrap());
    eprintln!(
        "{}: thin push of {count} commits, {} refer outside",
        repository.display(),
        received.outgoing.len()
    );
}

#[test]
fn git_itself_refuses_what_the_strict_checks_refuse() {
    let x = hash(Kind::Blob, b"x");
    let bad = encode(&[(FILE, b".GIT", x)]);
    let pack = crafted(&[blob(b"x"), (Content::Full(Kind::Tree), bad)]);
    assert!(receive(&pack).is_err());
    let folder = Folder::new();
    git(&folder.0, &["init", "-q", "--bare"], b"");
    assert!(!run(&folder.0, &["index-pack", "--strict", "--stdin"], &pack).status.success());
}
