use super::*;
use yard_common::intent::Intent;
use yard_git::MemoryObjects;

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

fn edit(at: &str, base: Option<ObjectId>, content: Option<&str>) -> ApiEdit {
    ApiEdit {
        path: path(at),
        base,
        content: content.map(str::to_owned),
        content_base64: None,
        mode: None,
        keep: false,
    }
}

fn change(edits: Vec<ApiEdit>) -> ApiChange {
    ApiChange {
        change: None,
        new_change: false,
        base: None,
        edits,
        intent: Intent { title: "Do it".into(), task: "a\nb".into(), ..Intent::default() },
        author: None,
        reverts: Vec::new(),
    }
}

fn world() -> (MemoryObjects, CommitInfo, ObjectId) {
    let mut objects = MemoryObjects::default();
    let blob = objects.add(Kind::Blob, b"old\n".to_vec());
    let entry = Entry { mode: Mode::Executable, id: blob };
    let mut tree = RunningTree::new(ObjectId::EMPTY_TREE);
    let made = tree.apply(&objects, &[(path("d/f"), Some(entry)), (path("g"), Some(entry))]).unwrap();
    for tree in made.trees {
        objects.add(Kind::Tree, tree.data);
    }
    let base = CommitInfo { id: ObjectId([7; 20]), tree: made.root, parents: vec![], seconds: 100 };
    (objects, base, blob)
}

fn built(edits: Vec<ApiEdit>) -> Result<Built, BuildError> {
    let (objects, base, _) = world();
    build(&objects, &base, &mut RunningTree::new(base.tree), &change(edits), None)
}

