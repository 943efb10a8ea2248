use super::*;

const BASE: &str = "list = [\n  \"a\",\n  \"b\",\n];\n";
const DIFF: &str = "@@ -1,4 +1,5 @@\n list = [\n   \"a\",\n   \"b\",\n+  \"t\",\n ];\n";

#[test]
fn both_sides_lines_are_kept_at_their_place() {
    let main = BASE.replace("];", "  \"m\",\n];");
    assert_eq!(redo(&main, DIFF, true), BASE.replace("];", "  \"m\",\n  \"t\",\n];"));
    assert_eq!(redo(&main, DIFF, false), BASE.replace("];", "  \"m\",\n  \"tt\",\n];"));
}

#[test]
fn a_line_that_both_rewrote_is_kept_twice() {
    let diff = "@@ -1,3 +1,3 @@\n a\n-x\n+t\n b\n";
    assert_eq!(redo("a\nm\nb\n", diff, true), "a\nm\nt\nb\n");
    assert_eq!(redo("a\nm\nb\n", diff, false), "a\nm\ntt\nb\n");
    assert_eq!(redo("a\nx\nb\n", diff, true), "a\nt\nb\n");
    assert_eq!(redo("m\n", "@@ -1,1 +1,1 @@\n-x\n+t\n", true), "m\nt\n");
}

#[test]
fn a_block_searches_for_lines_that_stand_there_once() {
    let (before, after) = ("x\ny\nx\ny\nz\n", "x\ny\nx\nw\ny\nz\n");
    assert_eq!(block("p", before, before), "p\n<<<<<<< KEEP\n>>>>>>> KEEP\n");
    let text = block("p", before, after);
    let search = text.split_once("SEARCH\n").unwrap().1.split_once("=======\n").unwrap();
    let replace = search.1.split_once(">>>>>>>").unwrap().0;
    assert_eq!(before.matches(search.0).count(), 1, "{text}");
    assert_eq!(before.replacen(search.0, replace, 1), after);
}

#[test]
fn a_renamed_word_is_renamed_in_the_reviewed_change() {
    let found = renames("@@ -1,1 +1,1 @@\n-export function old(a) {\n+export function fresh(a) {\n");
    assert_eq!(found, [("old".to_owned(), "fresh".to_owned())]);
    assert_eq!(rename("old(older, old)", &found), "fresh(older, fresh)");
}

#[test]
fn the_prompt_is_understood() {
    let text = format!(
        "Redo.\n\n<data k1 intent of the change>\ntitle: Add t\n</data k1>\n<data k1 reviewed difference of \
         a>\n{DIFF}</data k1>\n<data k1 file a on newest main, collided>\n{BASE}</data k1>\n\nCollided paths, \
         each needs at least one block:\na\n\nNo other path may be edited.\n"
    );
    let question = Question::read(&text);
    assert_eq!((question.title.as_str(), question.paths()), ("Add t", vec!["a".to_owned()]));
    assert_eq!(question.files.get("a").map(String::as_str), Some(BASE));
    assert!(!question.answer(true, None).contains('+'));
    assert!(question.answer(true, Some("b")).ends_with("b\n<<<<<<< FILE\nscripted\n>>>>>>> FILE\n"));
}

#[test]
fn a_wrong_answer_keeps_mains_lines_and_garbles_the_reviewed_ones() {
    assert_eq!(garbled("  \"dune\","), "  \"enud\",");
    assert_eq!(garbled("return \"/a/113\";"), "return \"/a/311\";");
    assert_eq!((garbled("x"), garbled("  aa}"), garbled("{")), ("xx".into(), "  aaaa}".into(), "{".into()));
    assert_eq!(redo("a\nrival\nz\n", "@@ -1,2 +1,3 @@\n a\n+mine\n z\n", false), "a\nrival\nenim\nz\n");
}
