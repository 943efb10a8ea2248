use super::*;
use crate::commit::Commit;
use crate::editor::RunningTree;
use crate::object::{MemoryObjects, hash};
use crate::testing::{Folder, git, git_text, run};
use crate::{Entry, Mode, Objects as _};
use yard_common::RepoPath;
use yard_common::intent::Signature;

/// Lays a pack into a bare repository and lets git check everything about it.
fn checked_by_git(pack: &[u8], index: &[u8], checksum: ObjectId, tip: Option<ObjectId>) -> Folder {
    let folder = Folder::new();
    git(&folder.0, &["init", "-q", "--bare"], b"");
    let stem = folder.0.join(format!("objects/pack/pack-{checksum}"));
    std::fs::write(stem.with_extension("pack"), pack).unwrap();
    std::fs::write(stem.with_extension("idx"), index).unwrap();
    let idx = stem.with_extension("idx");
    git(&folder.0, &["verify-pack", idx.to_str().unwrap()], b"");
    git(
        &folder.0,
        &["index-pack", "--strict", "-o", "again.idx", stem.with_extension("pack").to_str().unwrap()],
        b"",
    );
    assert_eq!(std::fs::read(folder.0.join("again.idx")).unwrap(), index, "the index as git writes it");
    if let Some(tip) = tip {
        git(&folder.0, &["update-ref", "refs/heads/main", &tip.to_string()], b"");
        let fsck = run(&folder.0, &["fsck", "--strict", "--full"], b"");
        assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
    }
    folder
}

fn person() -> Signature {
    Signature { name: "A".into(), email: "a@x".into(), seconds: 1, offset_minutes: 0 }
}

/// 120 commits, each changing one file of 60 in 3 directories; trees as deltas where that is worth it.
fn history(writer: &mut PackWriter) -> ObjectId {
    let mut objects = MemoryObjects::default();
    let mut tree = RunningTree::new(ObjectId::EMPTY_TREE);
    let mut parent = None;
    for n in 0..120u32 {
        let text = format!("line {n}\n").repeat(1 + n as usize * 3).into_bytes();
        let blob = hash(Kind::Blob, &text);
        writer.add(blob, Kind::Blob, &text);
        let path = RepoPath::new(format!("dir{}/file{}", n % 3, n % 60)).unwrap();
        let applied = tree.apply(&objects, &[(path, Some(Entry { mode: Mode::File, id: blob }))]).unwrap();
        for new in applied.trees {
            let before = new.before.and_then(|id| objects.get(&id).map(|object| (id, object)));
            let near = before.as_ref().map(|(id, object)| (*id, object.data.as_slice()));
            writer.add_near(new.id, Kind::Tree, &new.data, near);
            objects.add(Kind::Tree, new.data);
        }
        let commit = Commit {
            tree: applied.root,
            parents: parent.into_iter().collect(),
            author: person(),
            committer: person(),
            headers: vec![],
            message: format!("commit {n}\n").into_bytes(),
        };
        let data = commit.encode();
        let id = hash(Kind::Commit, &data);
        writer.add(id, Kind::Commit, &data);
        parent = Some(id);
    }
    parent.unwrap()
}

#[test]
fn git_takes_a_pack_with_tree_deltas_and_writes_the_same_index() {
    let mut writer = PackWriter::in_memory();
    let tip = history(&mut writer);
    let pack = writer.finish().unwrap();
    assert_eq!(pack.bytes, pack.rest.len() as u64);
    let folder = checked_by_git(&pack.rest, &pack.index, pack.checksum, Some(tip));
    assert_eq!(git_text(&folder.0, &["rev-list", "--count", "main"], b""), "120");
    let listing = git_text(
        &folder.0,
        &["verify-pack", "-v", &format!("objects/pack/pack-{}.idx", pack.checksum)],
        b"",
    );
    let chain = |n: u32| {
        listing.contains(&format!("chain length = {n}:"))
            || listing.contains(&format!("chain length = {n} "))
    };
    assert!(chain(50) && !chain(51), "trees are chained up to 50 deltas:\n{listing}");
}

#[test]
fn a_streamed_pack_has_the_bytes_of_the_one_built_in_memory() {
    let mut whole = PackWriter::in_memory();
    history(&mut whole);
    let count = u32::try_from(whole.len()).unwrap();
    let whole = whole.finish().unwrap();
    let mut writer = PackWriter::streaming(count);
    let mut bytes = writer.take();
    history(&mut writer);
    bytes.extend(writer.take());
    let pack = writer.finish().unwrap();
    bytes.extend(&pack.rest);
    assert_eq!((bytes, pack.index, pack.bytes), (whole.rest, whole.index, whole.bytes));
    assert!(matches!(PackWriter::streaming(1).finish(), Err(PackError::Misuse { .. })));
}

#[test]
fn an_empty_pack_and_a_repeated_object_are_fine() {
    let empty = PackWriter::in_memory().finish().unwrap();
    checked_by_git(&empty.rest, &empty.index, empty.checksum, None);
    let mut writer = PackWriter::in_memory();
    let id = hash(Kind::Blob, b"x");
    assert!(writer.add(id, Kind::Blob, b"x"));
    assert!(!writer.add(id, Kind::Blob, b"x"));
    assert!(!writer.add_near(id, Kind::Blob, b"x", None));
    assert_eq!(writer.finish().unwrap().objects, 1);
}
