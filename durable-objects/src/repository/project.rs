//! What the log says to the index: versions with their intents, landed changes with the summary of their
//! proof, and who did what when.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use yard_common::edit_list::EditList;
use yard_common::fact::Terminal;
use yard_common::landing::{How, LandChange, LandRequest};
use yard_common::submission::{Submission, Via};
use yard_common::{Fact, FactNo, Millis, Refusal};
use yard_wire::api::{Proof, ProvingRun, ReplaySummary};
use yard_wire::names;

use super::fact_text::{submission, whole};
use super::{Platform, Repository};
use crate::blobs::Blobs as _;
use crate::index::{Bundle, RecordRow, TimelineRow, VersionRow, lines};
use crate::sql::{Row, Sql as _, SqlFault, each_json, page_end};

/// Facts of one page at most, and their bytes: a landing may have 1 MB.
const PAGE_FACTS: u64 = 500;
const PAGE_BYTES: u64 = 4 << 20;
/// The source of the repository's own events.
const SOURCE: &str = "repository";

impl<P: Platform> Repository<P> {
    /// The rows of the facts after a number, and the last fact that they cover.
    pub(super) async fn projected(&self, after: u64) -> Result<(Bundle, u64), Refusal> {
        let sizes = self.sql.run(
            "SELECT no, length(json) FROM facts WHERE no > ?1 ORDER BY no LIMIT ?2",
            &[after.into(), PAGE_FACTS.into()],
        )?;
        let upto = page_end(&sizes, after, PAGE_BYTES)?;
        let rows = self.sql.run(
            "SELECT no, at, json FROM facts WHERE no > ?1 AND no <= ?2 ORDER BY no",
            &[after.into(), upto.into()],
        )?;
        let mut bundle = Bundle::default();
        for row in rows {
            let (no, at, fact) = (row.number(0)?, Millis(row.number(1)?), whole(row.text(2)?)?);
            bundle.timeline.extend(told(FactNo(no), at, &fact));
            match fact {
                Fact::Submitted { mut row, .. } => {
                    row.edits = self.edits(row.list.as_ref(), row.edits).await?;
                    bundle.versions.push(version(&row, no));
                }
                Fact::Landed { mut request, untested, at, .. } => {
                    for listed in &mut request.changes {
                        listed.edits =
                            self.edits(listed.list.as_ref(), std::mem::take(&mut listed.edits)).await?;
                    }
                    let untested = untested.map(|untested| text_of(&untested));
                    bundle.records.extend(self.landed(no, &request, untested, at)?);
                }
                _ => {}
            }
        }
        Ok((bundle, upto))
    }

    /// The edits, from the bucket where they lie there; none where they are lost: the row is found by
    /// everything but its paths.
    async fn edits<T: DeserializeOwned>(
        &self,
        list: Option<&EditList>,
        inline: Vec<T>,
    ) -> Result<Vec<T>, Refusal> {
        let Some(list) = list else { return Ok(inline) };
        let value = self.blobs.get(&names::edit_list(&self.remote()?.repo, list)).await?;
        Ok(list.read(value.as_deref()).unwrap_or_default())
    }

    fn landed(
        &self,
        no: u64,
        request: &LandRequest,
        untested: Option<String>,
        at: Millis,
    ) -> Result<Vec<RecordRow>, Refusal> {
        let wanted = request.changes.iter().map(|listed| (&listed.change, listed.version));
        let rows = each_json(
            &self.sql,
            "SELECT j.key, f.json FROM json_each(?1) AS j JOIN submissions AS s
               ON s.change = json_extract(j.value, '$[0]') AND s.version = json_extract(j.value, '$[1]')
             JOIN facts AS f ON f.no = s.fact ORDER BY j.key",
            wanted,
            &[],
        )?;
        let runs: Vec<ProvingRun> = request
            .runs
            .iter()
            .map(|run| ProvingRun {
                run: run.run.clone(),
                tree: run.tree,
                ran: run.result.ran,
                skipped: run.result.skipped,
            })
            .collect();
        let one = |row: &Row| -> Result<Option<RecordRow>, SqlFault> {
            let place = usize::try_from(row.number(0)?).unwrap_or(usize::MAX);
            let Some(listed) = request.changes.get(place) else { return Ok(None) };
            let row = submission(row.text(1)?)?;
            let proof = Proof { how: how(listed), runs: runs.clone(), untested: untested.clone() };
            Ok(Some(record(&row, listed, request, &proof, (no, place, at))))
        };
        let records = rows.iter().filter_map(|row| one(row).transpose());
        Ok(records.collect::<Result<Vec<_>, _>>()?)
    }
}

/// A unit variant's name, as in JSON.
fn text_of<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default().trim_matches('"').to_owned()
}

fn version(row: &Submission, seq: u64) -> VersionRow {
    VersionRow {
        change: row.change.to_string(),
        version: row.version.0,
        seq,
        at: row.at.0,
        fork: row.fork.as_ref().map(ToString::to_string),
        agent: row.intent.agent.clone(),
        model: row.intent.model.clone(),
        title: row.intent.title.clone(),
        task: row.intent.task.clone(),
        intent: serde_json::to_string(&row.intent).unwrap_or_default(),
        lane: row.lane.to_string(),
        via: text_of(&row.via),
        head: row.head.to_string(),
        paths: lines(row.edits.iter().map(|edit| &edit.path)),
        replay_of: row.replay.as_ref().map(|origin| origin.of.0),
    }
}

