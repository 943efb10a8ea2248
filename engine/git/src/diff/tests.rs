use super::*;
use crate::object::{Kind, MemoryObjects};
use crate::tree::encode;
use yard_common::submission::Mode;

const FILE: TreeMode = TreeMode::Leaf(Mode::File);

fn id(n: u8) -> ObjectId {
    ObjectId([n; 20])
}

fn entry(n: u8) -> Option<Entry> {
    Some(Entry { mode: Mode::File, id: id(n) })
}

fn edit(path: &str, base: Option<Entry>, theirs: Option<Entry>) -> RowEdit {
    RowEdit { path: RepoPath::new(path).unwrap(), base, theirs }
}

#[test]
fn a_file_that_becomes_a_directory_gives_edits_in_path_order() {
    let mut objects = MemoryObjects::default();
    let old =
        objects.add(Kind::Tree, encode(&[(FILE, b"a", id(1)), (FILE, b"a.b", id(2)), (FILE, b"z", id(3))]));
    let dir = objects.add(Kind::Tree, encode(&[(FILE, b"x", id(4)), (FILE, b"y", id(5))]));
    let new = objects.add(
        Kind::Tree,
        encode(&[(TreeMode::Tree, b"a", dir), (FILE, b"a.b", id(9)), (FILE, b"z", id(3))]),
    );
    let want = vec![
        edit("a", entry(1), None),
        edit("a.b", entry(2), entry(9)),
        edit("a/x", None, entry(4)),
        edit("a/y", None, entry(5)),
    ];
    assert_eq!(diff(&objects, old, new).unwrap(), want);
    let back: Vec<_> = want.into_iter().map(|e| RowEdit { base: e.theirs, theirs: e.base, ..e }).collect();
    assert_eq!(diff(&objects, new, old).unwrap(), back);
    assert_eq!(count(&objects, old, new, 100).unwrap(), 4);
    assert_eq!(count(&objects, old, new, 2).unwrap(), 2);
    assert_eq!(list(&objects, new).unwrap().len(), 4);
}

#[test]
fn missing_trees_are_asked_for_in_one_batch_and_equal_ones_never() {
    let mut objects = MemoryObjects::default();
    let base = objects.add(
        Kind::Tree,
        encode(&[
            (TreeMode::Tree, b"a", id(1)),
            (TreeMode::Tree, b"b", id(2)),
            (TreeMode::Tree, b"same", id(3)),
        ]),
    );
    let theirs = objects.add(
        Kind::Tree,
        encode(&[
            (TreeMode::Tree, b"a", id(4)),
            (TreeMode::Tree, b"c", id(5)),
            (TreeMode::Tree, b"same", id(3)),
        ]),
    );
    let Err(ReadError::Missing(Missing(ids))) = diff(&objects, base, theirs) else {
        panic!("all at hand?")
    };
    assert_eq!(ids, [1, 2, 4, 5].map(id).into());
    assert_eq!(diff(&objects, base, base).unwrap(), []);
    assert_eq!(diff(&objects, id(8), id(9)), Err(ReadError::Missing(Missing([id(8), id(9)].into()))));
}

#[test]
fn a_mode_change_is_an_edit_and_an_odd_spelling_of_the_same_mode_is_none() {
    let mut objects = MemoryObjects::default();
    let tree = |digits: &[u8]| {
        let mut data = Vec::new();
        crate::tree::push_entry(&mut data, digits, b"a", &id(1));
        data
    };
    let plain = objects.add(Kind::Tree, tree(b"100644"));
    let odd = objects.add(Kind::Tree, tree(b"100664"));
    let exec = objects.add(Kind::Tree, tree(b"100755"));
    assert_eq!(diff(&objects, plain, odd).unwrap(), []);
    assert_eq!(diff(&objects, plain, exec).unwrap()[0].theirs.unwrap().mode, Mode::Executable);
}

#[test]
fn a_tree_bomb_is_refused_not_walked() {
    let mut objects = MemoryObjects::default();
    let mut level = objects.add(Kind::Tree, encode(&[(FILE, b"f", id(1))]));
    for _ in 0..10 {
        let names: Vec<Vec<u8>> = (0..10u8).map(|n| vec![b'a' + n]).collect();
        let list: Vec<_> = names.iter().map(|name| (TreeMode::Tree, name.as_slice(), level)).collect();
        level = objects.add(Kind::Tree, encode(&list));
    }
    assert!(matches!(diff(&objects, ObjectId::EMPTY_TREE, level), Err(ReadError::Malformed { .. })));
    assert_eq!(count(&objects, ObjectId::EMPTY_TREE, level, 50).unwrap(), 50);
}
