//! Who is sent back, and who never is.

use yard_common::stage::{Stage, Verdict};

use super::yard::*;

fn has(content: &[yard_common::ChangeId], name: &str) -> bool {
    content.contains(&change(name))
}

#[test]
fn changes_of_different_files_land_in_one_train_with_one_run() {
    let mut yard = Yard::new(|_, _| green());
    yard.submit("a");
    yard.submit("b");
    yard.settle();
    assert_eq!(yard.landed(), ["a", "b"]);
    assert_eq!(yard.tested, [["a", "b"]], "the landed tree is the tested tree");
    assert!(yard.lane.entries.is_empty() && yard.lane.attempts.is_empty());
}

#[test]
fn the_guilty_one_is_sent_back_with_its_runs_and_all_others_land() {
    let mut yard = Yard::new(|content, _| if has(content, "bad") { red("t1") } else { green() });
    for name in ["a", "b", "bad", "c", "d"] {
        yard.submit(name);
    }
    yard.settle();
    assert_eq!(yard.landed(), ["a", "b", "c", "d"]);
    let stage = yard.stage(&change("bad"));
    assert_eq!(stage.stage, Stage::NeedsAuthor);
    assert_eq!(stage.verdict, Some(Verdict::BrokenAlone));
    assert!(stage.runs.len() >= 2 && stage.reason.contains("t1"), "{stage:?}");
    let alone = yard.tested.iter().filter(|content| **content == ["bad"]).count();
    assert_eq!(alone, 2, "tested alone on its base, twice");
}

#[test]
fn a_single_broken_change_on_newest_main_needs_no_further_runs() {
    let mut yard = Yard::new(|content, _| if has(content, "bad") { red("t1") } else { green() });
    yard.submit("bad");
    yard.settle();
    assert_eq!(yard.stage(&change("bad")).verdict, Some(Verdict::BrokenAlone));
    assert_eq!(yard.tested.len(), 3, "twice itself, once its base: {:?}", yard.tested);
}

#[test]
fn green_alone_but_red_with_one_that_landed_is_an_interaction_that_names_it() {
    let both = |content: &[yard_common::ChangeId]| has(content, "rename") && has(content, "caller");
    let mut yard = Yard::new(move |content, _| if both(content) { red("calls") } else { green() });
    yard.submit("rename");
    yard.submit("caller");
    yard.submit("other");
    yard.settle();
    assert_eq!(yard.landed(), ["rename", "other"]);
    let stage = yard.stage(&change("caller"));
    assert_eq!(stage.verdict, Some(Verdict::Interaction { with: vec![change("rename")] }));
    assert!(stage.reason.contains("green alone, red together with change-rename"), "{}", stage.reason);
}

#[test]
fn an_interaction_names_the_changes_of_the_same_paths_and_folders_first() {
    let both = |content: &[yard_common::ChangeId]| has(content, "api") && has(content, "caller");
    let mut yard = Yard::new(move |content, _| if both(content) { red("calls") } else { green() });
    let touch = |yard: &mut Yard, name: &str, path: &str| {
        let id = yard.submit(name);
        let mut row = yard.rows[&id].clone();
        row.edits[0].path = yard_common::RepoPath::new(path).unwrap();
        yard.log.pop();
        yard.rows.insert(id, row.clone());
        yard.fact(yard_common::Fact::Submitted { row: Box::new(row), nodes: vec![] });
    };
    for (name, path) in [
        ("docs", "README"),
        ("near", "src/b.rs"),
        ("far", "src/deep/c.rs"),
        ("api", "src/a.rs"),
        ("caller", "src/a.rs"),
    ] {
        touch(&mut yard, name, path);
    }
    yard.settle();
    let stage = yard.stage(&change("caller"));
    let Some(Verdict::Interaction { with }) = stage.verdict else { panic!("{stage:?}") };
    assert_eq!(names(&with), ["api", "near", "docs", "far"]);
}

#[test]
fn no_complete_run_together_is_held_and_is_no_interaction() {
    let both = |content: &[yard_common::ChangeId]| has(content, "rename") && has(content, "caller");
    let lost = || yard_common::landing::RunResult { complete: false, green: false, ran: 0, ..green() };
    let mut yard = Yard::new(move |content, _| if both(content) { lost() } else { green() });
    yard.submit("rename");
    yard.submit("caller");
    yard.submit("other");
    yard.settle();
    assert_eq!(yard.landed(), ["rename", "other"]);
    let stage = yard.stage(&change("caller"));
    assert_eq!((stage.stage, stage.verdict), (Stage::Held, Some(Verdict::Infra)));
    assert!(stage.reason.contains("green alone"), "{}", stage.reason);
}

#[test]
fn an_interaction_with_what_landed_after_its_base_is_found_too() {
    let both = |content: &[yard_common::ChangeId]| has(content, "rename") && has(content, "caller");
    let mut yard = Yard::new(move |content, _| if both(content) { red("calls") } else { green() });
    yard.submit("rename");
    let late = yard.submit("caller");
    yard.log.pop();
    let row = yard.rows[&late].clone();
    yard.settle();
    yard.fact(yard_common::Fact::Submitted { row: Box::new(row), nodes: vec![] });
    yard.settle();
    assert_eq!(yard.landed(), ["rename"]);
    assert_eq!(yard.stage(&late).verdict, Some(Verdict::Interaction { with: vec![change("rename")] }));
}

