use yard_common::{Epoch, Fact, Refusal, TokenId};
use yard_wire::repository as wire;

use super::world::{World, fork, name};

fn why(refusal: &Refusal) -> String {
    refusal.to_string()
}

#[test]
fn the_first_push_makes_main_its_pack_and_its_graph() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let second = world.commit(&[first], &[("a", Some("2"))], "second");
    let third = world.commit(&[second], &[("a", Some("3"))], "third");
    // Newest first, as packs have them.
    world.push("refs/heads/main", Some(first), Some(third), &[third, second]).unwrap();
    assert_eq!(world.main(), Some(third));
    let graph = world.call(&wire::Graph { since: 0 }).unwrap();
    assert_eq!(graph.commits.iter().map(|commit| commit.id).collect::<Vec<_>>(), [first, second, third]);
    assert_eq!(world.call(&wire::Graph { since: graph.next }).unwrap().commits.len(), 0);
    let all = world.call(&wire::Catalogue { since: 0, generation: 0, attempt: None }).unwrap();
    assert_eq!((all.packs.len(), all.next), (2, 2));
    let since = wire::Catalogue { since: 1, generation: all.generation, attempt: None };
    assert_eq!(world.call(&since).unwrap().packs, all.packs[1..]);
    let other = wire::Catalogue { since: 1, generation: 99, attempt: None };
    assert_eq!(world.call(&other).unwrap().packs.len(), 2, "another generation gets the whole list");
}

#[test]
fn a_repeated_push_gets_the_same_answer_and_changes_nothing() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let second = world.commit(&[first], &[("a", Some("2"))], "second");
    let push = world.push_request("refs/heads/main", Some(first), Some(second), &[second]);
    let answer = world.call(&push).unwrap();
    let tables = world.tables();
    world.restart();
    assert_eq!(world.call(&push).unwrap(), answer);
    assert_eq!(world.tables(), tables);
}

#[test]
fn a_commit_of_a_far_day_does_not_close_the_repository() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let far = world.commit(&[first], &[("a", Some("2"))], "far");
    let mut push = world.push_request("refs/heads/side", None, Some(far), &[far]);
    // The last day that git takes.
    push.commits[0].seconds = (1 << 63) - 1;
    assert_eq!(world.call(&push).unwrap().results, [None]);
    assert_eq!(world.call(&wire::Graph { since: 0 }).unwrap().commits.len(), 2);
    let next = world.commit(&[first], &[("a", Some("3"))], "next");
    world.push("refs/heads/main", Some(first), Some(next), &[next]).unwrap();
}

#[test]
fn main_moves_only_forward_but_for_an_admin_with_a_reason() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let second = world.commit(&[first], &[("a", Some("2"))], "second");
    let other = world.commit(&[first], &[("a", Some("3"))], "other");
    world.push("refs/heads/main", Some(first), Some(second), &[second]).unwrap();
    let stale = world.push("refs/heads/main", Some(first), Some(other), &[other]).unwrap_err();
    assert!(why(&stale).contains("fetch first"), "{stale}");
    let forced = world.push("refs/heads/main", Some(second), Some(other), &[other]).unwrap_err();
    assert!(why(&forced).contains("reason="), "{forced}");
    let mut push = world.push_request("refs/heads/main", Some(second), Some(other), &[other]);
    push.reason = Some("second was wrong".into());
    assert_eq!(world.call(&push).unwrap().results, [None]);
    assert_eq!((world.main(), world.pull().view.epoch), (Some(other), Epoch(1)));
    assert!(!world.pull().view.tip_tested);
    world.admin = false;
    let back = world.push("refs/heads/main", Some(other), Some(second), &[]).unwrap_err();
    assert!(matches!(back, Refusal::Forbidden { .. }), "{back}");
}

#[test]
fn refs_that_exclude_each_other_or_belong_to_the_platform_are_refused() {
    let (mut world, first) = World::with(&[("a", "1")]);
    world.push("refs/heads/a/b", None, Some(first), &[]).unwrap();
    for bad in ["refs/heads/a", "refs/heads/a/b/c", "refs/heads/main/x"] {
        let refusal = world.push(bad, None, Some(first), &[]).unwrap_err();
        assert!(why(&refusal).contains("cannot create"), "{bad}: {refusal}");
    }
    for bad in ["refs/notes/intent", "refs/changes/x/1", "refs/candidates/main/1/1", "refs/for/main"] {
        let refusal = world.push(bad, None, Some(first), &[]).unwrap_err();
        assert!(matches!(refusal, Refusal::RefRejected { .. }), "{bad}");
    }
    let deleted = world.push("refs/heads/main", Some(first), None, &[]).unwrap_err();
    assert!(why(&deleted).contains("deletion"), "{deleted}");
    world.push("refs/heads/a/b", Some(first), None, &[]).unwrap();
    world.push("refs/heads/a", None, Some(first), &[]).unwrap();
    let refs = world.call(&wire::Refs { without_changes: false, token: None }).unwrap();
    let names: Vec<_> = refs.refs.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["refs/heads/a", "refs/heads/main"]);
}

