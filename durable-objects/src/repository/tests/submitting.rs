use yard_common::bytes::Base64;
use yard_common::submission::Via;
use yard_common::{ChangeId, Fact, Fence, Refusal, Version};
use yard_git::Kind;
use yard_wire::repository as wire;

use super::world::{World, fork, key, name, path};

#[test]
fn a_submission_is_stored_once_with_its_packs_and_its_ref() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let head = world.commit(&[first], &[("a", Some("2"))], "work");
    let proposal = world.proposal("change-one", "a1", head);
    let submit = wire::Submit { items: vec![proposal], token: None };
    let answer = world.call(&submit).unwrap();
    let accepted = answer.results[0].clone().unwrap();
    assert_eq!((accepted.version, accepted.head), (Version(1), head));
    assert_eq!(answer.lanes.len(), 1);
    let tables = world.tables();
    world.restart();
    assert_eq!(world.call(&submit).unwrap().results, answer.results, "a repeat gets the same answer");
    assert_eq!(world.tables(), tables);
    let at = world.call(&wire::Resolve { names: vec![name("refs/changes/change-one/1")] }).unwrap();
    assert_eq!(at, [Some(head)]);
    let packs = world.call(&wire::Catalogue { since: 0, generation: 0, attempt: None }).unwrap().packs;
    assert_eq!(packs.len(), 2);
    let pulled = world.pull();
    assert_eq!(pulled.facts.len(), 2, "the first push and the submission");
    let Fact::Submitted { row, nodes } = &pulled.facts[1].1 else { panic!("{:?}", pulled.facts) };
    assert_eq!((row.edits.len(), nodes.len(), row.base.commits[0]), (1, 1, first));
}

#[test]
fn refusals_are_kept_under_their_key_and_do_not_touch_the_others() {
    let (mut world, first) = World::with(&[("a", "1"), ("b", "1")]);
    let one = world.commit(&[first], &[("a", Some("2"))], "one");
    let two = world.commit(&[first], &[("b", Some("2"))], "two");
    let good = world.proposal("change-one", "a1", one);
    let mut bad = world.proposal("change-two", "a2", two);
    bad.edits.clear();
    let mut raced = world.proposal("change-three", "a3", two);
    raced.base_commits.clear();
    let submit = wire::Submit { items: vec![bad.clone(), raced, good], token: None };
    let results = world.call(&submit).unwrap().results;
    assert_eq!(results[0], Err(Refusal::NoEdits));
    assert_eq!(results[1], Err(Refusal::Raced));
    assert!(results[2].is_ok());
    let mended = world.proposal("change-two", "a2", two);
    bad.edits = mended.edits;
    let again = world.call(&wire::Submit { items: vec![bad.clone()], token: None }).unwrap();
    assert_eq!(again.results, [Err(Refusal::NoEdits)], "the key keeps its answer");
    bad.head = one;
    let reused = world.call(&wire::Submit { items: vec![bad], token: None }).unwrap();
    assert!(matches!(reused.results[0], Err(Refusal::KeyReused { .. })));
}

#[test]
fn a_key_is_answered_by_its_request_before_anything_is_prepared() {
    let (mut world, first) = World::with(&[("a", "1"), ("b", "1")]);
    let head = world.commit(&[first], &[("a", Some("2"))], "work");
    let mut proposal = world.proposal("change-one", "a1", head);
    proposal.request = Some("digest-1".into());
    let mut empty = world.proposal("change-two", "a1", head);
    empty.request = Some("digest-2".into());
    empty.edits.clear();
    let keys = [proposal.key.clone(), empty.key.clone(), key("new")];
    let items = vec![proposal.clone(), empty];
    let results = world.call(&wire::Submit { items, token: None }).unwrap().results;
    let ask = |contents: [&str; 3]| wire::Offered {
        keys: keys.iter().cloned().zip(contents.map(str::to_owned)).collect(),
        token: None,
    };
    let asked = world.call(&ask(["digest-1", "digest-2", "digest-3"])).unwrap();
    assert_eq!(asked.main, Some(first));
    assert_eq!(asked.answers, [Some(results[0].clone()), Some(Err(Refusal::NoEdits)), None]);
    let other = world.call(&ask(["digest-9", "digest-2", "digest-3"])).unwrap();
    assert!(matches!(other.answers[0], Some(Err(Refusal::KeyReused { .. }))));
    // The same request makes another head once main has moved: its key's answer is still the first.
    proposal.head = first;
    let again = world.call(&wire::Submit { items: vec![proposal], token: None }).unwrap().results;
    assert_eq!(again[0], results[0]);
}

