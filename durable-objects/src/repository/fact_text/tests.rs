use std::collections::BTreeSet;

use yard_common::Fact;

use super::super::tests::world::World;
use super::*;
use crate::sql::Sql as _;

mod generated;

/// Holds each quick reading of a fact's text against serde's own.
fn same(kind: &str, json: &str) {
    let mut whole: Fact = serde_json::from_str(json).unwrap();
    assert_eq!(super::whole(json).unwrap(), whole);
    assert_eq!(submission(json).is_ok(), kind == "submitted");
    match (glance(json).unwrap(), &mut whole) {
        (Glance::Submitted(glanced), Fact::Submitted { row, .. }) => {
            assert_eq!(submission(json).unwrap(), **row);
            let RowGlance { change, lane, intent } = glanced.row;
            assert_eq!(change, row.change);
            assert_eq!((&lane, &intent), (&row.lane, &row.intent));
        }
        (Glance::Landed(glanced), Fact::Landed { request, .. }) => {
            assert_eq!(glanced.request.key, request.key);
            let glances = glanced.request.changes.iter();
            let glances: Vec<_> = glances.map(|one| (&one.change, one.commit)).collect();
            let listed = request.changes.iter();
            let listed: Vec<_> = listed.map(|one| (&one.change, one.commit)).collect();
            assert_eq!(glances, listed);
            request.changes.iter_mut().for_each(|listed| listed.edits.clear());
        }
        (Glance::Other(other), whole) => assert_eq!(*other, *whole),
        _ => panic!("{kind} was taken for something else"),
    }
    assert_eq!(without_edits(json).unwrap(), whole);
}

/// The text of a fact as a row kept it before these fields were there.
fn before(json: &str, fields: &[&str]) -> String {
    fn drop(value: &mut serde_json::Value, fields: &[&str]) {
        match value {
            serde_json::Value::Object(map) => {
                map.retain(|name, _| !fields.contains(&name.as_str()));
                map.values_mut().for_each(|value| drop(value, fields));
            }
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| drop(value, fields)),
            _ => {}
        }
    }
    let mut value: serde_json::Value = serde_json::from_str(json).unwrap();
    drop(&mut value, fields);
    let map = value.as_object_mut().unwrap();
    map.remove("fact");
    map.insert("later".into(), serde_json::json!({ "a": [1] }));
    format!("{{\"fact\":\"{}\",{}", kind_of(json), &value.to_string()[1..])
}

#[test]
fn each_quick_reading_of_a_generated_fact_gives_what_serde_gives() {
    const LATER: [&str; 10] = [
        "nodes",
        "trees",
        "policy",
        "turns",
        "list",
        "replay",
        "content",
        "from",
        "untested",
        "review_lines",
    ];
    let mut kinds = BTreeSet::new();
    for seed in 0..300 {
        for kind in 0..generated::KINDS {
            let fact = generated::Facts(seed * generated::KINDS + kind).fact(kind);
            let kept = fact.stored();
            let json = serde_json::to_string(&*kept).unwrap();
            let kind = kind_of(&json);
            assert_eq!(serde_json::from_str::<Fact>(&json).unwrap(), *kept);
            same(kind, &json);
            if kind == "submitted" || kind == "landed" {
                same(kind, &before(&json, &LATER));
            }
            kinds.insert(kind.to_owned());
        }
    }
    assert_eq!(kinds.len() as u64, generated::KINDS, "{kinds:?}");
}

#[test]
fn each_quick_reading_gives_what_the_whole_one_gives() {
    let (mut world, _) = World::with(&[("a", "1"), ("d/b", "1")]);
    world.submit("change-one", &[("a", Some("2"))]);
    world.submit("change-two", &[("d/b", Some("2")), ("d/c", Some("new"))]);
    let (stage, land) = world.candidate(1, &["change-one", "change-two"]);
    world.call(&stage).unwrap();
    world.call(&land).unwrap().unwrap();
    let rows = world.sql.run("SELECT kind, json FROM facts ORDER BY no", &[]).unwrap();
    let mut seen = Vec::new();
    for row in rows {
        let (kind, json) = (row.text(0).unwrap(), row.text(1).unwrap());
        assert_eq!(kind_of(json), kind);
        seen.push(kind.to_owned());
        same(kind, json);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["direct-push", "landed", "submitted"]);
}
