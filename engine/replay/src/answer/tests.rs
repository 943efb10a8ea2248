use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::brief::Start;
use crate::limits::{ANSWER_BYTES_MAX, FILE_BYTES_MAX};
use crate::text::hunks;

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

fn file(name: &str, main: Option<&str>, theirs: Option<&str>) -> BriefFile {
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    BriefFile {
        reviewed: path(name),
        path: path(name),
        base: bytes(main),
        theirs: bytes(theirs),
        main: bytes(main),
        start: Start::Main,
        special: false,
        mode_moved: false,
    }
}

fn a(main: &str) -> Vec<BriefFile> {
    vec![file("src/a", Some(main), Some("theirs\n"))]
}

fn of(files: &[BriefFile], text: &str) -> Result<Replayed, BadAnswer> {
    read(files, &BTreeSet::new(), text)
}

fn one(files: &[BriefFile], text: &str) -> Result<String, BadAnswer> {
    match of(files, text)? {
        Replayed::Files(files) => {
            assert_eq!(files.len(), 1);
            Ok(String::from_utf8(files[0].content.clone().unwrap()).unwrap())
        }
        Replayed::AlreadyThere => panic!("already there"),
    }
}

fn block(path: &str, search: &str, replace: &str) -> String {
    format!("{path}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n")
}

const MAIN: &str = "one\ntwo\nthree\nfour\n";

#[test]
fn blocks_are_found_in_every_dress_that_models_give_them() {
    for answer in [
        block("src/a", "two\n", "2\n"),
        format!("Here is the edit:\n\n{}\nThat keeps the rest.", block("src/a", "two\n", "2\n")),
        block("`src/a`", "two\n", "2\n"),
        block("**src/a**:", "two\n", "2\n"),
        block("### `src/a`", "two\n", "2\n"),
        block("\"src/a\"", "two\n", "2\n"),
        block("a/src/a", "two\n", "2\n"),
        block("src/a", "two\n", "2\n").replace('\n', "\r\n"),
        format!("```\n{}```\n", block("src/a", "two\n", "2\n")),
        format!("src/a\n```python\n{}```\n", block("", "two\n", "2\n").trim_start()),
        format!("<think>src/x\n<<<<<<< SEARCH\nbla</think>\n{}", block("src/a", "two\n", "2\n")),
        block("src/a", "two\n", "2\n").repeat(2),
        "src/a\n<<<<<<< SEARCH k1\ntwo\n======= k1\n2\n>>>>>>> REPLACE k1".to_owned(),
    ] {
        assert_eq!(one(&a(MAIN), &answer).as_deref(), Ok("one\n2\nthree\nfour\n"), "{answer}");
    }
}

#[test]
fn blocks_search_in_what_was_shown_whatever_their_order() {
    let both = format!("{}{}", block("src/a", "four\n", "two\n"), block("src/a", "two\n", "four\n"));
    assert_eq!(one(&a(MAIN), &both).as_deref(), Ok("one\nfour\nthree\ntwo\n"));
    // The path of the block before counts on.
    let again = both.replacen("REPLACE\nsrc/a\n", "REPLACE\n", 1);
    assert_eq!(again.matches("src/a").count(), 1);
    assert_eq!(one(&a(MAIN), &again).as_deref(), Ok("one\nfour\nthree\ntwo\n"));
}

#[test]
fn whole_files_deletions_and_keeping() {
    let whole = "src/a\n<<<<<<< FILE\nx\ny\n>>>>>>> FILE\n";
    assert_eq!(one(&a(MAIN), whole).as_deref(), Ok("x\ny\n"));
    let new = [file("src/a", None, Some("theirs\n"))];
    assert_eq!(one(&new, whole).as_deref(), Ok("x\ny\n"));
    assert_eq!(one(&new, &block("src/a", "", "x\n")).as_deref(), Ok("x\n"));
    let gone = [file("src/a", Some(MAIN), None)];
    let delete = "src/a\n<<<<<<< DELETE\n>>>>>>> DELETE\n";
    let Replayed::Files(files) = of(&gone, delete).unwrap() else { panic!() };
    assert_eq!(files, [ResultFile { path: path("src/a"), content: None, edited: true }]);
    assert_eq!(of(&a(MAIN), "src/a\n<<<<<<< KEEP\n>>>>>>> KEEP\n"), Ok(Replayed::AlreadyThere));
    assert_eq!(of(&a(MAIN), &block("src/a", "two\n", "two\n")), Ok(Replayed::AlreadyThere));
}

