//! Cancels, closings, direct pushes, claims; and the fold of it all.

use yard_common::fact::{Fact, Terminal};
use yard_common::{Epoch, Refusal, Version};
use yard_landing::{Ledger as _, MemoryLedger};

use crate::merge::Files;
use crate::stories;
use crate::world::{World, admin, agent, change, files, fork, path, with};

fn start() -> Files {
    files(&[("a", "1"), ("b", "1"), ("d/x", "1")])
}

fn world() -> World {
    World::new(&start())
}

stories! {
    fn a_cancel_after_the_landing_is_too_late() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        world.landed(&[&a]);
        assert_eq!(world.cancel(&a, &agent("f1")), Err(Refusal::TooLate { change: a }));
        world.check();
    }

    fn only_its_author_or_an_admin_takes_a_change_back() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        assert!(matches!(world.cancel(&a, &agent("f2")), Err(Refusal::Forbidden { .. })));
        world.cancel(&a, &admin()).unwrap();
        let facts = world.facts.len();
        world.cancel(&a, &agent("f1")).unwrap();
        assert_eq!(world.facts.len(), facts, "once is enough");
        assert!(matches!(world.cancel(&change("unknown"), &admin()), Err(Refusal::NotFound { .. })));
    }

    // A14: two changes with the same diff.
    fn a_change_is_closed_as_already_on_main_only_when_all_of_it_is() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2")), ("d/x", None)]);
        let b = world.submitted("f2", "b", &[("a", Some("2")), ("d/x", None)]);
        let c = world.submitted("f3", "c", &[("a", Some("2")), ("b", Some("2"))]);
        let request = world.train(&[&b]);
        world.landed(&[&a]);
        let closed = world.close(&c, Version(1), Terminal::AlreadyOnMain);
        assert_eq!(closed, Err(Refusal::GoesBack { change: c, path: path("b") }));
        world.close(&b, Version(1), Terminal::AlreadyOnMain).unwrap();
        assert!(world.land(&request).is_err());
        world.check();
        assert_eq!(world.model.landings.len(), 1);
    }

    fn a_lane_closes_what_it_has_seen_and_nothing_newer() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        world.submitted("f1", "a", &[("a", Some("3"))]);
        let closed = world.close(&a, Version(1), Terminal::Expired);
        assert_eq!(closed, Err(Refusal::Superseded { changes: vec![a.clone()] }));
        assert!(matches!(world.close(&a, Version(2), Terminal::Landed), Err(Refusal::Invalid { .. })));
        world.close(&a, Version(2), Terminal::Expired).unwrap();
        world.close(&a, Version(2), Terminal::Expired).unwrap();
        world.check();
    }

    fn a_child_of_a_change_that_is_already_on_main_may_land() {
        let mut world = world();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let b = world.submitted("f2", "b", &[("a", Some("2"))]);
        let head = world.ledger.newest(&b).unwrap().head;
        let files = with(&world.files_of(head), &[("b", Some("2"))]);
        let push = world.work(&fork("f2"), Some(&change("child")), head, &files);
        let (child, _) = world.submit(&push).unwrap();
        world.landed(&[&a]);
        world.close(&b, Version(1), Terminal::AlreadyOnMain).unwrap();
        world.landed(&[&child]);
        world.check();
    }

    fn a_rewrite_needs_a_reason_and_counts_the_epoch() {
        let mut world = world();
        let first = world.main();
        let next = world.make(&[first], &with(&start(), &[("a", Some("admin"))]));
        world.push(next, "").unwrap();
        assert_eq!(world.epoch(), Epoch(0));
        assert!(matches!(world.push(first, " "), Err(Refusal::RefRejected { .. })));
        world.push(first, "bad commit").unwrap();
        assert_eq!(world.epoch(), Epoch(1));
        world.check();
    }

    fn a_protected_main_takes_no_direct_push() {
        let mut world = world();
        world.protect(true).unwrap();
        let main = world.main();
        let next = world.make(&[main], &with(&start(), &[("a", Some("admin"))]));
        assert!(matches!(world.push(next, ""), Err(Refusal::RefRejected { .. })));
        world.protect(false).unwrap();
        world.push(next, "").unwrap();
        world.check();
    }

    // R11: an admin rewinds main and brings it back by a fast-forward.
    fn what_left_main_and_came_back_is_landed_again() {
        let mut world = world();
        let first = world.main();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        let tip = world.landed(&[&a, &b]);
        world.push(first, "rewind").unwrap();
        world.check();
        assert!(world.ledger.state(&a).rewritten.is_some());
        world.cancel(&a, &agent("f1")).unwrap();
        let main = world.main();
        let push = world.work(&fork("f2"), Some(&b), main, &with(&start(), &[("b", Some("3"))]));
        world.submit(&push).unwrap();
        let request = world.train(&[&b]);
        world.push(tip, "").unwrap();
        world.check();
        assert_eq!(world.epoch(), Epoch(1));
        assert!(world.ledger.state(&a).closed.is_none());
        assert!(world.land(&request).is_err());
        let push = world.work(&fork("f2"), Some(&b), tip, &with(&start(), &[("b", Some("4"))]));
        assert!(matches!(world.submit(&push), Err(Refusal::Landed { .. })));
        world.check();
    }

    fn of_two_landings_of_one_change_the_one_on_main_counts() {
        let mut world = world();
        let first = world.main();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let old = world.landed(&[&a]);
        world.push(first, "rewind").unwrap();
        world.requeue(&a).unwrap();
        world.now = world.now.plus(1);
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        world.landed(&[&b, &a]);
        world.check();
        world.push(old, "the first one after all").unwrap();
        world.check();
        assert_eq!(world.ledger.state(&a).landed.unwrap().commit, old);
        assert!(world.ledger.state(&b).rewritten.is_some());
    }

    fn a_push_that_lost_a_race_is_told_to_fetch() {
        let mut world = world();
        let first = world.main();
        let next = world.make(&[first], &with(&start(), &[("a", Some("admin"))]));
        let push = yard_landing::push::DirectPush {
            old: Some(next), new: next, commits: vec![world.store.node(next)], reason: String::new(),
            policy: None, name: "refs/heads/main".into(),
        };
        let decide = |actor| yard_landing::push::direct_push(&world.ledger, &push, &actor, world.now);
        let told = decide(admin());
        assert!(matches!(told, yard_landing::Decision::Refused(Refusal::RefRejected { .. })), "{told:?}");
        let told = decide(agent("f1"));
        assert!(matches!(told, yard_landing::Decision::Refused(Refusal::Forbidden { .. })), "{told:?}");
    }

    // E1: two claims of one thing in parallel.
    fn of_two_claims_one_wins_and_the_other_is_told_who() {
        let mut world = world();
        let fence = world.claim(&fork("f1"), &["a"], 50).unwrap();
        let until = world.now.plus(50);
        let told = world.claim(&fork("f2"), &["b", "a"], 50);
        assert_eq!(told, Err(Refusal::Claimed { what: "a".into(), holder: "f1".into(), until }));
        assert!(matches!(world.release(fence, &agent("f2")), Err(Refusal::Forbidden { .. })));
        world.release(fence, &agent("f1")).unwrap();
        let next = world.claim(&fork("f2"), &["b", "a"], 50).unwrap();
        assert!(next > fence);
        world.check();
    }

    fn of_two_claims_of_one_task_one_wins() {
        let world = world();
        let mut ledger = world.ledger.clone();
        let ask = |ledger: &MemoryLedger, who: &str| {
            yard_landing::claim::claim(ledger, fork(who).as_ref(), &[], Some("issue-7"), 50, world.now)
        };
        let won = ask(&ledger, "f1").unwrap();
        ledger.apply(&won);
        assert!(matches!(ask(&ledger, "f2"), Err(Refusal::Claimed { holder, .. }) if holder == "f1"));
        assert!(ask(&ledger, "f1").is_ok());
    }

    fn a_train_lengthens_the_claims_of_its_changes() {
        let mut world = world();
        let fence = world.claim(&fork("f1"), &["a"], 50).unwrap();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let train = [(a, Version(1))];
        assert_eq!(yard_landing::claim::of_train(&world.ledger, &train, world.now), vec![fence]);
        let until = world.now.plus(500);
        let renewed = yard_landing::claim::renew(&world.ledger, fence, until, world.now).unwrap();
        world.ledger.apply(&renewed);
        world.now = world.now.plus(100);
        assert!(matches!(world.claim(&fork("f2"), &["a"], 50), Err(Refusal::Claimed { .. })));
        world.now = world.now.plus(500);
        let late = yard_landing::claim::renew(&world.ledger, fence, world.now.plus(9), world.now);
        assert!(matches!(late, Err(Refusal::Stale { .. })));
    }

    // Law 4: tables are folds of facts, and facts survive being stored as JSON.
    fn the_tables_are_the_fold_of_the_stored_facts() {
        let mut world = world();
        let first = world.main();
        world.claim(&fork("f1"), &["a"], 50).unwrap();
        let a = world.submitted("f1", "a", &[("a", Some("2"))]);
        let b = world.submitted("f2", "b", &[("b", Some("2"))]);
        world.hold(&b, Some("review")).unwrap();
        let late = world.train(&[&b]);
        world.landed(&[&a]);
        world.land(&late).unwrap_err();
        world.push(first, "rewind").unwrap();
        world.requeue(&a).unwrap();
        world.freeze(Some("x")).unwrap();
        world.protect(true).unwrap();
        let policy = yard_common::policy::Policy { command: "test".into(), ..Default::default() };
        let mut again = MemoryLedger::new(policy);
        for fact in &world.facts {
            if let Fact::DirectPush { new, .. } = fact {
                yard_landing::LedgerMut::put_commit(&mut again, &world.store.node(*new));
            }
            let stored = serde_json::to_string(fact).unwrap();
            again.apply(&serde_json::from_str(&stored).unwrap());
        }
        assert_eq!(again, world.ledger);
    }
}
