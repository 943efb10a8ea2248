//! The tables of a lane: one row a decision, and now and then a snapshot to begin from.

use yard_common::{ChangeId, LaneName, Millis, Refusal, RepoName};
use yard_queue::{Lane as Brain, LaneFact};
use yard_wire::board::Event;
use yard_wire::names;

use super::{Loaded, project};
use crate::sql::{Sql, VALUE_BYTES_MAX, Value, migrate};

const FIRST: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS facts (no INTEGER PRIMARY KEY, at INTEGER NOT NULL, json TEXT NOT NULL,
       events TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS snapshots (no INTEGER NOT NULL, place INTEGER NOT NULL, json TEXT NOT NULL,
       PRIMARY KEY (no, place)) WITHOUT ROWID",
];

/// What the index is sent: kept when the decisions that it was made of are gone.
const PROJECTED: &[&str] = &["CREATE TABLE IF NOT EXISTS projected (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL,
       key TEXT NOT NULL, at INTEGER NOT NULL, json TEXT NOT NULL, UNIQUE (kind, key))"];

/// Rows after which a snapshot is made: reading them again costs about a second of the platform's CPU.
const SNAPSHOT_ROWS: u64 = if cfg!(test) { 7 } else { 400 };
/// Rows behind the snapshot that are kept as evidence.
const ROWS_KEPT: u64 = if cfg!(test) { 5 } else { 2_000 };

/// What is stored up to where.
#[derive(Debug, Clone, Default)]
pub(super) struct Stored {
    /// The last row.
    pub last: u64,
    /// The row that the snapshot was made after.
    pub snapshot: u64,
    /// The row up to which events have gone to the board.
    pub published: u64,
    /// Since when there are events to be sent.
    pub gathers_since: Option<Millis>,
    /// When rows are to go to the index.
    pub index_due: Option<Millis>,
    /// The last decision that makes such rows.
    pub makes_rows: u64,
}

fn meta(sql: &impl Sql, key: &str) -> Result<Option<String>, Refusal> {
    let rows = sql.run("SELECT value FROM meta WHERE key = ?1", &[key.into()])?;
    Ok(rows.first().map(|row| row.text(0).map(str::to_owned)).transpose()?)
}

pub(super) fn set_meta(sql: &impl Sql, key: &str, value: &str) -> Result<(), Refusal> {
    sql.run(
        "INSERT INTO meta (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        &[key.into(), value.into()],
    )?;
    Ok(())
}

