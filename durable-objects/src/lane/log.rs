//! Logs of runs: kept in tables while the command runs, bounded; then, where it is worth keeping, one
//! value of the bucket.
//!
//! A short log of a green run never gets into the bucket: it stays here until newer ones push it out.

use yard_common::landing::RunResult;
use yard_common::{LeaseNo, Millis, Refusal, RunId};
use yard_queue::Lane as Brain;
use yard_wire::lane::{LOG_HEAD_BYTES, LOG_TAIL_BYTES, Log, LogReply, SEGMENT_BYTES_MAX, Segment};
use yard_wire::names;

use super::Lane;
use crate::blobs::Blobs as _;
use crate::repository::Platform;
use crate::sql::{INT_MAX, Sql};

/// The tables.
pub(super) const TABLES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS logs (run TEXT PRIMARY KEY, lease INTEGER NOT NULL, state TEXT NOT NULL,
       at INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS log_parts (run TEXT NOT NULL, start INTEGER NOT NULL, bytes INTEGER NOT NULL,
       text TEXT NOT NULL, PRIMARY KEY (run, start)) WITHOUT ROWID",
];
/// Segments are joined in one row up to this, in bytes: a log has at most about 60 rows.
const ROW_BYTES_MAX: u64 = 32 * 1024;
/// The log of a green run that stays in the tables, in bytes; a longer one goes to the bucket.
const SHORT_BYTES_MAX: u64 = 64 * 1024;
/// Ended runs whose logs stay in the tables: with 64 KiB each, 4 MiB.
const SHORT_LOGS_MAX: u64 = if cfg!(test) { 3 } else { 64 };
/// When the bucket is tried again, in milliseconds.
const RETRY_MS: u64 = 10_000;

/// Where a log belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The run goes on.
    Live,
    /// It is kept here for a while.
    Short,
    /// It is evidence.
    Bucket,
}

fn fate(brain: &Brain, run: &RunId) -> Fate {
    let by = |result: Option<&RunResult>| match result {
        Some(result) if result.proves_green() => Fate::Short,
        _ => Fate::Bucket,
    };
    if let Some((_, open)) = brain.run(run) {
        return if open.ended.is_some() { by(open.result()) } else { Fate::Live };
    }
    // A run of an attempt that was given up is evidence of nothing.
    let past = brain.past_runs.iter().find(|past| past.run == *run);
    past.map_or(Fate::Short, |past| by(past.result.as_ref()))
}

/// Refuses what no runner sends.
pub(super) fn check(segment: &Segment) -> Result<(), Refusal> {
    if segment.text.len() > SEGMENT_BYTES_MAX {
        let (size, limit) = (segment.text.len() as u64, SEGMENT_BYTES_MAX as u64);
        return Err(Refusal::TooLarge { what: "a segment of a log".into(), size, limit });
    }
    if segment.start > INT_MAX as u64 / 2 {
        return Err(Refusal::Invalid { why: "no log is as long as the segment's start says".into() });
    }
    Ok(())
}

/// The lease that a log was written under, and its state.
fn row(sql: &impl Sql, run: &RunId) -> Result<Option<(LeaseNo, String)>, Refusal> {
    let rows = sql.run("SELECT lease, state FROM logs WHERE run = ?1", &[run.as_str().into()])?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some((LeaseNo(row.number(0)?), row.text(1)?.to_owned())))
}