#[test]
fn an_empty_repository_says_that_main_comes_first() {
    let world = World::empty();
    let head = yard_common::ObjectId([7; 20]);
    let prepare = wire::Prepare { commits: vec![], head, is_base: true, change: None, fork: fork("a1") };
    assert_eq!(world.call(&prepare), Err(Refusal::NoMain));
}

#[test]
fn contents_of_an_api_submission_wait_here_and_no_ref_names_its_head() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let head = world.commit(&[first], &[("a", Some("by api"))], "work");
    let mut proposal = world.proposal("change-api", "a1", head);
    proposal.via = Via::Api;
    proposal.packs.clear();
    let id = yard_git::hash(Kind::Blob, b"by api");
    proposal.contents = vec![(id, Base64(b"by api".to_vec()))];
    world.call(&wire::Submit { items: vec![proposal], token: None }).unwrap().results.remove(0).unwrap();
    let contents = world.call(&wire::Contents { ids: vec![id, first] }).unwrap();
    assert_eq!(contents, [(id, Base64(b"by api".to_vec()))]);
    let at = world.call(&wire::Resolve { names: vec![name("refs/changes/change-api/1")] }).unwrap();
    assert_eq!(at, [None]);
    let act = wire::Act::Cancel { change: ChangeId::new("change-api").unwrap(), reason: String::new() };
    world.call(&wire::Do { key: key("k"), act, fork: None, admin: true, by: "t".into() }).unwrap();
    assert!(world.call(&wire::Contents { ids: vec![id] }).unwrap().is_empty(), "what ended needs none");
}

#[test]
fn a_base_commit_must_be_known_and_a_stack_waits_for_its_parent() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let below = world.submit("change-below", &[("a", Some("2"))]).head;
    let above = world.commit(&[below], &[("a", Some("3"))], "above");
    let proposal = world.proposal("change-above", "a1", above);
    let accepted =
        world.call(&wire::Submit { items: vec![proposal], token: None }).unwrap().results.remove(0);
    assert_eq!(accepted.unwrap().waits_for, [ChangeId::new("change-below").unwrap()]);
    let prepare =
        |head| wire::Prepare { commits: vec![], head, is_base: true, change: None, fork: fork("a1") };
    assert_eq!(world.call(&prepare(first)).unwrap().bases[0].id, first);
    let strange = world.commit(&[first], &[("a", Some("9"))], "strange");
    assert!(world.call(&prepare(strange)).is_err());
}

#[test]
fn acts_are_done_once_under_their_key() {
    let (mut world, _) = World::with(&[("a", "1")]);
    world.submit("change-one", &[("a", Some("2"))]);
    let act = |n: &str, act: wire::Act| wire::Do {
        key: key(n),
        act,
        fork: fork("a1"),
        admin: true,
        by: "t".into(),
    };
    let claim = act("k1", wire::Act::Claim { paths: vec![path("a")], for_ms: 1000 });
    assert_eq!(world.call(&claim).unwrap(), Some(Fence(1)));
    assert_eq!(world.call(&claim).unwrap(), Some(Fence(1)), "the same lease");
    assert_eq!(world.pull().view.claims.len(), 1);
    let another = wire::Do { fork: fork("a2"), admin: false, ..claim.clone() };
    assert!(matches!(world.call(&another), Err(Refusal::KeyReused { .. })), "the lease of another fork");
    let reused = act("k1", wire::Act::Release { fence: Fence(1) });
    assert!(matches!(world.call(&reused), Err(Refusal::KeyReused { .. })));
    world.call(&act("k2", wire::Act::Release { fence: Fence(1) })).unwrap();
    assert!(world.pull().view.claims.is_empty());
    let change = ChangeId::new("change-one").unwrap();
    let hold = wire::Act::Hold { change: change.clone(), reason: Some("wait".into()) };
    world.call(&act("k3", hold)).unwrap();
    world.call(&act("k4", wire::Act::Cancel { change: change.clone(), reason: String::new() })).unwrap();
    world.call(&act("k5", wire::Act::Freeze { reason: Some("night".into()) })).unwrap();
    world.call(&act("k6", wire::Act::Protect { protected: true })).unwrap();
    let views = world.call(&wire::Changes { ids: vec![], before: None, limit: 10 }).unwrap();
    assert_eq!((views.len(), views[0].held.as_deref()), (1, Some("wait")));
    assert_eq!(views[0].closed, Some(yard_common::fact::Terminal::Withdrawn));
    assert_eq!(world.pull().view.frozen.as_deref(), Some("night"));
    let facts =
        world.call(&wire::Facts { after: yard_common::FactNo(0), limit: 10, change: Some(change) }).unwrap();
    assert_eq!(facts.len(), 3, "submitted, held, withdrawn");
    let main = world.main().unwrap();
    let next = world.commit(&[main], &[("a", Some("5"))], "next");
    assert!(world.push("refs/heads/main", Some(main), Some(next), &[next]).is_err(), "main is protected");
}

