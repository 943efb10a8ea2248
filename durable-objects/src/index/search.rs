//! Searches of the index.
//!
//! A parameter that is null asks for nothing. SQLite's `lower` knows ASCII alone: other letters must be
//! written as they are.

use yard_common::{ChangeId, FactNo, ForkName, Millis, Version};
use yard_wire::api::{Record, TimelineEvent};

use super::{Index, IndexFault, lacks_table};
use crate::sql::{Row, SqlFault, Value};

/// What is searched for among landed changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Of this agent.
    pub agent: Option<String>,
    /// That changed this file, or something below this directory.
    pub path: Option<String>,
    /// With this in the task.
    pub task: Option<String>,
    /// That ever got this verdict.
    pub verdict: Option<String>,
    /// With this in title, task or any other text of the intent.
    pub text: Option<String>,
    /// Not before.
    pub since: Option<Millis>,
    /// Before.
    pub until: Option<Millis>,
    /// Older than this cursor.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// What is searched for in the timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineQuery {
    /// By this agent, or about its changes.
    pub agent: Option<String>,
    /// About changes of this file, or of something below this directory.
    pub path: Option<String>,
    /// About this change.
    pub change: Option<ChangeId>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Not before.
    pub since: Option<Millis>,
    /// Before.
    pub until: Option<Millis>,
    /// Older than this: time, source, number.
    pub before: Option<(u64, String, u64)>,
    /// At most so many.
    pub limit: u32,
}

/// Landed changes, newest first. A train has at most 500, so `seq * 1000 + place` orders them all.
const LOG: &str = "SELECT change, version, commit_id, fork, agent, model, title, task, attempt, paths, proof, \
    replay, seq, at, seq * 1000 + place FROM landed WHERE repo = ?1 \
      AND (?2 IS NULL OR seq * 1000 + place < ?2) AND (?3 IS NULL OR agent = ?3) \
      AND (?4 IS NULL OR instr(paths, char(10) || ?4 || char(10)) > 0 OR instr(paths, char(10) || ?4 || '/') > 0) \
      AND (?5 IS NULL OR instr(lower(task), lower(?5)) > 0) \
      AND (?6 IS NULL OR change IN (SELECT change FROM verdicts WHERE repo = ?1 AND verdict = ?6)) \
      AND (?7 IS NULL OR instr(lower(title || ' ' || task || ' ' || intent), lower(?7)) > 0) \
      AND (?8 IS NULL OR at >= ?8) AND (?9 IS NULL OR at < ?9) \
    ORDER BY seq DESC, place DESC LIMIT ?10";

/// Events, newest first; agent and path find those about one change, not those of whole trains.
const TIMELINE: &str = "SELECT at, kind, who, lane, changes, attempt, run, text, source, seq FROM timeline \
    WHERE repo = ?1 AND (?2 IS NULL OR (at, source, seq) < (?2, ?3, ?4)) AND (?5 IS NULL OR kind = ?5) \
      AND (?6 IS NULL OR instr(changes, char(10) || ?6 || char(10)) > 0) \
      AND (?7 IS NULL OR who = ?7 OR changes IN \
        (SELECT char(10) || change || char(10) FROM versions WHERE repo = ?1 AND agent = ?7)) \
      AND (?8 IS NULL OR changes IN (SELECT char(10) || change || char(10) FROM versions WHERE repo = ?1 \
        AND (instr(paths, char(10) || ?8 || char(10)) > 0 OR instr(paths, char(10) || ?8 || '/') > 0))) \
      AND (?9 IS NULL OR at >= ?9) AND (?10 IS NULL OR at < ?10) \
    ORDER BY at DESC, source DESC, seq DESC LIMIT ?11";

