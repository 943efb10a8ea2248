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
    assert_eq!(proof.counts, Counts { same: 1, changed: 2, new: 0, dropped: 1, elsewhere: 0 });
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

const CODE: &str =
    "def is_admin(u):\n    check(u)\n    return False\n\ndef is_ok(u):\n    check(u)\n    return False\n";

#[test]
fn reviewed_lines_in_another_function_are_another_change() {
    let (admin, ok) =
        ("def is_admin(u):\n    check(u)\n    return ", "def is_ok(u):\n    check(u)\n    return ");
    let theirs = format!("{admin}False\n\n{ok}True\n");
    let file = file(CODE, &theirs, &format!("import x\n\n{CODE}"));
    let right = proof(&file, &format!("import x\n\n{theirs}"));
    assert!(!right.differs(), "{}", right.text());
    let wrong = proof(&file, &format!("import x\n\n{admin}True\n\n{ok}False\n"));
    assert_eq!(wrong.counts, Counts { elsewhere: 2, ..Counts::default() });
    assert!(wrong.differs());
    let text = wrong.text();
    assert!(text.starts_with("2 lines differ from the reviewed change: 2 in another place"), "{text}");
    assert!(
        text.contains("@@ reviewed below \"def is_ok(u):\", replayed below \"def is_admin(u):\" @@"),
        "{text}"
    );
}

#[test]
fn sections_headings_and_braces_are_places_too() {
    let place = |path: &str, text: &str, line: usize| {
        place::Places::of(&RepoPath::new(path).unwrap(), text.as_bytes()).at(line)
    };
    assert_eq!(place("a.toml", "[a]\nx = 1\n[b]\ny = [\n  1,\n]\n", 4), "[b] > y = [");
    assert_eq!(place("a.md", "# A\n## B\ntext\n# C\nmore\n", 2), "# A > ## B");
    assert_eq!(place("a.md", "# A\n## B\ntext\n# C\nmore\n", 4), "# C");
    assert_eq!(place("a.c", "int f()\n{\n\tif (x)\n\t{\n\t\ty();\n\t}\n}\n", 4), "int f() > if (x)");
    assert_eq!(place("a.py", "# A\nx = 1\n", 1), "");
    assert_eq!(place("a.py", "def f():\n    a\n\n    b\n", 3), "def f():");
    assert_eq!(place("a.py", "def f():\n    a\n\n    b\n", 2), "");
}