/// Adds a segment. What the log has already is passed over; a new lease begins the log anew.
fn append(sql: &impl Sql, run: &RunId, lease: LeaseNo, segment: Segment, now: Millis) -> Result<(), Refusal> {
    if segment.text.is_empty() {
        return Ok(());
    }
    match row(sql, run)? {
        Some((held, state)) if held == lease && state != "live" => return Ok(()),
        Some((held, _)) if held == lease => {}
        known => {
            if known.is_some() {
                sql.run("DELETE FROM log_parts WHERE run = ?1", &[run.as_str().into()])?;
            }
            sql.run(
                "INSERT OR REPLACE INTO logs (run, lease, state, at) VALUES (?1, ?2, 'live', ?3)",
                &[run.as_str().into(), lease.0.into(), now.0.into()],
            )?;
        }
    }
    let last = sql.run(
        "SELECT start, bytes FROM log_parts WHERE run = ?1 ORDER BY start DESC LIMIT 1",
        &[run.as_str().into()],
    )?;
    let last = last.first().map(|row| Ok::<_, Refusal>((row.number(0)?, row.number(1)?))).transpose()?;
    let end = last.map_or(0, |(start, bytes)| start + bytes);
    let Some(segment) = segment.after(end) else { return Ok(()) };
    let bytes = segment.text.len() as u64;
    let (whole_end, text) = (segment.end(), segment.text);
    match last {
        Some((start, before)) if segment.start == end && before + bytes <= ROW_BYTES_MAX => sql.run(
            "UPDATE log_parts SET text = text || ?3, bytes = bytes + ?4 WHERE run = ?1 AND start = ?2",
            &[run.as_str().into(), start.into(), text.into(), bytes.into()],
        )?,
        _ => sql.run(
            "INSERT INTO log_parts (run, start, text, bytes) VALUES (?1, ?2, ?3, ?4)",
            &[run.as_str().into(), segment.start.into(), text.into(), bytes.into()],
        )?,
    };
    if whole_end > LOG_HEAD_BYTES + LOG_TAIL_BYTES { cut(sql, run) } else { Ok(()) }
}

/// Removes the oldest rows between head and tail.
fn cut(sql: &impl Sql, run: &RunId) -> Result<(), Refusal> {
    let rows = sql.run(
        "SELECT start, bytes FROM log_parts WHERE run = ?1 AND start >= ?2 ORDER BY start DESC",
        &[run.as_str().into(), LOG_HEAD_BYTES.into()],
    )?;
    let mut sum = 0;
    for row in &rows {
        sum += row.number(1)?;
        if sum > LOG_TAIL_BYTES {
            sql.run(
                "DELETE FROM log_parts WHERE run = ?1 AND start >= ?2 AND start <= ?3",
                &[run.as_str().into(), LOG_HEAD_BYTES.into(), row.number(0)?.into()],
            )?;
            return Ok(());
        }
    }
    Ok(())
}

fn parts(sql: &impl Sql, run: &RunId, from: u64) -> Result<Vec<Segment>, Refusal> {
    let rows = sql.run(
        "SELECT start, text FROM log_parts WHERE run = ?1 AND start + bytes > ?2 ORDER BY start",
        &[run.as_str().into(), from.min(INT_MAX as u64).into()],
    )?;
    let mut segments = Vec::with_capacity(rows.len());
    for row in &rows {
        let segment = Segment { start: row.number(0)?, text: row.text(1)?.to_owned() };
        segments.extend(segment.after(from));
    }
    Ok(segments)
}

fn forget(sql: &impl Sql, run: &RunId) -> Result<(), Refusal> {
    sql.run("DELETE FROM logs WHERE run = ?1", &[run.as_str().into()])?;
    sql.run("DELETE FROM log_parts WHERE run = ?1", &[run.as_str().into()])?;
    Ok(())
}

impl<P: Platform> Lane<P> {
    /// Stores segments that came under a live lease.
    pub(super) fn write_log(
        &self,
        run: &RunId,
        lease: LeaseNo,
        segments: Vec<Segment>,
        now: Millis,
    ) -> Result<(), Refusal> {
        for segment in segments {
            append(&self.sql, run, lease, segment, now)?;
            self.logs_at.set(Some(now));
        }
        Ok(())
    }

