//! Heads of API submissions: rows until somebody asks for them as git objects.
//!
//! `heads` holds the commit itself, `contents` its new blobs; the trees follow from base and edits. The edge
//! builds them on demand into one pack, which is catalogued here together with `refs/changes/ID/VERSION`.
//! What has landed can be built for [`KEPT_MS`] more: work that was based on it while it was open is still
//! to be taken.

use yard_common::bytes::Base64;
use yard_common::edit_list::EditList;
use yard_common::limits::CANDIDATE_PACK_BYTES_MAX;
use yard_common::{ChangeId, Fact, Millis, ObjectId, RefName, Refusal, Version};
use yard_git::Mode;
use yard_landing::Ledger as _;
use yard_wire::repository as wire;

use super::{Platform, Repository};
use crate::sql::{Row, Sql as _, SqlFault, each_ids, each_json};

/// How long a landed head can still be built, in milliseconds: 1 h at 350 changes/s of 4 kB are 5 GB, half of
/// what an object's tables may hold.
const KEPT_MS: u64 = 3_600_000;
/// Changes whose contents one sweep drops.
const SWEPT_MAX: u64 = 1_000;

fn place(row: &Row, at: usize) -> Result<(ChangeId, Version), SqlFault> {
    Ok((row.parse(at, "change id")?, Version(row.number(at + 1)?)))
}

fn name_of(change: &ChangeId, version: Version) -> Result<RefName, Refusal> {
    Ok(RefName::new(format!("refs/changes/{change}/{version}"))?)
}

impl<P: Platform> Repository<P> {
    /// Keeps the head of an API submission.
    pub(super) fn put_head(&self, accepted: &wire::Accepted, bytes: &Base64) -> Result<(), Refusal> {
        self.sql.run(
            "INSERT OR REPLACE INTO heads (change, version, id, bytes) VALUES (?1, ?2, ?3, ?4)",
            &[
                accepted.change.as_str().into(),
                accepted.version.0.into(),
                accepted.head.into(),
                crate::sql::Value::Blob(bytes.0.clone()),
            ],
        )?;
        Ok(())
    }

    /// The refs of heads that have no objects yet.
    pub(super) fn head_refs(&self) -> Result<Vec<wire::RefEntry>, Refusal> {
        let rows = self.sql.run(
            "SELECT h.change, h.version, h.id FROM heads AS h JOIN submissions AS s
               ON s.change = h.change AND s.version = h.version",
            &[],
        )?;
        let entry = |row: &Row| {
            let (change, version) = place(row, 0)?;
            Ok(wire::RefEntry { name: name_of(&change, version)?, id: row.id(2)?, peeled: None })
        };
        rows.iter().map(entry).collect()
    }

    /// The head that a ref names, where that is not built yet.
    pub(super) fn head_named(&self, name: &RefName) -> Result<Option<ObjectId>, Refusal> {
        let parts = name.as_str().strip_prefix("refs/changes/").and_then(|rest| rest.split_once('/'));
        let Some((change, version)) = parts else { return Ok(None) };
        let Ok(version) = version.parse::<u32>() else { return Ok(None) };
        let rows = self.sql.run(
            "SELECT h.id FROM heads AS h JOIN submissions AS s ON s.change = h.change AND s.version = h.version
             WHERE h.change = ?1 AND h.version = ?2",
            &[change.into(), u64::from(version).into()],
        )?;
        Ok(rows.first().map(|row| row.id(0)).transpose()?)
    }

    /// Those of these commits that are heads without objects.
    pub(super) fn without_objects(&self, ids: &[ObjectId]) -> Result<Vec<ObjectId>, Refusal> {
        let rows =
            each_ids(&self.sql, "SELECT DISTINCT h.id FROM ids JOIN heads AS h ON h.id = ids.id", ids, &[])?;
        Ok(rows.iter().map(|row| row.id(0)).collect::<Result<_, _>>()?)
    }

