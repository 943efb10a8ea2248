//! What the lane says to the index.

use yard_queue::LaneFact;
use yard_wire::board::Event;
use yard_wire::repository::Reindex;

use super::super::project;
use super::*;
use crate::sql::{Row, Sql as _};

/// (kind, number) of the rows that are searched, as the lane made them and as the index has them.
fn rows(yard: &Yard) -> (Vec<Row>, Vec<Row>) {
    let made =
        yard.sql.run("SELECT kind, seq, at FROM projected WHERE kind <> 'members' ORDER BY kind, seq", &[]);
    let index = Rc::clone(&yard.world.borrow().index);
    let there = index.sql.run(
        "SELECT 'replay' AS kind, seq, at FROM replays UNION ALL SELECT 'run', seq, max(at, coalesce(ended, 0))
         FROM runs UNION ALL SELECT 'timeline', seq, at FROM timeline WHERE source = 'lane:main'
         UNION ALL SELECT 'verdict', seq, at FROM verdicts ORDER BY 1, 2",
        &[],
    );
    (made.unwrap(), there.unwrap_or_default())
}

fn numbers(rows: &[Row]) -> Vec<(String, u64)> {
    rows.iter().map(|row| (row.text(0).unwrap().to_owned(), row.number(1).unwrap())).collect()
}

pub(super) fn assert_has_the_rows_of(yard: &Yard, what: &str) {
    let (made, there) = rows(yard);
    assert!(made.len() > 5, "{what}: {made:?}");
    assert_eq!(numbers(&made), numbers(&there), "{what}");
    assert_eq!(yard.status().outbox, 0, "{what}");
}

fn asked(yard: &Yard, sql: &str) -> Vec<Row> {
    let index = Rc::clone(&yard.world.borrow().index);
    index.sql.run(sql, &[]).unwrap()
}

