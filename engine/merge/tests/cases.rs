//! Cases from the field (section C), each as small as it was reported, without git.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;

use yard_common::landing::How;
use yard_common::submission::{Entry, Mode};
use yard_common::{ObjectId, RepoPath};
use yard_git::editor::Step;
use yard_git::{Kind, MemoryObjects, Overlay, ReadError, RunningTree};
use yard_merge::{
    Applied, Collision, CollisionKind, Outcome, Row, Rule, Rules, RunningLookup, TreeLookup, Trees,
    apply_row, merge_trees,
};

/// A tree as its files: path -> (mode, contents); of a submodule the contents name its commit.
type Files = BTreeMap<Vec<u8>, (Mode, Vec<u8>)>;

fn files<const N: usize>(list: [(&str, &str); N]) -> Files {
    list.into_iter().map(|(path, text)| (path.into(), (Mode::File, text.into()))).collect()
}

fn with(files: &Files, path: impl AsRef<[u8]>, mode: Mode, text: impl AsRef<[u8]>) -> Files {
    let mut files = files.clone();
    files.insert(path.as_ref().to_vec(), (mode, text.as_ref().to_vec()));
    files
}

fn without(files: &Files, path: &str) -> Files {
    let mut files = files.clone();
    files.remove(path.as_bytes()).expect("the file is there");
    files
}

fn moved(files: &Files, from: &str, to: &str) -> Files {
    let mut files = files.clone();
    let file = files.remove(from.as_bytes()).expect("the file is there");
    files.insert(to.into(), file);
    files
}

struct Store(MemoryObjects);

impl Store {
    fn entry(&mut self, mode: Mode, text: &[u8]) -> Entry {
        let id = if mode == Mode::Gitlink {
            yard_git::hash(Kind::Commit, text)
        } else {
            self.0.add(Kind::Blob, text.to_vec())
        };
        Entry { mode, id }
    }

    fn tree(&mut self, files: &Files) -> ObjectId {
        let edits: Vec<_> = files
            .iter()
            .map(|(path, (mode, text))| (RepoPath::new(path.clone()).unwrap(), Some(self.entry(*mode, text))))
            .collect();
        let made = RunningTree::new(ObjectId::EMPTY_TREE).apply(&self.0, &edits).unwrap();
        for tree in made.trees {
            assert_eq!(self.0.add(Kind::Tree, tree.data), tree.id);
        }
        made.root
    }
}

/// The merge by both entry points, which must agree; a clean one also as the files it makes.
fn merge(
    base: &Files,
    ours: &Files,
    theirs: &Files,
    rules: &Rules,
) -> Result<(Applied, Files), Vec<Collision>> {
    let mut store = Store(MemoryObjects::default());
    let trees = Trees { base: store.tree(base), ours: store.tree(ours), theirs: store.tree(theirs) };
    let whole = merge_trees(&store.0, trees, rules).unwrap();
    let edits = yard_git::diff::diff(&store.0, trees.base, trees.theirs).unwrap();
    let row = Row { edits: &edits, base_tree: trees.base, theirs_tree: trees.theirs };
    let by_row = apply_row(&store.0, &TreeLookup::new(&store.0, trees.ours), row, rules).unwrap();
    assert_eq!(by_row, whole, "the lane's way and the whole trees' way disagree");
    match whole {
        Outcome::Collided(collisions) => {
            assert!(!collisions.is_empty());
            Err(collisions)
        }
        Outcome::Clean(applied) => {
            let mut objects = Overlay::new(&store.0);
            for blob in &applied.new_blobs {
                assert_eq!(objects.new.add(Kind::Blob, blob.bytes.clone()), blob.id);
            }
            let steps: Vec<_> = applied
                .edits
                .iter()
                .map(|e| Step { path: &e.path, ours: e.ours, result: e.result })
                .collect();
            let mut tree = RunningTree::new(trees.ours);
            for tree in tree.fold(&objects, &steps).expect("edits fit on ours").trees {
                objects.new.add(Kind::Tree, tree.data);
            }
            let files = read(&objects, tree.id());
            Ok((applied, files))
        }
    }
}

