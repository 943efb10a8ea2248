//! Check 7: the run, and the exceptions of law 2.

use yard_common::fact::{Fact, Untested};
use yard_common::landing::{Edit, How};
use yard_common::policy::{Commutative, Isolation, Policy};
use yard_common::{AttemptNo, ChangeId, Refusal, RuleName, TokenClaims, Version};
use yard_git::Mode;
use yard_landing::{Ledger as _, sign};

use crate::merge::Files;
use crate::stories;
use crate::world::{TOKEN, World, files, lane, path, with};

fn start() -> Files {
    files(&[("a", "1"), ("b", "1"), ("d/x", "1"), ("INDEX", "m\n")])
}

fn unproven(world: &mut World, request: &yard_common::landing::LandRequest) {
    let answer = world.land(request);
    assert!(matches!(answer, Err(Refusal::Unproven { .. })), "{answer:?}");
    world.check();
}

/// A request tested on an older main, made anew on the newest one.
fn rebased(world: &mut World, id: &ChangeId, other: &ChangeId) -> yard_common::landing::LandRequest {
    let tested = world.train(&[id]);
    world.landed(&[other]);
    let listed = [(id.clone(), Version(1))];
    let mut request = world.assemble(&lane("main"), &listed).unwrap();
    request.tested_head = tested.head;
    request.runs = tested.runs;
    request
}

fn untested(world: &World) -> Option<Untested> {
    match world.facts.last() {
        Some(Fact::Landed { untested, .. }) => untested.clone(),
        other => panic!("{other:?}"),
    }
}

fn sorted_lines() -> RuleName {
    RuleName::new("sorted-lines").unwrap()
}

/// The edit of a row's only path under a rule, with this result.
fn ruled(world: &mut World, id: &ChangeId, result: &str) -> Edit {
    let row = world.ledger.newest(id).unwrap();
    let at = row.edits[0].path.clone();
    let ours = world.store.links(world.main()).0;
    let ours = yard_git::tree::lookup(&world.store.objects, ours, &at).unwrap();
    let result = world.store.entry(&Some((Mode::File, result.to_owned())));
    let (base, theirs) = (row.edits[0].base, row.edits[0].theirs);
    Edit { path: at, from: None, base, ours, theirs, result, how: How::Rule(sorted_lines()) }
}

/// Two changes that add lines to one index; the second was tested before the first landed.
fn operations(isolation: Isolation, paths: &str) -> (World, Result<yard_common::ObjectId, Refusal>) {
    let policy = Policy {
        command: "test".into(),
        isolation,
        commutative: vec![Commutative { paths: paths.into(), rule: sorted_lines() }],
        ..Policy::default()
    };
    let mut world = World::with_policy(&start(), policy);
    world.judged = false;
    let a = world.submitted("f1", "a", &[("INDEX", Some("a\nm\n"))]);
    let z = world.submitted("f2", "z", &[("INDEX", Some("m\nz\n"))]);
    let tested = world.train(&[&z]);
    world.landed(&[&a]);
    let edit = ruled(&mut world, &z, "a\nm\nz\n");
    let tree = world.tree_after(world.store.links(world.main()).0, std::slice::from_ref(&edit)).unwrap();
    let mut request = world.request(&lane("main"), world.main(), vec![(z, Version(1), vec![edit], tree)]);
    request.tested_head = tested.head;
    request.runs = tested.runs;
    let answer = world.land(&request);
    (world, answer)
}

