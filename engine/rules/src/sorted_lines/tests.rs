use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::Rule;

fn apply(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    crate::tests::apply(Rule::SortedLines, "INDEX", [base, ours, theirs])
}

#[test]
fn c5_a_line_that_both_add_stands_once() {
    assert_eq!(apply("b\n", "a\nb\n", "a\nb\nc\n").unwrap(), "a\nb\nc\n");
}

#[test]
fn a_line_that_one_removes_and_the_other_keeps_is_removed() {
    assert_eq!(apply("a\nb\n", "a\n", "a\nb\nc\n").unwrap(), "a\nc\n");
    assert_eq!(apply("a\nb\n", "a\nb\nc\n", "a\n").unwrap(), "a\nc\n");
    assert_eq!(apply("a\nb\n", "b\n", "b\n").unwrap(), "b\n");
}

#[test]
fn a_line_that_main_removed_and_the_change_adds_anew_comes_back() {
    assert_eq!(apply("a\n", "a\nb\n", "a\nb\n").unwrap(), "a\nb\n");
    assert_eq!(apply("", "", "x\n").unwrap(), "x\n");
}

#[test]
fn neighbours_that_git_calls_a_conflict_merge() {
    assert_eq!(apply("a\nd\n", "a\nb\nd\n", "a\nc\nd\n").unwrap(), "a\nb\nc\nd\n");
}

#[test]
fn a_file_that_both_add_and_one_emptied_are_sets_too() {
    assert_eq!(apply("", "b\n", "a\n").unwrap(), "a\nb\n");
    assert_eq!(apply("a\n", "", "a\nb\n").unwrap(), "b\n");
    assert_eq!(apply("a\n", "a\nb\n", "").unwrap(), "b\n");
}

#[test]
fn bytes_decide_the_order() {
    assert_eq!(apply("B\n", "B\na\n", "B\n\u{e4}\n").unwrap(), "B\na\n\u{e4}\n");
}

#[test]
fn what_is_no_sorted_set_is_refused_with_the_side_and_the_line() {
    let why = apply("a\n", "b\na\n", "a\nc\n").unwrap_err();
    assert!(why.contains("main's file") && why.contains("line 2") && why.contains("\"a\""), "{why}");
    let why = apply("a\n", "a\nb\n", "a\na\n").unwrap_err();
    assert!(why.contains("the change's file") && why.contains("twice"), "{why}");
    assert!(apply("b\na\n", "a\n", "b\nc\n").unwrap_err().contains("base"));
}

#[test]
fn final_newlines_must_agree() {
    assert_eq!(apply("b", "a\nb", "b\nc").unwrap(), "a\nb\nc");
    assert!(apply("b\n", "a\nb", "b\nc\n").unwrap_err().contains("newline"));
    assert!(apply("b", "a\nb\n", "b\nc\n").unwrap_err().contains("newline"));
}

fn text(lines: &BTreeSet<u8>) -> String {
    lines.iter().map(|line| format!("{line:03}\n")).collect()
}

proptest! {
    /// Any order of changes of one base gives the same file: the base plus all added, less all removed.
    #[test]
    fn changes_of_one_base_commute(
        base in prop::collection::btree_set(0_u8..40, 0..25),
        changes in prop::collection::vec(prop::collection::btree_set(0_u8..40, 0..25), 1..6),
        order in prop::collection::vec(any::<u32>(), 6),
    ) {
        let run = |changes: &[&BTreeSet<u8>]| {
            let base = text(&base);
            changes.iter().fold(base.clone(), |ours, theirs| apply(&base, &ours, &text(theirs)).unwrap())
        };
        let straight: Vec<_> = changes.iter().collect();
        let mut shuffled: Vec<_> = changes.iter().zip(&order).collect();
        shuffled.sort_by_key(|(_, key)| **key);
        let shuffled: Vec<_> = shuffled.into_iter().map(|(change, _)| change).collect();
        let added = changes.iter().flat_map(|change| change.difference(&base));
        let kept = base.iter().filter(|line| changes.iter().all(|change| change.contains(*line)));
        let expected: BTreeSet<u8> = added.chain(kept).copied().collect();
        prop_assert_eq!(run(&straight), text(&expected));
        prop_assert_eq!(run(&shuffled), text(&expected));
    }

    /// Swapping the sides changes nothing, and merging twice is merging once.
    #[test]
    fn the_rule_is_symmetric_and_idempotent(
        base in prop::collection::btree_set(0_u8..20, 0..15),
        ours in prop::collection::btree_set(0_u8..20, 0..15),
        theirs in prop::collection::btree_set(0_u8..20, 0..15),
    ) {
        let (base, ours, theirs) = (text(&base), text(&ours), text(&theirs));
        let merged = apply(&base, &ours, &theirs).unwrap();
        prop_assert_eq!(&apply(&base, &theirs, &ours).unwrap(), &merged);
        prop_assert_eq!(&apply(&base, &merged, &theirs).unwrap(), &merged);
    }
}

#[test]
fn line_ends_must_agree() {
    assert_eq!(apply("a\r\nb\r\n", "b\r\n", "a\r\nb\r\nc\r\n").unwrap(), "b\r\nc\r\n");
    for (base, ours, theirs) in [
        // The removal of `a` would miss main's `a` with its carriage return.
        ("a\nb\nc\n", "a\r\nb\r\nc\r\n", "b\nc\n"),
        ("a\nb\n", "a\nb\nd\n", "a\nb\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb\r\nc\r\n", "b\n"),
    ] {
        let why = apply(base, ours, theirs).unwrap_err();
        assert!(why.contains("CRLF"), "{why}");
    }
}