    /// What there is of a log from the reader's place on; `None`: nothing here.
    pub(super) fn read_log(&self, asked: &Log) -> Result<Option<LogReply>, Refusal> {
        let (ended, lease) = self.with(|loaded| {
            let open = loaded.brain.run(&asked.run).map(|(_, run)| run.last_lease);
            (fate(&loaded.brain, &asked.run) != Fate::Live, open)
        })?;
        let Some((written, _)) = row(&self.sql, &asked.run)? else {
            let waits = lease.filter(|_| !ended);
            return Ok(waits.map(|lease| LogReply { lease, segments: Vec::new(), ended }));
        };
        let segments = parts(&self.sql, &asked.run, asked.from)?;
        Ok(Some(LogReply { lease: written, segments, ended }))
    }

    /// When logs want to be looked at again.
    pub(super) fn logs_due(&self) -> Option<Millis> {
        self.logs_at.get().filter(|_| self.logs_failed.get())
    }

    /// Brings the logs of ended runs to where they belong: evidence to the bucket, once.
    pub(super) async fn settle_logs(&self, now: Millis) {
        // Nothing was written since all was settled, or the bucket failed just now.
        if self.logs_at.get().is_none_or(|at| at > now) {
            return;
        }
        match self.settle_each_log().await {
            Ok(live) => {
                self.logs_failed.set(false);
                self.logs_at.set(live.then_some(now));
            }
            Err(refusal) => {
                crate::points::log(&format!("logs of runs: {refusal}"));
                self.logs_failed.set(true);
                self.logs_at.set(Some(now.plus(RETRY_MS)));
            }
        }
    }

    /// Do runs with a log go on?
    async fn settle_each_log(&self) -> Result<bool, Refusal> {
        let rows = self.sql.run("SELECT run FROM logs WHERE state = 'live'", &[])?;
        let (mut live, mut short) = (false, false);
        for row in &rows {
            let run = RunId::new(row.text(0)?)?;
            match self.with(|loaded| fate(&loaded.brain, &run))? {
                Fate::Live => live = true,
                Fate::Short if self.log_bytes(&run)? <= SHORT_BYTES_MAX => {
                    self.sql.run("UPDATE logs SET state = 'short' WHERE run = ?1", &[run.as_str().into()])?;
                    short = true;
                }
                Fate::Short | Fate::Bucket => self.to_bucket(&run).await?,
            }
        }
        if short {
            self.sql.run(
                "DELETE FROM logs WHERE state = 'short' AND run NOT IN
                   (SELECT run FROM logs WHERE state = 'short' ORDER BY at DESC, run DESC LIMIT ?1)",
                &[SHORT_LOGS_MAX.into()],
            )?;
            self.sql.run("DELETE FROM log_parts WHERE run NOT IN (SELECT run FROM logs)", &[])?;
        }
        Ok(live)
    }

    fn log_bytes(&self, run: &RunId) -> Result<u64, Refusal> {
        let rows = self
            .sql
            .run("SELECT coalesce(sum(bytes), 0) FROM log_parts WHERE run = ?1", &[run.as_str().into()])?;
        Ok(rows.first().map_or(Ok(0), |row| row.number(0))?)
    }

    async fn to_bucket(&self, run: &RunId) -> Result<(), Refusal> {
        let Some((lease, _)) = row(&self.sql, run)? else { return Ok(()) };
        let whole = LogReply { lease, segments: parts(&self.sql, run, 0)?, ended: true };
        let fault = |_| Refusal::Internal { during: "writing a log".into() };
        let json = serde_json::to_vec(&whole).map_err(fault)?;
        crate::point("lane.log.before");
        self.blobs.put(&names::run_log(&self.repo()?, run.as_str()), json).await?;
        crate::point("lane.log.put");
        forget(&self.sql, run)
    }
}

/// Names of runs in the tables, for tests.
#[cfg(test)]
pub(super) fn runs(sql: &impl Sql) -> std::collections::BTreeSet<String> {
    let rows = sql.run("SELECT DISTINCT run FROM log_parts", &[]).unwrap();
    rows.iter().map(|row| row.text(0).unwrap().to_owned()).collect()
}