/// Landed changes that fit, newest first.
///
/// # Errors
/// [`IndexFault`].
pub async fn log(index: &impl Index, repo: &str, query: &LogQuery) -> Result<Vec<Record>, IndexFault> {
    let text = |value: &Option<String>| Value::from(value.as_deref());
    let params = [
        repo.into(),
        query.before.into(),
        text(&query.agent),
        directory(query.path.as_deref()),
        text(&query.task),
        text(&query.verdict),
        text(&query.text),
        query.since.map(|at| at.0).into(),
        query.until.map(|at| at.0).into(),
        query.limit.into(),
    ];
    found(index, LOG, &params).await?.iter().map(record).collect::<Result<_, _>>().map_err(odd)
}

/// Events that fit, newest first.
///
/// # Errors
/// [`IndexFault`].
pub async fn timeline(
    index: &impl Index,
    repo: &str,
    query: &TimelineQuery,
) -> Result<Vec<TimelineEvent>, IndexFault> {
    let (at, source, seq) = match &query.before {
        Some((at, source, seq)) => (Value::from(*at), source.as_str().into(), Value::from(*seq)),
        None => (Value::Null, Value::Null, Value::Null),
    };
    let params = [
        repo.into(),
        at,
        source,
        seq,
        query.kind.as_deref().into(),
        query.change.as_ref().map(ChangeId::as_str).into(),
        query.agent.as_deref().into(),
        directory(query.path.as_deref()),
        query.since.map(|at| at.0).into(),
        query.until.map(|at| at.0).into(),
        query.limit.into(),
    ];
    found(index, TIMELINE, &params).await?.iter().map(event).collect::<Result<_, _>>().map_err(odd)
}

/// A path without the slashes around it.
fn directory(path: Option<&str>) -> Value {
    path.map(|path| path.trim_matches('/')).filter(|path| !path.is_empty()).into()
}

/// Before anything is written the index has no tables.
async fn found(index: &impl Index, sql: &str, params: &[Value]) -> Result<Vec<Row>, IndexFault> {
    match index.run(sql, params).await {
        Err(fault) if lacks_table(&fault) => Ok(Vec::new()),
        done => done,
    }
}

fn odd(fault: SqlFault) -> IndexFault {
    IndexFault(fault.0)
}

fn record(row: &Row) -> Result<Record, SqlFault> {
    Ok(Record {
        change: row.parse(0, "change id")?,
        version: Version(row.number(1)?),
        commit: row.parse(2, "commit id")?,
        fork: row.maybe_text(3)?.and_then(|name| ForkName::new(name).ok()),
        agent: row.text(4)?.to_owned(),
        model: row.text(5)?.to_owned(),
        title: row.text(6)?.to_owned(),
        task: row.text(7)?.to_owned(),
        attempt: row.text(8)?.to_owned(),
        paths: row.text(9)?.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
        proof: row.json(10)?,
        replay: if row.is_null(11) { None } else { Some(row.json(11)?) },
        fact: FactNo(row.number(12)?),
        at: Millis(row.number(13)?),
        cursor: row.number(14)?,
    })
}

fn event(row: &Row) -> Result<TimelineEvent, SqlFault> {
    let (at, seq) = (row.number(0)?, row.number(9)?);
    Ok(TimelineEvent {
        at: Millis(at),
        kind: row.text(1)?.to_owned(),
        who: row.text(2)?.to_owned(),
        lane: row.maybe_text(3)?.map(str::to_owned),
        changes: row.text(4)?.lines().filter_map(|line| line.parse().ok()).collect(),
        attempt: row.maybe_text(5)?.map(str::to_owned),
        run: row.maybe_text(6)?.and_then(|run| run.parse().ok()),
        text: row.text(7)?.to_owned(),
        cursor: format!("{at}-{seq}-{}", row.text(8)?),
    })
}

/// Reads a cursor of the timeline.
#[must_use]
pub fn cursor(text: &str) -> Option<(u64, String, u64)> {
    let (at, rest) = text.split_once('-')?;
    let (seq, source) = rest.split_once('-')?;
    Some((at.parse().ok()?, source.to_owned(), seq.parse().ok()?))
}
