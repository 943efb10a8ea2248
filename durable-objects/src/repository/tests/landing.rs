use yard_common::bytes::Base64;
use yard_common::landing::LandRequest;
use yard_common::submission::Via;
use yard_common::{Fact, Refusal};
use yard_wire::board::Events;
use yard_wire::repository as wire;
use yard_wire::token;

use super::world::{World, fork, key, name, path};
use crate::call::Calls as _;
use crate::native::{Fails, block_on};
use crate::sql::Sql as _;

fn three() -> World {
    let (mut world, _) = World::with(&[("a", "1"), ("d/b", "1"), ("d/c", "1")]);
    world.submit("change-one", &[("a", Some("2"))]);
    world.submit("change-two", &[("d/b", Some("2"))]);
    world.submit("change-three", &[("d/c", None), ("e", Some("new"))]);
    world
}

const ALL: [&str; 3] = ["change-one", "change-two", "change-three"];

#[test]
fn a_train_lands_by_one_call_and_everything_moves_together() {
    let mut world = three();
    let (stage, land) = world.candidate(1, &ALL);
    world.call(&stage).unwrap();
    let hidden = name("refs/candidates/main/1/1");
    assert_eq!(world.call(&wire::Resolve { names: vec![hidden] }).unwrap(), [Some(stage.tip)]);
    let of_attempt = wire::Catalogue { since: 4, generation: 0, attempt: Some(stage.attempt.clone()) };
    assert_eq!(world.call(&of_attempt).unwrap().packs.len(), 1, "the candidate is served");
    world.restart();
    let landed = world.call(&land).unwrap().unwrap();
    assert_eq!((landed.head, world.main()), (stage.tip, Some(stage.tip)));
    let view = world.pull().view;
    assert_eq!((view.notes_head, view.tip_tested), (Some(land.request.notes_tip), true));
    let views = world.call(&wire::Changes { ids: vec![], before: None, limit: 10 }).unwrap();
    assert!(views.iter().all(|view| view.landed.is_some()), "{views:?}");
    let packs = world.call(&wire::Catalogue { since: 4, generation: 0, attempt: None }).unwrap();
    assert_eq!(packs.packs.len(), 2, "candidate and notes are in the catalogue");
    let graph = world.call(&wire::Graph { since: 0 }).unwrap().commits;
    let tip = graph.iter().find(|commit| commit.id == stage.tip).unwrap();
    assert!(tip.seconds > 0 && graph.iter().any(|commit| commit.id == land.request.notes_tip));
    let tables = world.tables();
    world.restart();
    assert_eq!(world.call(&land).unwrap().unwrap(), landed, "a repeat gets the same answer");
    assert_eq!(world.tables(), tables);
}

#[test]
fn a_candidate_that_lacks_a_blob_never_lands() {
    let (mut world, _) = World::with(&[("a", "1")]);
    let main = world.main().unwrap();
    let head = world.commit(&[main], &[("a", Some("2"))], "change-one");
    let blob = world.blob("2");
    let mut proposal = world.proposal("change-one", "agent", head);
    (proposal.via, proposal.packs) = (Via::Api, Vec::new());
    proposal.contents = vec![(blob, Base64(b"2".to_vec()))];
    world.call(&wire::Submit { items: vec![proposal], token: None }).unwrap().results.remove(0).unwrap();
    world.without = Some(blob);
    let (stage, land) = world.candidate(1, &["change-one"]);
    world.call(&stage).unwrap();
    let refused = world.call(&land).unwrap();
    assert!(matches!(refused, Err(Refusal::Malformed { .. })), "{refused:?}");
    assert_eq!(world.main(), Some(main));
    world.without = None;
    let (stage, land) = world.candidate(2, &["change-one"]);
    world.call(&stage).unwrap();
    assert_eq!(world.call(&land).unwrap().unwrap().head, stage.tip);
}