#[test]
fn what_merged_clean_goes_along_untouched() {
    let mut other = file("src/b", Some("old\n"), Some("new\n"));
    other.start = Start::Merged(Some(b"new\n".to_vec()));
    let mut same = file("src/c", Some("same\n"), Some("same\n"));
    same.start = Start::Merged(Some(b"same\n".to_vec()));
    let mut mode = same.clone();
    (mode.path, mode.mode_moved) = (path("src/d"), true);
    let files = [other, same, mode, file("src/a", Some(MAIN), Some("theirs\n"))];
    let Replayed::Files(done) = of(&files, &block("src/a", "two\n", "2\n")).unwrap() else { panic!() };
    let names: Vec<_> = done.iter().map(|file| (file.path.to_string(), file.edited)).collect();
    assert_eq!(names, [("src/a".into(), true), ("src/b".into(), false), ("src/d".into(), false)]);
}

#[test]
fn main_s_renames_are_followed() {
    let mut moved = a(MAIN);
    moved[0].path = path("lib/a");
    for name in ["src/a", "lib/a"] {
        let Replayed::Files(files) = of(&moved, &block(name, "two\n", "2\n")).unwrap() else { panic!() };
        assert_eq!(files[0].path, path("lib/a"));
    }
}

#[test]
fn line_ends_stay_as_the_file_has_them() {
    let crlf = "one\r\ntwo\r\nthree\r\n";
    let answer = block("src/a", "two\n", "2\n2b\n");
    assert_eq!(one(&a(crlf), &answer).as_deref(), Ok("one\r\n2\r\n2b\r\nthree\r\n"));
    let mixed = "one\r\ntwo\nthree\r\nfour\r\nfive\n";
    assert_eq!(one(&a(mixed), &answer).as_deref(), Ok("one\r\n2\r\n2b\r\nthree\r\nfour\r\nfive\n"));
    let open = "one\ntwo";
    let mut files = a(open);
    files[0].theirs = Some(b"theirs".to_vec());
    assert_eq!(one(&files, &answer).as_deref(), Ok("one\n2\n2b"));
    // The reviewed change adds the missing line feed.
    files[0].theirs = Some(b"theirs\n".to_vec());
    assert_eq!(one(&files, &answer).as_deref(), Ok("one\n2\n2b\n"));
}

#[test]
fn text_that_looks_like_markers_can_be_edited() {
    let main = "Title\n=======\n\ntext\n";
    let plain = block("src/a", "Title\n=======\n", "Other\n=======\n");
    assert_eq!(of(&a(main), &plain), Err(BadAnswer::TwoSeparators { line: 2 }));
    let tagged = "src/a\n<<<<<<< SEARCH k1\nTitle\n=======\n======= k1\nOther\n=======\n>>>>>>> REPLACE k1\n";
    assert_eq!(one(&a(main), tagged).as_deref(), Ok("Other\n=======\n\ntext\n"));
    // Markers that the file had before may stay.
    let docs = "<<<<<<< HEAD\nx\n>>>>>>> other\n";
    assert_eq!(
        one(&a(docs), &block("src/a", "x\n", "y\n")).as_deref(),
        Ok("<<<<<<< HEAD\ny\n>>>>>>> other\n")
    );
}

