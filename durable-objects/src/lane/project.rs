//! What a lane's decisions say to the index: runs, verdicts, replays with their cost, and who did what when.
//!
//! Decisions are pruned, these rows are not: they are kept here, compact, and are the lane's outbox to the
//! index. A rebuild sends them all once more. A row that changes gets a new number.

use serde::Serialize;
use serde::de::DeserializeOwned;
use yard_common::replay::{Cause, ReplayEnd};
use yard_common::{Millis, Refusal, RunId};
use yard_queue::LaneFact;
use yard_wire::board::Event;
use yard_wire::repository as wire;

use super::Lane;
use super::store::{self, Stored};
use crate::index::{Bundle, GENERATION, ReplayRow, RunRow, TimelineRow, VerdictRow, Writer, lines};
use crate::point;
use crate::repository::Platform;
use crate::sql::{Sql, SqlFault, page_end};

/// The numbers of a decision's rows begin at its own times this: a decision has at most 1.9 MB of facts with at
/// least 50 bytes each, a fact makes at most 2 rows, and there are 1,000 events.
const ROWS_MAX: u64 = 100_000;
/// Decisions read at once: an assembly may have 1 MB.
const DECISIONS: u64 = 20;
/// Rows sent at once, and their bytes but for a row that is larger alone.
const PAGE: u64 = 500;
const PAGE_BYTES: u64 = 2 << 20;
/// Pages that one alarm sends: a rebuild goes on by the next.
const PAGES_MAX: usize = 20;
/// How long rows are gathered once a train, a replay or a verdict has ended, in milliseconds.
const GATHER_MS: u64 = 1_000;
/// How long the rows of a train wait for its end, in milliseconds: a train costs few statements.
const LATE_MS: u64 = 600_000;
/// When sending is tried again that failed or was cut off, in milliseconds.
const AGAIN_MS: u64 = 5_000;

/// Makes the rows of one decision.
struct Projector<'a, S: Sql> {
    sql: &'a S,
    lane: &'a str,
    seq: u64,
    at: u64,
}

