//! A replay's files as the next version of the change.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_common::bytes::Base64;
use yard_common::intent::Intent;
use yard_common::replay::Origin;
use yard_common::submission::{Entry, RowEdit, Submission, Via};
use yard_common::{IdempotencyKey, ObjectId, Refusal, RepoPath};
use yard_git::editor::EditError;
use yard_git::{Commit, Kind, Object, Objects as _, RunningTree, hash, message};
use yard_objects::Calls as _;
use yard_replay::answer::ResultFile;
use yard_wire::names::{self, Remote};
use yard_wire::repository::{Accepted, CommitInfo, Prepare, PrepareReply, Proposal, Submit};

use super::gather::{Everywhere, Gathered};
use super::plan::Planned;
use super::{Models, Replay};
use crate::api::Platform;
use crate::hand::{Hand, Lacking};
use crate::submit::measure;

/// The edits on main, and the blobs that they bring.
struct Edits {
    rows: Vec<RowEdit>,
    contents: BTreeMap<ObjectId, Base64>,
}

/// Builds the version on the tree that the prompt was made of, and offers it.
///
/// # Errors
/// The repository's refusal: [`Refusal::LateReplay`] when another version came meanwhile.
pub async fn propose<P: Platform, M: Models>(
    replay: &Replay<'_, P, M>,
    gathered: &mut Gathered,
    files: &[ResultFile],
    key: &IdempotencyKey,
    origin: &Origin,
) -> Result<Accepted, Refusal> {
    let (event, job) = (replay.event, replay.job);
    let repo = &replay.pointer.repo;
    let object = names::repository(&Remote::parent(repo.clone()));
    let prepare = Prepare {
        commits: Vec::new(),
        head: job.commit,
        is_base: true,
        change: Some(job.row.change.clone()),
        fork: job.row.fork.clone(),
    };
    let prepared = event.calls().call(&object, &prepare).await?;
    let base = prepared.bases.first().filter(|base| base.tree == job.tree).ok_or(Refusal::NoBase)?.clone();
    let edits = edits(gathered, files);
    let source = Everywhere::of(event, repo, None).await?;
    let proposal = build(&source, gathered, &prepared, &base, edits, (key, origin), replay).await?;
    let reply = event.calls().call(&object, &Submit { items: vec![proposal], token: None }).await?;
    reply.lanes.into_iter().for_each(|lane| event.hint(repo, lane));
    reply.results.into_iter().next().unwrap_or_else(|| {
        Err(Refusal::Internal { during: "reading the answer to a replay's submission".into() })
    })
}

fn edits(gathered: &Gathered, files: &[ResultFile]) -> Edits {
    let planned: BTreeMap<&RepoPath, &Planned> =
        gathered.plan.files.iter().map(|file| (&file.path, file)).collect();
    let made: BTreeMap<ObjectId, &Vec<u8>> =
        gathered.plan.made.iter().map(|(id, bytes)| (*id, bytes)).collect();
    let mut contents = BTreeMap::new();
    let mut rows = Vec::new();
    for file in files {
        let Some(planned) = planned.get(&file.path) else { continue };
        let theirs = match (&file.content, file.edited) {
            (Some(bytes), true) => {
                let id = hash(Kind::Blob, bytes);
                contents.insert(id, Base64(bytes.clone()));
                Some(Entry { mode: planned.mode(), id })
            }
            (None, true) => None,
            (_, false) => planned.merged.unwrap_or(planned.main),
        };
        if let Some(id) = theirs.map(|entry| entry.id) {
            let bytes = made.get(&id).map(|bytes| (*bytes).clone());
            let loose = || gathered.loose.contains(&id).then(|| gathered.hand.get(&id)).flatten();
            if let Some(bytes) = bytes.or_else(|| loose().map(|object| object.data.clone())) {
                contents.entry(id).or_insert(Base64(bytes));
            }
        }
        if theirs != planned.main {
            rows.push(RowEdit { path: file.path.clone(), base: planned.main, theirs });
        }
    }
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    Edits { rows, contents }
}

async fn build<P: Platform, M: Models>(
    source: &Everywhere<'_, P>,
    gathered: &mut Gathered,
    prepared: &PrepareReply,
    base: &CommitInfo,
    edits: Edits,
    (key, origin): (&IdempotencyKey, &Origin),
    replay: &Replay<'_, P, M>,
) -> Result<Proposal, Refusal> {
    if edits.rows.is_empty() {
        return Err(Refusal::NoEdits);
    }
    let steps: Vec<_> = edits.rows.iter().map(|row| (row.path.clone(), row.theirs)).collect();
    let hand: &mut Hand = &mut gathered.hand;
    let applied = hand
        .until(source, |hand| {
            RunningTree::new(base.tree).apply(hand, &steps).map_err(|error| match error {
                EditError::Read(error) => Lacking::from(error),
                clash => Lacking::Refused(Refusal::Invalid { why: clash.to_string() }),
            })
        })
        .await?;
    for made in applied.trees {
        hand.insert(made.id, Arc::new(Object { kind: Kind::Tree, data: made.data }));
    }
    let measured = hand
        .until(source, |hand| {
            measure::against_mains(hand, edits.rows.clone(), applied.root, &prepared.mains_before)
        })
        .await?;
    let row = &replay.job.row;
    let intent = gathered.reviewed.intent.clone();
    let head = head(base, applied.root, row, &intent);
    let bytes = head.encode();
    let commit = CommitInfo {
        id: hash(Kind::Commit, &bytes),
        tree: applied.root,
        parents: head.parents,
        seconds: head.author.seconds,
    };
    Ok(Proposal {
        key: key.clone(),
        request: None,
        change: Some(row.change.clone()),
        new_change: false,
        fork: row.fork.clone(),
        via: Via::Replay,
        replay_of: Some(row.version),
        replay: Some(Box::new(origin.clone())),
        author: head.author,
        head: commit.id,
        head_tree: commit.tree,
        commits: vec![commit],
        base_commits: prepared.bases.iter().map(|commit| commit.id).collect(),
        base_tree: base.tree,
        edits: measured.edits,
        differs_from_mains: measured.differs_from_mains,
        takes_back: measured.takes_back,
        reverts: row.reverts.clone(),
        intent,
        warnings: Vec::new(),
        contents: edits.contents.into_iter().collect(),
        packs: Vec::new(),
        list: None,
        head_object: Some(Base64(bytes)),
    })
}

/// The commit of the new version: its author's, a second after main's.
fn head(base: &CommitInfo, tree: ObjectId, row: &Submission, intent: &Intent) -> Commit {
    let mut author = row.author.clone();
    author.seconds = base.seconds.saturating_add(1);
    Commit {
        tree,
        parents: vec![base.id],
        author: author.clone(),
        committer: author,
        headers: Vec::new(),
        message: message::write(intent, Some(&row.change), &row.reverts).into_bytes(),
    }
}
