use yard_common::{ChangeId, LaneName, ReplayNo, RepoPath, Version};

use super::*;

fn origin(range_diff: &str) -> Origin {
    Origin {
        lane: LaneName::new("main").unwrap(),
        no: ReplayNo(6),
        of: Version(1),
        reviewed: Version(1),
        cause: Cause::Collision { paths: vec![(RepoPath::new("a.js").unwrap(), "both changed it".into())] },
        rivals: Vec::new(),
        renames: vec![(RepoPath::new("old.js").unwrap(), RepoPath::new("a.js").unwrap())],
        cost: Cost {
            model: "m\u{1b}[31m".into(),
            tokens_in: 1121,
            tokens_out: 38,
            micro_usd: 1311,
            calls: 2,
        },
        prompt: String::new(),
        compared: "1 line differs".into(),
        range_diff: range_diff.into(),
        differing_lines: 1,
    }
}

fn diff(version: u64, text: &str) -> ChangeDiff {
    let path = RepoPath::new("a.js").unwrap();
    let file =
        FileDiff { path, before: Some(Mode::File), after: Some(Mode::File), text: text.into(), note: None };
    ChangeDiff {
        change: ChangeId::new(format!("I{:040}", 1)).unwrap(),
        version: Version(version),
        files: vec![file],
        left_out: 0,
    }
}

fn rendered(version: &str, origin: &Origin, rivals: &[String], diffs: &[ChangeDiff]) -> String {
    crate::output::rendered(&replay(version, origin, rivals, diffs))
}

#[test]
fn a_reviewer_sees_why_at_what_cost_and_all_three_diffs() {
    let diffs = [diff(1, "@@ -1 +1 @@\n-a\n+b\n"), diff(2, "@@ -5 +5 @@\n-a\n+c\n")];
    let rivals = ["Iff  Add the light".to_owned()];
    let text = rendered("2", &origin("1 line differs\n\na.js\n@@ x @@\n< +b\n> +c\n"), &rivals, &diffs);
    assert_eq!(
        text,
        "
replay 6: version 1 was redone as version 2 by model m
  because  it collides with main at a.js (both changed it)
  landed   meanwhile on its paths: Iff  Add the light
  renamed  on main: old.js -> a.js
  cost     2 calls, 1121 + 38 tokens, $0.001311
  compared 1 line differs

reviewed: version 1
  a.js
    @@ -1 +1 @@
    -a
    +b

redone on newest main: version 2
  a.js
    @@ -5 +5 @@
    -a
    +c

where they differ (< reviewed only, > redone only)
  a.js
  @@ x @@
  < +b
  > +c
"
    );
}

#[test]
fn a_replay_with_the_same_lines_says_so() {
    let text = replay("2", &origin("the same change, moved\n"), &[], &[]);
    assert!(text.ends_with("\nboth diffs have the same lines\n"), "{text}");
}

#[test]
fn new_deleted_and_changed_modes_are_named() {
    let of = |before, after| kind(&FileDiff { before, after, ..diff(1, "").files.remove(0) });
    assert_eq!(of(None, Some(Mode::File)), "  new");
    assert_eq!(of(None, Some(Mode::Symlink)), "  new, mode 120000");
    assert_eq!(of(Some(Mode::File), None), "  deleted");
    assert_eq!(of(Some(Mode::File), Some(Mode::Executable)), "  mode 100644 -> 100755");
    assert_eq!(of(Some(Mode::File), Some(Mode::File)), "");
}