#[test]
fn an_atomic_push_is_all_or_nothing_and_others_stand_alone() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let command = |to: &str| wire::RefCommand {
        name: name(to),
        old: None,
        new: Some(first),
        peeled: None,
        is_commit: true,
    };
    let mut push = world.push_request("refs/heads/x", None, Some(first), &[]);
    push.commands.push(command("refs/changes/no/1"));
    push.atomic = true;
    let results = world.call(&push).unwrap().results;
    assert!(results.iter().all(Option::is_some), "{results:?}");
    assert_eq!(world.call(&wire::Resolve { names: vec![name("refs/heads/x")] }).unwrap(), [None]);
    push.atomic = false;
    let results = world.call(&push).unwrap().results;
    assert!(results[0].is_none() && results[1].is_some());
    assert_eq!(world.call(&wire::Resolve { names: vec![name("refs/heads/x")] }).unwrap(), [Some(first)]);
}

#[test]
fn a_bad_configuration_does_not_reach_main() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let bad = world.commit(&[first], &[(".switchyard.toml", Some("[checks]\ncommand = 7\n"))], "bad");
    let refusal = world.push("refs/heads/main", Some(first), Some(bad), &[bad]).unwrap_err();
    assert!(why(&refusal).contains(".switchyard.toml, line 2"), "{refusal}");
    assert_eq!(world.main(), Some(first));
    let good = world.commit(&[first], &[(".switchyard.toml", None)], "none");
    world.push("refs/heads/main", Some(first), Some(good), &[good]).unwrap();
    let Some(Fact::DirectPush { policy: Some(policy), .. }) = world.facts().pop() else { panic!() };
    assert_eq!((policy.config, policy.command.as_str()), (None, ""));
}

#[test]
fn a_fork_keeps_its_own_refs_and_names_its_parents_catalogue() {
    let (world, first) = World::with(&[("a", "1")]);
    let mut forked = World::empty();
    forked.sql = std::rc::Rc::new(crate::native::NativeSql::new().unwrap());
    forked.restart();
    let create = wire::Create {
        repo: yard_common::RepoName::new("click").unwrap(),
        fork: fork("a1"),
        default_branch: name("refs/heads/main"),
        refs: vec![(name("refs/heads/main"), first)],
        key: None,
    };
    forked.call(&create).unwrap();
    forked.store = world.store.clone();
    let mine = forked.commit(&[first], &[("a", Some("2"))], "mine");
    forked.admin = false;
    forked.push("refs/heads/main", Some(first), Some(mine), &[mine]).unwrap();
    forked.push("refs/notes/intent", None, Some(mine), &[]).unwrap();
    let all = forked.call(&wire::Catalogue { since: 0, generation: 0, attempt: None }).unwrap();
    assert_eq!((all.packs.len(), all.parent), (1, Some(create.repo)));
    let lane = yard_common::LaneName::new("main").unwrap();
    let pull = wire::Pull { lane, after: yard_common::FactNo(0), limit: 1 };
    assert!(matches!(forked.call(&pull), Err(Refusal::Invalid { .. })));
}

#[test]
fn a_revoked_token_and_a_tombstoned_pack_are_refused() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let token = TokenId::new("t1").unwrap();
    let refs = wire::Refs { without_changes: true, token: Some(token.clone()) };
    assert!(world.call(&refs).is_ok());
    world.call(&wire::Revoke { token }).unwrap();
    assert!(matches!(world.call(&refs), Err(Refusal::Unauthenticated { .. })));

    let second = world.commit(&[first], &[("a", Some("2"))], "second");
    let push = world.push_request("refs/heads/x", None, Some(second), &[second]);
    let staged = push.pack.clone().unwrap().pack.key;
    world.call(&wire::Stage { key: staged.clone() }).unwrap();
    assert_eq!(world.call(&wire::Sweep {}).unwrap().staged, 1);
    world.now = world.now.plus(2 * 3_600_000);
    world.alarm();
    assert!(
        !world.blobs.keys().contains(&staged.to_string()),
        "an announced pack that never came is deleted"
    );
    assert!(matches!(world.call(&push), Err(Refusal::Stale { .. })));
    assert!(matches!(world.call(&wire::Stage { key: staged }), Err(Refusal::Stale { .. })));
}

#[test]
fn a_long_history_is_one_push_of_a_bounded_number_of_statements() {
    let mut world = World::empty();
    let mut commits = Vec::new();
    for n in 0..3000 {
        let parents: Vec<_> = commits.last().copied().into_iter().collect();
        commits.push(world.commit(&parents, &[("a", Some(&n.to_string()))], &n.to_string()));
    }
    let tip = commits[2999];
    let mut push = world.push_request("refs/heads/main", None, Some(tip), &commits[2990..]);
    push.commits = commits.iter().rev().map(|commit| world.info(*commit)).collect();
    let before = world.sql.statements();
    assert_eq!(world.call(&push).unwrap().results, [None]);
    let statements = world.sql.statements() - before;
    assert!(statements < 60, "{statements}");
    let graph = world.call(&wire::Graph { since: 0 }).unwrap().commits;
    assert!(graph.iter().map(|commit| commit.id).eq(commits.iter().copied()), "parents come first");
    let prepare =
        |head| wire::Prepare { commits: vec![], head, is_base: true, change: None, fork: fork("a1") };
    assert_eq!(world.call(&prepare(commits[0])).unwrap().bases.len(), 1, "every ancestor was on main");
}
