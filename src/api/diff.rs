//! What a version of a change does, path by path, as a person reads it.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::fact::Fact;
use yard_common::submission::{Entry, Mode, RowEdit, Submission};
use yard_common::{ChangeId, FactNo, ObjectId, Refusal, RepoName, Version};
use yard_objects::{Blobs as _, Calls as _};
use yard_replay::text::{cut, readable, unified};
use yard_wire::api::{ChangeDiff, FileDiff};
use yard_wire::names::{self, Remote};
use yard_wire::repository::{Changes, Contents, Facts};

use super::{Call, Event, Platform};
use crate::hand::Source as _;
use crate::respond::Answer;
use crate::store::Store;

/// Paths in one answer.
const FILES_MAX: usize = 100;
/// Text in one answer, in bytes.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// A larger file is not compared: both sides of one path are 1 MiB at most.
const FILE_BYTES_MAX: usize = 512 * 1024;
/// Unchanged lines around a changed one.
const CONTEXT: usize = 3;

type Blobs = BTreeMap<ObjectId, Vec<u8>>;

pub(super) async fn diff<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (repo, change) = (call.repo()?, call.part::<ChangeId>("change")?);
    let row = row(event, &repo, &change, call.ask.number("version")?.map(Version)).await?;
    let mut edits = row.edits.clone();
    if let Some(list) = &row.list
        && edits.is_empty()
    {
        edits = list.read(event.platform.blobs().get(&names::edit_list(&repo, list)).await?.as_deref())?;
    }
    let left_out = edits.len().saturating_sub(FILES_MAX) as u64;
    edits.truncate(FILES_MAX);
    let kept = contents(event, &repo, &edits).await?;
    let store = Store::of(event, &Remote::parent(repo.clone())).await?;
    let (mut files, mut left) = (Vec::new(), TEXT_BYTES_MAX);
    for edit in &edits {
        // One path at a time, so that no more than two files are held beside the kept contents.
        let mut blobs = Blobs::new();
        if left > 0 {
            let wanted: BTreeSet<ObjectId> = ids(edit).filter(|id| !kept.contains_key(id)).collect();
            let found = if wanted.is_empty() { Vec::new() } else { store.read(&wanted).await? };
            blobs.extend(found.into_iter().map(|(id, object)| (id, object.data.to_vec())));
        }
        let file = file(edit, &[&kept, &blobs], left);
        left = left.saturating_sub(file.text.len());
        files.push(file);
    }
    Ok(Answer::json(&ChangeDiff { change, version: row.version, files, left_out }))
}

/// The row of a version; of the newest one when none is named.
async fn row<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    change: &ChangeId,
    version: Option<Version>,
) -> Result<Submission, Refusal> {
    let object = names::repository(&Remote::parent(repo.clone()));
    let ask = Changes { ids: vec![change.clone()], before: None, limit: 1 };
    let newest = event.calls().call(&object, &ask).await?.into_iter().next().map(|view| view.row);
    let no_such = |kind: &str, name: String| Refusal::NotFound { kind: kind.into(), name };
    let newest = newest.ok_or_else(|| no_such("change", change.to_string()))?;
    if version.is_none_or(|version| version == newest.version) {
        return Ok(newest);
    }
    let facts = Facts { after: FactNo(0), limit: 1000, change: Some(change.clone()) };
    let facts = event.calls().call(&object, &facts).await?;
    let row = facts.into_iter().find_map(|(_, _, fact)| match fact {
        Fact::Submitted { row, .. } if Some(row.version) == version => Some(*row),
        _ => None,
    });
    let name = version.map(|version| version.to_string()).unwrap_or_default();
    row.ok_or_else(|| no_such("version", name))
}

/// The blobs of an edit; the commit of another repository is none.
fn ids(edit: &RowEdit) -> impl Iterator<Item = ObjectId> {
    let sides = [edit.base, edit.theirs].into_iter().flatten();
    sides.filter(|entry| entry.mode != Mode::Gitlink).map(|entry| entry.id)
}

/// What the repository keeps of it in no pack: contents of API submissions that have not landed.
async fn contents<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    edits: &[RowEdit],
) -> Result<Blobs, Refusal> {
    let ask = Contents { ids: edits.iter().flat_map(ids).collect() };
    let kept = event.calls().call(&names::repository(&Remote::parent(repo.clone())), &ask).await?;
    Ok(kept.into_iter().map(|(id, bytes)| (id, bytes.0)).collect())
}

fn file(edit: &RowEdit, blobs: &[&Blobs], left: usize) -> FileDiff {
    let (before, after) = (edit.base.map(|entry| entry.mode), edit.theirs.map(|entry| entry.mode));
    let (text, note) = match text(edit, blobs, left) {
        Ok((text, whole)) => (text, (!whole).then(|| "cut: the rest is too long to be shown".to_owned())),
        Err(why) => (String::new(), Some(why.to_owned())),
    };
    FileDiff { path: edit.path.clone(), before, after, text, note }
}

/// The difference within `left` bytes, and whether it is whole.
fn text(edit: &RowEdit, blobs: &[&Blobs], left: usize) -> Result<(String, bool), &'static str> {
    let side = |entry: Option<Entry>| match entry {
        None => Ok(Vec::new()),
        Some(entry) if entry.mode == Mode::Gitlink => Ok(format!("{}\n", entry.id).into_bytes()),
        Some(entry) => {
            let found = blobs.iter().find_map(|blobs| blobs.get(&entry.id));
            found.cloned().ok_or("its contents are not kept any more")
        }
    };
    if left == 0 {
        return Err("left out: the answer is long enough");
    }
    let (before, after) = (side(edit.base)?, side(edit.theirs)?);
    if before.len().max(after.len()) > FILE_BYTES_MAX {
        return Err("too large to be compared here");
    }
    if readable(&before).is_none() || readable(&after).is_none() {
        return Err("no text");
    }
    let whole = unified(&before, &after, CONTEXT);
    let shown = cut(&whole, left);
    Ok((shown.to_owned(), shown.len() == whole.len()))
}

#[cfg(test)]
mod tests;
