use super::search::{LogQuery, TimelineQuery, cursor, log, timeline};
use super::*;
use crate::native::{Fails, MemoryIndex, block_on};
use crate::sql::Sql as _;

fn index() -> MemoryIndex {
    MemoryIndex::new().unwrap()
}

fn landed(change: &str, seq: u64, place: usize) -> RecordRow {
    RecordRow {
        change: change.into(),
        version: seq,
        commit_id: format!("{seq:040x}"),
        fork: None,
        agent: format!("agent-{seq}"),
        model: String::new(),
        title: format!("title {seq}"),
        task: "Parse Dates".into(),
        intent: "{\"body\":\"with Leap years\"}".into(),
        lane: "main".into(),
        attempt: "main/1/1".into(),
        paths: lines(["src/parse/date.rs", "README.md"]),
        proof: "{\"how\":{\"theirs\":2},\"runs\":[]}".into(),
        replay: None,
        seq,
        place,
        at: 1_000 * seq,
    }
}

fn event(seq: u64, kind: &str, change: &str) -> TimelineRow {
    TimelineRow::new("repository", seq, seq / 2, kind, "said").by("ann").about([change])
}

fn dump(index: &MemoryIndex) -> String {
    TABLES.iter().map(|table| format!("{:?}\n", index.sql.run(&table.dump(), &[]).unwrap())).collect()
}

#[test]
fn rows_that_come_again_late_or_in_another_order_change_nothing() {
    let versions: Vec<u64> = (1..=6).collect();
    let sent = |order: &[Vec<u64>]| {
        let (index, writer) = (index(), Writer::new("click"));
        for batch in order {
            let rows: Vec<RecordRow> = batch.iter().map(|seq| landed("change-a", *seq, 0)).collect();
            block_on(writer.put(&index, &schema::RECORDS, &rows)).unwrap();
        }
        dump(&index)
    };
    let once = sent(std::slice::from_ref(&versions));
    assert!(once.contains("title 6"), "{once}");
    assert_eq!(once, sent(&[vec![4, 5, 6], vec![1, 2, 3]]));
    assert_eq!(once, sent(&[vec![6], vec![5], vec![1, 2, 3, 4, 5, 6], vec![6]]));
}

#[test]
fn a_dropped_index_is_made_again_by_the_next_write_and_a_fault_leaves_the_rows_to_be_sent_again() {
    let (index, writer) = (index(), Writer::new("click"));
    let bundle = Bundle { timeline: vec![event(1, "held", "change-a")], ..Bundle::default() };
    for how in [Fails::Before, Fails::After] {
        index.faults.fail_next(how);
        assert!(block_on(writer.put_all(&index, &bundle)).is_err());
    }
    block_on(writer.put_all(&index, &bundle)).unwrap();
    let before = dump(&index);
    for table in TABLES {
        index.sql.run(&format!("DROP TABLE {}", table.name), &[]).unwrap();
    }
    block_on(writer.put_all(&index, &bundle)).unwrap();
    assert_eq!(dump(&index), before);
    let calls = index.faults.calls();
    block_on(writer.put_all(&index, &bundle)).unwrap();
    assert_eq!(index.faults.calls(), calls + 1, "one statement for a table with rows, none for others");
}

#[test]
fn clearing_takes_one_repositorys_rows_in_steps() {
    let index = index();
    let many: Vec<TimelineRow> = (0..2_500).map(|n| event(n, "held", "change-a")).collect();
    for repo in ["click", "other"] {
        block_on(Writer::new(repo).put(&index, &schema::TIMELINE, &many)).unwrap();
    }
    let steps: Vec<u64> = (0..4).map(|_| block_on(clear(&index, "click")).unwrap()).collect();
    assert_eq!(steps, [1_000, 1_000, 500, 0]);
    let left = index.sql.run("SELECT count(*), min(repo) FROM timeline", &[]).unwrap();
    assert_eq!((left[0].number(0).unwrap(), left[0].text(1).unwrap()), (2_500, "other"));
}

