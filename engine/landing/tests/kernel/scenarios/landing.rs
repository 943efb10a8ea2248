//! Checks 1 to 6.

use yard_common::landing::{Edit, How};
use yard_common::{AttemptNo, Epoch, OwnerEpoch, Refusal, RuleName, Version};
use yard_git::{Entry, Kind, Mode};
use yard_landing::Ledger as _;

use crate::merge::Files;
use crate::stories;
use crate::world::{World, agent, change, files, fork, lane, note_path, path, with};

fn start() -> Files {
    files(&[("a", "1\n.\n.\n.\n1\n"), ("b", "1\n.\n.\n.\n1\n"), ("d/x", "1\n.\n.\n.\n1\n")])
}

fn world() -> World {
    World::new(&start())
}

fn is_unbound(answer: Result<yard_common::ObjectId, Refusal>, about: &str) {
    assert!(matches!(&answer, Err(Refusal::Unbound { why, .. }) if why.contains(about)), "{answer:?}");
}

fn tree_of(world: &World, commit: yard_common::ObjectId) -> yard_common::ObjectId {
    world.store.links(commit).0
}

/// Builds a request of one change with edits that a lying lane chose, on a tree that really was tested.
fn lie(
    world: &mut World,
    id: &yard_common::ChangeId,
    edits: Vec<Edit>,
) -> Result<yard_common::ObjectId, Refusal> {
    let head = world.main();
    let tree = world.tree_after(tree_of(world, head), &edits).unwrap();
    let version = world.ledger.newest(id).unwrap().version;
    let mut request = world.request(&lane("main"), head, vec![(id.clone(), version, edits, tree)]);
    world.tested(&mut request);
    let answer = world.land(&request);
    world.check();
    answer
}

fn honest(world: &mut World, id: &yard_common::ChangeId) -> Vec<Edit> {
    let version = world.ledger.newest(id).unwrap().version;
    let onto = tree_of(world, world.main());
    world.merge(id, version, onto).unwrap()
}