impl<S: Sql> Projector<'_, S> {
    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn keep<T: Serialize>(&self, kind: &str, key: &str, seq: u64, row: &T) -> Result<(), SqlFault> {
        let json = serde_json::to_string(row).map_err(|fault| SqlFault(fault.to_string()))?;
        self.sql.run(
            "INSERT OR REPLACE INTO projected (seq, kind, key, at, json) VALUES (?1, ?2, ?3, ?4, ?5)",
            &[seq.into(), kind.into(), key.into(), self.at.into(), json.into()],
        )?;
        Ok(())
    }

    fn kept<T: DeserializeOwned>(&self, kind: &str, key: &str) -> Result<Option<T>, SqlFault> {
        let rows = self
            .sql
            .run("SELECT json FROM projected WHERE kind = ?1 AND key = ?2", &[kind.into(), key.into()])?;
        rows.first().map(|row| row.json(0)).transpose()
    }

    fn tell(&mut self, row: TimelineRow) -> Result<(), SqlFault> {
        let seq = self.next();
        let row = TimelineRow { seq, at: self.at, lane: Some(self.lane.to_owned()), ..row };
        self.keep("timeline", &seq.to_string(), seq, &row)
    }

    fn event(&self, kind: &str, text: &str) -> TimelineRow {
        let source = format!("lane:{}", self.lane);
        TimelineRow::new(&source, 0, self.at, kind, text).by(format!("lane {}", self.lane))
    }

    fn run(&mut self, run: &RunId, change: impl FnOnce(&mut RunRow)) -> Result<Option<RunRow>, SqlFault> {
        let Some(mut row) = self.kept::<RunRow>("run", run.as_str())? else { return Ok(None) };
        row.seq = self.next();
        change(&mut row);
        self.keep("run", run.as_str(), row.seq, &row)?;
        Ok(Some(row))
    }

    fn fact(&mut self, fact: &LaneFact) -> Result<(), SqlFault> {
        match fact {
            LaneFact::Assembled { attempt, candidate: Some(candidate), .. } => {
                let changes: Vec<String> =
                    candidate.members.iter().map(|member| member.change.to_string()).collect();
                let train = attempt.train.to_string();
                let seq = self.next();
                self.keep("members", &train, seq, &changes)?;
                let text = match changes.len() {
                    1 => format!("attempt {attempt} carries 1 change"),
                    many => format!("attempt {attempt} carries {many} changes"),
                };
                let event = self.event("testing", &text).about(&changes);
                self.tell(TimelineRow { attempt: Some(attempt.to_string()), ..event })
            }
            LaneFact::RunOpened { .. }
            | LaneFact::Leased { .. }
            | LaneFact::LeaseLost { .. }
            | LaneFact::Reported { .. } => self.ran(fact),
            LaneFact::Judged { change, version, verdict, runs, detail, .. } => {
                let seq = self.next();
                let name = serde_json::to_value(verdict).unwrap_or_default();
                let row = VerdictRow {
                    lane: self.lane.to_owned(),
                    seq,
                    at: self.at,
                    change: change.to_string(),
                    version: version.0,
                    verdict: name
                        .get("verdict")
                        .and_then(|name| name.as_str())
                        .unwrap_or_default()
                        .to_owned(),
                    detail: detail.clone(),
                    runs: lines(runs),
                };
                self.keep("verdict", &seq.to_string(), seq, &row)
            }
            LaneFact::ReplayBegan { .. } | LaneFact::ReplayEnded { .. } => self.replayed(fact),
            _ => Ok(()),
        }
    }

    fn ran(&mut self, fact: &LaneFact) -> Result<(), SqlFault> {
        match fact {
            LaneFact::RunOpened { run, train, purpose, commit, tree, count, .. } => {
                let members: Vec<String> = self.kept("members", &train.to_string())?.unwrap_or_default();
                let row = RunRow {
                    lane: self.lane.to_owned(),
                    run: run.to_string(),
                    seq: self.next(),
                    at: self.at,
                    ended: None,
                    train: train.0,
                    purpose: purpose.as_str().to_owned(),
                    commit_id: commit.to_string(),
                    tree: tree.to_string(),
                    changes: lines(members.iter().take(*count)),
                    runner: None,
                    result: "open".into(),
                    ran: 0,
                    skipped: 0,
                    failed: String::new(),
                };
                self.keep("run", run.as_str(), row.seq, &row)
            }
            LaneFact::Leased { run, runner, .. } => {
                let row = self.run(run, |row| {
                    row.runner = Some(runner.to_string());
                    row.result = "running".into();
                })?;
                self.told_of(row, "testing", &format!("took run {run}"))
            }
            LaneFact::LeaseLost { run, .. } => {
                let row = self.run(run, |row| row.result = "open".into())?;
                self.told_of(row, "run", &format!("lost run {run}: it goes to another"))
            }
            LaneFact::Reported { signed, fault, .. } => {
                let (at, result) = (self.at, &signed.result);
                let word = match (fault, result.proves_green()) {
                    (Some(_), _) => "incomplete",
                    (None, true) => "green",
                    (None, false) => "red",
                };
                let row = self.run(&signed.run, |row| {
                    row.ended = Some(at);
                    row.result = word.into();
                    (row.ran, row.skipped) = (result.ran, result.skipped);
                    row.failed = lines(&result.failed);
                })?;
                let failed = match result.failed.len() {
                    0 => String::new(),
                    many => format!(", {many} failed"),
                };
                let text = format!("run {} is {word}: {} tests{failed}", signed.run, result.ran);
                self.told_of(row, "run", &text)
            }
            _ => Ok(()),
        }
    }

    fn told_of(&mut self, row: Option<RunRow>, kind: &str, text: &str) -> Result<(), SqlFault> {
        let Some(row) = row else { return Ok(()) };
        let who = row.runner.clone().unwrap_or_default();
        let event =
            TimelineRow { run: Some(row.run), changes: row.changes, ..self.event(kind, text).by(who) };
        self.tell(event)
    }

    fn replayed(&mut self, fact: &LaneFact) -> Result<(), SqlFault> {
        match fact {
            LaneFact::ReplayBegan { change, version, replay, cause, early, .. } => {
                let cause = match cause {
                    Cause::Collision { paths } => {
                        let names: Vec<String> = paths.iter().map(|(path, _)| path.to_string()).collect();
                        format!("collision at {}", names.join(", "))
                    }
                    Cause::Interaction { with, .. } => {
                        let names: Vec<String> = with.iter().map(ToString::to_string).collect();
                        format!("interaction with {}", names.join(", "))
                    }
                };
                let row = ReplayRow {
                    lane: self.lane.to_owned(),
                    replay: replay.0,
                    seq: self.next(),
                    at: self.at,
                    ended: None,
                    change: change.to_string(),
                    version: version.0,
                    cause,
                    early: u8::from(early.is_some()),
                    outcome: "asked".into(),
                    made: None,
                    why: String::new(),
                    model: String::new(),
                    tokens_in: 0,
                    tokens_out: 0,
                    micro_usd: 0,
                    calls: 0,
                };
                self.keep("replay", &replay.to_string(), row.seq, &row)
            }
            LaneFact::ReplayEnded { replay, end, cost, .. } => {
                let Some(mut row) = self.kept::<ReplayRow>("replay", &replay.to_string())? else {
                    return Ok(());
                };
                let seq = self.next();
                // Made before a fault cut the decision off: its cost counts once.
                if row.seq >= seq {
                    return Ok(());
                }
                row.seq = seq;
                row.ended = Some(self.at);
                let (outcome, made, why) = match end {
                    ReplayEnd::Proposed { version } => ("proposed", Some(version.0), ""),
                    ReplayEnd::Prepared => ("prepared", None, ""),
                    ReplayEnd::Failed { why } => ("failed", None, why.as_str()),
                };
                (row.outcome, row.made, row.why) = (outcome.into(), made, why.into());
                row.model.clone_from(&cost.model);
                row.tokens_in += cost.tokens_in;
                row.tokens_out += cost.tokens_out;
                row.micro_usd += cost.micro_usd;
                row.calls += cost.calls;
                self.keep("replay", &replay.to_string(), row.seq, &row)
            }
            _ => Ok(()),
        }
    }

    /// What the board was told of single changes and of main.
    fn events(&mut self, events: &[Event]) -> Result<(), SqlFault> {
        for event in events.iter().filter(|event| is_kept(event)) {
            let row = self.event(&event.kind, &event.text).about(&event.change);
            self.tell(row)?;
        }
        Ok(())
    }
}