fn read(objects: &impl yard_git::Objects, tree: ObjectId) -> Files {
    let all = yard_git::diff::diff(objects, ObjectId::EMPTY_TREE, tree).unwrap();
    let text = |entry: Entry| match entry.mode {
        Mode::Gitlink => entry.id.to_string().into_bytes(),
        _ => objects.get(&entry.id).expect("every blob of the result is at hand").data.clone(),
    };
    all.into_iter()
        .map(|edit| (edit.path.as_bytes().to_vec(), (edit.theirs.unwrap().mode, text(edit.theirs.unwrap()))))
        .collect()
}

fn plain(base: &Files, ours: &Files, theirs: &Files) -> Result<(Applied, Files), Vec<Collision>> {
    merge(base, ours, theirs, &Rules::default())
}

fn kinds(result: Result<(Applied, Files), Vec<Collision>>) -> Vec<(String, CollisionKind)> {
    let collisions = result.expect_err("this must collide");
    collisions.into_iter().map(|c| (c.path.to_string(), c.kind)).collect()
}

fn collides(result: Result<(Applied, Files), Vec<Collision>>, path: &str, kind: CollisionKind) {
    assert_eq!(kinds(result), [(path.to_owned(), kind)]);
}

fn lines(n: std::ops::Range<usize>) -> String {
    n.map(|line| format!("line {line} of a file that is long enough\n")).collect()
}

fn edited(text: &str, line: usize, to: &str) -> String {
    text.lines().enumerate().map(|(n, old)| format!("{}\n", if n == line { to } else { old })).collect()
}

#[test]
fn c1_a_union_attribute_is_never_honoured() {
    let base = files([(".gitattributes", "log merge=union\n"), ("log", "a\nb\nc\nd\n")]);
    let same_line =
        (with(&base, "log", Mode::File, "a\nB\nc\nd\n"), with(&base, "log", Mode::File, "a\nX\nc\nd\n"));
    collides(plain(&base, &same_line.0, &same_line.1), "log", CollisionKind::Union);
    let apart =
        (with(&base, "log", Mode::File, "A\nb\nc\nd\n"), with(&base, "log", Mode::File, "a\nb\nc\nD\n"));
    collides(plain(&base, &apart.0, &apart.1), "log", CollisionKind::Union);
    let (applied, _) = plain(&base, &base, &apart.1).unwrap();
    assert_eq!(applied.edits[0].how, How::Theirs, "only one side changed it: nothing is merged");
}

#[test]
fn c5_a_line_that_both_add_to_a_shared_index_stands_once() {
    let base = files([("INDEX", "b\nx\n")]);
    let ours = with(&base, "INDEX", Mode::File, "a\nb\nc\nx\n");
    let theirs = with(&base, "INDEX", Mode::File, "b\nc\nd\nx\n");
    let rules = Rules::new(vec![("INDEX".to_owned(), Rule::SortedLines)]);
    let (applied, result) = merge(&base, &ours, &theirs, &rules).unwrap();
    assert_eq!(result, files([("INDEX", "a\nb\nc\nd\nx\n")]));
    assert_eq!(applied.edits[0].how, How::Rule(Rule::SortedLines.name().unwrap()));
    collides(plain(&base, &ours, &theirs), "INDEX", CollisionKind::Content);
}

#[test]
fn an_index_that_both_add_is_merged_by_its_rule_and_one_out_of_order_is_refused() {
    let rules = Rules::new(vec![("INDEX".to_owned(), Rule::SortedLines)]);
    let base = files([("f", "f\n")]);
    let (ours, theirs) = (with(&base, "INDEX", Mode::File, "b\n"), with(&base, "INDEX", Mode::File, "a\n"));
    let (_, result) = merge(&base, &ours, &theirs, &rules).unwrap();
    assert_eq!(result[&b"INDEX"[..]].1, b"a\nb\n");
    let ours = with(&base, "INDEX", Mode::File, "b\na\n");
    collides(merge(&base, &ours, &theirs, &rules), "INDEX", CollisionKind::Rule);
}

