//! Effects: the log to the index, events to the board, packs to the sweep.
//!
//! Each effect follows the facts by a cursor: what it has not been told yet is its outbox. A repeat is
//! harmless: the index keeps the larger number, the board knows repeats by source and number.

use std::rc::Rc;

use yard_common::{Fact, FactNo, Millis, Refusal};
use yard_wire::board::{Event, Publish};
use yard_wire::names;
use yard_wire::repository as wire;

use super::fact_text::{Glance, LandedGlance, RowGlance, glance};
use super::{Platform, Repository};
use crate::blobs::{Blobs as _, DELETE_KEYS_MAX};
use crate::call::Calls as _;
use crate::index::Writer;
use crate::point;
use crate::sql::{Sql as _, SqlFault, Value, each_json};

/// How long effects are gathered before they go out, in milliseconds.
const GATHER_MS: u64 = 250;
/// When a failed effect is tried again, in milliseconds.
const RETRY_MS: u64 = 5_000;
/// How often the sweep looks, in milliseconds.
const SWEEP_MS: u64 = 3_600_000;
/// A pack announced and not catalogued is gone after this, in milliseconds: the longest push.
const STAGED_MS_MAX: u64 = 3_600_000;
/// A candidate that has not landed is gone after this, in milliseconds: assembly, test (6 h), landing.
const CANDIDATE_MS_MAX: u64 = 8 * 3_600_000;
/// Pages of facts that one alarm sends to the index: a rebuild goes on by the next.
const INDEX_PAGES_MAX: usize = 20;
/// Facts whose events go out in one call.
const EVENTS_MAX: u64 = 1000;