/// Makes the rows of the decisions that have none yet; half-made ones are made again alike.
pub(super) fn project(sql: &impl Sql, lane: &str) -> Result<(), Refusal> {
    loop {
        let after = store::number(sql, "projected")?;
        let rows = sql.run(
            "SELECT no, at, json, events FROM facts WHERE no > ?1 ORDER BY no LIMIT ?2",
            &[after.into(), DECISIONS.into()],
        )?;
        for row in &rows {
            let (no, at) = (row.number(0)?, Millis(row.number(1)?));
            let facts: Vec<LaneFact> = row.json(2)?;
            let mut projector = Projector { sql, lane, seq: no * ROWS_MAX, at: at.0 };
            for fact in &facts {
                projector.fact(fact)?;
            }
            if !row.text(3)?.is_empty() {
                projector.events(&row.json::<Vec<Event>>(3)?)?;
            }
            store::set_meta(sql, "projected", &no.to_string())?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// Is an event of the board kept in the index? Those of whole trains are told by the facts, with their runs.
fn is_kept(event: &Event) -> bool {
    event.change.is_some() || event.kind == "main"
}

/// Does a decision make rows?
fn makes_rows(facts: &[LaneFact], events: &[Event]) -> bool {
    let told = |fact: &LaneFact| {
        matches!(
            fact,
            LaneFact::Assembled { candidate: Some(_), .. }
                | LaneFact::RunOpened { .. }
                | LaneFact::Leased { .. }
                | LaneFact::LeaseLost { .. }
                | LaneFact::Reported { .. }
                | LaneFact::Judged { .. }
                | LaneFact::ReplayBegan { .. }
                | LaneFact::ReplayEnded { .. }
        )
    };
    facts.iter().any(told) || events.iter().any(is_kept)
}

/// Notes that a decision was saved: the rows of a train wait for its end, so that it costs few statements.
pub(super) fn decided(
    stored: &mut Stored,
    (facts, events): (&[LaneFact], &[Event]),
    rests: bool,
    now: Millis,
) {
    if makes_rows(facts, events) {
        stored.makes_rows = stored.last;
        stored.index_due.get_or_insert(now.plus(LATE_MS));
    }
    let ends = |fact: &LaneFact| {
        matches!(
            fact,
            LaneFact::Judged { .. }
                | LaneFact::Answered { .. }
                | LaneFact::Ended { .. }
                | LaneFact::ReplayBegan { .. }
                | LaneFact::ReplayEnded { .. }
        )
    };
    if rests || facts.iter().any(ends) || events.iter().any(is_kept) {
        stored.index_due = stored.index_due.map(|due| due.min(now.plus(GATHER_MS)));
    }
}

/// The last decision that makes rows and has not made them yet; 0: there is none.
pub(super) fn behind(sql: &impl Sql) -> Result<u64, Refusal> {
    let (mut after, mut last) = (store::number(sql, "projected")?, 0);
    loop {
        let rows = sql.run(
            "SELECT no, json, events FROM facts WHERE no > ?1 ORDER BY no LIMIT ?2",
            &[after.into(), DECISIONS.into()],
        )?;
        for row in &rows {
            after = row.number(0)?;
            let told = row.text(2)?;
            let events: Vec<Event> = if told.is_empty() { Vec::new() } else { row.json(2)? };
            if makes_rows(&row.json::<Vec<LaneFact>>(1)?, &events) {
                last = after;
            }
        }
        if rows.is_empty() {
            return Ok(last);
        }
    }
}

/// How many rows the index has not been sent.
pub(super) fn unsent(sql: &impl Sql) -> Result<u64, Refusal> {
    let after = store::number(sql, &cursor())?;
    let rows = sql.run("SELECT count(*) FROM projected WHERE seq > ?1", &[after.into()])?;
    Ok(rows.first().map_or(Ok(0), |row| row.number(0))?)
}

/// The rows after a number, and the last one's number.
fn page(sql: &impl Sql, after: u64) -> Result<(Bundle, u64), SqlFault> {
    let sizes = sql.run(
        "SELECT seq, length(json) FROM projected WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        &[after.into(), PAGE.into()],
    )?;
    let upto = page_end(&sizes, after, PAGE_BYTES)?;
    let rows = sql.run(
        "SELECT kind, json FROM projected WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
        &[after.into(), upto.into()],
    )?;
    let mut bundle = Bundle::default();
    for row in &rows {
        match row.text(0)? {
            "run" => bundle.runs.push(row.json(1)?),
            "verdict" => bundle.verdicts.push(row.json(1)?),
            "replay" => bundle.replays.push(row.json(1)?),
            "timeline" => bundle.timeline.push(row.json(1)?),
            _ => {}
        }
    }
    Ok((bundle, upto))
}

fn cursor() -> String {
    format!("indexed.{GENERATION}")
}

impl<P: Platform> Lane<P> {
    /// Sends what has waited long enough; what fails or is cut off is sent by a later alarm.
    pub(super) async fn index_due(&self, now: Millis) -> Result<(), Refusal> {
        let due = self.with(|loaded| loaded.stored.index_due)?;
        if due.is_none_or(|due| due > now) {
            return Ok(());
        }
        self.with(|loaded| loaded.stored.index_due = Some(now.plus(AGAIN_MS)))?;
        let more = self.to_index().await?;
        self.with(|loaded| {
            let stored = &mut loaded.stored;
            if more {
                stored.index_due = Some(now);
            } else if stored.makes_rows <= store::number(&self.sql, "projected")? {
                stored.index_due = None;
            }
            Ok(())
        })?
    }

    /// The rows go to the index, few statements for a page of them. Is there more to send?
    async fn to_index(&self) -> Result<bool, Refusal> {
        let (repo, lane) = self.with(|loaded| (loaded.repo.clone(), loaded.brain.name.clone()))?;
        let Some(repo) = repo else { return Ok(false) };
        project(&self.sql, lane.as_str())?;
        let writer = Writer::new(repo.as_str());
        for _ in 0..PAGES_MAX {
            let (after, rebuilds) = (store::number(&self.sql, &cursor())?, self.rebuilds.get());
            let (bundle, upto) = page(&self.sql, after)?;
            if upto == after {
                return Ok(false);
            }
            point("lane.index.before");
            writer.put_all(&self.index, &bundle).await?;
            point("lane.index.after");
            // A rebuild that began meanwhile goes on from where it set the cursor.
            if self.rebuilds.get() == rebuilds {
                store::set_meta(&self.sql, &cursor(), &upto.to_string())?;
            }
        }
        Ok(true)
    }

    /// Rows that the index has not been sent, and one for decisions that have not made theirs.
    pub(super) fn outbox(&self) -> Result<u64, Refusal> {
        let behind = self.with(|loaded| loaded.stored.makes_rows)? > store::number(&self.sql, "projected")?;
        Ok(unsent(&self.sql)? + u64::from(behind))
    }

    /// How many of the rows have gone to the index; `restart` sends them all once more.
    pub(super) fn reindex(&self, asked: &wire::Reindex, now: Millis) -> Result<wire::ReindexReply, Refusal> {
        self.with(|_| ())?;
        if asked.restart {
            self.rebuilds.set(self.rebuilds.get() + 1);
            store::set_meta(&self.sql, &cursor(), "0")?;
            self.with(|loaded| loaded.stored.index_due = Some(now))?;
        }
        let rows = self.sql.run("SELECT count(*) FROM projected", &[])?;
        let there = rows.first().map_or(Ok(0), |row| row.number(0))?;
        let (unsent, outbox) = (unsent(&self.sql)?, self.outbox()?);
        Ok(wire::ReindexReply { sent: there - unsent, total: there - unsent + outbox })
    }
}