#[test]
fn b1_a_test_that_fails_one_run_in_three_sends_nobody_back_and_is_listed() {
    for phase in 0..3 {
        let mut yard = Yard::new(move |_, n| if n % 3 == phase { red("wobbly") } else { green() });
        for round in 0..5 {
            for name in ["a", "b", "c", "d"] {
                yard.submit(&format!("{name}{round}"));
            }
            yard.settle();
        }
        assert_eq!(yard.landed().len(), 20, "phase {phase}");
        assert!(yard.lane.flaky.get("wobbly").is_some_and(|times| *times > 0));
    }
}

#[test]
fn b3_one_red_run_of_a_single_change_is_run_again_on_the_same_tree_first() {
    let mut yard = Yard::new(|_, n| if n == 1 { red("wobbly") } else { green() });
    yard.submit("a");
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
    assert_eq!(yard.tested, [["a"], ["a"]]);
    assert_eq!(yard.lane.flaky.get("wobbly"), Some(&1));
}

#[test]
fn a17_a_flaky_test_that_fails_twice_still_blames_nobody_when_every_prefix_passes() {
    let mut yard = Yard::new(|_, n| if n <= 2 { red("wobbly") } else { green() });
    for name in ["a", "b", "c"] {
        yard.submit(name);
    }
    yard.settle();
    assert_eq!(yard.landed().len() + yard.lane.entries.len(), 3);
    for entry in yard.lane.entries.keys() {
        let stage = yard.stage(entry);
        assert!(stage.runs.len() >= 3, "nobody is declared guilty untested: {stage:?}");
    }
}

#[test]
fn failures_here_and_there_need_more_runs_than_one_that_stays() {
    let mut yard = Yard::new(|_, n| if n <= 4 { red(&format!("t{n}")) } else { green() });
    yard.submit("a");
    yard.settle();
    assert_eq!(yard.landed(), ["a"], "four red runs that share no test prove nothing");
}

#[test]
fn a5_zero_tests_cancelled_and_skipped_are_never_green() {
    let odd = [
        yard_common::landing::RunResult { ran: 0, ..green() },
        yard_common::landing::RunResult { complete: false, ..green() },
        yard_common::landing::RunResult { ran: 0, skipped: 5, ..green() },
    ];
    for result in odd {
        let mut yard = Yard::new(move |content, _| if has(content, "a") { result.clone() } else { green() });
        yard.submit("a");
        yard.submit("b");
        yard.settle();
        assert_eq!(yard.landed(), ["b"]);
        let stage = yard.stage(&change("a"));
        assert_eq!((stage.stage, stage.verdict), (Stage::Held, Some(Verdict::Infra)));
        assert!(stage.reason.contains("no complete test result"), "{}", stage.reason);
    }
}

#[test]
fn a_red_main_holds_the_lane_and_blames_nobody_until_it_is_mended() {
    let mut yard = Yard::new(|content, _| if has(content, "mend") { green() } else { red("main") });
    let a = yard.submit("a");
    let b = yard.submit("b");
    yard.settle();
    for id in [&a, &b] {
        yard.assert_stage(id, Stage::Held, "main itself is red");
        assert_eq!(yard.stage(id).verdict, Some(Verdict::MainRed));
    }
    yard.push(vec![change("mend")]);
    yard.settle();
    assert_eq!(yard.landed(), ["mend", "a", "b"]);
}

#[test]
fn a_red_main_is_tried_again_after_a_while() {
    let mut yard = Yard::new(|_, n| if n <= 4 { red("network") } else { green() });
    yard.submit("a");
    yard.settle();
    assert!(yard.landed().is_empty() && yard.lane.bad_main.is_some());
    yard.now = yard.now.plus(crate::limits::MAIN_RETRY_MS);
    yard.feed(crate::Input::Tick).unwrap();
    yard.settle();
    assert_eq!(yard.landed(), ["a"]);
}

#[test]
fn an_untested_tip_gets_a_confirming_run_and_a_red_one_holds_the_lane() {
    let mut yard = Yard::new(|_, _| red("main"));
    yard.tip_tested = false;
    yard.settle();
    assert_eq!(yard.tested.len(), 2, "red twice");
    let a = yard.submit("a");
    yard.work();
    yard.assert_stage(&a, Stage::Held, "main itself is red");
    assert!(yard.trains.is_empty());
}

#[test]
fn a_parent_that_is_sent_back_holds_its_child_and_a_withdrawn_one_sends_it_back() {
    let mut yard = Yard::new(|content, _| if has(content, "parent") { red("t") } else { green() });
    let parent = yard.submit("parent");
    let child = yard.submit_on("child", std::slice::from_ref(&parent));
    yard.settle();
    assert_eq!(yard.stage(&parent).verdict, Some(Verdict::BrokenAlone));
    yard.assert_stage(&child, Stage::Held, "built on change-parent, which waits for its author");
    yard.withdraw(&parent);
    yard.settle();
    yard.assert_stage(&child, Stage::NeedsAuthor, "change-parent, which was withdrawn");
}
