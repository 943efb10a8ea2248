fn merged(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    super::merge(Some(base.as_bytes()), ours.as_bytes(), theirs.as_bytes())
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

fn clean(base: &str, ours: &str, theirs: &str, result: &str) {
    assert_eq!(merged(base, ours, theirs).as_deref(), Ok(result), "{base}\n{ours}\n{theirs}");
}

fn refused(base: &str, ours: &str, theirs: &str, what: &str) {
    let fault = merged(base, ours, theirs).expect_err(&format!("{base}\n{ours}\n{theirs}"));
    assert!(fault.contains(what), "{fault:?} names no {what:?}");
}

const BASE: &str = r#"# checks of every push
name: checks
on:
  push:
    branches: [main]
  pull_request:

env:
  # colours
  FORCE_COLOR: "1"

jobs:
  test:
    runs-on: ubuntu-latest # the default
    strategy:
      matrix:
        python:
          - "3.11"
          - "3.12"
          - "3.13"
    steps:
      - uses: actions/checkout@v4
      - name: set up
        uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}

      # the tests
      - name: test
        run: |
          # no comment
          pip install .
          pytest

  lint:
    runs-on: ubuntu-latest
    steps:
    - uses: actions/checkout@v4
    - run: ruff check
"#;

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(BASE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

fn both(ours: &[(&str, &str)], theirs: &[(&str, &str)]) {
    clean(BASE, &with(ours), &with(theirs), &with(&[ours, theirs].concat()));
    clean(BASE, &with(theirs), &with(ours), &with(&[ours, theirs].concat()));
}

#[test]
fn each_side_edits_another_key() {
    both(&[("actions/setup-python@v5", "actions/setup-python@v6")], &[("ruff check", "ruff check .")]);
    both(&[("[main]", "[main, dev]")], &[("pytest\n", "pytest -q\n")]);
    both(&[("# colours", "# colour")], &[("\"1\"", "\"2\"")]);
    both(&[("# the default", "# for now")], &[("runs-on: ubuntu-latest #", "runs-on: ubuntu-24.04 #")]);
    both(
        &[("  pull_request:\n", "  pull_request:\n    types: [opened]\n")],
        &[("  push:\n", "  workflow_dispatch:\n  push:\n")],
    );
    both(
        &[("  FORCE_COLOR: \"1\"\n", "  FORCE_COLOR: \"1\"\n  CI: yes\n")],
        &[("name: checks\n", "name: all checks\n")],
    );
}

#[test]
fn each_side_adds_a_job_a_step_or_a_version() {
    both(
        &[("      # the tests", "      - name: cache\n        uses: actions/cache@v4\n\n      # the tests")],
        &[("  lint:\n", "  docs:\n    runs-on: ubuntu-latest\n\n  lint:\n")],
    );
    both(
        &[("          - \"3.13\"\n", "          - \"3.13\"\n          - \"3.14\"\n")],
        &[("          - \"3.11\"\n", "")],
    );
    both(
        &[("    - run: ruff check\n", "    - run: ruff check\n    # types\n    - run: mypy\n")],
        &[("pytest", "tox")],
    );
    both(
        &[("          pytest\n\n", "          pytest\n        env:\n          A: 1\n\n")],
        &[("    - run: ruff check\n", "    - run: ruff check\n\n  last:\n    runs-on: x\n")],
    );
}

#[test]
fn both_add_at_one_place() {
    let sorted = "deps:\n  a: 1\n  c: 1\n  e: 1\n";
    clean(
        sorted,
        "deps:\n  a: 1\n  c: 1\n  d: 1\n  e: 1\n",
        "deps:\n  a: 1\n  # bee\n  b: 1\n  c: 1\n  cc:\n    x: 1\n  e: 1\n",
        "deps:\n  a: 1\n  # bee\n  b: 1\n  c: 1\n  cc:\n    x: 1\n  d: 1\n  e: 1\n",
    );
    let base = "steps:\n- name: a\n  run: x\n";
    clean(
        base,
        "steps:\n- name: a\n  run: x\n- name: b\n  run: y\n",
        "steps:\n- name: a\n  run: z\n- name: c\n  run: y\n",
        "steps:\n- name: a\n  run: z\n- name: b\n  run: y\n- name: c\n  run: y\n",
    );
    let (ours, theirs) = ("steps:\n- run: x\n- run: y\n", "steps:\n- run: x\n- run: z\n");
    refused("steps:\n- run: x\n", ours, theirs, "which comes first");
    let (ours, theirs) = ("- DEBUG=1\n- B=1\n- A=2\n", "- C=2\n- DEBUG=1\n- B=1\n");
    clean("- DEBUG=1\n- B=1\n", ours, theirs, "- C=2\n- DEBUG=1\n- B=1\n- A=2\n");
    refused("- DEBUG=1\n- B=1\n", ours, "- A=3\n- DEBUG=1\n- B=1\n", "both sides set `a`");
}

#[test]
fn one_thing_changed_by_both_is_a_collision() {
    refused(
        BASE,
        &with(&[("setup-python@v5", "setup-python@v6")]),
        &with(&[("setup-python@v5", "setup-python@v7")]),
        "`jobs.test.steps.name=set up.uses`",
    );
    refused(BASE, &with(&[("[main]", "[main, dev]")]), &with(&[("[main]", "[trunk]")]), "`on.push.branches`");
    refused(BASE, &with(&[("pip install .", "pip install -e .")]), &with(&[("pytest\n", "tox\n")]), "run");
    refused(BASE, &with(&[("ruff check", "ruff")]), &with(&[("ruff check", "black")]), "run: ruff check");
    let gone = with(&[("  FORCE_COLOR: \"1\"\n", "  A: 1\n")]);
    refused(BASE, &with(&[("\"1\"", "\"2\"")]), &gone, "FORCE_COLOR");
    // A step without a name is known by its action.
    let first = [("- uses: actions/checkout@v4\n      - name", "- uses: actions/checkout@v5\n      - name")];
    both(&first, &[("name: set up", "name: set it up")]);
    refused(
        BASE,
        &with(&first),
        &with(&[("checkout@v4", "checkout@v6")]),
        "`jobs.test.steps.uses: actions/checkout@v4.uses`",
    );
    let gone = with(&[("      - uses: actions/checkout@v4\n", "")]);
    refused(BASE, &with(&first), &gone, "the change removes it");
}

#[test]
fn block_scalars_are_members_as_a_whole() {
    let base =
        "a: 1\nscript:\n  - |\n    set -x\n\n    # no comment\n    tox\n  - >-\n    two\nz: |\n  text\n";
    let edit = |from: &str, to: &str| base.replacen(from, to, 1);
    clean(
        base,
        &edit("a: 1", "a: 2"),
        &edit("tox", "tox -e"),
        &edit("tox", "tox -e").replacen("a: 1", "a: 2", 1),
    );
    let both = edit("two", "2").replacen("  text", "  longer\n\n  text", 1);
    clean(base, &edit("two", "2"), &edit("  text", "  longer\n\n  text"), &both);
    refused(base, &edit("set -x", "set -ex"), &edit("tox", "nox"), "both sides change `script.");
}

#[test]
fn keys_are_compared_unescaped_and_keys_that_stand_twice_are_refused() {
    refused("a: 1\nb: 1\n", "\"a\": 2\nb: 1\n", "a: 3\nb: 1\n", "differently");
    refused(
        "a: 1\nb: 1\n",
        "a: 1\nb: 2\n'a': 1\n",
        "a: 3\nb: 1\n",
        "main's file has the key `a` twice in line 3",
    );
}

#[test]
fn quotes_comments_and_document_marks_stay() {
    clean(
        "---\n# x\na: '1' # q\nb: \"#\"   # c\n",
        "---\n# x\na: '1' # q\nb: \"##\"   # c\n",
        "---\n# x\na: '2' # q\nb: \"#\"   # c\n",
        "---\n# x\na: '2' # q\nb: \"##\"   # c\n",
    );
    clean(
        "a: 1\r\nb: ü\r\n",
        "a: 2\r\nb: ü\r\n",
        "a: 1\r\nb: üü\r\nc:\r\n- 1\r\n",
        "a: 2\r\nb: üü\r\nc:\r\n- 1\r\n",
    );
    clean("a: 1\nb: 2", "a: 2\nb: 2", "a: 1\nb: 2\nc: 3", "a: 2\nb: 2\nc: 3");
    clean(
        "a: 1\nb:\n  c: 1\n  # deep\n# d\nd: 1\n",
        "a: 2\nb:\n  c: 1\n  # deep\n# d\nd: 1\n",
        "a: 1\nb:\n  c: 2\n  # deep\n# d\nd: 1\n",
        "a: 2\nb:\n  c: 2\n  # deep\n# d\nd: 1\n",
    );
}

#[test]
fn what_the_rule_does_not_take_is_a_collision() {
    let bad = [
        "a: &x 1\n",
        "a: 1\nb: *a\n",
        "a: !!str 1\n",
        "a: 1\n---\nb: 1\n",
        "%YAML 1.2\n---\na: 1\n",
        "? a\n: 1\n",
        "a: 1\n...\n",
        "a:\n\tb: 1\n",
        "a: [1\n",
        "a: 1\n b: 2\n",
        "plain\n",
        "",
        "[a]: 1\n",
        "a: |+\n  x\n\n",
        "a: b: c\n",
        "- a\nb: 1\n",
        "a: \"\n",
        "{a: 1}\n",
        "--- a\n",
        "-\n- 1\n",
    ];
    for bad in bad {
        let fault = merged("a: 1\n", bad, "a: 1\nb: 2\n").expect_err(bad);
        assert!(!fault.is_empty());
    }
    let deep: String = (0..3000).map(|depth| format!("{}a:\n", " ".repeat(depth % 200))).collect();
    assert!(merged("a: 1\n", &deep, "a: 1\nb: 2\n").is_err());
    let flow = format!("a: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(merged("a: 1\n", &flow, "a: 1\nb: 2\n").is_err());
}