#[test]
fn c7_a_mode_on_one_side_and_content_on_the_other_are_both_kept() {
    let base = files([("run.sh", "a\nb\nc\n")]);
    let exec = with(&base, "run.sh", Mode::Executable, "a\nb\nc\n");
    let text = with(&base, "run.sh", Mode::File, "a\nB\nc\n");
    let both = with(&base, "run.sh", Mode::Executable, "a\nB\nc\n");
    assert_eq!(plain(&base, &exec, &text).unwrap().1, both);
    assert_eq!(plain(&base, &text, &exec).unwrap().1, both);
    assert_eq!(plain(&base, &both, &text).unwrap().1, both, "content and mode here, the same content there");
    assert_eq!(plain(&both, &exec, &with(&both, "run.sh", Mode::File, "a\nB\nc\n")).unwrap().1, base);
}

#[test]
fn c8_an_edit_arrives_in_the_file_that_main_renamed() {
    let text = lines(0..20);
    let base = files([("old.rs", &text), ("x", "x\n")]);
    let ours = with(&moved(&base, "old.rs", "new.rs"), "new.rs", Mode::File, edited(&text, 1, "ours"));
    let theirs = with(&base, "old.rs", Mode::File, edited(&text, 18, "theirs"));
    let (applied, result) = plain(&base, &ours, &theirs).unwrap();
    let merged = edited(&edited(&text, 1, "ours"), 18, "theirs");
    assert_eq!(result, files([("new.rs", &merged), ("x", "x\n")]));
    let [edit] = &applied.edits[..] else { panic!("{applied:?}") };
    assert_eq!(
        (edit.path.as_bytes(), edit.from.as_ref().unwrap().as_bytes()),
        (&b"new.rs"[..], &b"old.rs"[..])
    );
    assert_eq!(edit.how, How::Merge);
    assert!(edit.base.is_some() && edit.ours.is_some() && edit.theirs.is_some());
}

#[test]
fn c8_an_edit_of_main_arrives_in_the_file_that_the_change_renames() {
    let text = lines(0..20);
    let base = files([("old.rs", &text), ("x", "x\n")]);
    let ours = with(&base, "old.rs", Mode::File, edited(&text, 18, "ours"));
    for theirs_text in [text.clone(), edited(&text, 1, "theirs")] {
        let theirs = with(&moved(&base, "old.rs", "new.rs"), "new.rs", Mode::File, &theirs_text);
        let (applied, result) = plain(&base, &ours, &theirs).unwrap();
        assert_eq!(result, files([("new.rs", &edited(&theirs_text, 18, "ours")), ("x", "x\n")]));
        let paths: Vec<_> = applied.edits.iter().map(|edit| edit.path.to_string()).collect();
        assert_eq!(paths, ["new.rs", "old.rs"]);
        assert!(applied.edits.iter().all(|edit| edit.how == How::Merge && edit.from.is_none()));
    }
}

#[test]
fn a_file_that_both_sides_rename_alike_and_edit_is_merged_at_its_new_place() {
    let text = lines(0..20);
    let base = files([("f", &text), ("x", "x\n")]);
    let ours = with(&moved(&base, "f", "g"), "g", Mode::File, edited(&text, 1, "ours"));
    let theirs = with(&moved(&base, "f", "g"), "g", Mode::File, edited(&text, 18, "theirs"));
    let (applied, result) = plain(&base, &ours, &theirs).unwrap();
    assert_eq!(result, files([("g", &edited(&edited(&text, 1, "ours"), 18, "theirs")), ("x", "x\n")]));
    assert_eq!(applied.new_blobs.len(), 1, "{applied:?}");
}

