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

/// `git diff-tree -r` of two trees as edits, in path order.
fn by_git(repository: &std::path::Path, old: ObjectId, new: ObjectId) -> Vec<RowEdit> {
    let args = [
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        &old.to_string(),
        &new.to_string(),
    ];
    let out = crate::testing::git(repository, &args, b"");
    let fields: Vec<&[u8]> = out.split(|byte| *byte == 0).filter(|field| !field.is_empty()).collect();
    let mut edits: Vec<RowEdit> = fields
        .chunks(2)
        .map(|pair| {
            let text = std::str::from_utf8(pair[0]).unwrap().trim_start_matches(':');
            let words: Vec<&str> = text.split(' ').collect();
            let entry = |mode: &str, id: &str| {
                let TreeMode::Leaf(mode) = TreeMode::from_digits(mode.as_bytes())? else {
                    panic!("{mode}")
                };
                let id: ObjectId = id.parse().unwrap();
                (!id.is_zero()).then_some(Entry { mode, id })
            };
            let path = RepoPath::new(pair[1]).unwrap();
            RowEdit { path, base: entry(words[0], words[2]), theirs: entry(words[1], words[3]) }
        })
        .collect();
    edits.sort_by(|a, b| a.path.cmp(&b.path));
    edits
}

#[test]
fn real_commits_differ_as_git_says_and_the_editor_makes_their_trees_from_the_difference() {
    for repository in crate::testing::real_repositories() {
        let objects = crate::testing::packed_objects(&repository);
        let commits: Vec<_> = objects.iter().filter(|(_, object)| object.kind == Kind::Commit).collect();
        let step = commits.len() / 300 + 1;
        for (id, object) in commits.into_iter().step_by(step) {
            let commit = crate::commit::links(&object.data).unwrap();
            let Some(parent) = commit.parents.first().and_then(|id| crate::Objects::get(&objects, id))
            else {
                continue;
            };
            let base = crate::commit::links(&parent.data).unwrap().tree;
            let edits = diff(&objects, base, commit.tree).unwrap();
            assert_eq!(edits, by_git(&repository, base, commit.tree), "{id}");
            assert_eq!(count(&objects, base, commit.tree, usize::MAX).unwrap(), edits.len());
            let mut tree = crate::RunningTree::new(base);
            let edits: Vec<_> = edits.into_iter().map(|edit| (edit.path, edit.theirs)).collect();
            assert_eq!(tree.apply(&objects, &edits).unwrap().root, commit.tree, "{id}");
        }
    }
}
