use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::Rule;

fn apply(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    crate::tests::apply(Rule::Changelog, "CHANGELOG.md", [base, ours, theirs])
}

const BASE: &str = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n- Two.\n\n\
    ### Fixed\n\n- Three.\n\n## [1.0.0]\n\n- Old.\n";

fn with(from: &str, to: &str) -> String {
    assert_eq!(BASE.matches(from).count(), 1, "{from:?}");
    BASE.replace(from, to)
}

#[test]
fn entries_of_both_stand_once_under_their_heading_ours_first() {
    let ours = with("- Two.\n", "- Two.\n- Mine.\n");
    let theirs = with("- Two.\n", "- Two.\n- Yours,\n  on two lines.\n");
    let merged = with("- Two.\n", "- Two.\n- Mine.\n- Yours,\n  on two lines.\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), merged);
    assert_eq!(apply(BASE, &merged, &theirs).unwrap(), merged, "applied again");
}

#[test]
fn an_entry_on_top_stays_on_top() {
    let ours = with("- One.\n", "- Mine.\n- One.\n");
    let theirs = with("- One.\n", "- Yours.\n- One.\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), with("- One.\n", "- Yours.\n- Mine.\n- One.\n"));
}

#[test]
fn c2_a_release_cut_meanwhile_leaves_the_entry_under_the_new_unreleased_heading() {
    let cut = with("## [Unreleased]\n", "## [Unreleased]\n\n## [1.1.0]\n");
    let entry = with("- Three.\n", "- Three.\n- Four.\n");
    let merged = with("## [Unreleased]\n", "## [Unreleased]\n\n### Fixed\n\n- Four.\n\n## [1.1.0]\n");
    assert_eq!(apply(BASE, &cut, &entry).unwrap(), merged);
    assert_eq!(apply(BASE, &entry, &cut).unwrap(), merged);
    assert_eq!(apply(BASE, &merged, &entry).unwrap(), merged, "applied again");
}

#[test]
fn a_release_that_leaves_empty_headings_takes_the_entry_under_its_own() {
    let cut = with("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n### Fixed\n\n## [1.1.0]\n");
    let entry = with("- One.\n", "- Zero.\n- One.\n");
    let merged =
        with("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- Zero.\n\n### Fixed\n\n## [1.1.0]\n");
    assert_eq!(apply(BASE, &cut, &entry).unwrap(), merged);
}

#[test]
fn an_unreleased_heading_is_made_where_the_release_left_none() {
    let cut = with("## [Unreleased]\n", "## [1.1.0]\n");
    let entry = with("- Two.\n", "- Two.\n- Four.\n");
    let merged = with("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- Four.\n\n## [1.1.0]\n");
    assert_eq!(apply(BASE, &cut, &entry).unwrap(), merged);
}

#[test]
fn a_version_as_the_unreleased_title_cannot_be_made_anew() {
    let base = "Version 2.0\n-----------\n\nUnreleased\n\n- One.\n\nVersion 1.0\n-----------\n\n- Old.\n";
    let cut = base.replace("Unreleased", "Released 2026-01-01");
    let entry = base.replace("- One.\n", "- One.\n- Two.\n");
    assert!(apply(base, &cut, &entry).unwrap_err().contains("made anew"));
    let next = format!("Version 3.0\n-----------\n\nUnreleased\n\n{cut}");
    let merged = apply(base, &next, &entry).unwrap();
    assert_eq!(merged, format!("Version 3.0\n-----------\n\nUnreleased\n\n- Two.\n\n{cut}"));
}

#[test]
fn c3_an_entry_deleted_meanwhile_stays_deleted() {
    let ours = with("- Two.\n", "");
    let theirs = with("- Two.\n", "- Two.\n- Yours.\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), with("- Two.\n", "- Yours.\n"));
    let theirs = with("- One.\n", "");
    let ours = with("- Two.\n", "- Two.\n- Mine.\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), with("- One.\n- Two.\n", "- Two.\n- Mine.\n"));
}

#[test]
fn an_entry_that_both_reword_collides_and_one_reworded_by_one_follows() {
    let ours = with("- One.\n", "- One, mine.\n");
    let theirs = with("- One.\n", "- One, yours.\n");
    let why = apply(BASE, &ours, &theirs).unwrap_err();
    assert!(why.contains("the change's file") && why.contains("line 7") && why.contains("One."), "{why}");
    let theirs = with("- Two.\n", "- Two, yours.\n");
    let merged = with("- One.\n- Two.\n", "- One, mine.\n- Two, yours.\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), merged);
    assert_eq!(apply(BASE, &with("- One.\n", ""), &with("- One.\n", "- One, yours.\n")).ok(), None);
    assert_eq!(apply(BASE, &with("- One.\n", "- One, mine.\n"), &with("- One.\n", "")).ok(), None);
}

#[test]
fn what_was_released_meanwhile_is_neither_reworded_nor_removed() {
    let cut = with("## [Unreleased]\n", "## [Unreleased]\n\n## [1.1.0]\n");
    assert!(apply(BASE, &cut, &with("- One.\n", "- Uno.\n")).unwrap_err().contains("released meanwhile"));
    assert!(apply(BASE, &cut, &with("- One.\n", "")).unwrap_err().contains("released meanwhile"));
}

#[test]
fn c5_the_same_entry_of_both_stands_once() {
    let ours = with("- Two.\n", "- Two.\n- Same.\n- Mine.\n");
    let theirs = with("- Two.\n", "- Two.\n- Same.\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), ours);
    let released = with("## [1.0.0]\n\n", "## [1.0.0]\n\n- Same.\n");
    assert!(apply(BASE, &released, &theirs).unwrap_err().contains("under another heading"));
}

#[test]
fn two_releases_at_once_collide() {
    let ours = with("## [Unreleased]\n", "## [Unreleased]\n\n## [1.1.0]\n");
    let theirs = with("## [Unreleased]\n", "## [Unreleased]\n\n## [2.0.0]\n");
    assert!(apply(BASE, &ours, &theirs).unwrap_err().contains("both cut"));
}

#[test]
fn a_new_heading_comes_with_its_entry_in_its_place() {
    let ours = with("- Two.\n", "- Two.\n- Mine.\n");
    let theirs = with("### Fixed\n", "### Changed\n\n- Yours.\n\n### Fixed\n");
    let merged = with("- Two.\n\n### Fixed\n", "- Two.\n- Mine.\n\n### Changed\n\n- Yours.\n\n### Fixed\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), merged);
    let ours = with("### Fixed\n", "### Changed\n\n- Mine.\n\n### Fixed\n");
    let merged = with("### Fixed\n", "### Changed\n\n- Mine.\n- Yours.\n\n### Fixed\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), merged);
}

#[test]
fn loose_lists_stay_loose_and_crlf_stays() {
    let base = "## Unreleased\n\n* One\n  more.\n\n* Two.\n\n## 1.0\n\n* Old.\n";
    let ours = base.replace("* Two.\n", "* Two.\n\n* Mine.\n");
    let theirs = base.replace("* Two.\n", "* Two.\n\n* Yours.\n");
    let merged = base.replace("* Two.\n", "* Two.\n\n* Mine.\n\n* Yours.\n");
    assert_eq!(apply(base, &ours, &theirs).unwrap(), merged);
    let crlf = |text: &str| text.replace('\n', "\r\n");
    assert_eq!(apply(&crlf(base), &crlf(&ours), &crlf(&theirs)).unwrap(), crlf(&merged));
    assert!(apply(base, &crlf(&ours), &theirs).unwrap_err().contains("CRLF"));
}

#[test]
fn headings_inside_code_are_none() {
    let base = "## Unreleased\n\n- One.\n\n```\n## 9.9\n- not an entry\n```\n\n## 1.0\n\n- Old.\n";
    let ours = base.replace("- One.\n", "- One.\n- Mine.\n");
    let theirs = base.replace("- One.\n", "- One.\n- Yours.\n");
    assert_eq!(apply(base, &ours, &theirs).unwrap(), base.replace("- One.\n", "- One.\n- Mine.\n- Yours.\n"));
}

#[test]
fn prose_that_both_changed_collides_and_other_prose_follows() {
    let ours = with("# Changelog\n", "# Changelog\n\nMine.\n");
    let theirs = with("# Changelog\n", "# Changelog\n\nYours.\n");
    assert!(apply(BASE, &ours, &theirs).unwrap_err().contains("above the first release"));
    let ours = with("- Two.\n", "- Two.\n- Mine.\n");
    let merged = apply(BASE, &ours, &theirs).unwrap();
    assert!(merged.contains("Yours.\n\n## [Unreleased]") && merged.contains("- Mine.\n"), "{merged}");
}

#[test]
fn a_paragraph_that_both_change_stands_once_or_not_at_all() {
    let base = format!("{BASE}\n[1]: x\n[2]: y\n");
    let ours = base.replace("[1]: x\n", "[1]: z\n").replace("- Old.\n", "- Old.\n- Mine.\n");
    let theirs = base.replace("[2]: y\n", "[2]: y\n[3]: w\n");
    assert!(apply(&base, &ours, &theirs).unwrap_err().contains("[1]: x"));
}

#[test]
fn an_entry_before_one_that_both_add_stands_before_it() {
    let ours = with("- Two.\n", "- Two.\n- Same.\n");
    let theirs = with("- Two.\n", "- Two.\n- Before.\n- Same.\n- After.\n");
    assert_eq!(apply(BASE, &ours, &theirs).unwrap(), theirs);
}

#[test]
fn blank_lines_under_an_empty_heading_are_not_doubled() {
    let base = "Version 2.0\n-----------\n\nUnreleased\n\n\n\nVersion 1.0\n-----------\n\n- Old.\n";
    let ours = format!("Version 3.0\n-----------\n\nUnreleased\n\n{base}");
    let theirs = base.replace("Unreleased\n\n\n\n", "Unreleased\n\n- Yours.\n\n\n");
    let merged = format!("Version 3.0\n-----------\n\nUnreleased\n\n{theirs}");
    assert_eq!(apply(base, &ours, &theirs).unwrap(), merged);
    let blanks = base.replace("Unreleased\n", "Unreleased\n\n");
    let ours = base.replace("Unreleased\n\n", "Unreleased\n\n- Mine.\n\n");
    assert!(apply(base, &ours, &blanks).unwrap_err().contains("blank lines"));
}

#[test]
fn applying_a_cut_again_changes_nothing() {
    let cut = with("## [Unreleased]\n", "## [Unreleased]\n\n## [1.1.0]\n");
    let entry = with("- Three.\n", "- Three.\n- Four.\n");
    let merged = apply(BASE, &entry, &cut).unwrap();
    assert_eq!(apply(BASE, &merged, &cut).unwrap(), merged);
}

#[test]
fn the_same_cut_under_other_lines_collides() {
    let base = "Version 2.0.dev\n-------------\n\n- One.\n\nUnreleased 1.0\n--------------\n\n- Old.\n";
    let ours = base.replace("2.0.dev\n-------------", "2.0.0\n-------------");
    let theirs = base.replace("2.0.dev\n-------------", "2.0.0\n----------");
    assert!(apply(base, &ours, &theirs).is_err());
}

/// A changelog with these entries under its unreleased heading.
fn log(entries: &[u32]) -> String {
    let lines: String = entries.iter().map(|entry| format!("- Entry {entry}.\n")).collect();
    format!("# Log\n\n## Unreleased\n\n{lines}\n## 1.0\n\n- Old.\n")
}

fn entries(text: &str) -> Vec<u32> {
    let number = |line: &str| line.strip_prefix("- Entry ")?.strip_suffix('.')?.parse().ok();
    text.lines().filter_map(number).collect()
}

/// The base without some entries, and new ones from `first` on put in at some places.
fn side(base: &[u32], gone: &[bool], places: &[usize], first: u32) -> Vec<u32> {
    let kept = base.iter().zip(gone).filter(|(_, gone)| !**gone).map(|(entry, _)| *entry);
    let mut out: Vec<u32> = kept.collect();
    for (number, place) in (first..).zip(places) {
        out.insert(place % (out.len() + 1), number);
    }
    out
}

proptest! {
    /// Every added entry stands once, every removed one is gone, every other stays; or it is refused.
    #[test]
    fn no_entry_is_lost_or_doubled(
        count in 0_usize..7,
        our_gone in prop::collection::vec(prop::bool::weighted(0.15), 7),
        their_gone in prop::collection::vec(prop::bool::weighted(0.15), 7),
        our_places in prop::collection::vec(0_usize..9, 0..4),
        their_places in prop::collection::vec(0_usize..9, 0..4),
    ) {
        let base: Vec<u32> = (0..count as u32).collect();
        let ours = side(&base, &our_gone, &our_places, 100);
        let theirs = side(&base, &their_gone, &their_places, 200);
        if let Ok(merged) = apply(&log(&base), &log(&ours), &log(&theirs)) {
            let found = entries(&merged);
            let set: BTreeSet<u32> = found.iter().copied().collect();
            prop_assert_eq!(set.len(), found.len(), "twice: {}", merged);
            let stays = |entry: &u32| ours.contains(entry) && theirs.contains(entry);
            let added = ours.iter().chain(&theirs).filter(|entry| **entry >= 100);
            let right: BTreeSet<u32> = base.iter().filter(|entry| stays(entry)).chain(added).copied().collect();
            prop_assert_eq!(set, right);
            prop_assert!(merged.ends_with("\n\n## 1.0\n\n- Old.\n"), "{}", merged);
            if let Ok(again) = apply(&log(&base), &merged, &log(&theirs)) {
                prop_assert_eq!(again, merged);
            }
        } else {
            prop_assert!(our_gone.iter().chain(&their_gone).any(|gone| *gone), "additions alone never collide");
        }
    }
}