#[test]
fn records_and_events_arrive_once_whatever_fails() {
    let mut world = three();
    let (stage, land) = world.candidate(1, &ALL);
    world.call(&stage).unwrap();
    world.call(&land).unwrap().unwrap();
    assert_eq!(world.host.due().unwrap(), Some(250));
    assert!(world.call(&wire::Sweep {}).unwrap().outbox > 0);
    for how in [Fails::Before, Fails::After] {
        world.index.faults.fail_next(how);
        world.wired.faults.fail_next(how);
        assert!(world.alarm().is_some(), "it comes again");
        world.restart();
    }
    world.alarm();
    assert_eq!(world.call(&wire::Sweep {}).unwrap().outbox, 0);
    let rows =
        world.index.sql.run("SELECT change, commit_id, seq, title FROM landed ORDER BY place", &[]).unwrap();
    let changes: Vec<_> = rows.iter().map(|row| row.text(0).unwrap()).collect();
    assert_eq!(changes, ALL);
    assert_eq!(rows[2].text(1).unwrap(), stage.tip.to_string());
    let events = block_on(world.wired.call("board:click", &Events { after: 0, last: None })).unwrap().events;
    let kinds: Vec<_> = events.iter().map(|(_, event)| event.kind.as_str()).collect();
    assert_eq!(kinds, ["main", "submitted", "submitted", "submitted", "landed", "landed", "landed"]);
    let calls = world.index.faults.calls();
    let main = world.main().unwrap();
    let next = world.commit(&[main], &[("z", Some("1"))], "next");
    world.push("refs/heads/main", Some(main), Some(next), &[next]).unwrap();
    world.alarm();
    assert_eq!(world.index.faults.calls(), calls + 1, "the timeline alone tells of a push");
}

#[test]
fn a_landing_cut_off_at_any_statement_lands_wholly_or_not_at_all() {
    let mut whole = three();
    let (stage, land) = whole.candidate(1, &ALL);
    whole.call(&stage).unwrap();
    whole.restart();
    let before = whole.sql.statements();
    whole.call(&land).unwrap().unwrap();
    let statements = whole.sql.statements() - before;
    let wanted = whole.tables();
    let mut cut_after_fact = 0;
    for nth in 1..=statements {
        let mut world = three();
        world.candidate(1, &ALL);
        world.call(&stage).unwrap();
        world.restart();
        world.sql.fail_after(nth);
        let first = world.call(&land);
        world.restart();
        let landed = world.facts().iter().filter(|fact| matches!(fact, Fact::Landed { .. })).count();
        cut_after_fact += u32::from(landed == 1);
        assert!(landed == 1 || first.is_err(), "statement {nth}: said landed, but nothing is stored");
        assert_eq!(world.call(&land).unwrap().unwrap().head, stage.tip, "statement {nth}");
        assert_eq!(world.tables(), wanted, "statement {nth}");
    }
    assert!(cut_after_fact > 5, "folds were cut off {cut_after_fact} times");
}

fn refused(change: impl FnOnce(&mut World, &mut wire::Land)) -> Refusal {
    let mut world = three();
    let (stage, mut land) = world.candidate(1, &ALL);
    world.call(&stage).unwrap();
    let main = world.main();
    change(&mut world, &mut land);
    let refusal = match world.call(&land) {
        Ok(answer) => answer.unwrap_err(),
        Err(refusal) => refusal,
    };
    assert_eq!(world.main(), main);
    refusal
}

fn resign(world: &World, request: &mut LandRequest, secret: &str) {
    let token = world.runner(secret);
    for run in &mut request.runs {
        run.token = token::public_part(&token).unwrap();
        run.mac = token::sign_with(&token, &run.signed_text());
    }
}

#[test]
fn runs_count_only_when_a_runner_of_this_platform_signed_them() {
    let forged = refused(|world, land| resign(world, &mut land.request, "another secret"));
    assert!(matches!(forged, Refusal::Unproven { .. }), "{forged}");
    let changed = refused(|_, land| land.request.runs[0].result.ran = 4);
    assert!(matches!(changed, Refusal::Unproven { .. }), "{changed}");
    let revoked = refused(|world, _| {
        let token = yard_common::TokenId::new("runner-1").unwrap();
        world.call(&wire::Revoke { token }).unwrap();
    });
    assert!(matches!(revoked, Refusal::Unproven { .. }), "{revoked}");
}

#[test]
fn a_candidate_without_its_objects_is_refused_under_its_key() {
    let mut world = three();
    let (stage, land) = world.candidate(1, &ALL);
    // Never staged: its commits are in no pack that the Repository knows.
    let first = world.call(&land).unwrap().unwrap_err();
    assert!(matches!(first, Refusal::Malformed { .. }), "{first}");
    world.call(&stage).unwrap();
    assert_eq!(world.call(&land).unwrap().unwrap_err(), first, "the attempt keeps its answer");
}