#[test]
fn an_edit_never_arrives_in_the_double_of_a_file() {
    let text = lines(0..20);
    let base = files([("a/f", &text), ("b/f", &text), ("c/f", &text)]);
    let edit = |path: &str| with(&base, path, Mode::File, edited(&text, 9, "theirs"));
    // Main deletes one of three, and moves the two others.
    let ours = without(&moved(&moved(&base, "b/f", "b/g"), "c/f", "c/g"), "a/f");
    collides(plain(&base, &ours, &edit("b/f")), "b/f", CollisionKind::Rename);
    collides(plain(&base, &edit("b/f"), &ours), "b/f", CollisionKind::Rename);
    // The one that went away is edited.
    let ours = without(&moved(&base, "b/f", "b/g"), "a/f");
    collides(plain(&base, &ours, &edit("a/f")), "a/f", CollisionKind::Rename);
    // Doubles that stayed do no harm, and neither do files with little in common.
    let ours = moved(&base, "b/f", "b/g");
    assert_eq!(
        plain(&base, &ours, &edit("b/f")).unwrap().1[&b"b/g"[..]].1,
        edited(&text, 9, "theirs").as_bytes()
    );
    let base = files([("a/f", &text), ("b/f", &lines(50..70)), ("x", "x\n")]);
    let ours = moved(&moved(&base, "a/f", "a/g"), "b/f", "b/g");
    let theirs = with(&base, "b/f", Mode::File, edited(&lines(50..70), 9, "theirs"));
    assert!(plain(&base, &ours, &theirs).is_ok());
}

#[test]
fn an_edit_never_arrives_in_another_file_that_is_nearly_the_same() {
    let text = lines(0..20);
    let base = files([("a/f", &text), ("b/f", &edited(&text, 0, "b"))]);
    let both = moved(&moved(&base, "a/f", "c/g"), "b/f", "c/h");
    let ours = with(&both, "c/g", Mode::File, edited(&text, 19, "main"));
    let ours = with(&ours, "c/h", Mode::File, edited(&edited(&text, 0, "b"), 19, "main"));
    let theirs = with(&base, "a/f", Mode::File, edited(&text, 9, "theirs"));
    collides(plain(&base, &ours, &theirs), "a/f", CollisionKind::Rename);
}

#[test]
fn c8_a_moved_file_under_a_rule_is_merged_only_where_the_rule_agrees() {
    let log = |new: &str, end: &str| {
        let old: String = (0..9).map(|n| format!("- Entry {n}.\n")).collect();
        format!("# Log\n\n## Unreleased\n\n{new}{old}{end}\n## 1.0\n\n- Old.\n")
    };
    let rules = Rules::new(vec![("CHANGELOG.md".to_owned(), Rule::Changelog)]);
    let base = files([("CHANGES.md", &log("", ""))]);
    let entry = files([("CHANGES.md", &log("", "- New.\n"))]);
    let apart = files([("CHANGELOG.md", &log("- Mine.\n", ""))]);
    let merged = merge(&base, &apart, &entry, &rules).unwrap().1;
    assert_eq!(merged, files([("CHANGELOG.md", &log("- Mine.\n", "- New.\n"))]));
    // As lines the entry would stand in the release that main cut.
    let cut = files([("CHANGELOG.md", &log("## 1.1\n\n", ""))]);
    collides(merge(&base, &cut, &entry, &rules), "CHANGES.md", CollisionKind::Rule);
}

#[test]
fn a_mode_follows_a_rename_as_git_merges_modes() {
    let text = lines(0..20);
    let base = with(&files([("x", "x\n")]), "old.sh", Mode::Executable, &text);
    let ours = with(&moved(&base, "old.sh", "new.sh"), "new.sh", Mode::File, &text);
    let theirs = with(&base, "old.sh", Mode::Executable, edited(&text, 3, "theirs"));
    let (_, result) = plain(&base, &ours, &theirs).unwrap();
    assert_eq!(result[&b"new.sh"[..]], (Mode::File, edited(&text, 3, "theirs").into_bytes()));
}

