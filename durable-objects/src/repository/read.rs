//! Methods that only read: catalogue, graph, pull, changes, facts.

use yard_common::bytes::Base64;
use yard_common::landing::PackRef;
use yard_common::{ChangeId, Fact, FactNo, Millis, Refusal};
use yard_landing::{Ledger as _, turn};
use yard_wire::repository as wire;

use super::fact_text::without_edits;
use super::ledger::{KnownRows, claim_of, parents_of};
use super::{Platform, Repository};
use crate::sql::{Row, Sql as _, SqlFault, Value, each_json};

/// Commits in one reply of the graph.
const GRAPH_COMMITS_MAX: u64 = 20_000;
/// Facts in one reply, in bytes of their JSON.
const FACTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changes in one reply.
const CHANGES_MAX: u32 = 1000;
/// Changes named when a prefix fits several.
const FOUND_MAX: u64 = 10;
/// The facts that lanes read.
const LANE_KINDS: &str = "'submitted', 'landed', 'landing-refused', 'closed', 'hold-set', 'freeze-set', \
     'requeued', 'approved', 'direct-push', 'owner-set'";

fn pack_of(row: &Row) -> Result<wire::IndexedPack, SqlFault> {
    let objects = u32::try_from(row.number(2)?).unwrap_or(u32::MAX);
    let pack = PackRef { key: row.parse(0, "pack key")?, bytes: row.number(1)?, objects };
    let index = if row.is_null(3) { None } else { Some(Base64(row.blob(3)?.to_vec())) };
    Ok(wire::IndexedPack { pack, index })
}

