use super::*;
use crate::object::MemoryObjects;

const FILE: TreeMode = TreeMode::Leaf(Mode::File);

fn id(n: u8) -> ObjectId {
    ObjectId([n; 20])
}

fn raw(list: &[(&str, &str, u8)]) -> Vec<u8> {
    let mut data = Vec::new();
    for (digits, name, n) in list {
        push_entry(&mut data, digits.as_bytes(), name.as_bytes(), &id(*n));
    }
    data
}

#[test]
fn encoding_sorts_as_git_does() {
    let data = encode(&[
        (TreeMode::Tree, b"a", id(1)),
        (FILE, b"a.b", id(2)),
        (FILE, b"a0", id(3)),
        (FILE, b"a-", id(4)),
        (FILE, b"B", id(5)),
    ]);
    let names: Vec<_> = parse(&data).unwrap().iter().map(|entry| entry.name.to_vec()).collect();
    assert_eq!(names, [&b"B"[..], b"a-", b"a.b", b"a", b"a0"]);
    assert_eq!(check(&data), Ok(()));
}

#[test]
fn odd_modes_are_read_as_git_reads_them_and_keep_their_digits() {
    let data = raw(&[
        ("100664", "a", 1),
        ("040000", "b", 2),
        ("100775", "c", 3),
        ("120000", "d", 4),
        ("160000", "e", 5),
    ]);
    let list = parse(&data).unwrap();
    let modes: Vec<_> = list.iter().map(|entry| entry.mode).collect();
    assert_eq!(
        modes,
        [
            FILE,
            TreeMode::Tree,
            TreeMode::Leaf(Mode::Executable),
            TreeMode::Leaf(Mode::Symlink),
            TreeMode::Leaf(Mode::Gitlink)
        ]
    );
    let mut again = Vec::new();
    list.iter().for_each(|entry| push_entry(&mut again, entry.digits, entry.name, &entry.id));
    assert_eq!(again, data);
    assert_eq!(data.len(), list.iter().map(TreeEntry::encoded_len).sum::<usize>());
}

#[test]
fn a_cut_tree_is_malformed_at_every_length() {
    let data = raw(&[("100644", "name", 1)]);
    for cut in 1..data.len() {
        assert!(parse(&data[..cut]).is_err(), "cut at {cut}");
    }
    assert!(parse(b"99999 a\0aaaaaaaaaaaaaaaaaaaa").is_err());
}

#[test]
fn the_strict_check_names_the_rule_that_a_pushed_tree_breaks() {
    for (list, why) in [
        (&[("100644", "b", 1), ("100644", "a", 1)][..], "not properly sorted"),
        (&[("40000", "a", 1), ("100644", "a.b", 1)][..], "not properly sorted"),
        (&[("100644", "a", 1), ("100644", "a", 1)][..], "contains duplicate file entries"),
        (&[("100644", "a", 1), ("40000", "a", 1)][..], "contains duplicate file entries"),
        (
            &[("100644", "a", 1), ("100644", "a.b", 1), ("40000", "a", 1)][..],
            "contains duplicate file entries",
        ),
        (
            &[
                ("100644", "a", 1),
                ("100644", "a-", 1),
                ("100644", "a-b", 1),
                ("100644", "a.b", 1),
                ("40000", "a", 1),
            ][..],
            "contains duplicate file entries",
        ),
        (&[("100644", "a/b", 1)][..], "contains full pathnames"),
        (&[("100600", "a", 1)][..], "contains bad file modes"),
        (&[("100644", "a", 0)][..], "contains entries pointing to null sha1"),
        (&[("120000", ".gitmodules", 1)][..], ".gitmodules is a symbolic link: make it a file"),
    ] {
        assert_eq!(check(&raw(list)), Err(Malformed { why }), "{list:?}");
    }
    for name in ["", ".", "..", ".git", ".GIT", "git~1", ".git.", ".g\u{200c}it"] {
        assert!(check(&raw(&[("40000", name, 1)])).is_err(), "{name:?}");
    }
    assert_eq!(check(&raw(&[("100644", "a", 1), ("100644", "a.b", 1), ("040000", "b", 1)])), Ok(()));
}

#[test]
fn lookup_tells_absent_entry_directory_and_file_prefix_apart() {
    let mut objects = MemoryObjects::default();
    let sub = objects.add(Kind::Tree, encode(&[(FILE, b"f", id(7))]));
    let root = objects.add(Kind::Tree, encode(&[(TreeMode::Tree, b"d", sub), (FILE, b"e", id(8))]));
    let at = |path: &str| spot(&objects, root, &RepoPath::new(path).unwrap()).unwrap();
    assert_eq!(at("d/f"), Spot::Entry(Entry { mode: Mode::File, id: id(7) }));
    assert_eq!(at("d"), Spot::Directory(sub));
    assert_eq!(at("d/g"), Spot::Absent);
    assert_eq!(at("x/y/z"), Spot::Absent);
    assert_eq!(at("e/y/z"), Spot::BelowFile(1));
    assert_eq!(at("d/f/z"), Spot::BelowFile(3));
    let path = RepoPath::new("d/f").unwrap();
    assert_eq!(lookup(&objects, root, &path).unwrap().unwrap().id, id(7));
    assert_eq!(lookup(&objects, id(9), &path), Err(Missing::from(id(9)).into()));
}