/// Answers that are no blocks for the reviewed paths.
fn bad_forms() -> Vec<(String, BadAnswer)> {
    use BadAnswer as B;
    vec![
        (String::new(), B::Empty),
        (" \n\t\r\n".into(), B::Empty),
        ("<think>hm</think> ".into(), B::Empty),
        (
            "I'm sorry, but I can't help with that.".into(),
            B::NoBlocks { begins: "I'm sorry, but I can't help with that.".into() },
        ),
        (
            "<<<<<<< CANNOT\nthe function\nis gone\n>>>>>>> CANNOT\n".into(),
            B::Cannot { why: "the function is gone".into() },
        ),
        ("src/a\n<<<<<<< SEARCH\ntwo\n".into(), B::HalfBlock { line: 2 }),
        ("src/a\n<<<<<<< SEARCH\ntwo\n=======\n2\n".into(), B::HalfBlock { line: 2 }),
        ("src/a\n<<<<<<< SEARCH\ntwo\n>>>>>>> REPLACE\n".into(), B::HalfBlock { line: 2 }),
        ("src/a\ntwo\n=======\n2\n>>>>>>> REPLACE\n".into(), B::HalfBlock { line: 5 }),
        (format!("src/a\n<<<<<<< SEARCH\ntwo\n{}", block("src/a", "two\n", "2\n")), B::HalfBlock { line: 2 }),
        ("src/a\n<<<<<<< HEAD\ntwo\n=======\n2\n>>>>>>> theirs\n".into(), B::HalfBlock { line: 2 }),
        ("src/a\n<<<<<<< DELETE\ntwo\n>>>>>>> DELETE\n".into(), B::HalfBlock { line: 2 }),
        (block("", "two\n", "2\n"), B::NoPath { line: 2 }),
        (block("Change this line:", "two\n", "2\n"), B::NoPath { line: 2 }),
        (block("src/other", "two\n", "2\n"), B::OutOfPaths { path: "src/other".into() }),
        (block(".switchyard.toml", "two\n", "2\n"), B::OutOfPaths { path: ".switchyard.toml".into() }),
        (block("../../etc/passwd", "two\n", "2\n"), B::OutOfPaths { path: "../../etc/passwd".into() }),
        (block("src/a\u{202e}\u{1b}", "two\n", "2\n"), B::OutOfPaths { path: "src/a".into() }),
    ]
}

/// Blocks that do not fit, or make what no file may be.
fn bad_edits() -> Vec<(String, BadAnswer)> {
    use BadAnswer as B;
    let p = || path("src/a");
    let whole = |text: &str| format!("src/a\n<<<<<<< FILE\n{text}>>>>>>> FILE\n");
    let big = format!("{}\n", "x".repeat(FILE_BYTES_MAX));
    vec![
        (
            block("src/a", "zwei\n", "2\n"),
            B::NoMatch { path: p(), hint: "no line of the file reads \"zwei\"".into() },
        ),
        (
            block("src/a", "one\ntwo\nfour\n", "2\n"),
            B::NoMatch {
                path: p(),
                hint: "it agrees from line 1 of the file on for 2 lines, and then has \"four\"".into(),
            },
        ),
        (
            block("src/a", "one\ntwo\nthree\nfour\nfive\n", "2\n"),
            B::NoMatch {
                path: p(),
                hint: "it agrees from line 1 of the file on for 4 lines, and then has \"five\"".into(),
            },
        ),
        (block("src/a", "", "2\n"), B::EmptySearch { path: p() }),
        (
            block("src/a", "two\nthree\n", "2\n") + &block("src/a", "three\nfour\n", "4\n"),
            B::Overlap { path: p() },
        ),
        (block("src/a", "two\n", "2\n") + &block("src/a", "two\n", "zwei\n"), B::Overlap { path: p() }),
        (block("src/a", "two\n", "2\n") + &whole("x\n"), B::MixedBlocks { path: p() }),
        ("src/a\n<<<<<<< DELETE\n>>>>>>> DELETE\n".into(), B::DeletesUnreviewed { path: p() }),
        (whole("one\n<<<<<<< HEAD\n2\n=======\n3\n>>>>>>> x\n"), B::MarkersLeft { path: p() }),
        (
            whole("one\n# ... rest of the file is unchanged ...\n"),
            B::Elided { path: p(), line: "# ... rest of the file is unchanged ...".into() },
        ),
        (whole("one\0\n"), B::Binary { path: p() }),
        (whole(&big), B::TooLarge { path: Some(p()), bytes: big.len() as u64 }),
        ("x".repeat(ANSWER_BYTES_MAX + 1), B::TooLong { bytes: ANSWER_BYTES_MAX as u64 + 1 }),
        ("src/a\n<<<<<<< KEEP\n>>>>>>> KEEP\n".repeat(10_001), B::TooManyBlocks),
    ]
}