#[test]
fn landed_changes_are_found_by_each_filter() {
    let index = index();
    let query = |change: &dyn Fn(&mut LogQuery)| {
        let mut query = LogQuery { limit: 100, ..LogQuery::default() };
        change(&mut query);
        let found = block_on(log(&index, "click", &query)).unwrap();
        found.into_iter().map(|record| record.title).collect::<Vec<_>>()
    };
    assert!(query(&|_| ()).is_empty(), "an index without tables has no records");
    let writer = Writer::new("click");
    let rows: Vec<RecordRow> =
        ["change-a", "change-b"].iter().zip(1..).map(|(name, seq)| landed(name, seq, 3)).collect();
    block_on(writer.put(&index, &schema::RECORDS, &rows)).unwrap();
    let verdict = VerdictRow {
        lane: "main".into(),
        seq: 1,
        at: 1,
        change: "change-a".into(),
        version: 1,
        verdict: "flaky".into(),
        detail: String::new(),
        runs: String::new(),
    };
    block_on(writer.put(&index, &schema::VERDICTS, &[verdict])).unwrap();
    let both = ["title 2", "title 1"];
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(query(&|_| ()), both);
    assert_eq!(query(&|ask| ask.agent = some("agent-1")), ["title 1"]);
    for (path, finds) in [
        ("src", true),
        ("src/parse/", true),
        ("README.md", true),
        ("src/par", false),
        ("parse", false),
        ("README", false),
    ] {
        assert_eq!(!query(&|ask| ask.path = some(path)).is_empty(), finds, "{path}");
    }
    assert_eq!(query(&|ask| ask.task = some("parse d")), both);
    assert_eq!(query(&|ask| ask.text = some("leap YEARS")), both);
    assert!(query(&|ask| ask.text = some("%")).is_empty());
    assert_eq!(query(&|ask| ask.verdict = some("flaky")), ["title 1"]);
    assert_eq!(query(&|ask| ask.since = Some(yard_common::Millis(2_000))), ["title 2"]);
    assert_eq!(query(&|ask| ask.until = Some(yard_common::Millis(2_000))), ["title 1"]);
    assert_eq!(query(&|ask| ask.before = Some(2_003)), ["title 1"]);
    assert_eq!(query(&|ask| ask.limit = 1), ["title 2"]);
}

#[test]
fn the_timeline_pages_by_its_cursors_without_gaps() {
    let index = index();
    let writer = Writer::new("click");
    let mut rows: Vec<TimelineRow> = (0..25).map(|n| event(n, "held", "change-a")).collect();
    rows.push(TimelineRow { source: "lane:main".into(), ..event(8, "run", "change-b") });
    block_on(writer.put(&index, &schema::TIMELINE, &rows)).unwrap();
    let ask = |query: TimelineQuery| block_on(timeline(&index, "click", &query)).unwrap();
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = ask(TimelineQuery { limit: 4, before, ..TimelineQuery::default() });
        let Some(last) = page.last() else { break };
        before = cursor(&last.cursor);
        assert!(before.is_some());
        seen.extend(page.iter().map(|event| event.cursor.clone()));
    }
    let all = ask(TimelineQuery { limit: 100, ..TimelineQuery::default() });
    assert_eq!(seen, all.iter().map(|event| event.cursor.clone()).collect::<Vec<_>>());
    assert_eq!(seen.len(), 26);
    let change = Some("change-b".parse().unwrap());
    assert_eq!(ask(TimelineQuery { limit: 9, change, ..TimelineQuery::default() })[0].kind, "run");
    let kind = Some("run".to_owned());
    assert_eq!(ask(TimelineQuery { limit: 9, kind, ..TimelineQuery::default() }).len(), 1);
    let agent = Some("bob".to_owned());
    assert!(ask(TimelineQuery { limit: 9, agent, ..TimelineQuery::default() }).is_empty());
    assert!(cursor("x-1-y").is_none() && cursor("").is_none());
}