    /// What these heads are built from, at most one candidate's bytes of contents at a time.
    pub(super) async fn heads(&self, asked: &wire::Heads) -> Result<Vec<wire::WaitingHead>, Refusal> {
        self.parent_only()?;
        let rows = each_ids(
            &self.sql,
            "SELECT h.change FROM ids JOIN heads AS h ON h.id = ids.id",
            &asked.ids,
            &[],
        )?;
        let changes =
            rows.iter().map(|row| row.parse(0, "change id")).collect::<Result<Vec<_>, SqlFault>>()?;
        let lists = self.lists_of(&changes).await?;
        let mut ledger = self.ledger()?;
        ledger.lists = lists;
        let rows = each_ids(
            &self.sql,
            "SELECT h.id, h.change, h.version, h.bytes FROM ids JOIN heads AS h ON h.id = ids.id
             GROUP BY h.id",
            &asked.ids,
            &[],
        )?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        for row in rows {
            let (id, (change, version)) = (row.id(0)?, place(&row, 1)?);
            let commit = Base64(row.blob(3)?.to_vec());
            let Some(row) = ledger.row(&change, version).filter(|row| row.head == id) else { continue };
            if !EditList::is_whole(row.list.as_ref(), row.edits.len()) {
                continue;
            }
            let blobs = row.edits.iter().filter_map(|edit| edit.theirs);
            let blobs = blobs.filter(|entry| entry.mode != Mode::Gitlink).map(|entry| entry.id);
            let contents = self.contents(&wire::Contents { ids: blobs.collect() })?;
            bytes += commit.0.len() + contents.iter().map(|(_, bytes)| bytes.0.len()).sum::<usize>();
            if bytes > CANDIDATE_PACK_BYTES_MAX && !found.is_empty() {
                break;
            }
            let (base_tree, tree, edits) = (row.base.tree, row.head_tree, row.edits.clone());
            found.push(wire::WaitingHead { id, commit, base_tree, tree, edits, contents });
        }
        ledger.check()?;
        Ok(found)
    }

    /// Catalogues the pack of built heads, with the refs that name them.
    pub(super) fn catalogue_heads(&self, asked: &wire::CatalogueHeads, now: Millis) -> Result<(), Refusal> {
        self.parent_only()?;
        self.not_dead(&[&asked.pack.pack.key])?;
        let mut ledger = self.ledger()?;
        let rows = each_ids(
            &self.sql,
            "SELECT h.change, h.version, h.id FROM ids JOIN heads AS h ON h.id = ids.id
             JOIN submissions AS s ON s.change = h.change AND s.version = h.version",
            &asked.heads,
            &[],
        )?;
        for row in &rows {
            let ((change, version), new) = (place(row, 0)?, Some(row.id(2)?));
            ledger.apply(Fact::RefMoved { name: name_of(&change, version)?, old: None, new }, now);
        }
        self.put_pack(&asked.pack, "staged", now)?;
        ledger.pending.live_packs.push(asked.pack.pack.clone());
        self.save(ledger)?;
        // A head that is built and still listed here is only built once more.
        each_ids(&self.sql, "DELETE FROM heads WHERE id IN (SELECT id FROM ids)", &asked.heads, &[])?;
        Ok(())
    }

    /// Do heads or contents wait for the sweep?
    pub(super) fn heads_to_sweep(&self) -> Result<bool, Refusal> {
        Ok(!self.sql.run("SELECT 1 FROM heads WHERE ended IS NOT NULL LIMIT 1", &[])?.is_empty())
    }

    /// Drops the heads and contents of what landed long enough ago.
    pub(super) fn sweep_heads(&self, now: Millis) -> Result<(), Refusal> {
        let rows = self.sql.run(
            "SELECT DISTINCT change FROM heads WHERE ended IS NOT NULL AND ended < ?1 LIMIT ?2",
            &[now.0.saturating_sub(KEPT_MS).into(), SWEPT_MAX.into()],
        )?;
        let changes =
            rows.iter().map(|row| Ok(row.text(0)?.to_owned())).collect::<Result<Vec<_>, SqlFault>>()?;
        for table in ["contents", "heads"] {
            let statement = format!("DELETE FROM {table} WHERE change IN (SELECT value FROM json_each(?1))");
            each_json(&self.sql, &statement, &changes, &[])?;
        }
        Ok(())
    }
}
