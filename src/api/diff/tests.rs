use super::*;
use yard_common::RepoPath;

fn id(digit: char) -> ObjectId {
    String::from(digit).repeat(40).parse().unwrap()
}

fn edit(base: Option<char>, theirs: Option<char>) -> RowEdit {
    let entry = |digit: char| Entry { mode: Mode::File, id: id(digit) };
    RowEdit { path: RepoPath::new("a.txt").unwrap(), base: base.map(entry), theirs: theirs.map(entry) }
}

fn blobs(all: &[(char, &[u8])]) -> Blobs {
    all.iter().map(|(digit, bytes)| (id(*digit), bytes.to_vec())).collect()
}

#[test]
fn a_path_is_shown_as_a_unified_difference() {
    let kept = blobs(&[('a', b"one\ntwo\n"), ('b', b"one\nthree\n")]);
    let shown = file(&edit(Some('a'), Some('b')), &[&kept], 1000);
    assert_eq!((shown.text.as_str(), shown.note), ("@@ -1,2 +1,2 @@\n one\n-two\n+three\n", None));
    let new = file(&edit(None, Some('b')), &[&kept], 1000);
    assert_eq!((new.before, new.text.as_str()), (None, "@@ -0,0 +1,2 @@\n+one\n+three\n"));
    let gone = file(&edit(Some('a'), None), &[&kept], 1000);
    assert_eq!((gone.after, gone.text.as_str()), (None, "@@ -1,2 +0,0 @@\n-one\n-two\n"));
}

#[test]
fn what_cannot_be_shown_says_why() {
    let large = vec![b'x'; FILE_BYTES_MAX + 1];
    let kept = blobs(&[('a', b"\0"), ('b', b"text\n"), ('c', &large)]);
    let note = |base, theirs, left| file(&edit(base, theirs), &[&kept], left).note.unwrap();
    assert_eq!(note(Some('a'), Some('b'), 1000), "no text");
    assert_eq!(note(Some('b'), Some('c'), 1000), "too large to be compared here");
    assert_eq!(note(Some('b'), Some('d'), 1000), "its contents are not kept any more");
    assert_eq!(note(None, Some('b'), 0), "left out: the answer is long enough");
    let cut = file(&edit(None, Some('b')), &[&kept], 8);
    assert_eq!((cut.text.as_str(), cut.note.is_some()), ("@@ -0,0 ", true));
}