#[test]
fn every_kind_of_bad_answer_has_its_own_name_and_changes_nothing() {
    let mut names = BTreeSet::new();
    for (answer, expected) in bad_forms().into_iter().chain(bad_edits()) {
        let bad = of(&a(MAIN), &answer).expect_err(&answer[..answer.len().min(300)]);
        assert_eq!(bad, expected, "{}", &answer[..answer.len().min(300)]);
        let sentence = bad.to_string();
        assert!(sentence.len() < 600 && !sentence.contains(char::is_control), "{sentence}");
        names.insert(serde_json::to_value(&bad).unwrap()["bad"].as_str().unwrap().to_owned());
    }
    assert_eq!(names.len(), 17, "{names:?}");
}

#[test]
fn a_block_that_matches_twice_is_refused_overlapping_matches_too() {
    for (main, search) in [("x\ny\nx\n", "x\n"), ("x\nx\nx\n", "x\nx\n"), ("\n\n", "\n")] {
        let bad = of(&a(main), &block("src/a", search, "z\n")).unwrap_err();
        assert!(matches!(bad, BadAnswer::ManyMatches { .. }), "{bad:?}");
    }
}

#[test]
fn paths_that_no_model_may_write_are_refused() {
    let mut link = file("src/a", Some("target"), Some("other"));
    link.special = true;
    link.start = Start::Merged(Some(b"other".to_vec()));
    let bad = of(&[link], &block("src/a", "other\n", "/etc/passwd\n")).unwrap_err();
    assert_eq!(bad, BadAnswer::NotText { path: path("src/a") });
    let binary = file("src/a", Some("a\0b\n"), Some("x\n"));
    assert!(matches!(
        of(&[binary], "src/a\n<<<<<<< FILE\nx\n>>>>>>> FILE\n"),
        Err(BadAnswer::NotText { .. })
    ));
    let absent = file("src/a", None, None);
    assert!(matches!(of(&[absent], "src/a\n<<<<<<< FILE\nx\n>>>>>>> FILE\n"), Err(BadAnswer::NoFile { .. })));
    let files = [file("src/a", Some(MAIN), Some("t\n")), file("src/b", Some(MAIN), Some("t\n"))];
    let bad = of(&files, &block("src/a", "two\n", "2\n")).unwrap_err();
    assert_eq!(bad, BadAnswer::Unanswered { path: path("src/b") });
    let partly = BTreeSet::from([path("src/a")]);
    let bad = read(&a(MAIN), &partly, "src/a\n<<<<<<< FILE\nx\n>>>>>>> FILE\n").unwrap_err();
    assert_eq!(bad, BadAnswer::PartlyShown { path: path("src/a") });
}

#[test]
fn all_files_together_are_bounded() {
    let text = format!("{}\n", "y".repeat(FILE_BYTES_MAX - 1));
    let names = ["a", "b", "c", "d", "e"];
    let files: Vec<_> = names.iter().map(|name| file(name, Some("x\n"), Some("z\n"))).collect();
    let answer: String =
        names.iter().map(|name| format!("{name}\n<<<<<<< FILE\n{text}>>>>>>> FILE\n")).collect();
    assert!(matches!(of(&files, &answer), Err(BadAnswer::TooLarge { path: None, .. })));
}

