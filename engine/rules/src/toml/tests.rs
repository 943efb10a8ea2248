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

const BASE: &str = r#"# the package
[package]
name = "x"        # its name
version = "0.1.0"
authors = [
    "A <a@x>", # first
    "B <b@x>",
]

[dependencies]
bstr = "1"
serde = { version = "1", features = ["derive"] }
toml = "0.9"

# for tests
[dev-dependencies]
proptest = "1"

[[test]]
name = "oracle"
path = "tests/oracle.rs"
"#;

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(BASE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// Each side makes its edits; the result has all of them.
fn both(ours: &[(&str, &str)], theirs: &[(&str, &str)]) {
    clean(BASE, &with(ours), &with(theirs), &with(&[ours, theirs].concat()));
}

#[test]
fn both_add_dependencies_to_one_sorted_table() {
    let ours = [("bstr = \"1\"\n", "bstr = \"1\"\nflate2 = \"1\" # small\n")];
    let theirs = [("bstr = \"1\"\n", "bstr = \"1\"\n# deep\ngix = { version = \"1\" }\n")];
    let all =
        [("bstr = \"1\"\n", "bstr = \"1\"\nflate2 = \"1\" # small\n# deep\ngix = { version = \"1\" }\n")];
    clean(BASE, &with(&ours), &with(&theirs), &with(&all));
    clean(BASE, &with(&theirs), &with(&ours), &with(&all));
    both(&[("toml = \"0.9\"\n", "toml = \"0.9\"\nzip = \"1\"\n")], &[("bstr", "abc = \"1\"\nbstr")]);
}

#[test]
fn each_side_edits_another_key_or_table() {
    both(&[("0.1.0", "0.2.0")], &[("proptest = \"1\"", "proptest = \"2\"")]);
    both(&[("\"derive\"", "\"derive\", \"rc\"")], &[("version = \"1\",", "version = \"1.0.200\",")]);
    both(&[("bstr = \"1\"\n", "")], &[("toml = \"0.9\"\n", "")]);
    both(&[("tests/oracle.rs", "tests/o/main.rs")], &[("# for tests", "# for the tests")]);
    both(&[("# its name", "# the name")], &[("\"x\" ", "\"y\" ")]);
    both(&[("\n[[test]]", "\n[profile.dev]\ndebug = 1\n\n[[test]]")], &[("0.1.0", "0.2.0")]);
}

#[test]
fn both_add_a_table_or_a_record_and_mains_comes_first() {
    let end = "path = \"tests/oracle.rs\"\n";
    let ours = [(end, "path = \"tests/oracle.rs\"\n\n[[test]]\nname = \"b\"\n\n[test.x]\na = 1\n")];
    let theirs = [(end, "path = \"tests/oracle.rs\"\n\n[[test]]\nname = \"a\"\npath = \"a\"\n")];
    let result = format!(
        "{}\n[[test]]\nname = \"b\"\n\n[test.x]\na = 1\n\n[[test]]\nname = \"a\"\npath = \"a\"\n",
        BASE
    );
    clean(BASE, &with(&ours), &with(&theirs), &result);
    let ours = with(&[(end, "path = \"tests/oracle.rs\"\n\n[[test]]\nname = \"a\"\n")]);
    refused(BASE, &ours, &with(&theirs), "both sides add `[[test]] name=\"a\"` differently");
}

#[test]
fn lists_of_requirements_are_merged_by_element_and_refused_by_name() {
    let base = "[project]\ndependencies = [\n  \"click>=8\",\n  \"rich\",\n]\n";
    let line = |lines: &str| format!("[project]\ndependencies = [\n{lines}]\n");
    clean(
        base,
        &line("  \"click>=8\",\n  \"httpx\",\n  \"rich\",\n"),
        &line("  \"click>=8.1\",\n  \"rich\",\n"),
        &line("  \"click>=8.1\",\n  \"httpx\",\n  \"rich\",\n"),
    );
    clean(
        base,
        &line("  \"click>=8\",\n  \"rich\",\n  \"toml; python_version<'3.11'\",\n"),
        &line("  \"click>=8\",\n  \"rich\", # pretty\n  \"attrs\",\n"),
        &line("  \"click>=8\",\n  \"rich\", # pretty\n  \"toml; python_version<'3.11'\",\n  \"attrs\",\n"),
    );
    let (ours, theirs) = (line("  \"click>=8.2\",\n  \"rich\",\n"), line("  \"click>=8.1\",\n  \"rich\",\n"));
    refused(base, &ours, &theirs, "click");
    refused(base, &line("  \"rich\",\n"), &theirs, "click");
    refused(base, &ours, &line("  \"rich\",\n"), "click");
    let (ours, theirs) = (
        "  \"click>=8\",\n  \"rich\",\n  \"Foo.bar>1\",\n",
        "  \"foo-bar\",\n  \"click>=8\",\n  \"rich\",\n",
    );
    refused(base, &line(ours), &line(theirs), "both sides set `foo-bar`");
}

#[test]
fn one_key_changed_by_both_is_a_collision() {
    refused(BASE, &with(&[("0.1.0", "0.2.0")]), &with(&[("0.1.0", "0.1.1")]), "`[package].version`");
    refused(BASE, &with(&[("toml = \"0.9\"\n", "")]), &with(&[("0.9", "1")]), "main removes `toml`");
    let gone = BASE.replace("# for tests\n[dev-dependencies]\nproptest = \"1\"\n\n", "");
    refused(BASE, &with(&[("proptest = \"1\"", "proptest = \"2\"")]), &gone, "the change removes it");
    refused(BASE, &with(&[("# for tests", "# tests")]), &with(&[("# for tests", "# for")]), "comment");
    // One as a dotted key, one as a table: read together they clash.
    let (base, ours) = ("b = 1\na.x = 1\n", "b = 1\na.x = 1\na.y = 1\n");
    clean(base, ours, "b = 1\na.x = 1\n\n[a.z]\n", "b = 1\na.x = 1\na.y = 1\n\n[a.z]\n");
    refused("b = 1\n", "b = 1\na.x = 1\n", "b = 2\n\n[a]\ny = 1\n", "put together");
}

#[test]
fn keys_are_compared_unescaped() {
    clean("\"a.b\" = 1\nc = 1\n", "\"a.b\" = 1\nc = 2\n", "\"a.b\" = 2\nc = 1\n", "\"a.b\" = 2\nc = 2\n");
    refused("a = 1\nb = 1\n", "\"a\" = 2\nb = 1\n", "a = 3\nb = 1\n", "differently");
}

#[test]
fn a_key_before_the_first_table_stays_before_it() {
    clean("[t]\na = 1\n", "[t]\na = 2\n", "x = 1\n\n[t]\na = 1\n", "x = 1\n\n[t]\na = 2\n");
}

#[test]
fn line_ends_and_the_last_newline_stay() {
    clean(
        "a = 1\r\n[b]\r\nc = 1",
        "a = 2\r\n[b]\r\nc = 1",
        "a = 1\r\n[b]\r\nc = 1\r\nd = 1",
        "a = 2\r\n[b]\r\nc = 1\r\nd = 1",
    );
    refused("a = 1\r\nb = 1\n", "a = 1\r\nb = 2\n", "a = 2\r\nb = 1\n", "mixes line ends");
}

#[test]
fn what_is_no_toml_is_a_collision() {
    for bad in
        ["a", "a = ", "a = 1\na = 2\n", "[a]\n[a]\n", "a = 1 b = 2\n", "a = \"\n", "a = [1\n", "a = 01\n"]
    {
        let fault = merged("a = 1\n", bad, "a = 1\nb = 2\n").expect_err(bad);
        assert!(fault.starts_with("main's file "), "{fault}");
    }
    let deep = format!("a = {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(merged("a = 1\n", &deep, "a = 1\nb = 2\n").is_err());
}