stories! {
    fn a_red_run_lands_nothing() {
        let mut world = World::new(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let mut request = world.train(&[&a]);
        let tree = request.runs[0].tree;
        world.model.green.clear();
        request.runs = vec![world.run(tree, false)];
        unproven(&mut world, &request);
    }

    fn a_run_beside_a_red_one_lands_nothing() {
        let mut world = World::new(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let mut request = world.train(&[&a]);
        let tree = request.runs[0].tree;
        request.runs.push(world.run(tree, false));
        unproven(&mut world, &request);
    }

    // A5: no test executed, or cancelled.
    fn a_run_without_a_test_or_without_an_end_lands_nothing() {
        let mut world = World::new(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let request = world.train(&[&a]);
        world.model.green.clear();
        for n in [1, 2] {
            let mut lie = request.clone();
            let run = &mut lie.runs[0];
            if n == 1 { run.result.ran = 0 } else { run.result.complete = false }
            run.mac = sign::sign(TOKEN, run);
            lie.key.attempt = AttemptNo(n);
            unproven(&mut world, &lie);
        }
    }

    fn no_run_lands_nothing() {
        let mut world = World::new(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let mut request = world.train(&[&a]);
        request.runs.clear();
        world.model.green.clear();
        unproven(&mut world, &request);
    }

    // A4: a green run from another purpose.
    fn a_green_run_of_another_tree_lands_nothing() {
        let mut world = World::new(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let mut request = world.train(&[&a]);
        let tree = world.store.links(world.main()).0;
        world.model.green.clear();
        request.runs = vec![world.run(tree, true)];
        unproven(&mut world, &request);
    }

    fn a_run_of_yesterdays_command_or_configuration_lands_nothing() {
        let mut world = World::new(&with(&start(), &[(".switchyard.toml", Some("test"))]));
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let mut request = world.train(&[&a]);
        let (tree, config) = (request.runs[0].tree, request.runs[0].config);
        world.model.green.clear();
        request.runs = vec![world.run_under(tree, true, "true", config)];
        unproven(&mut world, &request);
        request.key.attempt = AttemptNo(2);
        let other = world.store.blob_id("other");
        request.runs = vec![world.run_under(tree, true, "test", Some(other))];
        unproven(&mut world, &request);
    }

    fn a_run_that_no_runner_signed_lands_nothing() {
        let mut world = World::new(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let mut request = world.train(&[&a]);
        world.model.green.clear();
        let tree = request.runs[0].tree;
        let mut run = world.run(tree, false);
        run.result.green = true;
        run.result.failed.clear();
        let forged = run.clone();
        run.token = TokenClaims::new("sy1.other").unwrap();
        run.mac = sign::sign("sy1.other.secret", &run);
        for (n, run) in [forged, run].into_iter().enumerate() {
            request.runs = vec![run];
            request.key.attempt = AttemptNo(n as u64);
            unproven(&mut world, &request);
        }
    }

    fn a_mac_covers_every_field_of_a_run() {
        let mut world = World::new(&start());
        let run = world.run(yard_common::ObjectId::EMPTY_TREE, true);
        assert!(sign::is_signed(TOKEN, &run));
        assert!(!sign::is_signed("sy1.runner.other", &run));
        let change = |edit: &dyn Fn(&mut yard_common::landing::SignedRun)| {
            let mut other = run.clone();
            edit(&mut other);
            assert!(!sign::is_signed(TOKEN, &other), "{other:?}");
        };
        change(&|run| run.tree = yard_common::ObjectId::ZERO);
        change(&|run| run.command = "true".into());
        change(&|run| run.config = Some(yard_common::ObjectId::ZERO));
        change(&|run| run.result.ran += 1);
        change(&|run| run.result.green = false);
        change(&|run| run.result.complete = false);
        change(&|run| run.result.failed.push("t".into()));
        change(&|run| run.lease = run.lease.next());
        change(&|run| run.run = yard_common::RunId::new("x").unwrap());
        change(&|run| run.mac.clear());
        change(&|run| run.mac.push_str("00"));
    }

    fn a_configuration_lands_tested_under_old_and_new_and_approved() {
        let mut world = World::new(&with(&start(), &[(".switchyard.toml", Some("test"))]));
        let a = world.submitted("f1", "a", &[(".switchyard.toml", Some("test --all"))]);
        let mut request = world.train(&[&a]);
        let tree = request.runs[0].tree;
        assert!(matches!(world.land(&request), Err(Refusal::Protected { .. })));
        world.check();
        world.approve(&a, Version(1)).unwrap();
        request.key.attempt = AttemptNo(2);
        let old = request.runs.clone();
        unproven(&mut world, &request);
        let config = Some(world.store.blob_id("test --all"));
        let new = world.run_under(tree, true, "test --all", config);
        request.key.attempt = AttemptNo(3);
        request.runs = vec![new.clone()];
        world.model.green.clear();
        unproven(&mut world, &request);
        request.key.attempt = AttemptNo(4);
        request.runs = vec![old[0].clone(), new];
        world.model.green.insert((tree, "test".into(), old[0].config));
        world.model.green.insert((tree, "test --all".into(), config));
        assert!(world.land(&request).is_ok());
        assert_eq!(world.ledger.policy().command, "test --all");
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        world.landed(&[&b]);
        world.check();
    }

    fn an_approval_is_of_one_version() {
        let mut world = World::new(&with(&start(), &[(".switchyard.toml", Some("test"))]));
        let a = world.submitted("f1", "a", &[(".switchyard.toml", Some("test --all"))]);
        world.approve(&a, Version(1)).unwrap();
        world.submitted("f1", "a", &[(".switchyard.toml", Some("true"))]);
        for (version, told) in [(1, "is not the newest: 2 is"), (3, "has no version 3: its newest is 2")] {
            let refused = world.approve(&a, Version(version));
            assert!(matches!(&refused, Err(Refusal::Invalid { why }) if why.contains(told)), "{refused:?}");
        }
        let request = world.train(&[&a]);
        assert!(matches!(world.land(&request), Err(Refusal::Protected { .. })));
        world.check();
    }

    fn disjoint_paths_land_under_paths_isolation_with_the_run_of_before() {
        let mut world = World::paths(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        let request = rebased(&mut world, &a, &b);
        assert!(world.land(&request).is_ok());
        assert_eq!(untested(&world), Some(Untested::Paths));
        world.check();
    }

    fn under_strict_the_run_of_before_lands_nothing() {
        let mut world = World::new(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        let request = rebased(&mut world, &a, &b);
        unproven(&mut world, &request);
    }

    fn paths_that_both_touch_are_tested_together() {
        let text = |top: &str, bottom: &str| format!("{top}\n.\n.\n.\n{bottom}\n");
        let (old, mine, other) = (text("1", "1"), text("2", "1"), text("1", "2"));
        let mut world = World::paths(&with(&start(), &[("a", Some(&old))]));
        let a = world.submitted("f1", "a", &[("a", Some(&mine))]);
        let b = world.submitted("f2", "b", &[("a", Some(&other))]);
        let request = rebased(&mut world, &a, &b);
        unproven(&mut world, &request);
    }

    fn the_tested_tree_is_the_train_and_nothing_else() {
        let mut world = World::paths(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        let mut request = rebased(&mut world, &a, &b);
        // Green, but with something else at the path that has moved meanwhile.
        let tree = world.store.tree(&with(&start(), &[("a", Some("2")), ("b", Some("what makes it green"))]));
        request.runs = vec![world.run(tree, true)];
        unproven(&mut world, &request);
    }

    fn an_addition_needs_its_directory_as_it_was() {
        let mut world = World::paths(&start());
        let a = world.submitted("f1", "a", &[("d/n", Some("new"))]);
        let b = world.submitted("f2", "b", &[("d/x", Some("2"))]);
        let request = rebased(&mut world, &a, &b);
        unproven(&mut world, &request);
        let mut world = World::paths(&start());
        let a = world.submitted("f1", "a", &[("d/n", Some("new"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        let request = rebased(&mut world, &a, &b);
        assert!(world.land(&request).is_ok());
        world.check();
    }

    fn a_direct_push_in_between_is_tested() {
        let mut world = World::paths(&start());
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let tested = world.train(&[&a]);
        let main = world.main();
        let next = world.make(&[main], &with(&start(), &[("b", Some("admin"))]));
        world.push(next, "").unwrap();
        let mut request = world.assemble(&lane("main"), &[(a, Version(1))]).unwrap();
        request.tested_head = tested.head;
        request.runs = tested.runs;
        unproven(&mut world, &request);
    }

    fn operations_of_a_commutative_rule_are_applied_anew() {
        let (world, answer) = operations(Isolation::Paths, "INDEX");
        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(untested(&world), Some(Untested::Operations));
        assert_eq!(world.main_files()[&path("INDEX")].1, "a\nm\nz\n");
    }

    fn operations_are_never_applied_anew_under_strict() {
        let (_, answer) = operations(Isolation::Strict, "INDEX");
        assert!(matches!(answer, Err(Refusal::Unproven { .. })), "{answer:?}");
    }

    fn a_rule_commutes_only_where_the_configuration_says_so() {
        let (_, answer) = operations(Isolation::Paths, "OTHER");
        assert!(matches!(answer, Err(Refusal::Unproven { .. })), "{answer:?}");
    }
}