#[test]
fn the_head_of_an_api_submission_is_listed_built_and_kept_as_long_as_somebody_needs_it() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let head = world.commit(&[first], &[("a", Some("by api"))], "work");
    let mut proposal = world.proposal("change-api", "a1", head);
    proposal.via = Via::Api;
    proposal.packs.clear();
    let id = yard_git::hash(Kind::Blob, b"by api");
    proposal.contents = vec![(id, Base64(b"by api".to_vec()))];
    let encoded = yard_git::Objects::get(&world.store, &head).unwrap().data.clone();
    proposal.head_object = Some(Base64(encoded.clone()));
    world.call(&wire::Submit { items: vec![proposal], token: None }).unwrap().results.remove(0).unwrap();
    let named = name("refs/changes/change-api/1");
    let refs = |world: &World, without_changes| {
        let asked = wire::Refs { without_changes, token: None };
        world.call(&asked).unwrap().refs.into_iter().map(|entry| (entry.name, entry.id)).collect::<Vec<_>>()
    };
    assert!(refs(&world, false).contains(&(named.clone(), head)));
    assert!(!refs(&world, true).contains(&(named.clone(), head)));
    assert_eq!(world.call(&wire::Resolve { names: vec![named.clone()] }).unwrap(), [Some(head)]);
    let prepare = wire::Prepare { commits: vec![], head, is_base: true, change: None, fork: fork("a1") };
    assert_eq!(world.call(&prepare).unwrap().without_objects, [head]);
    let waiting = world.call(&wire::Heads { ids: vec![first, head] }).unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].id, &waiting[0].commit.0, waiting[0].contents.len()), (head, &encoded, 1));

    let pack = world.pack("click/packs/heads-1.pack", &[head]);
    world.call(&wire::CatalogueHeads { pack, heads: vec![head] }).unwrap();
    world.restart();
    assert!(world.call(&wire::Heads { ids: vec![head] }).unwrap().is_empty(), "it is built");
    assert_eq!(world.call(&wire::Resolve { names: vec![named.clone()] }).unwrap(), [Some(head)]);
    assert!(world.call(&prepare).unwrap().without_objects.is_empty());
    assert_eq!(world.call(&wire::Contents { ids: vec![id] }).unwrap().len(), 1, "the lane still reads them");
    let act = wire::Act::Cancel { change: ChangeId::new("change-api").unwrap(), reason: String::new() };
    world.call(&wire::Do { key: key("k"), act, fork: None, admin: true, by: "t".into() }).unwrap();
    assert!(world.call(&wire::Contents { ids: vec![id] }).unwrap().is_empty());
    assert!(refs(&world, false).contains(&(named, head)), "what was built stays");
}

#[test]
fn a_head_that_was_taken_back_before_anybody_looked_is_gone() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let head = world.commit(&[first], &[("a", Some("by api"))], "work");
    let mut proposal = world.proposal("change-api", "a1", head);
    proposal.via = Via::Api;
    proposal.packs.clear();
    proposal.head_object = Some(Base64(yard_git::Objects::get(&world.store, &head).unwrap().data.clone()));
    world.call(&wire::Submit { items: vec![proposal], token: None }).unwrap().results.remove(0).unwrap();
    let act = wire::Act::Cancel { change: ChangeId::new("change-api").unwrap(), reason: String::new() };
    world.call(&wire::Do { key: key("k"), act, fork: None, admin: true, by: "t".into() }).unwrap();
    assert!(world.call(&wire::Heads { ids: vec![head] }).unwrap().is_empty());
    let named = name("refs/changes/change-api/1");
    assert_eq!(world.call(&wire::Resolve { names: vec![named] }).unwrap(), [None]);
}
