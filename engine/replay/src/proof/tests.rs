use super::*;
use crate::brief::Start;

fn file(base: &str, theirs: &str, main: &str) -> BriefFile {
    let path = RepoPath::new("src/a").unwrap();
    let some = |text: &str| Some(text.as_bytes().to_vec());
    BriefFile {
        reviewed: path.clone(),
        path,
        base: some(base),
        theirs: some(theirs),
        main: some(main),
        start: Start::Main,
        special: false,
        mode_moved: false,
    }
}

fn proof(file: &BriefFile, result: &str) -> Proof {
    let content = Some(result.as_bytes().to_vec());
    of(std::slice::from_ref(file), &[ResultFile { path: file.path.clone(), content, edited: true }])
}

#[test]
fn a_change_that_only_moved_is_the_same() {
    let file = file("a\nb\nc\n", "a\nB\nc\n", "x\ny\na\nb\nc\nz\n");
    let proof = proof(&file, "x\ny\na\nB\nc\nz\n");
    assert_eq!(proof.verdict, "the same change, moved: all 2 lines as reviewed");
    assert!(!proof.differs());
    assert_eq!(proof.text(), "the same change, moved: all 2 lines as reviewed\n");
}

#[test]
fn hunks_in_another_order_are_the_same() {
    let file = file("f\ng\n", "f\n1\n2\n3\ng\n4\n5\n", "g\nf\n");
    let proof = proof(&file, "g\n4\n5\nf\n1\n2\n3\n");
    assert_eq!(proof.counts, Counts { same: 5, ..Counts::default() });
    assert!(proof.files[0].text.is_empty(), "{}", proof.files[0].text);
}

#[test]
fn what_differs_is_shown_and_counted() {
    let file = file(
        "head\nlimit = 10\ntail\n",
        "head\nlimit = 20\ntail\nmore = 1\nlast = 2\n",
        "head\nlimit = scale(10)\ntail\n",
    );
    let proof = proof(&file, "head\nlimit = scale(20)\ntail\nmore = 1\n");
    assert_eq!(proof.counts, Counts { same: 1, changed: 2, new: 0, dropped: 1 });
    assert_eq!(
        proof.text(),
        "3 lines differ from the reviewed change: 2 changed, 1 dropped; 1 line as reviewed\n\
         \n\
         src/a\n\
         @@ reviewed from line 2, replayed from line 2 @@\n\
         < -limit = 10\n\
         < +limit = 20\n\
         > -limit = scale(10)\n\
         > +limit = scale(20)\n\
         \x20 +more = 1\n\
         @@ reviewed from line 5, replayed from line 4 @@\n\
         < +last = 2\n"
    );
}

#[test]
fn files_that_should_be_gone_or_there_and_binary_ones_are_noted() {
    let mut gone = file("a\n", "a\n", "a\n");
    gone.theirs = None;
    let kept = of(std::slice::from_ref(&gone), &[]);
    assert!(kept.differs() && kept.text().contains("deletes this file, and the replay keeps it"));
    let mut binary = file("a\0", "b\0", "c\0");
    binary.start = Start::Merged(Some(b"d\0".to_vec()));
    let other = proof(&binary, "d\0");
    assert!(other.text().contains("no text"), "{}", other.text());
    assert!(!proof(&binary, "b\0").differs());
}

#[test]
fn the_text_is_bounded_and_free_of_control_characters() {
    let mut files = Vec::new();
    for number in 0..20 {
        let theirs: String = (0..5_000).map(|line| format!("line \u{1b}[2J {line}\n")).collect();
        let mut one = file("", &theirs, "");
        one.path = RepoPath::new(format!("src/{number:02}")).unwrap();
        files.push(one);
    }
    let proof = of(&files, &[]);
    let text = proof.text();
    assert!(text.len() <= PROOF_BYTES_MAX, "{}", text.len());
    assert!(text.contains("further lines of this comparison are not shown"));
    assert!(!text.contains('\u{1b}'));
    assert_eq!(proof.counts.dropped, 100_000);
}