#[test]
fn c9_a_file_added_to_a_renamed_directory_collides_and_the_place_is_named() {
    let base = files([("old/a", &lines(0..20)), ("old/b", &lines(20..40)), ("x", "x\n")]);
    let renamed = moved(&moved(&base, "old/a", "new/a"), "old/b", "new/b");
    let added = with(&base, "old/c", Mode::File, "c\n");
    for (ours, theirs) in [(&renamed, &added), (&added, &renamed)] {
        let collisions = plain(&base, ours, theirs).unwrap_err();
        let [collision] = &collisions[..] else { panic!("{collisions:?}") };
        assert_eq!(
            (collision.path.as_bytes(), collision.kind),
            (&b"old/c"[..], CollisionKind::DirectoryRename)
        );
        assert_eq!(collision.suggested.as_ref().unwrap().as_bytes(), b"new/c");
        assert!(collision.sentence.contains("new/c"));
    }
}

#[test]
fn c9_a_directory_whose_files_were_also_edited_counts_as_renamed() {
    let text = lines(0..20);
    let base = files([("old/a.rs", &text), ("x", "x\n")]);
    let ours = with(&moved(&base, "old/a.rs", "new/b.rs"), "new/b.rs", Mode::File, edited(&text, 4, "ours"));
    let theirs = with(&base, "old/c.rs", Mode::File, "c\n");
    collides(plain(&base, &ours, &theirs), "old/c.rs", CollisionKind::DirectoryRename);
}

#[test]
fn a_file_added_to_a_directory_that_main_deleted_is_added() {
    let base = files([("old/a", &lines(0..20)), ("x", "x\n")]);
    let ours = with(&without(&base, "old/a"), "y", Mode::File, "an unrelated file\n");
    let theirs = with(&base, "old/c", Mode::File, "c\n");
    assert_eq!(plain(&base, &ours, &theirs).unwrap().1, with(&ours, "old/c", Mode::File, "c\n"));
}

#[test]
fn c10_crossing_renames_and_swaps_do_not_crash_and_never_lose_an_edit() {
    let (one, two) = (lines(0..20), lines(40..60));
    let base = files([("A/f", &one), ("B/g", &two)]);
    let into_b = moved(&base, "A/f", "B/f");
    let b_to_a = moved(&base, "B/g", "A/g");
    assert!(plain(&base, &into_b, &b_to_a).is_err());
    assert!(plain(&base, &b_to_a, &into_b).is_err());
    let swapped = files([("A/f", &two), ("B/g", &one)]);
    let edit = with(&base, "A/f", Mode::File, edited(&one, 3, "edit"));
    for (ours, theirs) in [(&swapped, &edit), (&edit, &swapped)] {
        // A swap leaves both paths in place, so no rename is seen: the contents collide.
        assert_eq!(kinds(plain(&base, ours, theirs)), [("A/f".to_owned(), CollisionKind::Content)]);
    }
}

#[test]
fn renames_that_cannot_be_combined_collide() {
    let text = lines(0..20);
    let base = files([("f", &text), ("x", "x\n")]);
    let (here, there) = (moved(&base, "f", "here"), moved(&base, "f", "there"));
    assert!(kinds(plain(&base, &here, &there)).iter().all(|(_, kind)| *kind == CollisionKind::Rename));
    let gone = without(&base, "f");
    assert!(kinds(plain(&base, &here, &gone)).iter().all(|(_, kind)| *kind == CollisionKind::Rename));
    assert!(kinds(plain(&base, &gone, &here)).iter().all(|(_, kind)| *kind == CollisionKind::Rename));
    assert_eq!(plain(&base, &here, &here).unwrap().1, here, "the same rename on both sides is done");
    assert_eq!(plain(&base, &gone, &gone).unwrap().1, gone, "so is the same deletion");
}

#[test]
fn c11_crlf_line_ends_are_kept() {
    let base = files([("f", "a\r\nb\r\nc\r\nd\r\n")]);
    let ours = with(&base, "f", Mode::File, "A\r\nb\r\nc\r\nd\r\n");
    let theirs = with(&base, "f", Mode::File, "a\r\nb\r\nc\r\nD\r\n");
    assert_eq!(plain(&base, &ours, &theirs).unwrap().1, files([("f", "A\r\nb\r\nc\r\nD\r\n")]));
}