#[test]
fn ten_megabytes_of_malice_cost_linear_time() {
    let bytes = ANSWER_BYTES_MAX - 100;
    let fill = |unit: &str| unit.repeat(bytes / unit.len());
    let nested: String = (1..=1200).map(|n| block("src/a", &"x\n".repeat(n), "y\n")).collect();
    let file = "x\n".repeat(FILE_BYTES_MAX / 2);
    let hostile = [
        "z".repeat(10 << 20),
        fill("<<<<<<< SEARCH\n"),
        fill("src/a\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n"),
        fill("=======\n"),
        fill("<<<<<<< "),
        format!("src/a\n<<<<<<< SEARCH\n{}", fill("x\n")),
        block("src/a", &"x\n".repeat(bytes / 4), "y\n"),
        block("src/a", &format!("{}y\n", "x\n".repeat(FILE_BYTES_MAX / 2 - 1)), "y\n"),
        nested,
        fill("\u{202e}\u{0}\n"),
        fill("`"),
    ];
    let files = a(&file);
    for answer in hostile {
        let begin = Instant::now();
        let begins = answer[..answer.floor_char_boundary(60)].to_owned();
        of(&files, &answer).unwrap_err();
        // Seconds in a debug build; a quadratic reading takes hours.
        assert!(begin.elapsed().as_secs() < 60, "{begins:?} took {:?}", begin.elapsed());
    }
}

/// The blocks that turn one text into another: each difference with as many lines around as make it unique.
fn blocks(main: &str, want: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (main.lines().collect(), want.lines().collect());
    let old: Vec<&[u8]> = a.iter().map(|line| line.as_bytes()).collect();
    let new: Vec<&[u8]> = b.iter().map(|line| line.as_bytes()).collect();
    let all = hunks(&old, &new);
    if all.is_empty() {
        return "src/a\n<<<<<<< KEEP\n>>>>>>> KEEP\n".into();
    }
    let count = |from: usize, to: usize| a.windows(to - from).filter(|lines| *lines == &a[from..to]).count();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let mut out = String::new();
    let mut done = 0;
    for hunk in &all {
        let (mut from, mut to) = (hunk.before.start, hunk.before.end);
        while from == to || count(from, to) > 1 {
            (from, to) = (from.saturating_sub(1), (to + 1).min(a.len()));
        }
        // Where the surroundings meet the next difference, one block takes all.
        let next = all.iter().find(|next| next.before.start > hunk.before.start);
        if from < done || next.is_some_and(|next| to > next.before.start) {
            return block("src/a", &join(&a), &join(&b));
        }
        let lead = &a[from..hunk.before.start];
        let tail = &a[hunk.before.end..to];
        let replace = [lead, &b[hunk.after.clone()], tail].concat();
        out.push_str(&block("src/a", &join(&a[from..to]), &join(&replace)));
        done = to;
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_blocks_that_turn_main_into_a_text_yield_that_text(
        main in prop::collection::vec("[a-d]{0,2}", 1..30),
        want in prop::collection::vec("[a-d]{0,2}", 0..30),
        crlf: bool,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}{end}")).collect::<String>();
        let (main, want) = (text(&main), text(&want));
        let answer = blocks(&main, &want);
        match of(&a(&main), &answer).unwrap() {
            Replayed::AlreadyThere => prop_assert_eq!(main, want),
            Replayed::Files(files) => prop_assert_eq!(files[0].content.as_deref(), Some(want.as_bytes())),
        }
    }

    #[test]
    fn no_text_makes_it_panic_or_leave_the_reviewed_paths(
        parts in prop::collection::vec(prop::sample::select(vec![
            "src/a\n", "src/b\n", "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "<<<<<<< FILE\n",
            ">>>>>>> FILE\n", "<<<<<<< KEEP\n", ">>>>>>> KEEP\n", "one\n", "two\n", "two", "\r\n", "```\n",
            " k1\n", "\n",
        ]), 0..25),
    ) {
        if let Ok(Replayed::Files(files)) = of(&a(MAIN), &parts.concat()) {
            prop_assert!(files.len() == 1 && files[0].path == path("src/a"));
        }
    }
}

