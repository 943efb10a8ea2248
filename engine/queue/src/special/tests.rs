use std::sync::Arc;

use yard_common::landing::{Edit, How};
use yard_common::submission::Entry;
use yard_git::{Kind, MemoryObjects, Object, hash};
use yard_merge::NewBlob;

use super::*;

fn applied(path: &str, mode: Mode, bytes: &[u8]) -> Applied {
    let id = hash(Kind::Blob, bytes);
    let path = RepoPath::new(path.as_bytes()).unwrap();
    let entry = Some(Entry { mode, id });
    let edit =
        Edit { path, base: None, ours: None, theirs: None, result: entry, from: None, how: How::Merge };
    Applied { edits: vec![edit], new_blobs: vec![NewBlob { id, bytes: bytes.to_vec() }] }
}

const EVIL: &[u8] = b"[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=evil\n";

#[test]
fn a_merged_file_that_fsck_refuses_is_a_collision_with_its_line() {
    let none = MemoryObjects::default();
    let long = "x".repeat(2048);
    for (path, bytes, says) in
        [(".gitmodules", EVIL, "line 3"), ("deep/.gitattributes", long.as_bytes(), "gitattributesLineLength")]
    {
        let found = collisions(&applied(path, Mode::File, bytes), &none).unwrap();
        assert_eq!(found.len(), 1, "{path}");
        assert_eq!(found[0].path.to_string(), path);
        assert!(found[0].sentence.contains(says), "{}", found[0].sentence);
    }
    assert!(collisions(&applied("modules.txt", Mode::File, EVIL), &none).unwrap().is_empty());
    let fine = applied(".gitmodules", Mode::File, b"[submodule \"x\"]\n\tpath = x\n\turl = ../x\n");
    assert!(collisions(&fine, &none).unwrap().is_empty());
}

#[test]
fn contents_that_are_not_at_hand_are_asked_for_and_then_read() {
    let mut one = applied(".gitmodules", Mode::File, EVIL);
    let id = one.new_blobs.remove(0).id;
    let mut objects = MemoryObjects::default();
    assert!(
        matches!(collisions(&one, &objects), Err(ReadError::Missing(missing)) if missing.0.contains(&id))
    );
    objects.insert(id, Arc::new(Object { kind: Kind::Blob, data: EVIL.to_vec() }));
    assert_eq!(collisions(&one, &objects).unwrap().len(), 1);
}

#[test]
fn what_main_has_already_is_not_judged_and_a_link_is() {
    let none = MemoryObjects::default();
    let mut one = applied(".gitmodules", Mode::File, EVIL);
    one.edits[0].ours = one.edits[0].result;
    assert!(collisions(&one, &none).unwrap().is_empty());
    assert_eq!(collisions(&applied(".gitmodules", Mode::Symlink, b"x"), &none).unwrap().len(), 1);
}