impl<P: Platform> Repository<P> {
    fn cursor(&self, name: &str) -> Result<u64, Refusal> {
        let rows = self.sql.run("SELECT value FROM meta WHERE key = ?1", &[name.into()])?;
        let text = rows.first().map(|row| row.text(0)).transpose()?;
        Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    fn set_cursor(&self, name: &str, upto: u64) -> Result<(), Refusal> {
        self.sql.run(
            "INSERT INTO meta (key, value) VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &[name.into(), upto.to_string().into()],
        )?;
        Ok(())
    }

    /// When the object wants to be woken, in milliseconds from now; `None`: nothing is to be done.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the tables fail.
    pub fn due(&self) -> Result<Option<u64>, Refusal> {
        let scalars = self.scalars()?;
        if scalars.repo.is_none() {
            return Ok(None);
        }
        let folded = scalars.folded.0;
        let parent = scalars.fork.is_none();
        if parent && (self.cursor(&index_cursor())? < folded || self.cursor("cursor.board")? < folded) {
            return Ok(Some(GATHER_MS));
        }
        let rows =
            self.sql.run("SELECT 1 FROM packs WHERE state <> 'live' AND state <> 'gone' LIMIT 1", &[])?;
        Ok(if rows.is_empty() && !self.heads_to_sweep()? { None } else { Some(SWEEP_MS) })
    }

    /// Does what is to be done; what fails is done by the next call. Answers with when that should be.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the tables fail.
    pub async fn alarm(&self, now: Millis) -> Result<Option<u64>, Refusal> {
        let remote = self.remote()?;
        let mut failed = false;
        if remote.fork.is_none() {
            failed |= self.to_index().await.is_err();
            failed |= self.to_board().await.is_err();
        }
        failed |= self.sweep_heads(now).is_err();
        failed |= self.sweep_packs(now).await.is_err();
        Ok(if failed { Some(RETRY_MS) } else { self.due()? })
    }

    /// The log goes to the index: few statements for a page of facts.
    async fn to_index(&self) -> Result<(), Refusal> {
        let cursor = index_cursor();
        for _ in 0..INDEX_PAGES_MAX {
            let (after, rebuilds) = (self.cursor(&cursor)?, self.rebuilds.get());
            if after >= self.scalars()?.folded.0 {
                return Ok(());
            }
            let (bundle, upto) = self.projected(after).await?;
            point("repository.index.before");
            let writer = self.writer()?;
            writer.put_all(&self.index, &bundle).await?;
            point("repository.index.after");
            // A rebuild that began meanwhile goes on from where it set the cursor.
            if self.rebuilds.get() == rebuilds {
                self.set_cursor(&cursor, upto)?;
            }
        }
        Ok(())
    }

    fn writer(&self) -> Result<Rc<Writer>, Refusal> {
        let mut writer = self.writer.borrow_mut();
        if let Some(writer) = &*writer {
            return Ok(Rc::clone(writer));
        }
        Ok(Rc::clone(writer.insert(Rc::new(Writer::new(self.remote()?.repo.as_str())))))
    }

    /// How far the log has gone to the index; `restart` sends all of it once more.
    pub(super) fn reindex(&self, asked: &wire::Reindex) -> Result<wire::ReindexReply, Refusal> {
        self.parent_only()?;
        let cursor = index_cursor();
        if asked.restart {
            self.rebuilds.set(self.rebuilds.get() + 1);
            self.set_cursor(&cursor, 0)?;
        }
        Ok(wire::ReindexReply { sent: self.cursor(&cursor)?, total: self.scalars()?.folded.0 })
    }

    /// Events go to the board, batched.
    async fn to_board(&self) -> Result<(), Refusal> {
        let repo = self.remote()?.repo;
        let source = names::repository(&names::Remote::parent(repo.clone()));
        loop {
            let folded = self.scalars()?.folded.0;
            let after = self.cursor("cursor.board")?;
            if after >= folded {
                return Ok(());
            }
            let rows = self.sql.run(
                "SELECT no, at, json FROM facts WHERE no > ?1 ORDER BY no LIMIT ?2",
                &[after.into(), EVENTS_MAX.into()],
            )?;
            let mut events = Vec::new();
            let mut upto = after;
            for row in &rows {
                upto = row.number(0)?;
                events.extend(events_of(
                    FactNo(upto),
                    Millis(row.number(1)?),
                    glance(row.text(2)?)?,
                    &source,
                ));
            }
            if !events.is_empty() {
                point("repository.board.before");
                self.calls.call(&names::board(&repo), &Publish { events }).await?;
                point("repository.board.after");
            }
            self.set_cursor("cursor.board", upto)?;
        }
    }

    /// Packs that nothing names are tombstoned, then deleted; the tombstone stays.
    async fn sweep_packs(&self, now: Millis) -> Result<(), Refusal> {
        let before = |span: u64| Value::from(now.0.saturating_sub(span));
        self.sql.run(
            "UPDATE packs SET state = 'dead', at = ?3 WHERE (state = 'staged' AND at < ?1)
               OR (state = 'candidate' AND at < ?2)",
            &[before(STAGED_MS_MAX), before(CANDIDATE_MS_MAX), now.0.into()],
        )?;
        // A train that is older than one that landed of the same lane will not come again.
        self.sql.run(
            "UPDATE packs SET state = 'dead', at = ?1 WHERE state = 'candidate' AND EXISTS
               (SELECT 1 FROM packs AS landed WHERE landed.state = 'live' AND landed.lane = packs.lane
                  AND landed.train > packs.train)",
            &[now.0.into()],
        )?;
        let rows = self.sql.run(
            "SELECT key FROM packs WHERE state = 'dead' LIMIT ?1",
            &[((DELETE_KEYS_MAX / 2) as u64).into()],
        )?;
        let keys =
            rows.iter().map(|row| Ok(row.text(0)?.to_owned())).collect::<Result<Vec<_>, SqlFault>>()?;
        if keys.is_empty() {
            return Ok(());
        }
        point("repository.sweep.tombstoned");
        let indexes = keys.iter().map(|key| format!("{key}.idx"));
        let all: Vec<String> = keys.iter().cloned().chain(indexes).collect();
        self.blobs.delete(&all).await?;
        point("repository.sweep.deleted");
        each_json(
            &self.sql,
            "UPDATE packs SET state = 'gone', idx = NULL WHERE key IN (SELECT value FROM json_each(?1))",
            &keys,
            &[],
        )?;
        self.sql
            .run("DELETE FROM candidates WHERE at < ?1", &[now.0.saturating_sub(CANDIDATE_MS_MAX).into()])?;
        Ok(())
    }

    /// What is still to do.
    pub(super) fn sweep(&self) -> Result<wire::SweepReply, Refusal> {
        let folded = self.scalars()?.folded.0;
        let outbox = match self.remote()?.fork {
            Some(_) => 0,
            None => {
                let index = folded.saturating_sub(self.cursor(&index_cursor())?);
                index.max(folded.saturating_sub(self.cursor("cursor.board")?))
            }
        };
        let rows =
            self.sql.run("SELECT count(*) FROM packs WHERE state IN ('staged', 'candidate', 'dead')", &[])?;
        let staged = rows.first().map_or(Ok(0), |row| row.number(0))?;
        Ok(wire::SweepReply { outbox, staged })
    }
}

/// Where the cursor of the index is kept, for the form that its tables have.
fn index_cursor() -> String {
    format!("cursor.index.{}", crate::index::GENERATION)
}

/// What a fact tells those who look on; the events of one fact are numbered within it.
fn events_of(no: FactNo, at: Millis, fact: Glance, source: &str) -> Vec<Event> {
    let event = |place: usize, kind: &str, change, lane, text: String| Event {
        source: source.to_owned(),
        number: no.0.saturating_mul(1000).saturating_add(place as u64),
        at,
        kind: kind.to_owned(),
        change,
        lane,
        text,
    };
    let fact = match fact {
        Glance::Submitted(submitted) => {
            let RowGlance { change, lane, intent, .. } = submitted.row;
            let title: String = intent.title.chars().take(200).collect();
            return vec![event(0, "submitted", Some(change), Some(lane), title)];
        }
        Glance::Landed(LandedGlance { request, .. }) => {
            let lane = request.key.lane;
            let landed = request.changes.into_iter().enumerate().map(|(place, listed)| {
                let text = format!("landed as {}", listed.commit);
                event(place, "landed", Some(listed.change), Some(lane.clone()), text)
            });
            return landed.collect();
        }
        Glance::Other(fact) => *fact,
    };
    match fact {
        Fact::DirectPush { new, reason, .. } => {
            vec![event(0, "main", None, None, format!("main was pushed to {new} {reason}").trim().to_owned())]
        }
        Fact::Closed { change, stage, by, reason, .. } => {
            let kind = serde_json::to_string(&stage).unwrap_or_default();
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            vec![event(0, kind.trim_matches('"'), Some(change), None, format!("closed by {by}{why}"))]
        }
        Fact::HoldSet { change, reason, .. } => {
            let (kind, text) = reason.map_or(("released", String::new()), |reason| ("held", reason));
            vec![event(0, kind, Some(change), None, text)]
        }
        Fact::Requeued { change, .. } => {
            vec![event(0, "requeued", Some(change), None, "offered again".into())]
        }
        Fact::FreezeSet { reason } => {
            let (kind, text) = reason.map_or(("thawed", String::new()), |reason| ("frozen", reason));
            vec![event(0, kind, None, None, text)]
        }
        _ => Vec::new(),
    }
}
