use yard_common::Fact;

use super::super::tests::world::World;
use super::*;
use crate::sql::Sql as _;

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
            (Glance::Landed(glanced), Fact::Landed { request, at, .. }) => {
                assert_eq!((&glanced.request.key, glanced.at), (&request.key, *at));
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
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["direct-push", "landed", "submitted"]);
}
