use proptest::prelude::*;

use crate::Rule;

fn apply(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    crate::tests::apply(Rule::UnionExact, "CODEOWNERS", [base, ours, theirs])
}

#[test]
fn both_additions_stand_at_their_places_ours_first() {
    assert_eq!(apply("a\nb\n", "a\nx\nb\n", "a\ny\nb\nz\n").unwrap(), "a\nx\ny\nb\nz\n");
    assert_eq!(apply("", "x\n", "y\n").unwrap(), "x\ny\n");
}

#[test]
fn c1_a_line_that_both_rewrite_collides() {
    let why = apply("a\nb\n", "a\nx\n", "a\ny\n").unwrap_err();
    assert!(why.contains("main's file removed") && why.contains("line 2 (\"b\")"), "{why}");
}

#[test]
fn c3_a_line_deleted_by_one_collides() {
    assert!(apply("a\ne1\n", "a\n", "a\ne1\ne1b\n").unwrap_err().contains("removed"));
    assert!(apply("a\nb\n", "a\nb\nc\n", "b\na\n").unwrap_err().contains("the change's file"));
}

#[test]
fn c5_what_both_add_at_one_place_stands_once() {
    assert_eq!(apply("a\n", "a\nx\ny\n", "a\ny\nz\n").unwrap(), "a\nx\ny\nz\n");
    assert_eq!(apply("a\n", "a\nx\nsame\n", "a\nsame\n").unwrap(), "a\nx\nsame\n");
    assert_eq!(apply("a\n", "a\nsame\n", "a\nx\nsame\ny\n").unwrap(), "a\nx\nsame\ny\n");
}

#[test]
fn a_line_that_both_add_at_different_places_collides() {
    assert!(apply("a\nb\n", "x\na\nb\n", "a\nb\nx\n").unwrap_err().contains("different places"));
}

#[test]
fn parts_of_blocks_that_look_alike_collide() {
    assert!(apply("a\n", "a\nf {\n}\n", "a\ng {\n}\n").unwrap_err().contains("a part of other lines"));
    assert!(apply("a\n", "a\nf\n  x\n", "a\ng\n  x\n").unwrap_err().contains("a part of other lines"));
    assert!(apply("a\n", "a\nx\ny\n", "a\ny\nx\nz\n").unwrap_err().contains("another order"));
    assert!(apply("a\n", "a\nx\nx\n", "a\ny\nx\n").unwrap_err().contains("twice"));
}

#[test]
fn an_addition_that_may_stand_at_two_places_collides_only_where_that_matters() {
    assert!(apply("a\nb\n", "a\na\nb\n", "x\na\nb\n").unwrap_err().contains("in two ways"));
    assert_eq!(apply("a\nb\n", "a\na\nb\n", "a\nx\nb\n").unwrap(), "a\na\nx\nb\n");
    assert_eq!(apply("a\nb\nc\n", "a\na\nb\nc\n", "a\nb\nc\nx\n").unwrap(), "a\na\nb\nc\nx\n");
}

#[test]
fn a_missing_final_newline_and_crlf_are_kept_or_refused() {
    assert_eq!(apply("a\nb", "a\nx\nb", "y\na\nb").unwrap(), "y\na\nx\nb");
    assert!(apply("a\nb", "a\nb\nx\n", "y\na\nb").unwrap_err().contains("newline"));
    assert_eq!(apply("a\r\n", "a\r\nx\r\n", "y\r\na\r\n").unwrap(), "y\r\na\r\nx\r\n");
    assert!(apply("a\r\nb\n", "a\r\nb\nx\n", "y\r\na\r\nb\n").unwrap_err().contains("mixes"));
}

/// The base's lines with new ones from `first` on put in at some places.
fn side(base: &[u32], places: &[usize], first: u32) -> Vec<u32> {
    let mut out = base.to_vec();
    for (number, place) in (first..).zip(places) {
        out.insert(place % (out.len() + 1), number);
    }
    out
}

fn text(lines: &[u32]) -> String {
    lines.iter().map(|line| format!("line {line}\n")).collect()
}

proptest! {
    /// All lines of both stand once, the sides' own orders stay, and again is the same.
    #[test]
    fn additions_are_all_kept_once_and_in_order(
        count in 0_usize..6,
        our_places in prop::collection::vec(0_usize..9, 1..5),
        their_places in prop::collection::vec(0_usize..9, 1..5),
        same in prop::bool::ANY,
    ) {
        let base: Vec<u32> = (0..count as u32).collect();
        let (mut ours, mut theirs) = (side(&base, &our_places, 100), side(&base, &their_places, 200));
        if same {
            ours.push(300);
            theirs.push(300);
        }
        let merged = apply(&text(&base), &text(&ours), &text(&theirs)).unwrap();
        let lines: Vec<&str> = merged.lines().collect();
        for side in [&ours, &theirs] {
            let side = text(side);
            let mut rest = lines.iter();
            prop_assert!(side.lines().all(|line| rest.any(|other| *other == line)), "{}", merged);
        }
        prop_assert_eq!(lines.len(), ours.len() + theirs.len() - base.len() - usize::from(same));
        prop_assert_eq!(&apply(&text(&base), &merged, &text(&theirs)).unwrap(), &merged);
    }

    /// A line that a side removed is never decided.
    #[test]
    fn a_removed_line_collides(
        count in 1_usize..6,
        at in 0_usize..6,
        places in prop::collection::vec(0_usize..9, 1..4),
    ) {
        let base: Vec<u32> = (0..count as u32).collect();
        let (ours, mut theirs) = (side(&base, &places, 100), base.clone());
        theirs.remove(at % count);
        prop_assert!(apply(&text(&base), &text(&ours), &text(&theirs)).is_err());
        prop_assert!(apply(&text(&base), &text(&theirs), &text(&ours)).is_err());
    }
}
