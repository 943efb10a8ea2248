//! What a change's story tells, from the facts of its lane alone.

use super::yard::*;
use crate::story::Story;

fn told(yard: &Yard, name: &str) -> Vec<(&'static str, String)> {
    let mut story = Story::new(change(name));
    yard.stored.iter().filter_map(|fact| story.tell(fact)).map(|told| (told.kind, told.text)).collect()
}

#[test]
fn each_attempt_run_and_verdict_of_the_guilty_one_is_told_and_no_other_changes() {
    let mut yard = Yard::new(|content, _| if content.contains(&change("bad")) { red("t1") } else { green() });
    for name in ["a", "bad", "c"] {
        yard.submit(name);
    }
    yard.settle();
    let story = told(&yard, "bad");
    let kinds: Vec<&str> = story.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds.first(), Some(&"attempt"), "{story:#?}");
    assert_eq!(kinds.last(), Some(&"back"), "{story:#?}");
    assert!(
        kinds.iter().filter(|kind| **kind == "red").count() >= 3,
        "in the train, alone, again: {story:#?}"
    );
    let has = |text: &str| story.iter().any(|(_, told)| told.contains(text));
    assert!(has("aboard, 2 of 3") && has("red, 1 of 3 tests: t1"), "{story:#?}");
    assert!(has("its base without it): green") && has("sent back: red alone"), "{story:#?}");
    let innocent = told(&yard, "a");
    assert!(innocent.iter().all(|(kind, _)| *kind != "back" && *kind != "verdict"), "{innocent:#?}");
}

#[test]
fn a_collision_is_told_with_its_paths() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.submit("b");
    yard.collides.insert((change("a"), change("b")));
    yard.settle();
    let story = told(&yard, "b");
    let (kind, text) = story.last().unwrap();
    assert_eq!(*kind, "back", "{story:#?}");
    assert!(text.starts_with("sent back: collides with main at "), "{text}");
}