#[test]
fn c12_a_binary_file_that_both_changed_collides_and_is_never_ours() {
    let base = files([("f", "\0 a\nb\nc\n")]);
    let ours = with(&base, "f", Mode::File, "\0 A\nb\nc\n");
    let theirs = with(&base, "f", Mode::File, "\0 a\nb\nC\n");
    collides(plain(&base, &ours, &theirs), "f", CollisionKind::Binary);
}

#[test]
fn attributes_that_make_a_file_binary_are_honoured_in_every_form() {
    for attribute in ["*.lock binary", "*.lock -merge", "d/*.lock merge=binary", "[attr]x binary\n*.lock x"] {
        let base = files([(".gitattributes", attribute), ("d/f.lock", "a\nb\nc\n")]);
        let ours = with(&base, "d/f.lock", Mode::File, "A\nb\nc\n");
        let theirs = with(&base, "d/f.lock", Mode::File, "a\nb\nC\n");
        collides(plain(&base, &ours, &theirs), "d/f.lock", CollisionKind::Binary);
    }
    for attribute in
        ["*.lock text eol=lf", "*.lock merge", "*.lock merge=mine", "*.lock -merge\nd/f.lock merge"]
    {
        let base = files([(".gitattributes", attribute), ("d/f.lock", "a\nb\nc\n")]);
        let ours = with(&base, "d/f.lock", Mode::File, "A\nb\nc\n");
        let theirs = with(&base, "d/f.lock", Mode::File, "a\nb\nC\n");
        assert_eq!(plain(&base, &ours, &theirs).unwrap().1[&b"d/f.lock"[..]].1, b"A\nb\nC\n", "{attribute}");
    }
    let nested = files([
        (".gitattributes", "*.lock -merge"),
        ("d/.gitattributes", "f.lock merge"),
        ("d/f.lock", "a\nb\nc\n"),
    ]);
    let ours = with(&nested, "d/f.lock", Mode::File, "A\nb\nc\n");
    let theirs = with(&nested, "d/f.lock", Mode::File, "a\nb\nC\n");
    assert!(plain(&nested, &ours, &theirs).is_ok(), "the nearer file wins");
}

#[test]
fn c13_a_file_that_becomes_a_directory_against_an_edit_collides() {
    let text = lines(0..20);
    let base = files([("f", &text), ("x", "x\n")]);
    let directory = with(&without(&base, "f"), "f/g", Mode::File, "other\n");
    let edit = with(&base, "f", Mode::File, edited(&text, 2, "edit"));
    assert!(plain(&base, &directory, &edit).is_err());
    assert!(plain(&base, &edit, &directory).is_err());
    let file = with(&base, "d", Mode::File, "file\n");
    let below = with(&base, "d/e", Mode::File, "below\n");
    collides(plain(&base, &file, &below), "d/e", CollisionKind::FileDirectory);
    collides(plain(&base, &below, &file), "d", CollisionKind::FileDirectory);
}

#[test]
fn a_file_that_only_the_change_turns_into_a_directory_is_turned() {
    let base = files([("f", "f\n"), ("d/a", "a\n"), ("d/b", "b\n"), ("x", "x\n")]);
    let theirs = files([("f/g", "g\n"), ("d", "now a file\n"), ("x", "x\n")]);
    let ours = with(&base, "y", Mode::File, "y\n");
    assert_eq!(plain(&base, &ours, &theirs).unwrap().1, with(&theirs, "y", Mode::File, "y\n"));
    let ours = with(&base, "d/c", Mode::File, "new in d\n");
    assert!(plain(&base, &ours, &theirs).is_err(), "main put a file where the change's file would go");
}

#[test]
fn c15_odd_names_merge_as_bytes_and_a_name_that_is_not_utf8_collides_when_content_must_be_merged() {
    for name in ["\u{e4}\u{f6}\u{fc}/f", "a b/c d", "new\nline", "\u{2028}", "\"quoted\"", "-dash", "*"] {
        let base = files([(name, "a\nb\nc\n")]);
        let ours = with(&base, name, Mode::File, "A\nb\nc\n");
        let theirs = with(&base, name, Mode::File, "a\nb\nC\n");
        assert_eq!(plain(&base, &ours, &theirs).unwrap().1, files([(name, "A\nb\nC\n")]));
    }
    let base = with(&Files::new(), b"a\xff/f", Mode::File, "a\nb\nc\n");
    let ours = with(&base, b"a\xff/f", Mode::File, "A\nb\nc\n");
    let theirs = with(&base, b"a\xff/f", Mode::File, "a\nb\nC\n");
    assert_eq!(kinds(plain(&base, &ours, &theirs))[0].1, CollisionKind::Undecided);
    assert_eq!(plain(&base, &base, &theirs).unwrap().1, theirs, "one side alone needs no merge");
}