#[test]
fn a_candidate_that_did_not_land_is_deleted_and_its_key_is_refused() {
    let mut world = three();
    let (stage, land) = world.candidate(1, &ALL);
    world.call(&stage).unwrap();
    let (later, land_later) = world.candidate(2, &ALL[..1]);
    world.call(&later).unwrap();
    world.call(&land_later).unwrap().unwrap();
    world.blobs.faults.fail_next(Fails::Before);
    world.alarm();
    assert!(world.blobs.keys().contains(&stage.pack.pack.key.to_string()));
    assert!(matches!(world.call(&stage), Err(Refusal::Stale { .. })), "tombstoned before it is deleted");
    world.alarm();
    assert!(!world.blobs.keys().contains(&stage.pack.pack.key.to_string()));
    assert!(world.blobs.keys().contains(&later.pack.pack.key.to_string()), "what landed stays");
    assert!(matches!(world.call(&land), Err(Refusal::Stale { .. })));
}

#[test]
fn five_hundred_changes_land_by_a_bounded_number_of_statements_and_reads() {
    let (mut world, first) = World::with(&[("a", "1")]);
    let names: Vec<String> = (0..500).map(|n| format!("change-{n:04}")).collect();
    let mut items = Vec::new();
    for name in &names {
        let file = format!("dir/{name}");
        let head = world.commit(&[first], &[(&file, Some(name))], name);
        let mut proposal = world.proposal(name, &format!("agent-{name}"), head);
        proposal.packs.clear();
        items.push(proposal);
    }
    let before = world.sql.statements();
    let reply = world.call(&wire::Submit { items, token: None }).unwrap();
    assert!(reply.results.iter().all(Result::is_ok));
    let submitting = world.sql.statements() - before;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (stage, land) = world.candidate(1, &names);
    world.call(&stage).unwrap();
    world.restart();
    let (before, reads) = (world.sql.statements(), world.blobs.faults.calls());
    world.call(&land).unwrap().unwrap();
    let landing = world.sql.statements() - before;
    let reads = world.blobs.faults.calls() - reads;
    let calls = world.index.faults.calls();
    world.alarm();
    assert!(world.index.faults.calls() - calls < 30, "the tables are made");
    world.call(&wire::Reindex { restart: true }).unwrap();
    let calls = world.index.faults.calls();
    world.alarm();
    println!("statements: submit {submitting}, land {landing}; reads {reads}");
    assert!(landing < 100 && submitting < 100, "land {landing}, submit {submitting}");
    assert!(reads <= 10, "{reads} reads of the bucket");
    assert!(
        world.index.faults.calls() - calls <= 6,
        "{} statements for 500 versions, records and 1,000 events",
        world.index.faults.calls() - calls
    );
    let rows = world.index.sql.run("SELECT count(*) FROM landed", &[]).unwrap();
    assert_eq!(rows[0].number(0).unwrap(), 500);
}

#[test]
fn a_rewritten_main_takes_landings_back_and_brings_them_again() {
    let mut world = three();
    let first = world.main().unwrap();
    let (stage, land) = world.candidate(1, &ALL[..1]);
    world.call(&stage).unwrap();
    world.call(&land).unwrap().unwrap();
    let mut push = world.push_request("refs/heads/main", Some(stage.tip), Some(first), &[]);
    push.reason = Some("bad".into());
    assert_eq!(world.call(&push).unwrap().results, [None]);
    let view = |world: &World| {
        let views = world.call(&wire::Changes { ids: vec![], before: None, limit: 10 }).unwrap();
        let one = views.into_iter().find(|view| view.row.change.as_str() == "change-one").unwrap();
        (one.landed.is_some(), one.rewritten)
    };
    assert_eq!(view(&world), (false, true));
    world.restart();
    world.push("refs/heads/main", Some(first), Some(stage.tip), &[]).unwrap();
    assert_eq!(view(&world), (true, false));
}