fn refused(edits: Vec<ApiEdit>) -> Refusal {
    match built(edits) {
        Err(BuildError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_request_builds_the_same_head() {
    let (_, _, blob) = world();
    let ask = || built(vec![edit("g", Some(blob), None), edit("d/f", Some(blob), Some("new\n"))]).unwrap();
    let (one, two) = (ask(), ask());
    assert_eq!(one.commit, two.commit);
    assert_eq!(one.commit.seconds, 101);
    assert_eq!(one.commit.parents, [ObjectId([7; 20])]);
    let paths: Vec<_> = one.edits.iter().map(|row| row.path.to_string()).collect();
    assert_eq!(paths, ["d/f", "g"]);
    assert_eq!(one.edits[0].theirs.unwrap().mode, Mode::Executable, "the base's mode is kept");
    assert_eq!(one.edits[1].theirs, None);
    assert_eq!(one.contents.len(), 1);
    assert_eq!(one.author.email, "switchyard@agents.invalid");
}

#[test]
fn an_edit_whose_base_is_not_what_stands_there_is_refused_with_what_does() {
    let (_, _, blob) = world();
    let other = ObjectId([9; 20]);
    assert_eq!(
        refused(vec![edit("g", Some(other), Some("x"))]),
        Refusal::BaseMismatch { path: path("g"), found: Some(blob) }
    );
    assert_eq!(
        refused(vec![edit("g", None, Some("x"))]),
        Refusal::BaseMismatch { path: path("g"), found: Some(blob) }
    );
    assert_eq!(
        refused(vec![edit("new", Some(other), Some("x"))]),
        Refusal::BaseMismatch { path: path("new"), found: None }
    );
}

#[test]
fn a_file_may_become_a_directory_in_one_change_but_not_while_it_stays() {
    let (_, _, blob) = world();
    let both = vec![edit("g/x", None, Some("x")), edit("g", Some(blob), None)];
    assert_eq!(built(both).unwrap().edits.len(), 2);
    assert!(matches!(refused(vec![edit("g/x", None, Some("x"))]), Refusal::Invalid { .. }));
    assert!(matches!(refused(vec![edit("d", None, Some("x"))]), Refusal::Invalid { .. }));
    assert!(matches!(refused(vec![edit("none", None, None)]), Refusal::Invalid { .. }));
}

#[test]
fn a_change_that_changes_nothing_is_refused() {
    let (_, _, blob) = world();
    assert_eq!(refused(vec![edit("g", Some(blob), Some("old\n"))]), Refusal::NoEdits);
    assert_eq!(check(&change(vec![])), Err(Refusal::NoEdits));
}

#[test]
fn keep_changes_the_mode_alone() {
    let (_, _, blob) = world();
    let mut only_mode = edit("g", Some(blob), None);
    only_mode.mode = Some(Mode::File);
    assert!(check(&change(vec![only_mode.clone()])).is_err());
    only_mode.keep = true;
    check(&change(vec![only_mode.clone()])).unwrap();
    let built = built(vec![only_mode]).unwrap();
    assert_eq!(built.edits[0].theirs, Some(Entry { mode: Mode::File, id: blob }));
    assert!(built.contents.is_empty());
}

#[test]
fn contradictions_are_found_before_anything_is_read() {
    let two = change(vec![edit("a", None, Some("x")), edit("a", None, Some("y"))]);
    assert!(matches!(check(&two), Err(Refusal::Invalid { .. })));
    let mut both = edit("a", None, Some("x"));
    both.content_base64 = Some(Base64(vec![1]));
    assert!(matches!(check(&change(vec![both])), Err(Refusal::Invalid { .. })));
    let large = "x".repeat(API_FILE_BYTES_MAX + 1);
    assert!(matches!(check(&change(vec![edit("a", None, Some(&large))])), Err(Refusal::TooLarge { .. })));
    let mut untitled = change(vec![edit("a", None, Some("x"))]);
    untitled.intent.title = " ".into();
    assert!(matches!(check(&untitled), Err(Refusal::Invalid { .. })));
}

#[test]
fn authors_have_a_name_and_an_address() {
    let ada = author(Some("Ada <ada@x>"), None, 5).unwrap();
    assert_eq!((ada.name.as_str(), ada.email.as_str(), ada.seconds), ("Ada", "ada@x", 5));
    for bad in ["Ada", "Ada <", "<a@x>", "Ada <>", "A\nb <a@x>", "A <a<b@x>"] {
        assert!(author(Some(bad), None, 0).is_err(), "{bad}");
    }
}

#[test]
fn files_that_git_reads_are_checked_as_git_fsck_does() {
    let evil = "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=evil\n";
    let long = format!("a b\n{}\n", "*".repeat(2048));
    for (at, content, mode, wants) in [
        (".gitmodules", evil, None, ".gitmodules, line 3: \"--upload-pack=evil\""),
        ("d/GITMOD~1", evil, None, "d/GITMOD~1, line 3"),
        ("d/.gitattributes", &long, None, "d/.gitattributes, line 2"),
        (".gitmodules", "x", Some(Mode::Symlink), "symbolic link"),
        (".gitmodules/x", "x", None, "no file"),
        ("d/.GitAttributes/x", "x", None, "no file"),
    ] {
        let mut edit = edit(at, None, Some(content));
        edit.mode = mode;
        let refused = check(&change(vec![edit.clone()])).err().unwrap_or_else(|| refused(vec![edit]));
        assert!(refused.to_string().contains(wants), "{at}: {refused}");
    }
    let fine = "[submodule \"x\"]\n\tpath = x\n\turl = ../x.git\n";
    assert!(built(vec![edit(".gitmodules", None, Some(fine))]).unwrap().warnings.is_empty());
    let mut link = edit(".gitignore", None, Some("x"));
    link.mode = Some(Mode::Symlink);
    assert_eq!(built(vec![link]).unwrap().warnings.len(), 1);
    let unreadable = built(vec![edit(".gitmodules", None, Some("no configuration\n"))]).unwrap();
    assert!(unreadable.warnings[0].contains("line 1"), "{:?}", unreadable.warnings);
}

#[test]
fn a_link_that_becomes_a_file_git_reads_is_checked_too() {
    let mut objects = MemoryObjects::default();
    let blob = objects.add(Kind::Blob, vec![b'*'; 3000]);
    let mut tree = RunningTree::new(ObjectId::EMPTY_TREE);
    let entry = Entry { mode: Mode::Symlink, id: blob };
    let made = tree.apply(&objects, &[(path(".gitattributes"), Some(entry))]).unwrap();
    for tree in made.trees {
        objects.add(Kind::Tree, tree.data);
    }
    let base = CommitInfo { id: ObjectId([7; 20]), tree: made.root, parents: vec![], seconds: 100 };
    let mut keep = edit(".gitattributes", Some(blob), None);
    (keep.mode, keep.keep) = (Some(Mode::File), true);
    let built = build(&objects, &base, &mut RunningTree::new(base.tree), &change(vec![keep]), None);
    assert!(matches!(built, Err(BuildError::Refused(Refusal::Invalid { .. }))), "{built:?}");
}