#[test]
fn c16_submodules_are_never_merged_by_themselves() {
    let base = with(&files([("x", "x\n")]), "sub", Mode::Gitlink, "one");
    let bumped = |to: &str| with(&base, "sub", Mode::Gitlink, to);
    collides(plain(&base, &bumped("two"), &bumped("three")), "sub", CollisionKind::Submodule);
    collides(plain(&base, &without(&base, "sub"), &bumped("two")), "sub", CollisionKind::ModifyDelete);
    collides(plain(&base, &bumped("two"), &without(&base, "sub")), "sub", CollisionKind::ModifyDelete);
    assert!(plain(&base, &base, &bumped("two")).is_ok());
    assert!(plain(&base, &bumped("two"), &bumped("two")).is_ok());
    let beside = with(&moved(&base, "x", "y"), "sub", Mode::Gitlink, "two");
    assert!(plain(&base, &beside, &bumped("three")).is_err(), "also beside a rename");
}

#[test]
fn links_and_kinds_that_differ_collide() {
    let base = with(&files([("x", "x\n")]), "l", Mode::Symlink, "x");
    let to = |target: &str| with(&base, "l", Mode::Symlink, target);
    collides(plain(&base, &to("y"), &to("z")), "l", CollisionKind::Symlink);
    assert_eq!(plain(&base, &to("y"), &to("y")).unwrap().1, to("y"));
    collides(plain(&base, &to("y"), &with(&base, "l", Mode::File, "x")), "l", CollisionKind::TypeChange);
    let other = with(&base, "n", Mode::Symlink, "x");
    collides(plain(&base, &other, &with(&base, "n", Mode::File, "x")), "n", CollisionKind::AddAdd);
}

