fn merged(base: &str, ours: &str, theirs: &str) -> Result<String, String> {
    super::merge(Some(base.as_bytes()), ours.as_bytes(), theirs.as_bytes())
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

fn clean(base: &str, ours: &str, theirs: &str, result: &str) {
    assert_eq!(merged(base, ours, theirs).as_deref(), Ok(result), "{base}\n{ours}\n{theirs}");
}

/// A collision, whose sentence names `what`.
fn refused(base: &str, ours: &str, theirs: &str, what: &str) {
    let fault = merged(base, ours, theirs).expect_err(&format!("{base}\n{ours}\n{theirs}"));
    assert!(fault.contains(what), "{fault:?} names no {what:?}");
}

const PACKAGE: &str = r#"{
  "name": "x",
  "version": "1.0.0",
  "dependencies": {
    "alpha": "^1.0.0",
    "left-pad": "^1.3.0",
    "zeta": "2"
  },
  "keywords": ["one", "two"]
}
"#;

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(PACKAGE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

#[test]
fn c4_both_add_a_key_to_one_object_and_sorted_keys_stay_sorted() {
    let ours = with(&[("    \"zeta\"", "    \"yak\": \"1\",\n    \"zeta\"")]);
    let theirs = with(&[("    \"zeta\"", "    \"moo\": \"3\",\n    \"zeta\"")]);
    let both = with(&[("    \"zeta\"", "    \"moo\": \"3\",\n    \"yak\": \"1\",\n    \"zeta\"")]);
    clean(PACKAGE, &ours, &theirs, &both);
    let ours = with(&[("\"zeta\": \"2\"\n", "\"zeta\": \"2\",\n    \"zoo\": \"1\"\n")]);
    let theirs = with(&[("    \"alpha\"", "    \"aa\": \"0\",\n    \"alpha\"")]);
    let both = with(&[
        ("\"zeta\": \"2\"\n", "\"zeta\": \"2\",\n    \"zoo\": \"1\"\n"),
        ("    \"alpha\"", "    \"aa\": \"0\",\n    \"alpha\""),
    ]);
    clean(PACKAGE, &ours, &theirs, &both);
}

#[test]
fn both_append_to_an_unsorted_object_and_mains_comes_first() {
    clean(
        "{\n  \"b\": 1,\n  \"a\": 2\n}\n",
        "{\n  \"b\": 1,\n  \"a\": 2,\n  \"c\": 3\n}\n",
        "{\n  \"b\": 1,\n  \"a\": 2,\n  \"d\": {\n    \"e\": []\n  }\n}\n",
        "{\n  \"b\": 1,\n  \"a\": 2,\n  \"c\": 3,\n  \"d\": {\n    \"e\": []\n  }\n}\n",
    );
    clean("{\"b\":1,\"a\":2}", "{\"b\":1,\"a\":2,\"c\":3}", "{\"x\":0,\"b\":1}", "{\"x\":0,\"b\":1,\"c\":3}");
    clean(
        "{ \"b\": 1 }",
        "{ \"b\": 1, \"c\": 3 }",
        "{ \"x\": 0, \"b\": 1 }",
        "{ \"x\": 0, \"b\": 1, \"c\": 3 }",
    );
}

#[test]
fn each_side_edits_another_key_and_spellings_stay() {
    let ours = with(&[("\"1.0.0\"", "\"1.1.0\""), ("\"x\"", "\"\\u0078\"")]);
    let theirs = with(&[("^1.3.0", "^1.4.0")]);
    let both = with(&[("\"1.0.0\"", "\"1.1.0\""), ("\"x\"", "\"\\u0078\""), ("^1.3.0", "^1.4.0")]);
    clean(PACKAGE, &ours, &theirs, &both);
    let (base, ours, theirs) = (
        "{\"a\":1.0,\"b\":[ 1 ],\"c\":1}",
        "{\"a\":1.00,\"b\":[ 1 ],\"c\":1}",
        "{\"a\":1.0,\"b\":[ 1 ],\"c\":1e400}",
    );
    clean(base, ours, theirs, "{\"a\":1.00,\"b\":[ 1 ],\"c\":1e400}");
}

#[test]
fn one_key_changed_by_both_is_a_collision_that_names_its_path() {
    let ours = with(&[("^1.3.0", "^1.3.1")]);
    let theirs = with(&[("^1.3.0", "^2.0.0")]);
    refused(PACKAGE, &ours, &theirs, "`dependencies.left-pad`");
    let gone = with(&[("    \"left-pad\": \"^1.3.0\",\n", "")]);
    refused(PACKAGE, &gone, &theirs, "main removes `left-pad`");
    refused(PACKAGE, &ours, &gone, "the change removes it");
    refused("{\"a\":1}", "{\"a\":1.0}", "{\"a\":2}", "`a`");
    refused("{}", "{\"a\":1}", "{\"a\":2}", "`a`");
    refused("{\"a\":9007199254740993}", "{\"a\":9007199254740992}", "{\"a\":9007199254740994}", "`a`");
}

#[test]
fn a_removed_entry_stays_removed_and_what_came_after_it_is_kept() {
    clean(
        "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}",
        "{\n  \"a\": 1,\n  \"c\": 3\n}",
        "{\n  \"a\": 1,\n  \"b\": 2,\n  \"b2\": 2,\n  \"c\": 3\n}",
        "{\n  \"a\": 1,\n  \"b2\": 2,\n  \"c\": 3\n}",
    );
    let (base, ours, theirs) = ("{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}");
    clean(base, ours, theirs, "{\"b\":2}");
    clean(base, "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2,\"c\":3,\"d\":4}", "{\"a\":1,\"b\":2,\"d\":4}");
}

#[test]
fn the_same_addition_of_both_stands_once() {
    clean(
        "{\"a\":1,\"z\":{}}",
        "{\"a\":1,\"n\":5,\"z\":{}}",
        "{\"a\":1,\"n\":5,\"z\":{\"q\":null}}",
        "{\"a\":1,\"n\":5,\"z\":{\"q\":null}}",
    );
}

#[test]
fn a_key_renamed_by_both_is_no_two_keys() {
    refused("{\"a\":1,\"z\":0}", "{\"b\":1,\"z\":0}", "{\"c\":1,\"z\":0}", "both sides remove `a`");
    refused("{\"a\":1,\"z\":0}", "{\"z\":0}", "{\"c\":1,\"z\":0}", "both sides remove `a`");
}

#[test]
fn records_merge_by_id() {
    let base = "[\n  {\"id\": 1, \"n\": \"a\"},\n  {\"id\": 7, \"n\": \"b\", \"m\": 0}\n]\n";
    let ours = "[\n  {\"id\": 1, \"n\": \"a\"},\n  {\"id\": 7, \"n\": \"c\", \"m\": 0},\n  {\"id\": 8}\n]\n";
    let theirs =
        "[\n  {\"id\": 1, \"n\": \"a\"},\n  {\"id\": 7, \"n\": \"b\", \"m\": 1},\n  {\"id\": 9}\n]\n";
    let both = "[\n  {\"id\": 1, \"n\": \"a\"},\n  {\"id\": 7, \"n\": \"c\", \"m\": 1},\n  {\"id\": 8},\n\
                \x20 {\"id\": 9}\n]\n";
    clean(base, ours, theirs, both);
    let theirs = "[\n  {\"id\": 1, \"n\": \"a\"},\n  {\"id\": 7, \"n\": \"d\", \"m\": 0}\n]\n";
    refused(base, ours, theirs, "`id=7.n`");
    let theirs = "[\n  {\"id\": 1, \"n\": \"a\"},\n  {\"id\": 7, \"n\": \"b\", \"m\": 0},\n\
                  \x20 {\"id\": 8, \"x\": 1}\n]\n";
    refused(base, ours, theirs, "both sides add");
    let twice = "[\n  {\"id\": 1, \"n\": \"a\"},\n  {\"id\": 7, \"n\": \"b\", \"m\": 0},\n  {\"id\": 7}\n]\n";
    assert!(merged(base, ours, twice).is_err(), "two records with one id");
}

#[test]
fn a_list_of_scalars_is_merged_only_where_its_order_is_known() {
    clean("{\"l\":[3,1,2]}", "{\"l\":[0,3,1,2]}", "{\"l\":[3,1,2,9]}", "{\"l\":[0,3,1,2,9]}");
    clean("{\"l\":[3,1,2]}", "{\"l\":[3,2]}", "{\"l\":[3,1,2,9]}", "{\"l\":[3,2,9]}");
    refused("{\"l\":[3,1,2]}", "{\"l\":[3,1,2,4]}", "{\"l\":[3,1,2,9]}", "which comes first");
    refused("{\"l\":[3,1,2]}", "{\"l\":[2,3,1]}", "{\"l\":[3,1,2,9]}", "another order");
    refused("{\"l\":[3,1,1]}", "{\"l\":[3,1,1,4]}", "{\"l\":[0,3,1,1]}", "twice");
    refused("{\"l\":[3,1]}", "{\"l\":[3,4]}", "{\"l\":[3,5]}", "`l.1`");
    clean(
        "{\"l\":[\"a\",\"c\",\"e\"]}",
        "{\"l\":[\"a\",\"c\",\"d\",\"e\"]}",
        "{\"l\":[\"a\",\"c\",\"cc\",\"e\"]}",
        "{\"l\":[\"a\",\"c\",\"cc\",\"d\",\"e\"]}",
    );
    refused(
        "{\"args\":[\"a\",\"c\",\"e\"]}",
        "{\"args\":[\"a\",\"c\",\"d\",\"e\"]}",
        "{\"args\":[\"a\",\"c\",\"cc\",\"e\"]}",
        "which comes first",
    );
    let (ours, theirs) = (with(&[("\"two\"]", "\"two\", \"x\"]")]), with(&[("\"two\"]", "\"two\", \"b\"]")]));
    clean(PACKAGE, &ours, &theirs, &with(&[("\"two\"]", "\"two\", \"x\", \"b\"]")]));
}

#[test]
fn keys_are_compared_unescaped() {
    refused("{\"a\":1,\"b\":1}", "{\"\\u0061\":2,\"b\":1}", "{\"a\":3,\"b\":1}", "differently");
    refused("{\"a\":1,\"b\":1}", "{\"a\":2,\"b\":1}", "{\"a\":1,\"\\u0061\":1,\"b\":2}", "twice");
}

#[test]
fn line_ends_marks_and_the_last_newline_stay() {
    clean(
        "{\r\n  \"b\": 1,\r\n  \"a\": 1\r\n}\r\n",
        "{\r\n  \"b\": 2,\r\n  \"a\": 1\r\n}\r\n",
        "{\r\n  \"b\": 1,\r\n  \"a\": 1,\r\n  \"c\": 1\r\n}\r\n",
        "{\r\n  \"b\": 2,\r\n  \"a\": 1,\r\n  \"c\": 1\r\n}\r\n",
    );
    clean(
        "{\n  \"b\": 1,\n  \"a\": 1\n}",
        "\u{feff}{\r\n  \"b\": 2,\r\n  \"a\": 1\r\n}",
        "{\n  \"b\": 1,\n  \"a\": 1,\n  \"c\": 1\n}\n",
        "\u{feff}{\r\n  \"b\": 2,\r\n  \"a\": 1,\r\n  \"c\": 1\r\n}\r\n",
    );
    clean(
        "{\n  \"b\": 1,\n  \"a\": 1\n}\n",
        "{\n\t\"b\": 2,\n\t\"a\": 1\n}\n",
        "{\n  \"b\": 1,\n  \"a\": 1,\n  \"c\": {\n    \"d\": 1\n  }\n}\n",
        "{\n\t\"b\": 2,\n\t\"a\": 1,\n\t\"c\": {\n\t  \"d\": 1\n\t}\n}\n",
    );
}

#[test]
fn what_is_no_json_is_a_collision() {
    let good = ["{\"a\":1}", "{\"a\":2}", "{\"a\":1,\"b\":1}"];
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let bad = [
        "",
        "{",
        "{\"a\":1,}",
        "{\"a\":NaN}",
        "{\"a\":01}",
        "// x\n{}",
        "{\"a\":1}{}",
        "{'a':1}",
        "[1 2]",
        "\"\\",
        "{\"a\":\"\t\"}",
        "{\"a\":1,\"a\":1}",
        &deep,
        "[,]",
        "{\"a\"}",
        "{\"a\":\"\\ud800\"}",
    ];
    for bad in bad {
        for side in 0..3 {
            let mut sides = good;
            sides[side] = bad;
            let fault = merged(sides[0], sides[1], sides[2]).expect_err(bad);
            assert!(!fault.is_empty());
        }
    }
    let not_utf8 = super::merge(Some(b"{}"), b"{\"a\":\"\xff\"}", b"{\"b\":1}").unwrap_err();
    assert!(not_utf8.contains("main's file line 1 is not UTF-8"), "{not_utf8}");
    let many = format!("[{}1]", "1,".repeat(100_000));
    assert!(merged("[]", &many, "[2]").is_err());
}

#[test]
fn what_the_change_reformats_is_a_collision_not_lost() {
    let (base, ours) = ("{\"l\":[1,2],\"a\":1}", "{\"l\":[1,2,3],\"a\":1}");
    refused(base, ours, "{\"l\":[ 1,2 ],\"a\":1}", "reformats");
    refused(base, ours, "{\"a\":1,\"l\":[1,2]}", "another order");
}