#[test]
fn a_file_that_was_cut_off_or_emptied_is_refused_and_one_that_both_sides_rewrote_is_not() {
    let base = "a\nb\nc\nd\ne\nf\ng\nh\n";
    let files = |main: &str, theirs: &str| {
        let mut file = file("src/a", Some(main), Some(theirs));
        file.base = Some(base.into());
        vec![file]
    };
    let whole = |text: &str| format!("src/a\n<<<<<<< FILE\n{text}>>>>>>> FILE\n");
    let both = files("a\nb\nc\nd\ne\nf\ng\nh\nours\n", "a\nb\nc\nd\ne\nf\ng\nh\ntheirs\n");
    for (answer, lines) in [("", 8), ("a\nb\nc\n", 5), ("ours\ntheirs\n", 8)] {
        let bad = one(&both, &whole(answer)).unwrap_err();
        assert_eq!(bad, BadAnswer::CutOff { path: path("src/a"), lines });
        assert!(!bad.is_final(), "a model that is told may write the rest");
    }
    let cut = block("src/a", base, "theirs\n");
    assert!(matches!(one(&both, &cut), Err(BadAnswer::CutOff { .. })), "by a SEARCH block too");
    let right = "a\nb\nc\nd\ne\nf\ng\nh\nours\ntheirs\n";
    assert_eq!(one(&both, &whole(right)).unwrap(), right);
    // A line or two that must give way, and lines that a side has rewritten anyhow.
    assert!(one(&both, &whole("a\nb\nc\nd\ne\nf\nours\ntheirs\n")).is_ok());
    let rewritten = files("a\nB\nC\nD\nE\nF\nG\nH\n", "a\n b\n c\n d\n e\n f\n g\n h\n");
    assert!(one(&rewritten, &whole("a\n B\n C\n D\n E\n F\n G\n H\n")).is_ok());
}

#[test]
fn lines_that_came_to_main_meanwhile_are_never_taken_back() {
    let base = "list\n  a\nend\n";
    let files = |base: Option<&str>, main: &str, theirs: &str| {
        let mut file = file("src/a", Some(main), Some(theirs));
        file.base = base.map(Into::into);
        vec![file]
    };
    let whole = |text: &str| format!("src/a\n<<<<<<< FILE\n{text}>>>>>>> FILE\n");
    // The author's own file in place of both.
    let both = files(Some(base), "list\n  a\n  rival\nend\n", "list\n  a\n  mine\nend\n");
    let bad = one(&both, &whole("list\n  a\n  mine\nend\n")).unwrap_err();
    assert_eq!(bad, BadAnswer::TakesBack { path: path("src/a"), lines: 1, line: "rival".into() });
    assert!(!bad.is_final() && bad.to_string().contains("keep what main has"));
    assert!(one(&both, &whole("list\n  a\n  rival\n  mine\nend\n")).is_ok());
    // A rival's line in new words is no loss.
    assert!(one(&both, &whole("list\n  a\n  rival(mine)\nend\n")).is_ok());
    // What stands inside of what the review takes away goes with it; of two new values one stays.
    let gone = files(Some("x\nf\n one\n two\ny\n"), "x\nf\n one\n more\n two\ny\n", "x\ny\n");
    assert!(one(&gone, &whole("x\ny\n")).is_ok());
    let value = files(Some("v = 1\nend\n"), "v = 2\nend\n", "v = 3\nend\n");
    assert!(one(&value, &whole("v = 3\nend\n")).is_ok());
    // Both added the file.
    let added = files(None, "rival\n", "mine\n");
    assert!(matches!(one(&added, &whole("mine\n")), Err(BadAnswer::TakesBack { .. })));
    assert!(one(&added, &whole("rival\nmine\n")).is_ok());
}
