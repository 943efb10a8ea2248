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

use super::{Lane, store};
use crate::index::{Bundle, GENERATION, ReplayRow, RunRow, TimelineRow, VerdictRow, Writer, lines};
use crate::point;
use crate::repository::Platform;
use crate::sql::{Sql, SqlFault};

/// Rows that one decision makes at most: their numbers are the decision's times this.
const ROWS_MAX: u64 = 1_000;
/// Decisions read at once: an assembly may have 1 MB.
const DECISIONS: u64 = 20;
/// Rows sent at once.
const PAGE: u64 = 500;
/// Pages that one alarm sends: a rebuild goes on by the next.
const PAGES_MAX: usize = 20;

/// Makes the rows of one decision.
struct Projector<'a, S: Sql> {
    sql: &'a S,
    lane: &'a str,
    seq: u64,
    last: u64,
    at: u64,
}

impl<S: Sql> Projector<'_, S> {
    fn next(&mut self) -> u64 {
        self.seq = (self.seq + 1).min(self.last);
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
        let rows = self.sql.run(
            "SELECT json FROM projected WHERE kind = ?1 AND key = ?2",
            &[kind.into(), key.into()],
        )?;
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
                    verdict: name.get("verdict").and_then(|name| name.as_str()).unwrap_or_default().to_owned(),
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
        let event = TimelineRow { run: Some(row.run), changes: row.changes, ..self.event(kind, text).by(who) };
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
        for event in events.iter().filter(|event| event.change.is_some() || event.kind == "main") {
            let row = self.event(&event.kind, &event.text).about(&event.change);
            self.tell(row)?;
        }
        Ok(())
    }
}

/// Makes the rows of the decisions that have none yet; half-made ones are made again alike.
fn project(sql: &impl Sql, lane: &str) -> Result<(), Refusal> {
    loop {
        let after = store::number(sql, "projected")?;
        let rows = sql.run(
            "SELECT no, at, json, events FROM facts WHERE no > ?1 ORDER BY no LIMIT ?2",
            &[after.into(), DECISIONS.into()],
        )?;
        for row in &rows {
            let (no, at) = (row.number(0)?, Millis(row.number(1)?));
            let facts: Vec<LaneFact> = row.json(2)?;
            let seq = no * ROWS_MAX;
            let mut projector = Projector { sql, lane, seq, last: seq + ROWS_MAX - 1, at: at.0 };
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

/// The rows after a number, and the last one's number.
fn unsent(sql: &impl Sql, after: u64) -> Result<(Bundle, u64), SqlFault> {
    let rows = sql.run(
        "SELECT seq, kind, json FROM projected WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        &[after.into(), PAGE.into()],
    )?;
    let (mut bundle, mut upto) = (Bundle::default(), after);
    for row in &rows {
        upto = row.number(0)?;
        match row.text(1)? {
            "run" => bundle.runs.push(row.json(2)?),
            "verdict" => bundle.verdicts.push(row.json(2)?),
            "replay" => bundle.replays.push(row.json(2)?),
            "timeline" => bundle.timeline.push(row.json(2)?),
            _ => {}
        }
    }
    Ok((bundle, upto))
}

fn cursor() -> String {
    format!("indexed.{GENERATION}")
}

impl<P: Platform> Lane<P> {
    /// The rows go to the index, few statements for a page of them. Is there more to send?
    pub(super) async fn to_index(&self) -> Result<bool, Refusal> {
        let (repo, lane) = self.with(|loaded| (loaded.repo.clone(), loaded.brain.name.clone()))?;
        let Some(repo) = repo else { return Ok(false) };
        project(&self.sql, lane.as_str())?;
        let writer = Writer::new(repo.as_str());
        for _ in 0..PAGES_MAX {
            let after = store::number(&self.sql, &cursor())?;
            let (bundle, upto) = unsent(&self.sql, after)?;
            if upto == after {
                return Ok(false);
            }
            point("lane.index.before");
            writer.put_all(&self.index, &bundle).await.map_err(|fault| {
                crate::points::log(&format!("index: {fault}"));
                Refusal::Internal { during: "writing the index".into() }
            })?;
            point("lane.index.after");
            // A rebuild that began meanwhile goes on from where it set the cursor.
            if store::number(&self.sql, &cursor())? == after {
                store::set_meta(&self.sql, &cursor(), &upto.to_string())?;
            }
        }
        Ok(true)
    }

    /// How far the rows have gone to the index; `restart` sends them all once more.
    pub(super) fn reindex(&self, asked: &wire::Reindex, now: Millis) -> Result<wire::ReindexReply, Refusal> {
        self.with(|_| ())?;
        if asked.restart {
            store::set_meta(&self.sql, &cursor(), "0")?;
            self.with(|loaded| loaded.stored.gathers_since.get_or_insert(now).0)?;
        }
        let rows = self.sql.run("SELECT max(seq) FROM projected", &[])?;
        let total = rows.first().filter(|row| !row.is_null(0)).map_or(Ok(0), |row| row.number(0))?;
        Ok(wire::ReindexReply { sent: store::number(&self.sql, &cursor())?, total })
    }
}