#[test]
fn runs_verdicts_and_events_are_found_in_the_index() {
    let mut yard = three();
    story(&mut yard).unwrap();
    assert_has_the_rows_of(&yard, "a story");
    let runs = asked(&yard, "SELECT run, result, runner, changes, failed FROM runs ORDER BY seq");
    let red: Vec<&Row> = runs.iter().filter(|row| row.text(1).unwrap() == "red").collect();
    assert!(!red.is_empty() && red.iter().all(|row| row.text(4).unwrap() == "\nt\n"), "{runs:?}");
    let told = runs.iter().filter(|row| row.text(1).unwrap() != "open");
    assert!(told.into_iter().all(|row| row.text(2).unwrap() == "runner"), "{runs:?}");
    let verdicts = asked(&yard, "SELECT change, verdict, runs FROM verdicts");
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert_eq!(verdicts[0].text(0).unwrap(), "very-bad-one");
    assert_eq!(verdicts[0].text(1).unwrap(), "broken-alone");
    let told = asked(&yard, "SELECT text FROM timeline WHERE source = 'lane:main' AND kind = 'needs-author'");
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn the_cost_of_a_replay_is_in_the_index_once() {
    let (mut yard, pointer) = collided();
    yard.hint().unwrap();
    yard.drive().unwrap();
    yard.replayed(&pointer, &[("a", Some("1\ntwo zwei\n3\n")), ("b", Some("new\n"))]).unwrap();
    yard.settle(&|_| green()).unwrap();
    assert_has_the_rows_of(&yard, "a replay");
    let found =
        asked(&yard, "SELECT outcome, micro_usd, change, cause FROM replays ORDER BY replay DESC LIMIT 1");
    assert_eq!(found[0].number(1).unwrap(), 7);
    assert_eq!(found[0].text(0).unwrap(), "proposed");
    assert_eq!(found[0].text(2).unwrap(), "change-late");
    assert!(found[0].text(3).unwrap().contains('a'), "{found:?}");
}

#[test]
fn rows_that_were_not_sent_before_a_restart_are_sent_after_it() {
    let mut yard = three();
    yard.hint().unwrap();
    yard.drive().unwrap();
    let work = yard.lease().unwrap().unwrap();
    yard.report(&work, red("t")).unwrap();
    assert!(yard.status().outbox > 0, "what is decided is in the outbox at once");
    yard.restart();
    assert!(yard.status().outbox > 0, "and after a restart");
    let due = yard.lane.due(yard.now).unwrap();
    assert!(due.is_some_and(|due| due <= yard.now.plus(super::super::RETRY_MS)), "{due:?}");
    story(&mut yard).unwrap();
    assert_has_the_rows_of(&yard, "restarted");
    yard.restart();
    assert_eq!(yard.status().outbox, 0, "nothing is sent twice");
}

#[test]
fn a_row_is_saved_before_it_is_sent() {
    let mut yard = three();
    yard.hint().unwrap();
    for _ in 0..40 {
        yard.world.borrow().index.faults.fail_next(Fails::Before);
        yard.drive().unwrap();
        let Some(work) = yard.lease().unwrap() else { break };
        let bad = yard.listing(work.commit).contains("very-bad-one");
        yard.report(&work, if bad { red("t") } else { green() }).unwrap();
    }
    yard.world.borrow().index.faults.fail_never();
    yard.now = yard.now.plus(20_000);
    yard.drive().unwrap();
    assert_has_the_rows_of(&yard, "an index that was down");
}

#[test]
fn the_index_comes_back_as_it_was() {
    let mut yard = three();
    story(&mut yard).unwrap();
    let tables = crate::index::TABLES.iter().map(|table| table.dump());
    let dumps: Vec<String> = tables.filter(|dump| !dump.contains("FROM landed")).collect();
    let lanes = |yard: &Yard| -> Vec<Vec<Row>> {
        let keep = |row: &Row| format!("{row:?}").contains("main");
        dumps.iter().map(|dump| asked(yard, dump).into_iter().filter(keep).collect()).collect()
    };
    let before = lanes(&yard);
    let index = Rc::clone(&yard.world.borrow().index);
    for table in ["runs", "verdicts", "replays"] {
        index.sql.run(&format!("DELETE FROM {table}"), &[]).unwrap();
    }
    index.sql.run("DELETE FROM timeline WHERE source = 'lane:main'", &[]).unwrap();
    assert_ne!(lanes(&yard), before);
    let began = yard.call(&Reindex { restart: true }).unwrap();
    assert!(began.sent == 0 && began.total > 5, "{began:?}");
    yard.drive().unwrap();
    assert_eq!(lanes(&yard), before);
    let ended = yard.call(&Reindex { restart: false }).unwrap();
    assert_eq!((ended.sent, ended.total), (began.total, began.total));
}

#[test]
fn a_train_costs_the_index_few_statements() {
    let mut yard = Yard::new(&[("a", "1\n")]);
    for number in 0..50 {
        yard.submit(&format!("change-{number}"), &[(&format!("f{number}"), Some("x\n"))]);
    }
    // The tables are made by the first write.
    yard.world.borrow().alarm();
    let index = Rc::clone(&yard.world.borrow().index);
    let before = index.faults.calls();
    story(&mut yard).unwrap();
    assert_eq!(yard.titles().len(), 50);
    assert!(asked(&yard, "SELECT run FROM runs").len() < 5, "trains of many");
    let calls = index.faults.calls() - before;
    assert!(calls > 0 && calls <= 5, "0.1 a change: {calls}");
}

#[test]
fn a_decision_of_many_rows_has_room_for_all_of_them() {
    let yard = three();
    let sql = &yard.sql;
    let _ = yard.status();
    let event = |number: u64| Event {
        source: "lane:click/main".into(),
        number,
        at: Millis(5),
        kind: "needs-author".into(),
        change: Some(ChangeId::new(format!("change-{number}")).unwrap()),
        lane: None,
        text: "red alone".into(),
    };
    let facts: Vec<LaneFact> = (0..1_500)
        .map(|number| LaneFact::Judged {
            change: ChangeId::new(format!("change-{number}")).unwrap(),
            version: yard_common::Version(1),
            verdict: Verdict::BrokenAlone,
            runs: Vec::new(),
            detail: String::new(),
            at: Millis(5),
        })
        .collect();
    let events: Vec<Event> = (0..1_000).map(event).collect();
    for no in [1u64, 2] {
        let (facts, events) =
            (serde_json::to_string(&facts).unwrap(), serde_json::to_string(&events).unwrap());
        let params = [no.into(), 5u64.into(), facts.into(), events.into()];
        sql.run("INSERT INTO facts (no, at, json, events) VALUES (?1, ?2, ?3, ?4)", &params).unwrap();
    }
    assert_eq!(project::behind(sql).unwrap(), 2);
    project::project(sql, "main").unwrap();
    let count = sql.run("SELECT count(*), count(DISTINCT seq) FROM projected", &[]).unwrap();
    assert_eq!((count[0].number(0).unwrap(), count[0].number(1).unwrap()), (5_000, 5_000));
}
