//! Acceptance of submissions.

use yard_common::fact::Terminal;
use yard_common::policy::Policy;
use yard_common::{ChangeId, ObjectId, Refusal, Version};
use yard_landing::{Decision, Ledger as _, accept};

use crate::merge::Files;
use crate::model::Meant;
use crate::stories;
use crate::world::{World, agent, change, files, fork, lane, path, with};

const OLD: &str = "1\n.\n.\n.\n1\n";
const TOP: &str = "2\n.\n.\n.\n1\n";
const END: &str = "1\n.\n.\n.\n2\n";

fn start() -> Files {
    files(&[("a", OLD), ("b", OLD), ("c", OLD), ("d", OLD)])
}

fn world() -> World {
    World::new(&start())
}

fn head_of(world: &World, id: &ChangeId) -> ObjectId {
    world.ledger.newest(id).unwrap().head
}

/// Work by f1 on top of a commit, under a new id.
fn on_top(
    world: &mut World,
    id: &str,
    parent: ObjectId,
    edits: &[(&str, Option<&str>)],
) -> Result<(ChangeId, Version), Refusal> {
    let files = with(&world.files_of(parent), edits);
    let push = world.work(&fork("f1"), Some(&change(id)), parent, &files);
    world.submit(&push)
}

stories! {
    fn versions_are_numbered_by_the_log_alone() {
        let mut world = world();
        for n in 1..4u64 {
            let a = world.submitted("f1", "a", &[("a", Some(&n.to_string()))]);
            assert_eq!(world.ledger.newest(&a).unwrap().version, Version(n));
        }
        world.check();
    }

    fn a_repeated_submission_gets_the_stored_answer() {
        let mut world = world();
        let main = world.main();
        let mut push = world.work(&fork("f1"), None, main, &with(&start(), &[("a", Some(TOP))]));
        push.new_change = true;
        let first = world.submit(&push).unwrap();
        let facts = world.facts.len();
        assert_eq!(world.submit(&push), Ok(first));
        assert_eq!(world.facts.len(), facts);
        let mut refused = world.work(&fork("f1"), None, main, &start());
        refused.new_change = true;
        assert_eq!(world.submit(&refused), Err(Refusal::NoEdits));
        let facts = world.facts.len();
        assert_eq!(world.submit(&refused), Err(Refusal::NoEdits));
        assert_eq!(world.facts.len(), facts);
    }

    fn a_commit_offered_again_under_another_key_is_accepted_already() {
        let mut world = world();
        let main = world.main();
        let push = world.work(&fork("f1"), None, main, &with(&start(), &[("a", Some(TOP))]));
        let first = world.submit(&push).unwrap();
        let facts = world.facts.len();
        let mut again = push.clone();
        again.key = "another-push".into();
        assert_eq!(world.submit(&again), Ok(first.clone()));
        assert_eq!(world.facts.len(), facts);
        let mut named = push;
        named.key = "with-its-id".into();
        named.change = Some(first.0.clone());
        assert_eq!(world.submit(&named), Ok(first));
        assert_eq!(world.facts.len(), facts);
    }

    fn one_key_stands_for_one_content() {
        let mut world = world();
        let main = world.main();
        let push = world.work(&fork("f1"), Some(&change("a")), main, &with(&start(), &[("a", Some(TOP))]));
        world.submit(&push).unwrap();
        let files = with(&start(), &[("a", Some(END))]);
        let mut other = world.work(&fork("f1"), Some(&change("a")), main, &files);
        other.key = push.key.clone();
        assert_eq!(world.submit(&other), Err(Refusal::KeyReused { key: push.key }));
    }

    // A16.
    fn a_version_of_a_landed_change_is_answered_landed() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let commit = world.landed(&[&a]);
        let main = world.main();
        let answer = on_top(&mut world, "a", main, &[("a", Some("3"))]);
        assert_eq!(answer, Err(Refusal::Landed { change: a, commit }));
        world.check();
    }

    fn a_version_of_a_withdrawn_change_is_refused() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        world.cancel(&a, &agent("f1")).unwrap();
        let main = world.main();
        let answer = on_top(&mut world, "a", main, &[("a", Some("3"))]);
        assert_eq!(answer, Err(Refusal::ChangeWithdrawn { change: a }));
        world.check();
    }

    fn a_change_that_is_already_on_main_has_ended() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let b = world.submitted("f2", "b", &[("a", Some(TOP))]);
        world.landed(&[&a]);
        world.close(&b, Version(1), Terminal::AlreadyOnMain).unwrap();
        let main = world.main();
        let push = world.work(&fork("f2"), Some(&b), main, &with(&start(), &[("b", Some(TOP))]));
        assert!(matches!(world.submit(&push), Err(Refusal::Invalid { .. })));
    }

    fn a_replay_counts_only_for_the_version_it_replays() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let main = world.main();
        let mut replay = world.work(&None, Some(&a), main, &with(&start(), &[("a", Some("2 replayed"))]));
        replay.replay_of = Some(Version(1));
        let mut late = world.work(&None, Some(&a), main, &with(&start(), &[("a", Some("2 late"))]));
        late.replay_of = Some(Version(1));
        assert_eq!(world.submit(&replay), Ok((a.clone(), Version(2))));
        assert_eq!(world.ledger.newest(&a).unwrap().fork, fork("f1"));
        assert_eq!(world.submit(&late), Err(Refusal::LateReplay { change: a }));
        world.check();
    }

    fn a_replay_touches_only_what_was_reviewed_carried_through_renames() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let main = world.main();
        let mut wide = world.work(&None, Some(&a), main, &with(&start(), &[("a", Some(TOP)), ("c", Some("x"))]));
        wide.replay_of = Some(Version(1));
        let outside = Refusal::OutsideReview { change: a.clone(), path: path("c") };
        assert_eq!(world.submit(&wide), Err(outside.clone()));
        // A rename from a path that was never reviewed brings nothing in.
        let mut foreign = wide.clone();
        (foreign.key, foreign.renames) = ("foreign".into(), vec![(path("b"), path("c"))]);
        assert_eq!(world.submit(&foreign), Err(outside));
        let mut renamed = wide.clone();
        (renamed.key, renamed.renames) = ("renamed".into(), vec![(path("a"), path("c"))]);
        assert_eq!(world.submit(&renamed), Ok((a, Version(2))));
        world.check();
    }

    fn a_second_replay_may_touch_what_the_first_left_out_and_no_more() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP)), ("b", Some(TOP))]);
        let main = world.main();
        let mut first = world.work(&None, Some(&a), main, &with(&start(), &[("b", Some("2 once"))]));
        (first.replay_of, first.reviewed) = (Some(Version(1)), Some(Version(1)));
        assert_eq!(world.submit(&first), Ok((a.clone(), Version(2))));
        let files = with(&start(), &[("a", Some("3 twice")), ("b", Some("3 twice"))]);
        let mut second = world.work(&None, Some(&a), main, &files);
        (second.replay_of, second.reviewed) = (Some(Version(2)), Some(Version(1)));
        let mut wide = world.work(&None, Some(&a), main, &with(&files, &[("c", Some("x"))]));
        (wide.replay_of, wide.reviewed) = (Some(Version(2)), Some(Version(1)));
        assert_eq!(world.submit(&wide), Err(Refusal::OutsideReview { change: a.clone(), path: path("c") }));
        assert_eq!(world.submit(&second), Ok((a, Version(3))));
        world.check();
    }

    fn a_replay_that_differs_too_much_lands_once_an_admin_has_approved_it() {
        let policy = Policy { command: "test".into(), review_lines: Some(2), ..Policy::default() };
        let mut world = World::with_policy(&start(), policy);
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let main = world.main();
        let mut replay = world.work(&None, Some(&a), main, &with(&start(), &[("a", Some("2 replayed"))]));
        (replay.replay_of, replay.differing_lines) = (Some(Version(1)), 3);
        assert_eq!(world.submit(&replay), Ok((a.clone(), Version(2))));
        let train = world.train(&[&a]);
        assert!(matches!(world.land(&train), Err(Refusal::Protected { .. })));
        world.approve(&a, Version(2)).unwrap();
        world.landed(&[&a]);
        world.check();
    }

    // R6: the agent stands on a commit that an admin has taken back; it must not come back in its name.
    fn work_on_a_main_that_was_rewound_does_not_bring_it_back() {
        let mut world = world();
        let good = world.main();
        let bad = world.make(&[good], &with(&start(), &[("b", Some("bad"))]));
        world.push(bad, "").unwrap();
        world.push(good, "bad commit").unwrap();
        let (a, _) = on_top(&mut world, "a", bad, &[("a", Some(TOP))]).unwrap();
        assert_eq!(world.ledger.newest(&a).unwrap().base.commits, vec![bad]);
        world.landed(&[&a]);
        world.check();
        assert_eq!(world.main_files()[&path("b")].1, OLD);
    }

    // The daily flow: go on working on the own landed commit, of which main has reverted something.
    fn going_on_from_the_own_landed_commit_does_not_bring_back_what_main_reverted() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let own = head_of(&world, &a);
        world.landed(&[&a]);
        let (main, files) = (world.main(), with(&world.main_files(), &[("a", Some(OLD))]));
        let mut revert = world.work(&fork("f2"), Some(&change("revert")), main, &files);
        revert.reverts = vec![a.clone()];
        let (revert, _) = world.submit(&revert).unwrap();
        world.landed(&[&revert]);
        let (next, _) = on_top(&mut world, "next", own, &[("b", Some(TOP))]).unwrap();
        world.landed(&[&next]);
        world.check();
        assert_eq!(world.main_files(), with(&start(), &[("b", Some(TOP))]));
    }

    // R7: version 2 is one commit on top of version 1.
    fn the_own_earlier_commits_are_no_base() {
        let mut world = world();
        let main = world.main();
        let (a, _) = on_top(&mut world, "a", main, &[("a", Some(TOP))]).unwrap();
        let v1 = head_of(&world, &a);
        let files = with(&world.files_of(v1), &[("b", Some(TOP))]);
        let mut push = world.work(&fork("f1"), Some(&a), v1, &files);
        push.meant = Meant { from: start(), to: files };
        world.submit(&push).unwrap();
        let row = world.ledger.newest(&a).unwrap();
        assert_eq!((row.base.commits.clone(), row.waits_for.clone()), (vec![main], vec![]));
        assert_eq!(row.commits, vec![push.head, v1]);
        world.landed(&[&a]);
        world.check();
    }

    // R8: after `git pull` the head stands on the own open change and on main.
    fn a_head_after_a_pull_stands_on_all_that_it_merged() {
        let mut world = world();
        let main = world.main();
        let (a, _) = on_top(&mut world, "a", main, &[("a", Some(TOP))]).unwrap();
        let b = world.submitted("f2", "b", &[("b", Some(TOP))]);
        world.landed(&[&b]);
        let (own, main) = (head_of(&world, &a), world.main());
        let merged = with(&start(), &[("a", Some(TOP)), ("b", Some(TOP))]);
        let pull = world.make(&[own, main], &merged);
        let (c, _) = on_top(&mut world, "c", pull, &[("c", Some(TOP))]).unwrap();
        let row = world.ledger.newest(&c).unwrap();
        let mut both = vec![own, main];
        both.sort();
        assert_eq!(row.base.commits, both);
        assert_eq!(row.edits.len(), 1);
        assert_eq!(row.waits_for, vec![a.clone()]);
        world.landed(&[&a, &c]);
        world.check();
    }

    fn bases_that_do_not_merge_are_sent_to_rebase() {
        let mut world = world();
        let main = world.main();
        let (a, _) = on_top(&mut world, "a", main, &[("a", Some(TOP))]).unwrap();
        let b = world.submitted("f2", "b", &[("a", Some("3\n.\n.\n.\n1\n"))]);
        world.landed(&[&b]);
        let (own, main) = (head_of(&world, &a), world.main());
        let pull = world.make(&[own, main], &start());
        let answer = on_top(&mut world, "c", pull, &[("c", Some(TOP))]);
        assert!(matches!(answer, Err(Refusal::RebaseNeeded { .. })), "{answer:?}");
    }

    fn a_head_without_a_known_ancestor_has_no_base() {
        let mut world = world();
        let root = world.make(&[], &start());
        let answer = on_top(&mut world, "a", root, &[("a", Some(TOP))]);
        assert_eq!(answer, Err(Refusal::NoBase));
    }

    fn mains_own_commits_are_no_submission() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        world.landed(&[&a]);
        let main = world.main();
        let mut push = world.work(&fork("f1"), Some(&change("x")), main, &start());
        push.head = main;
        assert!(matches!(world.submit(&push), Err(Refusal::Invalid { .. })));
    }

    // R10.
    fn work_on_a_withdrawn_version_is_refused_with_its_name() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let own = head_of(&world, &a);
        world.cancel(&a, &agent("f1")).unwrap();
        let answer = on_top(&mut world, "b", own, &[("b", Some(TOP))]);
        assert_eq!(answer, Err(Refusal::BuiltOnWithdrawn { change: a, commit: own }));
        world.check();
    }

    // R9: c2 stands on c1, then c1's version 2 on c2.
    fn changes_do_not_wait_for_each_other() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let a1 = head_of(&world, &a);
        let (b, _) = on_top(&mut world, "b", a1, &[("b", Some(TOP))]).unwrap();
        let b1 = head_of(&world, &b);
        let answer = on_top(&mut world, "a", b1, &[("c", Some(TOP))]);
        assert_eq!(answer, Err(Refusal::WaitingCycle { cycle: vec![a.clone(), b, a] }));
        world.check();
    }

    fn a_head_inside_another_open_change_is_not_taken_again() {
        let mut world = world();
        let main = world.main();
        let inner = world.make(&[main], &with(&start(), &[("a", Some(TOP))]));
        let files = with(&start(), &[("a", Some(TOP)), ("b", Some(TOP))]);
        let mut push = world.work(&fork("f1"), Some(&change("all")), inner, &files);
        push.meant.from = start();
        let (all, _) = world.submit(&push).unwrap();
        let files = with(&start(), &[("a", Some(TOP))]);
        let mut part = world.work(&fork("f1"), Some(&change("part")), main, &files);
        part.head = inner;
        assert_eq!(world.submit(&part), Err(Refusal::ContainedIn { change: all }));
        let mut other = part.clone();
        (other.fork, other.key) = (fork("f2"), "other".into());
        assert!(world.submit(&other).is_ok(), "another fork may offer it");
    }

    fn a_push_without_id_on_the_paths_of_an_open_change_asks_which_is_meant() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let main = world.main();
        let mut push = world.work(&fork("f1"), None, main, &with(&start(), &[("a", Some(END))]));
        assert_eq!(world.submit(&push), Err(Refusal::WhichChange { open: a.clone(), path: path("a") }));
        push.new_change = true;
        push.key = "another-key".into();
        let (made, version) = world.submit(&push).unwrap();
        assert!(made.as_str().starts_with('I') && made.as_str().len() == 41 && version == Version(1));
        let other = world.work(&fork("f2"), None, main, &with(&start(), &[("a", Some(END))]));
        assert!(world.submit(&other).is_ok(), "another fork's paths are its own");
        world.landed(&[&a]);
        let main = world.main();
        let files = with(&world.main_files(), &[("a", Some("3\n.\n.\n.\n1\n"))]);
        let later = world.work(&fork("f3"), None, main, &files);
        assert!(world.submit(&later).is_ok(), "a landed change is not open");
    }

    fn a_generated_id_is_the_same_for_the_same_push() {
        let id = || {
            let mut world = world();
            let main = world.main();
            let push = world.work(&fork("f1"), None, main, &with(&start(), &[("a", Some(END))]));
            world.submit(&push).unwrap().0
        };
        assert_eq!(id(), id());
    }

    fn somebody_elses_id_makes_a_new_change_that_names_it() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let main = world.main();
        let files = with(&start(), &[("a", Some(TOP)), ("b", Some(TOP))]);
        let push = world.work(&fork("f2"), Some(&a), main, &files);
        let (copy, version) = world.submit(&push).unwrap();
        assert_ne!(copy, a);
        assert_eq!(version, Version(1));
        assert_eq!(world.ledger.newest(&a).unwrap().version, Version(1));
        let row = world.ledger.newest(&copy).unwrap();
        assert!(row.warnings.iter().any(|text| text.contains(a.as_str()) && text.contains("f1")), "{row:?}");
        let again = world.work(&fork("f2"), Some(&a), main, &with(&start(), &[("b", Some(END))]));
        assert_eq!(world.submit(&again), Err(Refusal::WhichChange { open: copy, path: path("b") }));
    }

    // A2: a tree that is many landings stale, on top of main.
    fn a_stale_tree_is_refused_with_what_it_would_take_back() {
        let mut world = world();
        let stale = world.main_files();
        for (id, at) in [("a", "a"), ("b", "b"), ("c", "c")] {
            let id = world.submitted("f1", id, &[(at, Some(TOP))]);
            world.landed(&[&id]);
        }
        let main = world.main();
        let answer = on_top(&mut world, "stale", main, &[
            ("a", Some(OLD)), ("b", Some(OLD)), ("c", Some(OLD)), ("d", Some(TOP)),
        ]);
        let paths = vec![path("a"), path("b"), path("c")];
        assert_eq!(answer, Err(Refusal::StaleTree { landings: 3, paths }));
        let files = with(&stale, &[("d", Some(TOP))]);
        let mut push = world.work(&fork("f1"), Some(&change("revert")), main, &files);
        push.reverts = vec![change("a"), change("b"), change("c")];
        let (id, _) = world.submit(&push).unwrap();
        assert!(world.ledger.newest(&id).unwrap().warnings.is_empty());
        // One of three declared: the two others would go back with it.
        let mut part = world.work(&fork("f2"), Some(&change("part")), main, &files);
        part.reverts = vec![change("a")];
        let paths = vec![path("b"), path("c")];
        assert_eq!(world.submit(&part), Err(Refusal::StaleTree { landings: 3, paths }));
        let mut other = world.work(&fork("f2"), Some(&change("other")), main, &files);
        other.reverts = vec![change("unknown")];
        assert!(matches!(world.submit(&other), Err(Refusal::NotFound { .. })));
    }

    fn a_tree_one_landing_old_is_taken_with_a_warning() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        world.landed(&[&a]);
        let main = world.main();
        let (id, _) = on_top(&mut world, "back", main, &[("a", Some(OLD)), ("b", Some(TOP))]).unwrap();
        let row = world.ledger.newest(&id).unwrap();
        assert!(row.warnings.iter().any(|text| text.contains(a.as_str()) && text.contains("(a)")), "{row:?}");
    }

    fn a_base_that_moved_meanwhile_is_prepared_anew() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some(TOP))]);
        let own = head_of(&world, &a);
        let files = with(&world.files_of(own), &[("b", Some(TOP))]);
        let push = world.work(&fork("f1"), Some(&change("b")), own, &files);
        let mut proposal = world.prepare(&push).unwrap();
        proposal.base.commits = vec![world.main()];
        assert_eq!(accept(&world.ledger, &proposal, world.now), Decision::Refused(Refusal::Raced));
        let facts = world.facts.len();
        assert_eq!(world.offer(&proposal, &push.meant), Err(Refusal::Raced));
        assert_eq!(world.facts.len(), facts, "nothing is stored");
        assert!(world.submit(&push).is_ok());
    }

    fn a_change_goes_to_the_lane_of_its_newest_version() {
        let mut world = world();
        let main = world.main();
        let push = world.work(&fork("f1"), Some(&change("a")), main, &with(&start(), &[("a", Some(TOP))]));
        let (a, _) = world.submit(&push).unwrap();
        let old = world.train(&[&a]);
        let mut push = world.work(&fork("f1"), Some(&a), main, &with(&start(), &[("b", Some(TOP))]));
        push.lane = lane("other");
        world.submit(&push).unwrap();
        assert!(matches!(world.land(&old), Err(Refusal::NotOwner { .. })));
        let mut request = world.assemble(&lane("other"), &[(a, Version(2))]).unwrap();
        world.tested(&mut request);
        assert!(world.land(&request).is_ok());
        world.check();
    }

    fn a_row_must_fit_the_log() {
        let mut world = world();
        let mut all = start();
        for n in 0..4000 {
            all.insert(path(&format!("directory/of/many/files/{n}")), (yard_git::Mode::File, n.to_string()));
        }
        let main = world.main();
        let push = world.work(&fork("f1"), Some(&change("a")), main, &all);
        assert!(matches!(world.submit(&push), Err(Refusal::TooLarge { .. })));
    }

    // A merge inside a push: generations must come out right whatever the order of its commits.
    fn the_commits_of_a_push_are_stored_parents_first() {
        let mut world = world();
        let main = world.main();
        let files = |edits: &[(&str, Option<&str>)]| with(&start(), edits);
        let left = world.make(&[main], &files(&[("a", Some(TOP))]));
        let left = world.make(&[left], &files(&[("a", Some("3"))]));
        let right = world.make(&[main], &files(&[("b", Some(TOP))]));
        let both = world.make(&[right, left], &files(&[("a", Some("3")), ("b", Some(TOP))]));
        let to = files(&[("a", Some("3")), ("b", Some(TOP)), ("c", Some(TOP))]);
        let mut push = world.work(&fork("f1"), Some(&change("a")), both, &to);
        push.meant.from = start();
        world.submit(&push).unwrap();
        let generation = |id: ObjectId| world.ledger.commit(&id).unwrap().generation;
        let base = generation(main);
        assert_eq!([left, right, both, push.head].map(generation), [base + 2, base + 1, base + 3, base + 4]);
        assert_eq!(world.ledger.newest(&change("a")).unwrap().commits.len(), 5);
    }

    fn without_a_fork_nobody_is_asked_which_change_is_meant() {
        let mut world = world();
        let main = world.main();
        for n in 0..2 {
            let push = world.work(&None, None, main, &with(&start(), &[("a", Some(&format!("{n}")))]));
            assert!(world.submit(&push).is_ok());
        }
    }

    fn an_intent_has_its_limit() {
        let mut world = world();
        let main = world.main();
        let push = world.work(&fork("f1"), Some(&change("a")), main, &with(&start(), &[("a", Some(TOP))]));
        let mut proposal = world.prepare(&push).unwrap();
        proposal.intent.plan = "x".repeat(yard_common::limits::INTENT_BYTES_MAX);
        assert!(matches!(world.offer(&proposal, &push.meant), Err(Refusal::TooLarge { .. })));
    }
}
