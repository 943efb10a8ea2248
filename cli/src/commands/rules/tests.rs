use super::*;

/// A repository whose second branch changes the file as `theirs`, merged to `merged`.
fn merged(dir: &Path, path: &str, [base, ours, theirs, merged]: [&str; 4]) {
    let run = |args: &[&str]| git::run(dir, None, args).unwrap();
    let commit = |text: &str, name: &str| {
        std::fs::write(dir.join(path), text).unwrap();
        run(&["add", "-A"]);
        run(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", name]);
    };
    run(&["init", "-q", "-b", "main"]);
    commit(base, "base");
    run(&["branch", "side"]);
    commit(ours, "ours");
    run(&["checkout", "-q", "side"]);
    commit(theirs, "theirs");
    run(&["checkout", "-q", "main"]);
    run(&["-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "-s", "ours", "--no-commit", "side"]);
    commit(merged, "merge");
}

fn tried(four: [&str; 4]) -> Tried {
    let dir = tempfile::tempdir().unwrap();
    merged(dir.path(), "list", four);
    let rules = Rules::new(vec![("list".to_owned(), Rule::UnionExact)]);
    let history = History::new(dir.path(), "HEAD", None).unwrap();
    let mut report = test(history, &rules, &dir.path().join("keep")).unwrap();
    assert_eq!((report.merges, report.files.len()), (1, 1));
    report.files.remove(0)
}

#[test]
fn a_past_merge_is_right_left_or_wrong() {
    let right = tried(["a\n", "a\nx\n", "a\ny\n", "a\nx\ny\n"]);
    assert_eq!((right.outcome, right.right_as_text), (Outcome::Right, false));
    let left = tried(["a\n", "x\n", "y\n", "z\n"]);
    assert!(left.outcome == Outcome::Left && left.why.unwrap().contains("removed"));
    let wrong = tried(["a\n", "a\nx\n", "a\ny\n", "a\ny\nx\n"]);
    assert_eq!(wrong.outcome, Outcome::Wrong);
    assert!(wrong.show.unwrap().contains(&format!("git show {}:list | diff -u -", wrong.commit)));
}

#[test]
fn a_rule_that_does_not_exist_and_none_at_all_are_said() {
    let dir = tempfile::tempdir().unwrap();
    merged(dir.path(), "list", ["a\n", "b\n", "c\n", "d\n"]);
    let args = |rule: Option<&str>| TestArgs {
        rule: rule.map(str::to_owned),
        paths: vec!["list".into()],
        from: "HEAD".into(),
        limit: None,
        keep: None,
    };
    assert!(rules(dir.path(), &args(Some("x"))).unwrap_err().to_string().contains("sorted-lines"));
    assert!(rules(dir.path(), &args(None)).unwrap_err().to_string().contains("--rule"));
}
