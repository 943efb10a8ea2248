use super::*;

fn clean(base: &str, ours: &str, theirs: &str) -> Option<String> {
    match merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
        TextMerge::Clean(bytes) => Some(String::from_utf8(bytes).unwrap()),
        _ => None,
    }
}

#[test]
fn changes_with_one_common_line_between_them_merge() {
    assert_eq!(clean("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n").as_deref(), Some("A\nb\nC\n"));
}

#[test]
fn changes_that_touch_collide() {
    assert_eq!(clean("a\nb\n", "A\nb\n", "a\nB\n"), None);
    assert_eq!(clean("a\nb\n", "a\nx\nb\n", "a\ny\nb\n"), None);
}

#[test]
fn the_same_change_on_both_sides_is_made_once() {
    assert_eq!(clean("a\nb\nc\nd\n", "a\nX\nc\nd\n", "a\nX\nc\nD\n").as_deref(), Some("a\nX\nc\nD\n"));
}

#[test]
fn crlf_line_ends_are_kept() {
    let merged = clean("a\r\nb\r\nc\r\nd\r\n", "A\r\nb\r\nc\r\nd\r\n", "a\r\nb\r\nc\r\nD\r\n");
    assert_eq!(merged.as_deref(), Some("A\r\nb\r\nc\r\nD\r\n"));
}

#[test]
fn a_missing_final_newline_is_a_change_of_the_last_line() {
    assert_eq!(clean("a\nb\nc", "A\nb\nc", "a\nb\nc\n").as_deref(), Some("A\nb\nc\n"));
    assert_eq!(clean("a\nb", "a\nb\n", "a\nB"), None);
}

#[test]
fn a_nul_in_any_of_the_three_is_binary() {
    assert_eq!(merge(b"a\0", b"a\n", b"b\n"), TextMerge::Binary);
    assert_eq!(merge(b"a", b"a\n", b"b\0"), TextMerge::Binary);
}

#[test]
fn a_merge_that_the_diff_algorithms_see_differently_is_ambiguous() {
    // Found by searching: few distinct lines make the two algorithms pair them differently.
    let words = ["{\n", "}\n", "a\n", "b\n"];
    let mut state = 7_u64;
    let mut next = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % n
    };
    let mut found = 0;
    for _ in 0..3_000 {
        let mut text = |n: usize| (0..n).map(|_| words[next(4)]).collect::<String>();
        let (base, ours, theirs) = (text(9), text(9), text(9));
        let three = [&base, &ours, &theirs].map(|text| lines(text.as_bytes()));
        let by = |algorithm| merge_with(algorithm, &three).map(|lines| lines.concat());
        let (histogram, myers) = (by(Algorithm::Histogram), by(Algorithm::Myers));
        let merged = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        match (histogram, myers) {
            (Some(a), Some(b)) if a == b => {
                assert!(merged == TextMerge::Clean(a) || merged == TextMerge::Ambiguous)
            }
            (Some(_), _) => {
                assert_eq!(merged, TextMerge::Ambiguous);
                found += 1;
            }
            (None, _) => assert_eq!(merged, TextMerge::Conflict),
        }
    }
    assert!(found > 0, "the search met no ambiguous merge: it tests nothing");
}

#[test]
fn an_entry_that_could_land_under_either_of_two_headings_is_ambiguous() {
    let old = "Version 8.4.0\n----\n\nUnreleased\n\n-   One.\n";
    let base = format!("Changes\n\nVersion 8.4.1\n----\n\nUnreleased\n\n\n\n{old}");
    let ours = format!(
        "Changes\n\nVersion 8.5.0\n----\n\nUnreleased\n\n\nVersion 8.4.1\n----\n\nUnreleased\n\n\n{old}"
    );
    let theirs = format!("Changes\n\nVersion 8.4.1\n----\n\nUnreleased\n\n-   Two.\n\n\n{old}");
    assert_eq!(merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()), TextMerge::Ambiguous);
}
