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

const BASE: &str = "{\"id\":6,\"n\":\"a\"}\n{\"id\":7,\"n\":\"b\"}\n";

#[test]
fn c6_a_record_edited_by_both_is_a_collision_and_never_two_with_one_id() {
    let (ours, theirs) = (BASE.replace("\"b\"", "\"c\""), BASE.replace("\"b\"", "\"d\""));
    refused(BASE, &ours, &theirs, "`id=7.n`");
    let (ours, theirs) = (format!("{BASE}{{\"id\":8,\"n\":1}}\n"), format!("{BASE}{{\"id\":8,\"n\":2}}\n"));
    refused(BASE, &ours, &theirs, "both sides add `id=8` differently");
    let theirs = format!("{BASE}{{\"id\":7,\"n\":2}}\n");
    assert!(merged(BASE, &ours, &theirs).is_err(), "theirs has two records with id 7");
}

#[test]
fn additions_of_both_are_kept_mains_first() {
    let ours = format!("{BASE}{{\"id\":9}}\n");
    let theirs = format!("{BASE}{{\"id\":8}}\n");
    clean(BASE, &ours, &theirs, &format!("{BASE}{{\"id\":9}}\n{{\"id\":8}}\n"));
    let theirs = format!("{{\"id\":5}}\n{}", BASE.replace("\"a\"", "\"z\""));
    clean(BASE, &ours, &theirs, "{\"id\":5}\n{\"id\":6,\"n\":\"z\"}\n{\"id\":7,\"n\":\"b\"}\n{\"id\":9}\n");
}

#[test]
fn one_record_loses_a_field_and_another_goes() {
    clean(BASE, "{\"id\":7,\"n\":\"b\"}\n", &BASE.replace(",\"n\":\"b\"", ""), "{\"id\":7}\n");
    refused(BASE, "{\"id\":6,\"n\":\"a\"}\n", &BASE.replace(",\"n\":\"b\"", ""), "main removes `id=7`");
}

#[test]
fn a_log_may_repeat_lines_while_both_only_append() {
    let base = "{\"e\":\"up\"}\n{\"e\":\"up\"}\n";
    let ours = format!("{base}{{\"e\":\"down\"}}\n");
    let theirs = format!("{base}{{\"e\":\"hot\"}}\n{{\"e\":\"hot\"}}\n");
    clean(base, &ours, &theirs, &format!("{base}{{\"e\":\"down\"}}\n{{\"e\":\"hot\"}}\n{{\"e\":\"hot\"}}\n"));
    refused(base, &ours, &ours.replace("down\"}\n", "down\"}\n{\"e\":\"x\"}\n"), "twice");
    refused(base, &ours, "{\"e\":\"up\"}\n", "twice");
}

#[test]
fn the_same_line_of_both_stands_once() {
    let base = "{\"e\":1}\n";
    clean(
        base,
        "{\"e\":1}\n{\"e\":2}\n",
        "{\"e\":1}\n{\"e\":2}\n{\"e\":3}\n",
        "{\"e\":1}\n{\"e\":2}\n{\"e\":3}\n",
    );
}

#[test]
fn a_file_that_both_add_holds_the_records_of_both() {
    let merged = super::merge(None, b"{\"id\":1}\n", b"{\"id\":2}\n").unwrap();
    assert_eq!(merged, b"{\"id\":1}\n{\"id\":2}\n");
    assert!(super::merge(None, b"{\"id\":1}\n", b"{\"id\":1,\"a\":0}\n").is_err());
}

#[test]
fn a_line_that_is_no_record_is_a_collision() {
    for bad in
        ["{\"id\":1}\n\n", "{\"id\":1} {\"id\":2}\n", "{\"id\":1,}\n", "{\n\"id\":1}\n", " {\"id\":1}\n"]
    {
        assert!(merged(BASE, &format!("{BASE}{bad}"), &BASE.replace("\"a\"", "\"z\"")).is_err(), "{bad:?}");
    }
}

#[test]
fn a_last_line_without_its_newline_is_ended_before_another_is_added() {
    let base = BASE.trim_end();
    let theirs = format!("{BASE}{{\"id\":8}}");
    clean(base, &format!("{BASE}{{\"id\":9}}"), &theirs, &format!("{BASE}{{\"id\":9}}\n{{\"id\":8}}"));
}