/// How many paths came about in which way.
fn how(listed: &LandChange) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for edit in &listed.edits {
        let name = match &edit.how {
            How::Theirs => "theirs".to_owned(),
            How::Same => "same".to_owned(),
            How::Merge => "clean merge".to_owned(),
            How::Rule(name) => format!("rule {name}"),
        };
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

fn record(
    row: &Submission,
    listed: &LandChange,
    request: &LandRequest,
    proof: &Proof,
    (seq, place, at): (u64, usize, Millis),
) -> RecordRow {
    let replay = row.replay.as_ref().map(|origin| {
        let summary = ReplaySummary {
            reviewed: origin.reviewed,
            replay: origin.no,
            compared: origin.compared.clone(),
            differing_lines: origin.differing_lines,
            cost: origin.cost.clone(),
        };
        serde_json::to_string(&summary).unwrap_or_default()
    });
    let paths = listed.edits.iter().flat_map(|edit| edit.from.iter().chain([&edit.path]));
    RecordRow {
        change: row.change.to_string(),
        version: row.version.0,
        commit_id: listed.commit.to_string(),
        fork: row.fork.as_ref().map(ToString::to_string),
        agent: row.intent.agent.clone(),
        model: row.intent.model.clone(),
        title: row.intent.title.clone(),
        task: row.intent.task.clone(),
        intent: serde_json::to_string(&row.intent).unwrap_or_default(),
        lane: request.key.lane.to_string(),
        attempt: request.key.to_string(),
        paths: lines(paths),
        proof: serde_json::to_string(proof).unwrap_or_default(),
        replay,
        seq,
        place,
        at: at.0,
    }
}

/// Who offers it: the agent, else the fork, else the author.
fn author(row: &Submission) -> String {
    if row.via == Via::Replay {
        return format!("lane {}", row.lane);
    }
    match (&row.fork, row.intent.agent.is_empty()) {
        (_, false) => row.intent.agent.clone(),
        (Some(fork), true) => fork.to_string(),
        (None, true) => row.author.name.clone(),
    }
}

fn with(text: &str, reason: &str) -> String {
    if reason.is_empty() { text.to_owned() } else { format!("{text}: {reason}") }
}

/// What a fact says of who did what; the events of one fact are numbered within it.
fn told(no: FactNo, at: Millis, fact: &Fact) -> Vec<TimelineRow> {
    let seq = no.0.saturating_mul(1000);
    let event = |kind: &str, text: &str| TimelineRow::new(SOURCE, seq, at.0, kind, text);
    let one = match fact {
        Fact::Submitted { row, .. } => {
            let lane = Some(row.lane.to_string());
            let text = format!("version {}: {}", row.version, row.intent.title);
            TimelineRow { lane, ..event("submitted", &text).by(author(row)).about([&row.change]) }
        }
        Fact::SubmissionRefused { refusal, .. } => event("refused", &refusal.to_string()),
        Fact::Landed { request, .. } => return landed(seq, at, request),
        Fact::DirectPush { new, reason, rewritten, restored, .. } => {
            let text = with(&format!("main was pushed to {new}"), reason);
            event("main", &text).by("an admin").about(rewritten.iter().chain(restored))
        }
        Fact::Closed { change, stage, by, reason, .. } => {
            let text = match stage {
                Terminal::Landed => "closed as landed",
                Terminal::Withdrawn => "taken back",
                Terminal::AlreadyOnMain => "main has all that it wants",
                Terminal::Expired => "it waited for its author too long",
            };
            event(&text_of(stage), &with(text, reason)).by(by).about([change])
        }
        Fact::HoldSet { change, reason: Some(reason), by } => event("held", reason).by(by).about([change]),
        Fact::HoldSet { change, reason: None, by } => event("released", "released").by(by).about([change]),
        Fact::Requeued { change, by } => event("requeued", "offered again").by(by).about([change]),
        Fact::Approved { change, version, by } => {
            event("approved", &format!("version {version} approved")).by(by).about([change])
        }
        Fact::FreezeSet { reason: Some(reason) } => event("frozen", reason).by("an admin"),
        Fact::FreezeSet { reason: None } => event("thawed", "landing goes on").by("an admin"),
        Fact::Claimed { fork, paths, fence, .. } => {
            let names: Vec<String> = paths.iter().take(20).map(ToString::to_string).collect();
            let who = fork.as_ref().map_or_else(|| "the repository".to_owned(), ToString::to_string);
            event("claimed", &format!("claim {fence} on {}", names.join(", "))).by(who)
        }
        Fact::ClaimReleased { fence } => event("unclaimed", &format!("claim {fence} was given back")),
        Fact::OwnerSet { change, lane, .. } => {
            event("owner", &format!("handed over to lane {lane}")).about([change])
        }
        Fact::ProtectedSet { protected: true } => event("protected", "direct pushes are forbidden"),
        Fact::ProtectedSet { protected: false } => event("unprotected", "an admin may push directly"),
        Fact::LandingRefused { .. } | Fact::RefMoved { .. } => return Vec::new(),
    };
    vec![one]
}

fn landed(seq: u64, at: Millis, request: &LandRequest) -> Vec<TimelineRow> {
    let lane = &request.key.lane;
    let events = request.changes.iter().zip(seq..).map(|(listed, seq)| TimelineRow {
        lane: Some(lane.to_string()),
        attempt: Some(request.key.to_string()),
        ..TimelineRow::new(SOURCE, seq, at.0, "landed", &format!("landed as {}", listed.commit))
            .by(format!("lane {lane}"))
            .about([&listed.change])
    });
    events.collect()
}