#[test]
fn the_tables_are_the_fold_of_the_facts() {
    let mut world = three();
    let (stage, land) = world.candidate(1, &ALL[..2]);
    world.call(&stage).unwrap();
    world.call(&land).unwrap().unwrap();
    let main = world.main().unwrap();
    let claim = wire::Act::Claim { paths: vec![path("a")], for_ms: 1000 };
    world.call(&wire::Do { key: key("k"), act: claim, fork: None, admin: true, by: "t".into() }).unwrap();
    world.push("refs/heads/side", None, Some(main), &[]).unwrap();
    let next = world.commit(&[main], &[("z", Some("1"))], "next");
    world.push("refs/heads/main", Some(main), Some(next), &[next]).unwrap();
    let wanted = world.tables();
    for table in
        ["refs", "submissions", "version_commits", "paths", "changes", "landings", "steps", "claims", "lanes"]
    {
        world.sql.run(&format!("DELETE FROM {table}"), &[]).unwrap();
    }
    world.sql.run("DELETE FROM answers WHERE kind IN ('submission', 'landing')", &[]).unwrap();
    let kept = "SELECT json_object('repo', value ->> 'repo', 'default_branch', value ->> 'default_branch',
        'generation', value ->> 'generation', 'place', value ->> 'place') FROM meta WHERE key = 'scalars'";
    let kept = world.sql.run(kept, &[]).unwrap()[0].text(0).unwrap().to_owned();
    world.sql.run("UPDATE meta SET value = ?1 WHERE key = 'scalars'", &[kept.into()]).unwrap();
    world.restart();
    assert_eq!(world.main(), Some(next));
    for (found, wanted) in world.tables().iter().zip(&wanted) {
        // Places of packs are given anew, in the same order.
        if !wanted.contains("live") && !wanted.contains("\\\"place\\\"") {
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn every_point_that_is_passed_is_named() {
    crate::points::select(Some("list"));
    let mut world = three();
    world.call(&wire::Stage { key: yard_common::PackKey::new("click/packs/x.pack").unwrap() }).unwrap();
    world.call(&wire::Revoke { token: yard_common::TokenId::new("t").unwrap() }).unwrap();
    let (stage, land) = world.candidate(1, &ALL);
    let (other, _) = world.candidate(2, &ALL);
    world.call(&stage).unwrap();
    world.call(&other).unwrap();
    world.call(&land).unwrap().unwrap();
    world.now = world.now.plus(24 * 3_600_000);
    world.alarm();
    let hits = crate::points::take_hits();
    crate::points::select(None);
    let mine = crate::points::NAMES.iter().filter(|name| name.starts_with("repository."));
    for name in mine.filter(|name| **name != "repository.durable") {
        assert!(hits.iter().any(|hit| hit == name), "{name} is never passed");
    }
    assert!(hits.iter().all(|hit| crate::points::NAMES.contains(&hit.as_str())), "{hits:?}");
}

#[test]
fn a_changed_configuration_lands_only_when_an_admin_allowed_it_and_is_in_force_then() {
    let (mut world, _) = World::with(&[("a", "1")]);
    let config = "[checks]\ncommand = \"make test\"\njunit = \"other.xml\"\n";
    world.submit("change-config", &[(".switchyard.toml", Some(config))]);
    let (stage, mut land) = world.candidate(1, &["change-config"]);
    // Under the old configuration and the new one, by the same command.
    let mut old = land.request.runs[0].clone();
    old.config = Some(yard_git::hash(yard_git::Kind::Blob, super::world::CONFIG.as_bytes()));
    land.request.runs.push(old);
    resign(&world, &mut land.request, super::world::SECRET);
    world.call(&stage).unwrap();
    let refusal = world.call(&land).unwrap().unwrap_err();
    assert!(matches!(refusal, Refusal::Protected { .. }), "{refusal}");
    let change = yard_common::ChangeId::new("change-config").unwrap();
    let approve = wire::Act::Approve { change, version: yard_common::Version(1) };
    world.call(&wire::Do { key: key("k"), act: approve, fork: None, admin: true, by: "t".into() }).unwrap();
    land.request.key.attempt = yard_common::AttemptNo(2);
    world.call(&land).unwrap().unwrap();
    let Some(Fact::Landed { policy: Some(policy), .. }) = world.facts().pop() else { panic!() };
    assert_eq!(policy.config, Some(yard_git::hash(yard_git::Kind::Blob, config.as_bytes())));
}

#[test]
fn a_claim_that_would_end_in_the_middle_of_a_test_lets_no_other_fork_in() {
    let claim = |n: &str, who: &str| wire::Do {
        key: key(n),
        act: wire::Act::Claim { paths: vec![path("a")], for_ms: 10_000 },
        fork: fork(who),
        admin: false,
        by: "t".into(),
    };
    for named in [true, false] {
        let (mut world, _) = World::with(&[("a", "1")]);
        world.call(&claim("k1", "agent-change-one")).unwrap();
        world.submit("change-one", &[("a", Some("2"))]);
        let (mut stage, land) = world.candidate(1, &["change-one"]);
        if !named {
            stage.changes.clear();
        }
        world.call(&stage).unwrap();
        world.now = world.now.plus(300_000);
        let other = world.call(&claim("k2", "agent-other"));
        let landed = world.call(&land).unwrap();
        if named {
            assert!(matches!(other, Err(Refusal::Claimed { .. })), "{other:?}");
            landed.unwrap();
            world.now = world.now.plus(300_001);
            world.call(&claim("k3", "agent-other")).unwrap();
        } else {
            other.unwrap();
            assert!(matches!(landed, Err(Refusal::Fence { .. })), "{landed:?}");
        }
    }
}