#[test]
fn missing_objects_are_asked_for_in_few_batches_and_all_of_them_are_needed() {
    let text = lines(0..30);
    let base = files([("a/b/c/f", &text), ("a/b/d/g", &text), ("x", "x\n"), ("old", &lines(50..80))]);
    let ours = with(&base, "a/b/c/f", Mode::File, edited(&text, 1, "ours"));
    let ours = moved(&with(&ours, "a/b/d/g", Mode::File, edited(&text, 1, "ours")), "old", "new");
    let theirs = with(&base, "a/b/c/f", Mode::File, edited(&text, 20, "theirs"));
    let theirs = with(&theirs, "a/b/d/g", Mode::File, edited(&text, 20, "theirs"));
    let theirs = with(&theirs, "old", Mode::File, edited(&lines(50..80), 20, "theirs"));
    let mut store = Store(MemoryObjects::default());
    let trees = Trees { base: store.tree(&base), ours: store.tree(&ours), theirs: store.tree(&theirs) };
    let mut at_hand = MemoryObjects::default();
    let mut rounds = 0;
    let outcome = loop {
        match merge_trees(&at_hand, trees, &Rules::default()) {
            Ok(outcome) => break outcome,
            Err(ReadError::Missing(missing)) => {
                rounds += 1;
                for id in missing.0 {
                    assert!(yard_git::Objects::get(&at_hand, &id).is_none(), "asked twice for {id}");
                    at_hand.insert(
                        id,
                        yard_git::Objects::get(&store.0, &id).expect("only what exists is asked for"),
                    );
                }
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert!(matches!(outcome, Outcome::Clean(_)), "{outcome:?}");
    // Four levels of trees, then all blobs of merges, then those of the rename search.
    assert!(rounds <= 6, "{rounds} rounds");
}

#[test]
fn edits_that_nobody_else_touched_load_nothing_but_the_lookups() {
    struct Counting<'a>(&'a MemoryObjects, std::cell::RefCell<std::collections::BTreeSet<ObjectId>>);
    impl yard_git::Objects for Counting<'_> {
        fn get(&self, id: &ObjectId) -> Option<std::sync::Arc<yard_git::Object>> {
            self.1.borrow_mut().insert(*id);
            self.0.get(id)
        }
    }
    let base = files([("a/f", "f\n"), ("b/g", "g\n"), ("c/h", "h\n")]);
    let ours = with(&base, "c/h", Mode::File, "ours\n");
    let theirs = with(&with(&base, "a/f", Mode::File, "theirs\n"), "b/new", Mode::File, "new\n");
    let mut store = Store(MemoryObjects::default());
    let trees = Trees { base: store.tree(&base), ours: store.tree(&ours), theirs: store.tree(&theirs) };
    let edits = yard_git::diff::diff(&store.0, trees.base, trees.theirs).unwrap();
    let row = Row { edits: &edits, base_tree: trees.base, theirs_tree: trees.theirs };
    let objects = Counting(&store.0, Default::default());
    let outcome =
        apply_row(&objects, &TreeLookup::new(&objects, trees.ours), row, &Rules::default()).unwrap();
    let Outcome::Clean(applied) = outcome else { panic!("{outcome:?}") };
    assert!(applied.edits.iter().all(|edit| edit.how == How::Theirs) && applied.new_blobs.is_empty());
    assert_eq!(objects.1.borrow().len(), 3, "ours' root, a/ and b/ alone");
}

#[test]
fn a_train_of_changes_that_all_touch_one_index_goes_aboard_in_any_order_and_the_index_is_complete() {
    const CHANGES: usize = 60;
    let base = files([("INDEX", "m\n"), ("src/a", "a\n")]);
    let rules = Rules::new(vec![("INDEX".to_owned(), Rule::SortedLines)]);
    let mut store = Store(MemoryObjects::default());
    let base_tree = store.tree(&base);
    let name = |n: usize| format!("entry {:03}", n * 7 % CHANGES);
    let theirs: Vec<_> = (0..CHANGES)
        .map(|n| {
            let mut lines = [name(n), "m".to_owned()];
            lines.sort();
            let index = with(&base, "INDEX", Mode::File, lines.map(|line| line + "\n").concat());
            store.tree(&with(&index, format!("src/{}", name(n)), Mode::File, name(n)))
        })
        .collect();
    let mut ends = Vec::new();
    let orders: [Vec<usize>; 2] = [(0..CHANGES).collect(), (0..CHANGES).rev().collect()];
    for order in orders {
        let mut objects = Overlay::new(&store.0);
        let mut running = RunningTree::new(base_tree);
        for n in order {
            let edits = yard_git::diff::diff(&store.0, base_tree, theirs[n]).unwrap();
            let row = Row { edits: &edits, base_tree, theirs_tree: theirs[n] };
            let outcome =
                apply_row(&objects, &RunningLookup::new(&objects, &mut running), row, &rules).unwrap();
            let Outcome::Clean(applied) = outcome else { panic!("{outcome:?}") };
            for blob in applied.new_blobs {
                objects.new.add(Kind::Blob, blob.bytes);
            }
            let steps: Vec<_> = applied
                .edits
                .iter()
                .map(|e| Step { path: &e.path, ours: e.ours, result: e.result })
                .collect();
            for tree in running.fold(&objects, &steps).unwrap().trees {
                objects.new.add(Kind::Tree, tree.data);
            }
        }
        ends.push(read(&objects, running.id()));
    }
    assert_eq!(ends[0], ends[1]);
    let mut lines: Vec<String> = (0..CHANGES).map(|n| format!("entry {n:03}\n")).collect();
    lines.push("m\n".to_owned());
    assert_eq!(ends[0][&b"INDEX"[..]].1, lines.concat().into_bytes());
    assert_eq!(ends[0].len(), CHANGES + 2);
}
