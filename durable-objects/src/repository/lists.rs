//! Lists of edits that are values of the bucket: read before a decision, bound by their digest.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use yard_common::edit_list::EditList;
use yard_common::submission::{RowEdit, Submission};
use yard_common::{ChangeId, Refusal};
use yard_landing::Ledger as _;
use yard_wire::names;
use yard_wire::repository as wire;

use super::ledger::KnownRows;
use super::{Platform, Repository};
use crate::blobs::Blobs as _;

/// Rows' edits by the digest of their list.
pub(crate) type Lists = BTreeMap<String, Arc<Vec<RowEdit>>>;

impl<P: Platform> Repository<P> {
    async fn list<T: DeserializeOwned>(&self, list: &EditList) -> Result<Vec<T>, Refusal> {
        let key = names::edit_list(&self.remote()?.repo, list);
        list.read(self.blobs.get(&key).await?.as_deref())
    }

    /// The lists of the newest rows of these changes.
    pub(super) async fn lists_of(&self, changes: &[ChangeId]) -> Result<Lists, Refusal> {
        let wanted: Vec<EditList> = {
            let ledger = self.ledger()?;
            ledger.prefetch(changes, &mut KnownRows::new());
            let wanted = changes.iter().filter_map(|change| ledger.newest(change)?.list.clone()).collect();
            ledger.check()?;
            wanted
        };
        let mut lists = Lists::new();
        for list in wanted {
            let edits: Vec<RowEdit> = self.list(&list).await?;
            lists.insert(list.sha256, Arc::new(edits));
        }
        Ok(lists)
    }

    /// Reads the edits that a landing request has in the bucket.
    pub(super) async fn read_lists(&self, asked: &mut wire::Land) -> Result<(), Refusal> {
        for listed in &mut asked.request.changes {
            if let Some(list) = listed.list.clone() {
                listed.edits = self.list(&list).await?;
            }
        }
        Ok(())
    }
}

/// The row with its edits, where they are at hand.
pub(crate) fn filled(row: Arc<Submission>, lists: &Lists) -> Arc<Submission> {
    let edits = row.list.as_ref().and_then(|list| lists.get(&list.sha256));
    match edits.filter(|_| row.edits.is_empty()) {
        Some(edits) => Arc::new(Submission { edits: edits.to_vec(), ..(*row).clone() }),
        None => row,
    }
}
