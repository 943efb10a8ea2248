use super::*;

fn person(name: &str, seconds: u64, offset_minutes: i16) -> Signature {
    Signature { name: name.into(), email: "a@example.org".into(), seconds, offset_minutes }
}

fn sample() -> Commit {
    Commit {
        tree: ObjectId::EMPTY_TREE,
        parents: vec![ObjectId([1; 20]), ObjectId([2; 20])],
        author: person("A U Thor", 1_700_000_000, -330),
        committer: person("Çommitter", 1_700_000_001, 60),
        headers: vec![
            (b"encoding".to_vec(), b"ISO-8859-1".to_vec()),
            (b"gpgsig".to_vec(), b"-----BEGIN-----\n\nabc\n-----END-----".to_vec()),
        ],
        message: b"title\n\nbody \xff\n".to_vec(),
    }
}

#[test]
fn a_commit_reads_what_it_writes_signature_and_odd_bytes_included() {
    let data = sample().encode();
    assert_eq!(Commit::parse(&data).unwrap(), sample());
    assert_eq!(Commit::parse(&data).unwrap().encode(), data);
    assert_eq!(check(&data), Ok(()));
    let text = String::from_utf8_lossy(&data).into_owned();
    assert!(text.contains("author A U Thor <a@example.org> 1700000000 -0530\n"));
    assert!(text.contains("gpgsig -----BEGIN-----\n \n abc\n -----END-----\n\ntitle"));
    let links = links(&data).unwrap();
    assert_eq!(
        (links.tree, links.parents.len(), links.committed_at),
        (ObjectId::EMPTY_TREE, 2, 1_700_000_001)
    );
}

#[test]
fn odd_identities_are_read_and_refused_on_push() {
    let tree = format!("tree {}\n", ObjectId::EMPTY_TREE);
    for (author, why) in [
        ("author A <a@b> 1 +0000", None),
        ("author  <> 1 +0000", None),
        ("author <a@b> 1 +0000", Some("missing space before email")),
        ("author A 1 +0000", Some("missing email")),
        ("author A <a> b> 1 +0000", Some("bad date")),
        ("author A <a<b> 1 +0000", Some("bad email")),
        ("author A <a@b>1 +0000", Some("missing space before date")),
        ("author A <a@b> x +0000", Some("bad date")),
        ("author A <a@b> 01 +0000", Some("bad date")),
        ("author A <a@b> 99999999999999999999 +0000", Some("overflow")),
        ("author A <a@b> 1 0000", Some("bad time zone")),
    ] {
        let data = format!("{tree}{author}\ncommitter C <c@d> 5 +0100\n\nx\n");
        assert_eq!(Commit::parse(data.as_bytes()).unwrap().committer.seconds, 5, "{author}");
        match (check(data.as_bytes()), why) {
            (Ok(()), None) => {}
            (Err(fault), Some(why)) => assert!(fault.why.contains(why), "{author}: {fault}"),
            other => panic!("{author}: {other:?}"),
        }
    }
    let nul = format!("{tree}author A <a@b> 1 +0000\ncommitter C <c@d> 5 +0100\n\nx\0y\n");
    assert!(check(nul.as_bytes()).is_err());
    assert!(Commit::parse(b"tree 4b82\nauthor A <a@b> 1 +0000\n").is_err());
    let two =
        format!("{tree}author A <a@b> 1 +0000\nauthor A <a@b> 1 +0000\ncommitter C <c@d> 5 +0100\n\nx\n");
    assert!(check(two.as_bytes()).is_err());
}

#[test]
fn a_name_cannot_smuggle_a_header_into_a_commit() {
    let mut commit = sample();
    commit.author.name = "Eve>\nparent 0000000000000000000000000000000000000000\n<x".into();
    let data = commit.encode();
    assert_eq!(Commit::parse(&data).unwrap().parents.len(), 2);
    assert_eq!(check(&data), Ok(()));
}

#[test]
fn tags_with_and_without_a_tagger_are_read() {
    let target = ObjectId([7; 20]);
    let new = format!("object {target}\ntype commit\ntag v1\ntagger T <t@x> 9 +0000\n\nmessage\n");
    let tag = Tag::parse(new.as_bytes()).unwrap();
    assert_eq!((tag.target, tag.kind, tag.name.as_slice()), (target, Kind::Commit, &b"v1"[..]));
    assert_eq!((tag.tagger.unwrap().seconds, tag.message.as_slice()), (9, &b"message\n"[..]));
    let old = format!("object {target}\ntype tree\ntag v0\n\nmessage\n");
    assert_eq!(Tag::parse(old.as_bytes()).unwrap().tagger, None);
    assert_eq!((check_tag(new.as_bytes()), check_tag(old.as_bytes())), (Ok(()), Ok(())));
    for bad in ["type commit\ntag v1\n\n", "object 77\ntype commit\ntag v1\n\n"] {
        assert!(Tag::parse(bad.as_bytes()).is_err());
    }
    assert!(check_tag(format!("object {target}\ntype bolb\ntag v\n\n").as_bytes()).is_err());
    assert!(check_tag(new.replace("9 +0000", "9").as_bytes()).is_err());
}
