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