stories! {
    // A1: base f; A edits a; B, branched before A landed, edits b; both in one train.
    fn a1_both_changes_of_a_train_are_on_main_and_the_landed_tree_is_the_tested_one() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("b", Some("1\n.\n.\n.\n2\n"))]);
        let tip = world.landed(&[&a, &b]);
        world.check();
        assert_eq!(world.main(), tip);
        let wanted = with(&start(), &[("a", Some("2\n.\n.\n.\n1\n")), ("b", Some("1\n.\n.\n.\n2\n"))]);
        assert_eq!(world.main_files(), wanted);
    }

    // A13: the reply of the landing call is dropped once and the call repeated.
    fn a13_a_repeated_landing_gets_the_stored_answer_and_makes_no_second_commit() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&a]);
        let first = world.land(&request);
        let facts = world.facts.len();
        assert_eq!(world.land(&request), first);
        assert_eq!(world.facts.len(), facts);
        world.check();
    }

    fn a_refusal_is_stored_under_its_key_too() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&a]);
        world.freeze(Some("release")).unwrap();
        assert!(matches!(world.land(&request), Err(Refusal::Frozen { .. })));
        world.freeze(None).unwrap();
        assert!(matches!(world.land(&request), Err(Refusal::Frozen { .. })));
        let mut again = request.clone();
        again.key.attempt = AttemptNo(2);
        assert!(world.land(&again).is_ok());
        world.check();
    }

    fn a_request_on_an_older_head_is_told_what_moved() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        let late = world.train(&[&b]);
        world.landed(&[&a]);
        let answer = world.land(&late);
        assert_eq!(answer, Err(Refusal::Moved { head: world.main(), paths: vec![path("a")] }));
        world.check();
    }

    // Head and parent cover each other: a stale request that names the new head fails by its parent.
    fn a_stale_candidate_that_names_the_new_head_is_refused_by_its_parent() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        let stale = world.train(&[&b]);
        world.landed(&[&a]);
        let mut lie = world.train(&[&b]);
        lie.changes[0].commit = stale.changes[0].commit;
        lie.tip = stale.tip;
        world.note(&mut lie);
        assert!(world.land(&lie).is_err());
        world.check();
    }

    fn a_request_of_an_older_epoch_is_refused_though_main_stands_there_again() {
        let mut world = world();
        let first = world.main();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&a]);
        let next = world.make(&[first], &with(&start(), &[("b", Some("x"))]));
        world.push(next, "").unwrap();
        assert_eq!(world.epoch(), Epoch(0));
        world.push(first, "bad commit").unwrap();
        assert_eq!(world.epoch(), Epoch(1));
        assert_eq!(world.main(), request.head);
        assert!(matches!(world.land(&request), Err(Refusal::Moved { .. })));
        world.check();
    }

    fn a_lane_that_was_handed_over_lands_nothing_of_before() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&a]);
        world.hand_over(&a, &lane("other")).unwrap();
        let mut again = request.clone();
        assert!(matches!(world.land(&request), Err(Refusal::NotOwner { change: Some(_) })));
        world.hand_over(&a, &lane("main")).unwrap();
        again.key.attempt = AttemptNo(2);
        assert_eq!(world.land(&again), Err(Refusal::NotOwner { change: None }));
        again.key.attempt = AttemptNo(3);
        again.owner_epoch = world.owner_epoch(&lane("main"));
        assert_eq!(again.owner_epoch, OwnerEpoch(2));
        assert!(world.land(&again).is_ok());
        world.check();
    }

    // E2 and R1: a newer version was accepted while the older one was being landed.
    fn only_the_newest_accepted_version_lands() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&a]);
        world.submitted("f1", "a", &[("a", Some("3\n.\n.\n.\n1\n"))]);
        assert_eq!(world.land(&request), Err(Refusal::Superseded { changes: vec![a.clone()] }));
        world.landed(&[&a]);
        world.check();
        assert_eq!(world.main_files(), with(&start(), &[("a", Some("3\n.\n.\n.\n1\n"))]));
    }

    fn a_withdrawn_change_never_lands() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&a]);
        world.cancel(&a, &agent("f1")).unwrap();
        assert_eq!(world.land(&request), Err(Refusal::Withdrawn { changes: vec![a] }));
        world.check();
    }

    fn a_held_change_lands_when_it_is_released() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut request = world.train(&[&a]);
        world.hold(&a, Some("review")).unwrap();
        assert_eq!(world.land(&request), Err(Refusal::Held { changes: vec![a.clone()] }));
        world.hold(&a, None).unwrap();
        request.key.attempt = AttemptNo(2);
        assert!(world.land(&request).is_ok());
        world.check();
    }

    fn a_change_that_main_was_rewritten_without_waits_for_its_author() {
        let mut world = world();
        let first = world.main();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        world.landed(&[&a]);
        world.push(first, "a broke production").unwrap();
        world.check();
        let mut request = world.train(&[&a]);
        assert_eq!(world.land(&request), Err(Refusal::Held { changes: vec![a.clone()] }));
        world.requeue(&a).unwrap();
        request.key.attempt = AttemptNo(2);
        assert!(world.land(&request).is_ok());
        world.check();
    }

    fn a_stacked_change_lands_after_its_parent_or_behind_it_in_one_train() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let head = world.ledger.newest(&a).unwrap().head;
        let onto = world.files_of(head);
        let b = change("b");
        let push = world.work(&fork("f1"), Some(&b), head, &with(&onto, &[("b", Some("2\n.\n.\n.\n1\n"))]));
        world.submit(&push).unwrap();
        assert_eq!(world.ledger.newest(&b).unwrap().waits_for, vec![a.clone()]);
        let alone = world.train(&[&b]);
        assert_eq!(
            world.land(&alone),
            Err(Refusal::ParentOpen { change: b.clone(), waits_for: a.clone() })
        );
        world.check();
        world.landed(&[&a, &b]);
        world.check();
    }

    fn a_train_may_not_leave_out_an_edit() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n")), ("b", Some("2\n.\n.\n.\n1\n"))]);
        let mut edits = honest(&mut world, &a);
        edits.remove(0);
        is_unbound(lie(&mut world, &a, edits), "left out");
    }

    fn a_train_may_not_bring_a_path_that_was_not_submitted() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut edits = honest(&mut world, &a);
        let extra = world.store.entry(&Some((Mode::File, "extra".into())));
        edits.push(Edit {
            path: path("n"), from: None, base: None, ours: None, theirs: extra, result: extra,
            how: How::Theirs,
        });
        is_unbound(lie(&mut world, &a, edits), "not one of its paths");
    }

    fn a_train_may_not_edit_a_path_twice() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut edits = honest(&mut world, &a);
        let mut twice = edits[0].clone();
        twice.ours = twice.result;
        twice.how = How::Rule(RuleName::new("any").unwrap());
        twice.result = world.store.entry(&Some((Mode::File, "extra".into())));
        edits.push(twice);
        is_unbound(lie(&mut world, &a, edits), "twice");
    }

    fn an_edit_keeps_the_base_that_was_accepted() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("a", Some("1\n.\n.\n.\n2\n"))]);
        world.landed(&[&b]);
        // "theirs" over what b brought, by a base that says nothing had moved.
        let mut edits = honest(&mut world, &a);
        edits[0].base = edits[0].ours;
        edits[0].result = edits[0].theirs;
        edits[0].how = How::Theirs;
        is_unbound(lie(&mut world, &a, edits), "base");
    }

    fn an_edit_brings_what_was_accepted_and_nothing_else() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut edits = honest(&mut world, &a);
        edits[0].theirs = world.store.entry(&Some((Mode::File, "other".into())));
        edits[0].result = edits[0].theirs;
        is_unbound(lie(&mut world, &a, edits), "wants something else");
    }

    // Crossed: the edits of one change under the name of another.
    fn the_edits_of_one_change_do_not_land_under_the_name_of_another() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("a", Some("3\n.\n.\n.\n1\n"))]);
        let edits = honest(&mut world, &b);
        is_unbound(lie(&mut world, &a, edits), "wants something else");
    }

    fn theirs_is_taken_only_where_nothing_had_moved() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("a", Some("1\n.\n.\n.\n2\n"))]);
        world.landed(&[&b]);
        let mut edits = honest(&mut world, &a);
        edits[0].result = edits[0].theirs;
        edits[0].how = How::Theirs;
        is_unbound(lie(&mut world, &a, edits), "'theirs' needs");
    }

    fn same_leaves_what_stands_there() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut edits = honest(&mut world, &a);
        edits[0].how = How::Same;
        edits[0].result = world.store.entry(&Some((Mode::File, "other".into())));
        is_unbound(lie(&mut world, &a, edits), "'same' needs");
    }

    fn a_merge_of_which_one_side_changed_nothing_has_one_result() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut edits = honest(&mut world, &a);
        edits[0].how = How::Merge;
        edits[0].result = world.store.entry(&Some((Mode::File, "other".into())));
        is_unbound(lie(&mut world, &a, edits), "not what a merge gives");
        let mut edits = honest(&mut world, &a);
        edits[0].how = How::Merge;
        assert!(lie(&mut world, &a, edits).is_ok());
    }

    // C16: a submodule bumped by both is a collision, never automatic.
    fn a_submodule_bumped_by_both_is_never_merged() {
        let module = |digit: &str| (Mode::Gitlink, digit.repeat(40));
        let mut base = start();
        base.insert(path("m"), module("1"));
        let mut world = World::new(&base);
        let bump = |world: &mut World, who: &str, id: &str, digit: &str| {
            let (main, mut files) = (world.main(), world.main_files());
            files.insert(path("m"), module(digit));
            let push = world.work(&fork(who), Some(&change(id)), main, &files);
            world.submit(&push).unwrap().0
        };
        let a = bump(&mut world, "f1", "a", "2");
        let b = bump(&mut world, "f2", "b", "3");
        world.landed(&[&b]);
        world.check();
        let edit = &world.ledger.newest(&a).unwrap().edits[0];
        let ours = Some(Entry { mode: Mode::Gitlink, id: "3".repeat(40).parse().unwrap() });
        let edits = vec![Edit {
            path: path("m"), from: None, base: edit.base, ours, theirs: edit.theirs, result: edit.theirs,
            how: How::Merge,
        }];
        is_unbound(lie(&mut world, &a, edits), "submodule");
    }

    fn a_renamed_path_lands_at_its_new_place_once_the_old_one_is_gone() {
        let mut world = world();
        world.judged = false;
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("a", None), ("e/a", Some("1\n.\n.\n.\n1\n"))]);
        world.landed(&[&b]);
        let edit = world.ledger.newest(&a).unwrap().edits[0].clone();
        let moved = |how| Edit {
            path: path("e/a"), from: Some(path("a")), base: edit.base, ours: edit.base, theirs: edit.theirs,
            result: edit.theirs, how,
        };
        let mut ask = |edits: Vec<Edit>| {
            let head = world.main();
            let tree = world.tree_after(tree_of(&world, head), &edits).unwrap();
            let mut request = world.request(&lane("main"), head, vec![(a.clone(), Version(1), edits, tree)]);
            world.tested(&mut request);
            world.land(&request)
        };
        is_unbound(ask(vec![moved(How::Theirs)]), "moved path");
        is_unbound(ask(vec![moved(How::Same)]), "moved path");
        assert!(ask(vec![moved(How::Merge)]).is_ok());
        assert_eq!(world.main_files()[&path("e/a")].1, "2\n.\n.\n.\n1\n");
    }

    // C8: the change renames a file that main has edited; the edit arrives at the new place.
    fn an_edit_of_main_arrives_where_the_change_renames_the_file_to() {
        let mut world = world();
        world.judged = false;
        let (old, new) = ("1\n.\n.\n.\n1\n", "2\n.\n.\n.\n1\n");
        let a = world.submitted("f1", "a", &[("a", None), ("e/a", Some(old))]);
        let b = world.submitted("f2", "b", &[("a", Some(new))]);
        world.landed(&[&b]);
        let row = world.ledger.newest(&a).unwrap();
        let edited = world.store.entry(&Some((Mode::File, new.into())));
        let [away, to] = [&row.edits[0], &row.edits[1]];
        let edits = vec![
            Edit {
                path: path("a"), from: None, base: away.base, ours: edited, theirs: None, result: None,
                how: How::Merge,
            },
            Edit {
                path: path("e/a"), from: None, base: None, ours: None, theirs: to.theirs, result: edited,
                how: How::Merge,
            },
        ];
        let mut ask = |edits: Vec<Edit>| {
            let head = world.main();
            let tree = world.tree_after(tree_of(&world, head), &edits).unwrap();
            let mut request = world.request(&lane("main"), head, vec![(a.clone(), Version(1), edits, tree)]);
            world.tested(&mut request);
            world.land(&request)
        };
        let mut lie = edits.clone();
        lie[0].how = How::Rule(RuleName::new("any").unwrap());
        is_unbound(ask(lie), "not what a merge gives");
        assert!(ask(edits).is_ok());
        assert_eq!(world.main_files()[&path("e/a")].1, new);
    }

    fn an_edit_is_not_moved_away_from_a_file_that_still_stands() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut edits = honest(&mut world, &a);
        edits[0] = Edit { path: path("b"), from: Some(path("a")), how: How::Merge, ..edits[0].clone() };
        assert!(matches!(lie(&mut world, &a, edits), Err(Refusal::GoesBack { .. })));
    }

    fn an_edit_made_on_an_older_file_takes_nothing_back() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let edits = honest(&mut world, &a);
        let b = world.submitted("f2", "b", &[("a", Some("1\n.\n.\n.\n2\n"))]);
        world.landed(&[&b]);
        assert!(matches!(lie(&mut world, &a, edits), Err(Refusal::GoesBack { .. })));
    }

    fn the_executable_bit_that_main_has_is_not_taken_back() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let edits = honest(&mut world, &a);
        let (main, mut files) = (world.main(), world.main_files());
        files.get_mut(&path("a")).unwrap().0 = Mode::Executable;
        let push = world.work(&fork("f2"), Some(&change("b")), main, &files);
        let (b, _) = world.submit(&push).unwrap();
        world.landed(&[&b]);
        assert!(matches!(lie(&mut world, &a, edits), Err(Refusal::GoesBack { .. })));
    }

    fn a_file_does_not_land_over_a_directory_nor_below_a_file() {
        let mut world = world();
        let first = world.main();
        let file = with(&start(), &[("e", Some("file"))]);
        let push = world.work(&fork("f1"), Some(&change("a")), first, &file);
        let (a, _) = world.submit(&push).unwrap();
        let push = world.work(&fork("f2"), Some(&change("b")), first, &with(&start(), &[("e/x", Some("x"))]));
        let (b, _) = world.submit(&push).unwrap();
        let edits = honest(&mut world, &a);
        world.landed(&[&b]);
        // A tree in which the file stands instead of the directory.
        let head = world.main();
        let tree = world.store.tree(&with(&start(), &[("e", Some("file"))]));
        let mut request = world.request(&lane("main"), head, vec![(a, Version(1), edits, tree)]);
        world.tested(&mut request);
        assert!(matches!(world.land(&request), Err(Refusal::GoesBack { .. })));
        world.check();
    }

    // R12: honest work that turns a directory into a file and back.
    fn a_directory_becomes_a_file_and_a_file_a_directory() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("d/x", None), ("d", Some("file"))]);
        world.landed(&[&a]);
        world.check();
        let b = world.submitted("f1", "b", &[("d", None), ("d/y", Some("1")), ("d/z", Some("1"))]);
        world.landed(&[&b]);
        world.check();
    }

    fn each_commit_of_a_train_has_its_own_edits_alone() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        let onto = tree_of(&world, world.main());
        let first = honest(&mut world, &a);
        let second = honest(&mut world, &b);
        let both = world.tree_after(onto, &[first.clone(), second.clone()].concat()).unwrap();
        let listed = vec![(a, Version(1), first, both), (b, Version(1), second, both)];
        let mut request = world.request(&lane("main"), world.main(), listed);
        world.tested(&mut request);
        assert!(matches!(world.land(&request), Err(Refusal::OtherTree { .. })));
        world.check();
    }

    fn a_tip_with_more_than_its_edits_does_not_land() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let edits = honest(&mut world, &a);
        let tree = world.store.tree(&with(&start(), &[("a", Some("2\n.\n.\n.\n1\n")), ("n", Some("more"))]));
        let mut request = world.request(&lane("main"), world.main(), vec![(a, Version(1), edits, tree)]);
        world.tested(&mut request);
        assert!(matches!(world.land(&request), Err(Refusal::OtherTree { .. })));
        world.check();
    }

    // R15: the right tree on the newest head, but an older parent: others' commits would leave history.
    fn a_commit_stands_on_main_and_not_beside_it() {
        let mut world = world();
        let first = world.main();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        world.landed(&[&a]);
        let mut request = world.train(&[&b]);
        let tree = tree_of(&world, request.tip);
        request.tip = world.store.commit(&[first], tree, "beside\n");
        request.changes[0].commit = request.tip;
        world.note(&mut request);
        assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
        world.check();
    }

    fn a_landed_commit_has_one_parent() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut request = world.train(&[&a]);
        let other = world.make(&[], &start());
        let tree = tree_of(&world, request.tip);
        request.tip = world.store.commit(&[request.head, other], tree, "two parents\n");
        request.changes[0].commit = request.tip;
        world.note(&mut request);
        assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
        world.check();
    }

    fn the_tip_is_the_last_listed_commit() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let mut request = world.train(&[&a]);
        let tree = tree_of(&world, request.tip);
        request.tip = world.store.commit(&[request.tip], tree, "an empty commit more\n");
        assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
        world.check();
    }

    fn the_order_of_the_commits_is_the_order_of_the_request() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        let mut request = world.train(&[&a, &b]);
        request.changes.reverse();
        assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
        world.check();
    }

    fn the_notes_stand_on_the_notes_ref() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        world.landed(&[&a]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        let mut request = world.train(&[&b]);
        let tree = tree_of(&world, request.notes_tip);
        request.notes_tip = world.store.commit(&[], tree, "notes without history\n");
        assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
        world.check();
        let mut request = world.train(&[&b]);
        request.notes_head = None;
        request.key.attempt = AttemptNo(2);
        assert!(matches!(world.land(&request), Err(Refusal::Moved { .. })));
    }

    fn every_landed_commit_has_its_note() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        let mut request = world.train(&[&a, &b]);
        let all = tree_of(&world, request.notes_tip);
        let less = world.store.apply(all, &[(note_path(request.tip), None)]);
        request.notes_tip = world.store.commit(&[], less, "notes\n");
        assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
        world.check();
    }

    fn no_other_note_is_touched() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let first = world.landed(&[&a]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        for change in [None, Some("another intent")] {
            let mut request = world.train(&[&b]);
            let all = tree_of(&world, request.notes_tip);
            let entry = world.store.entry(&change.map(|text| (Mode::File, text.to_owned())));
            let tampered = world.store.apply(all, &[(note_path(first), entry)]);
            request.notes_tip = world.store.commit(request.notes_head.as_slice(), tampered, "notes\n");
            assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
            world.check();
        }
    }

    fn a_landed_change_does_not_land_again() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n")), ("n", Some("new"))]);
        world.landed(&[&a]);
        // The same edits once more, "same" where main has them, as an empty commit.
        let request = world.train(&[&a]);
        assert_eq!(world.land(&request), Err(Refusal::AlreadyLanded { changes: vec![a] }));
        world.check();
    }

    fn a_change_is_listed_once() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&a, &a]);
        assert!(matches!(world.land(&request), Err(Refusal::Malformed { .. })));
        world.check();
    }

    // E3: the claim's holder was killed; another took the path; the late change meets the fence.
    fn a_late_change_meets_the_fence_of_the_new_holder() {
        let mut world = world();
        world.claim(&fork("f1"), &["a"], 50).unwrap();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        assert!(matches!(world.claim(&fork("f2"), &["a"], 50), Err(Refusal::Claimed { .. })));
        world.now = world.now.plus(60);
        world.claim(&fork("f2"), &["a"], 50).unwrap();
        let mut request = world.train(&[&a]);
        let answer = world.land(&request);
        assert!(matches!(&answer, Err(Refusal::Fence { holder, .. }) if *holder == fork("f2")), "{answer:?}");
        world.check();
        world.now = world.now.plus(60);
        request.key.attempt = AttemptNo(2);
        assert!(world.land(&request).is_ok());
        world.check();
    }

    // R13: a high number for one path says nothing about another.
    fn fence_numbers_are_compared_path_by_path() {
        let mut world = world();
        world.claim(&fork("f1"), &["a"], 500).unwrap();
        world.claim(&fork("f2"), &["b"], 500).unwrap();
        let new = Some("2\n.\n.\n.\n1\n");
        let both = world.submitted("f2", "x", &[("a", new), ("b", new)]);
        let request = world.train(&[&both]);
        assert!(matches!(world.land(&request), Err(Refusal::Fence { .. })));
        world.check();
    }

    fn the_holder_of_a_claim_lands_under_it() {
        let mut world = world();
        world.claim(&fork("f1"), &["a"], 500).unwrap();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        world.landed(&[&a]);
        world.check();
    }

    fn a_claim_on_a_directory_covers_what_is_in_it() {
        let mut world = world();
        world.claim(&fork("f1"), &["d"], 500).unwrap();
        let x = world.submitted("f2", "x", &[("d/x", Some("2\n.\n.\n.\n1\n"))]);
        let request = world.train(&[&x]);
        assert!(matches!(world.land(&request), Err(Refusal::Fence { .. })));
        assert!(matches!(world.claim(&fork("f2"), &["d/x"], 5), Err(Refusal::Claimed { .. })));
        world.check();
    }

    fn nothing_lands_in_a_freeze() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2\n.\n.\n.\n1\n"))]);
        world.freeze(Some("release day")).unwrap();
        let request = world.train(&[&a]);
        assert!(matches!(world.land(&request), Err(Refusal::Frozen { reason }) if reason == "release day"));
        world.check();
    }

    fn missing_objects_are_asked_for_in_few_batches() {
        let mut world = world();
        let new = Some("2\n.\n.\n.\n1\n");
        let a = world.submitted("f1", "a", &[("a", new), ("d/x", new)]);
        let b = world.submitted("f2", "b", &[("b", Some("2\n.\n.\n.\n1\n"))]);
        world.landed(&[&b]);
        let request = world.train(&[&a]);
        let mut at_hand = yard_git::MemoryObjects::default();
        let mut rounds = 0;
        loop {
            match world.decide(&request, &at_hand) {
                yard_landing::Decision::Missing(ids) => {
                    rounds += 1;
                    assert!(rounds < 8 && !ids.is_empty());
                    for id in ids {
                        at_hand.insert(id, world.object(id));
                    }
                }
                decision => {
                    assert_eq!(decision, world.decide(&request, &world.store.objects));
                    break;
                }
            }
        }
        assert!(rounds <= 4, "{rounds} rounds");
        assert!(at_hand.iter().all(|(_, object)| object.kind != Kind::Blob), "no contents are read");
    }
}