pub(super) fn number(sql: &impl Sql, key: &str) -> Result<u64, Refusal> {
    Ok(meta(sql, key)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Reads the state: the snapshot, then the facts after it.
pub(super) fn load(sql: &impl Sql) -> Result<(Option<RepoName>, Brain, Stored), Refusal> {
    migrate(sql, "lane", &[FIRST, super::log::TABLES, PROJECTED])?;
    let repo = meta(sql, "repo")?.map(RepoName::new).transpose()?;
    let name = LaneName::new(meta(sql, "lane")?.unwrap_or_else(|| names::DEFAULT_LANE.into()))?;
    let snapshot = number(sql, "snapshot")?;
    let chunks = sql.run("SELECT json FROM snapshots WHERE no = ?1 ORDER BY place", &[snapshot.into()])?;
    let mut text = String::new();
    for chunk in &chunks {
        text.push_str(chunk.text(0)?);
    }
    let mut brain = if text.is_empty() {
        Brain::new(name)
    } else {
        serde_json::from_str(&text).map_err(|fault| {
            crate::points::log(&format!("snapshot: {fault}"));
            Refusal::Internal { during: "reading the lane's snapshot".into() }
        })?
    };
    let published = number(sql, "published")?;
    let mut stored = Stored { last: snapshot, snapshot, published, ..Stored::default() };
    loop {
        let rows = sql.run(
            "SELECT no, at, json FROM facts WHERE no > ?1 ORDER BY no LIMIT 50",
            &[stored.last.into()],
        )?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            stored.last = row.number(0)?;
            let facts: Vec<LaneFact> = row.json(2)?;
            facts.iter().for_each(|fact| brain.apply(fact));
        }
    }
    let unsent = sql.run(
        "SELECT at FROM facts WHERE no > ?1 AND events <> '' ORDER BY no LIMIT 1",
        &[published.into()],
    )?;
    stored.gathers_since = unsent.first().map(|row| row.number(0)).transpose()?.map(Millis);
    stored.makes_rows = project::behind(sql)?;
    stored.index_due = (stored.makes_rows > 0 || project::unsent(sql)? > 0).then_some(Millis(0));
    Ok((repo, brain, stored))
}

/// Rows read at once.
const PAGE: usize = 100;
/// A decision of more bytes than this is an assembly: it is read only where it names the change.
const SMALL_BYTES_MAX: u64 = 8 * 1024;

/// The decisions from the first one on that names the change; what is large and does not name it is left out.
pub(super) fn each_decision(
    sql: &impl Sql,
    change: &ChangeId,
    mut look: impl FnMut(Millis, &[LaneFact]),
) -> Result<(), Refusal> {
    let name = Value::from(format!("\"{change}\""));
    let named = std::slice::from_ref(&name);
    let first = sql.run("SELECT min(no) FROM facts WHERE instr(json, ?1) > 0", named)?;
    let Some(first) = first.first().filter(|row| !row.is_null(0)) else { return Ok(()) };
    let mut after = first.number(0)?.saturating_sub(1);
    loop {
        let rows = sql.run(
            "SELECT no, at, json FROM facts WHERE no > ?1 AND (length(json) <= ?2 OR instr(json, ?3) > 0)
             ORDER BY no LIMIT ?4",
            &[after.into(), SMALL_BYTES_MAX.into(), name.clone(), (PAGE as u64).into()],
        )?;
        for row in &rows {
            after = row.number(0)?;
            let facts: Vec<LaneFact> = row.json(2)?;
            look(Millis(row.number(1)?), &facts);
        }
        if rows.len() < PAGE {
            return Ok(());
        }
    }
}

/// Stores who the lane is.
pub(super) fn introduce(sql: &impl Sql, repo: &RepoName, lane: &LaneName) -> Result<(), Refusal> {
    set_meta(sql, "lane", lane.as_str())?;
    set_meta(sql, "repo", repo.as_str())
}

/// Stores one decision: its facts and their events, in one row by one statement.
pub(super) fn save(
    sql: &impl Sql,
    loaded: &mut Loaded,
    facts: &[LaneFact],
    events: &[Event],
    now: Millis,
) -> Result<(), Refusal> {
    let fault = |_| Refusal::Internal { during: "writing the lane's facts".into() };
    let json = serde_json::to_string(facts).map_err(fault)?;
    if json.len() > VALUE_BYTES_MAX {
        let (size, limit) = (json.len() as u64, VALUE_BYTES_MAX as u64);
        return Err(Refusal::TooLarge { what: "one decision of a lane".into(), size, limit });
    }
    let told =
        if events.is_empty() { String::new() } else { serde_json::to_string(events).map_err(fault)? };
    let no = loaded.stored.last + 1;
    sql.run(
        "INSERT INTO facts (no, at, json, events) VALUES (?1, ?2, ?3, ?4)",
        &[no.into(), now.0.into(), json.into(), told.into()],
    )?;
    loaded.stored.last = no;
    if !events.is_empty() {
        loaded.stored.gathers_since.get_or_insert(now);
    }
    let rests = loaded.brain.attempts.is_empty();
    project::decided(&mut loaded.stored, (facts, events), rests, now);
    if no - loaded.stored.snapshot >= SNAPSHOT_ROWS {
        snapshot(sql, loaded)?;
    }
    Ok(())
}

/// Writes the state whole; then the rows behind it that nobody needs any more go.
fn snapshot(sql: &impl Sql, loaded: &mut Loaded) -> Result<(), Refusal> {
    let fault = |_| Refusal::Internal { during: "writing the lane's snapshot".into() };
    let text = serde_json::to_string(&loaded.brain).map_err(fault)?;
    let no = loaded.stored.last;
    let mut rest = text.as_str();
    let mut place = 0u64;
    while !rest.is_empty() {
        let mut end = rest.len().min(VALUE_BYTES_MAX);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (chunk, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        sql.run(
            "INSERT OR REPLACE INTO snapshots (no, place, json) VALUES (?1, ?2, ?3)",
            &[no.into(), place.into(), chunk.into()],
        )?;
        place += 1;
        rest = after;
    }
    set_meta(sql, "snapshot", &no.to_string())?;
    loaded.stored.snapshot = no;
    sql.run("DELETE FROM snapshots WHERE no <> ?1", &[no.into()])?;
    let used = loaded.stored.published.min(number(sql, "projected")?);
    let needed = no.min(used).saturating_sub(ROWS_KEPT);
    sql.run("DELETE FROM facts WHERE no <= ?1", &[needed.into()])?;
    Ok(())
}

/// Events that have not gone to the board yet, and the row up to which they reach.
pub(super) fn unsent(sql: &impl Sql, published: u64) -> Result<(Vec<Event>, u64), Refusal> {
    let rows = sql.run(
        "SELECT no, events FROM facts WHERE no > ?1 AND events <> '' ORDER BY no LIMIT 200",
        &[published.into()],
    )?;
    let (mut events, mut upto) = (Vec::new(), published);
    for row in &rows {
        if events.len() > 1_000 {
            break;
        }
        events.extend(row.json::<Vec<Event>>(1)?);
        upto = row.number(0)?;
    }
    Ok((events, upto))
}

/// The board has them.
pub(super) fn sent(sql: &impl Sql, loaded: &mut Loaded, upto: u64) -> Result<(), Refusal> {
    set_meta(sql, "published", &upto.to_string())?;
    loaded.stored.published = upto;
    let left: Vec<Value> = vec![upto.into()];
    let rows = sql.run("SELECT at FROM facts WHERE no > ?1 AND events <> '' ORDER BY no LIMIT 1", &left)?;
    loaded.stored.gathers_since = rows.first().map(|row| row.number(0)).transpose()?.map(Millis);
    Ok(())
}