impl<P: Platform> Repository<P> {
    /// The packs after a place.
    pub(super) fn catalogue(&self, asked: &wire::Catalogue) -> Result<wire::CatalogueReply, Refusal> {
        let remote = self.remote()?;
        let scalars = self.scalars()?;
        let since = if asked.generation == scalars.generation { asked.since } else { 0 };
        let rows = self.sql.run(
            "SELECT key, bytes, objects, idx FROM packs WHERE place > ?1 ORDER BY place",
            &[since.into()],
        )?;
        let mut packs = rows.iter().map(pack_of).collect::<Result<Vec<_>, _>>()?;
        if let Some(attempt) = &asked.attempt {
            let rows = self.sql.run(
                "SELECT key, bytes, objects, idx FROM packs WHERE attempt = ?1 AND state = 'candidate'",
                &[attempt.to_string().into()],
            )?;
            packs.extend(rows.iter().map(pack_of).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(wire::CatalogueReply {
            generation: scalars.generation,
            packs,
            next: scalars.place,
            parent: remote.fork.map(|_| remote.repo),
        })
    }

    /// One pack of the catalogue or of a candidate.
    pub(super) fn pack(&self, key: &str) -> Result<Option<wire::IndexedPack>, Refusal> {
        let rows = self.sql.run(
            "SELECT key, bytes, objects, idx FROM packs WHERE key = ?1 AND state IN ('live', 'candidate')",
            &[key.into()],
        )?;
        Ok(rows.first().map(pack_of).transpose()?)
    }

    /// The packs of staged candidates by their tips.
    pub(super) fn candidates(
        &self,
        asked: &wire::Candidates,
    ) -> Result<Vec<Option<wire::IndexedPack>>, Refusal> {
        let packs = asked.tips.iter().map(|tip| {
            let rows = self.sql.run(
                "SELECT p.key, p.bytes, p.objects, p.idx FROM candidates AS c
                 JOIN packs AS p ON p.attempt = c.attempt
                 WHERE c.tip = ?1 AND p.state IN ('live', 'candidate') ORDER BY c.at DESC LIMIT 1",
                &[tip.into()],
            )?;
            Ok(rows.first().map(pack_of).transpose()?)
        });
        packs.collect()
    }

    /// The commits after a place.
    pub(super) fn graph(&self, asked: &wire::Graph) -> Result<wire::GraphReply, Refusal> {
        self.remote()?;
        let rows = self.sql.run(
            "SELECT no, id, tree, parents, seconds FROM commits WHERE no > ?1 ORDER BY no LIMIT ?2",
            &[asked.since.into(), GRAPH_COMMITS_MAX.into()],
        )?;
        let next = rows.last().map_or(Ok(asked.since), |row| row.number(0))?;
        let commits = rows.iter().map(|row| commit_info(row, 1)).collect::<Result<Vec<_>, _>>()?;
        Ok(wire::GraphReply { commits, next })
    }

    /// Facts for a lane, and the world as it is now.
    pub(super) fn pull(&self, asked: &wire::Pull, now: Millis) -> Result<wire::PullReply, Refusal> {
        self.parent_only()?;
        let newest = self.scalars()?.folded;
        let limit = asked.limit.clamp(1, 10_000);
        let rows = self.sql.run(
            &format!(
                "SELECT no, length(json) FROM facts WHERE no > ?1 AND kind IN ({LANE_KINDS})
                 ORDER BY no LIMIT ?2"
            ),
            &[asked.after.0.into(), limit.into()],
        )?;
        let (mut bytes, mut last, mut cut) = (0usize, asked.after, rows.len() >= limit as usize);
        for row in &rows {
            bytes = bytes.saturating_add(usize::try_from(row.number(1)?).unwrap_or(usize::MAX));
            if bytes > FACTS_BYTES_MAX && last > asked.after {
                cut = true;
                break;
            }
            last = FactNo(row.number(0)?);
        }
        let rows = self.sql.run(
            &format!(
                "SELECT no, json FROM facts WHERE no > ?1 AND no <= ?2 AND kind IN ({LANE_KINDS}) ORDER BY no"
            ),
            &[asked.after.0.into(), last.0.into()],
        )?;
        let facts = rows.iter().map(|row| Ok((FactNo(row.number(0)?), without_edits(row.text(1)?)?)));
        let facts = facts.collect::<Result<Vec<_>, SqlFault>>()?;
        let upto = if cut { last } else { newest.max(asked.after) };
        Ok(wire::PullReply { facts, upto, more: cut && last < newest, view: self.view(asked, now)? })
    }

    fn view(&self, asked: &wire::Pull, now: Millis) -> Result<wire::View, Refusal> {
        let ledger = self.ledger()?;
        let tree = |id| ledger.commit(&id).map(|info| info.tree);
        let rows = self.sql.run(
            "SELECT fence, until, json FROM claims WHERE ended = 0 AND until > ?1 ORDER BY fence",
            &[now.0.into()],
        )?;
        let claims = rows.iter().map(|row| {
            let claim = claim_of(row)?;
            let (fork, paths, fence, until) = (claim.fork, claim.paths, claim.fence, claim.until);
            Ok(wire::ClaimView { fork, paths, fence, until })
        });
        let view = wire::View {
            head: ledger.scalars.main,
            head_tree: ledger.scalars.main.and_then(tree),
            epoch: ledger.scalars.epoch,
            owner_epoch: ledger.lane_epoch(&asked.lane),
            notes_head: ledger.scalars.notes,
            notes_tree: ledger.scalars.notes.and_then(tree),
            frozen: ledger.scalars.frozen.clone(),
            claims: claims.collect::<Result<Vec<_>, SqlFault>>()?,
            turn: turn::holder(&ledger.scalars.turns, now),
            tip_tested: ledger.scalars.tip_tested,
        };
        ledger.check()?;
        Ok(view)
    }

    /// Changes, newest first.
    pub(super) fn changes(&self, asked: &wire::Changes) -> Result<Vec<wire::ChangeView>, Refusal> {
        self.parent_only()?;
        let newest = "s.version = (SELECT max(version) FROM submissions WHERE change = s.change)";
        let rows = if asked.ids.is_empty() {
            let before = asked.before.unwrap_or(u64::MAX >> 12);
            let limit = asked.limit.clamp(1, CHANGES_MAX);
            self.sql.run(
                &format!(
                    "SELECT s.change FROM submissions AS s WHERE s.seq < ?1 AND {newest}
                     ORDER BY s.seq DESC LIMIT ?2"
                ),
                &[before.into(), limit.into()],
            )?
        } else {
            each_json(
                &self.sql,
                &format!(
                    "SELECT s.change FROM json_each(?1) AS j JOIN submissions AS s ON s.change = j.value
                     WHERE {newest} ORDER BY s.seq DESC"
                ),
                &asked.ids,
                &[],
            )?
        };
        let ids = rows.iter().map(|row| row.parse(0, "change id")).collect::<Result<Vec<ChangeId>, _>>()?;
        let ledger = self.ledger()?;
        ledger.prefetch(&ids, &mut KnownRows::new());
        let views = ids.iter().filter_map(|change| {
            let row = ledger.newest(change)?;
            let state = ledger.state(change);
            Some(wire::ChangeView {
                row: (*row).clone(),
                landed: state.landed.map(|standing| standing.commit),
                closed: state.closed.map(|closed| closed.stage),
                held: state.hold,
                rewritten: state.rewritten.is_some(),
            })
        });
        let views = views.collect();
        ledger.check()?;
        Ok(views)
    }

    /// The changes whose ids begin with a text.
    pub(super) fn find(&self, asked: &wire::Find) -> Result<Vec<ChangeId>, Refusal> {
        self.parent_only()?;
        // Ids are ASCII without '~', which sorts behind all that they are made of.
        let rows = self.sql.run(
            "SELECT DISTINCT change FROM submissions WHERE change >= ?1 AND change < ?2 ORDER BY change LIMIT ?3",
            &[asked.prefix.as_str().into(), format!("{}~", asked.prefix).into(), FOUND_MAX.into()],
        )?;
        let ids = rows.iter().map(|row| row.parse(0, "change id")).collect::<Result<Vec<ChangeId>, _>>()?;
        let whole = ids.iter().find(|id| id.as_str() == asked.prefix).cloned();
        Ok(whole.map_or(ids, |id| vec![id]))
    }

    /// Facts, whole.
    pub(super) fn facts(&self, asked: &wire::Facts) -> Result<Vec<(FactNo, Millis, Fact)>, Refusal> {
        self.remote()?;
        let limit = asked.limit.clamp(1, 10_000);
        let mut params: Vec<Value> = vec![asked.after.0.into(), limit.into()];
        let statement = match &asked.change {
            None => "SELECT no, at, json FROM facts WHERE no > ?1 ORDER BY no LIMIT ?2",
            Some(change) => {
                params.push(change.as_str().into());
                "SELECT f.no, f.at, f.json FROM fact_changes AS c JOIN facts AS f ON f.no = c.no
                 WHERE c.change = ?3 AND c.no > ?1 ORDER BY c.no LIMIT ?2"
            }
        };
        let mut bytes = 0;
        let mut facts = Vec::new();
        for row in self.sql.run(statement, &params)? {
            bytes += row.text(2)?.len();
            if bytes > FACTS_BYTES_MAX && !facts.is_empty() {
                break;
            }
            facts.push((FactNo(row.number(0)?), Millis(row.number(1)?), row.json(2)?));
        }
        Ok(facts)
    }
}

/// Reads a row `id, tree, parents, seconds` from column `at` on.
pub(super) fn commit_info(row: &Row, at: usize) -> Result<wire::CommitInfo, SqlFault> {
    Ok(wire::CommitInfo {
        id: row.id(at)?,
        tree: row.id(at + 1)?,
        parents: parents_of(row.text(at + 2)?),
        seconds: row.number(at + 3)?,
    })
}
