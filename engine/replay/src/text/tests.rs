use super::*;

#[test]
fn lines_end_with_line_feeds() {
    assert_eq!(lines(b""), Vec::<&[u8]>::new());
    assert_eq!(lines(b"a\nb"), [b"a", b"b"]);
    assert_eq!(lines(b"a\n\n"), [&b"a"[..], b""]);
}

#[test]
fn a_unified_difference_is_the_one_that_patch_takes() {
    let before: String = (1..=20).map(|n| format!("l{n}\n")).collect();
    let after = before.replace("l3\n", "").replace("l15\n", "l15\nnew\n");
    let text = unified(before.as_bytes(), after.as_bytes(), 2);
    let expected =
        "@@ -1,5 +1,4 @@\n l1\n l2\n-l3\n l4\n l5\n@@ -14,4 +13,5 @@\n l14\n l15\n+new\n l16\n l17\n";
    assert_eq!(text, expected);
    assert_eq!(unified(b"", b"a\n", 3), "@@ -0,0 +1,1 @@\n+a\n");
    assert_eq!(unified(b"a\n", b"", 3), "@@ -1,1 +0,0 @@\n-a\n");
    assert_eq!(unified(b"a\n", b"a\n", 3), "");
}

#[test]
fn a_quote_is_one_plain_line() {
    assert_eq!(quote("a\n\tb\u{1b}[31m\u{202e}c\0"), "a b [31mc");
    let long = quote(&"x".repeat(10_000));
    assert!(long.len() < 210 && long.ends_with("..."), "{long}");
}

#[test]
fn digests_know_where_a_part_ends() {
    assert_ne!(digest([&b"ab"[..], b"c"]), digest([&b"a"[..], b"bc"]));
    assert_eq!(digest([&b"ab"[..]]).len(), 64);
}
