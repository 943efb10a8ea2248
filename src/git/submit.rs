//! Submission by push: `git push origin HEAD:refs/for/main`.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::intent::Signature;
use yard_common::submission::{RowEdit, Via};
use yard_common::{IdempotencyKey, ObjectId, PackKey, Refusal, RepoPath};
use yard_git::tree::{self, TreeMode};
use yard_git::{Commit, Kind, Objects as _};
use yard_objects::Calls as _;
use yard_objects::pack_set::PackView;
use yard_transfer::RefView;
use yard_transfer::plan::CommitGraph;
use yard_wire::names::{self, Remote};
use yard_wire::repository::{Accepted, CommitInfo, IndexedPack, Prepare, Proposal, Submit};

use super::receive::Session;
use crate::api::Platform;
use crate::api::submit::TRIES;
use crate::hand::{Hand, Source as _};
use crate::store::{Ancestry, Store};
use crate::submit::between::{self, between};
use crate::submit::{config, fold, heads, list, measure, offer};

/// The ref in which an author keeps notes on what is to be submitted.
const NOTES: &str = "refs/notes/intent";
/// Objects looked at to find the packs that a head needs.
const CLOSURE_MAX: usize = 250_000;

/// What stays the same over all attempts at one submission.
struct Head {
    id: ObjectId,
    commit: Commit,
    note: Option<String>,
    /// Commits that the parent repository does not have, parents before children, the head last.
    new: Vec<CommitInfo>,
    packs: Vec<IndexedPack>,
}

/// Submits a pushed head whose pack is catalogued; gives the lines for its author.
pub(super) async fn submit<P: Platform>(
    session: &Session<'_, P>,
    head: ObjectId,
    refs: &RefView,
) -> Result<Vec<String>, Refusal> {
    let event = session.event;
    let store = Store::of(event, &session.remote).await?;
    let graph = Ancestry::of(event, &session.remote).await?;
    let parent = Remote::parent(session.remote.repo.clone());
    let mut hand = Hand::default();
    let head = read_head(session, head, refs, &store, &graph, &mut hand).await?;
    let mut tries = 0;
    loop {
        tries += 1;
        let proposal = propose(session, &head, &store, &graph, &mut hand).await?;
        let ask = Submit { items: vec![proposal], token: Some(session.call.bearer()?.id().clone()) };
        let reply = match event.calls().call(&names::repository(&parent), &ask).await {
            Err(Refusal::Internal { .. } | Refusal::Overloaded { .. }) if tries < TRIES => continue,
            reply => reply?,
        };
        reply.lanes.into_iter().for_each(|lane| event.hint(&parent.repo, lane));
        match reply.results.into_iter().next() {
            Some(Err(Refusal::Raced)) if tries < TRIES => {}
            Some(Ok(accepted)) => return Ok(lines(session, &accepted)),
            Some(Err(refusal)) => return Err(refusal),
            None => return Err(Refusal::Internal { during: "submitting".into() }),
        }
    }
}

fn lines<P: Platform>(session: &Session<'_, P>, accepted: &Accepted) -> Vec<String> {
    let (origin, repo) = (&session.event.origin, &session.remote.repo);
    let Accepted { change, version, waits_for, warnings, .. } = accepted;
    let mut lines = vec![
        format!("Change {change}, version {version}: accepted"),
        format!("Status: {origin}/api/repos/{repo}/changes/{change}"),
        format!("New version of it: git commit --amend --trailer 'Change-Id: {change}', then push again"),
    ];
    lines.extend(waits_for.iter().map(|other| format!("It waits for change {other}, on which it is built")));
    lines.extend(warnings.iter().map(|warning| format!("Warning: {warning}")));
    lines.push(
        "Intents of landed changes: git config --add remote.origin.fetch '+refs/notes/*:refs/notes/*'".into(),
    );
    lines.push("and then: git fetch; git log --notes=intent".into());
    lines
}

async fn read_head<P: Platform>(
    session: &Session<'_, P>,
    id: ObjectId,
    refs: &RefView,
    store: &Store<P::Blobs>,
    graph: &Ancestry,
    hand: &mut Hand,
) -> Result<Head, Refusal> {
    let parent_graph = Ancestry::of(session.event, &Remote::parent(session.remote.repo.clone())).await?;
    let new = unknown_to(&parent_graph, graph, id)?;
    let commit = commit(id, store, hand).await?;
    let note = match refs.get(NOTES).filter(|_| session.remote.fork.is_some()) {
        Some(notes) => note(notes.id, id, store, hand).await?,
        None => None,
    };
    let packs = match session.remote.fork {
        Some(_) => packs(&new, store, hand).await?,
        None => Vec::new(),
    };
    Ok(Head { id, commit, note, new, packs })
}

/// The commits below the head that the parent repository does not have.
fn unknown_to(parent: &Ancestry, graph: &Ancestry, head: ObjectId) -> Result<Vec<CommitInfo>, Refusal> {
    if parent.is_empty() {
        return Err(Refusal::NoMain);
    }
    let (mut out, mut seen, mut stack) = (Vec::new(), BTreeSet::new(), vec![(head, false)]);
    while let Some((id, opened)) = stack.pop() {
        if parent.commit(&id).is_some() {
            continue;
        }
        let links =
            graph.commit(&id).ok_or_else(|| Refusal::Internal { during: format!("reading commit {id}") })?;
        if opened {
            let (tree, parents, seconds) = (links.tree, links.parents, links.committed_at);
            out.push(CommitInfo { id, tree, parents, seconds });
            continue;
        }
        if !seen.insert(id) {
            continue;
        }
        if seen.len() > between::COMMITS_MAX {
            return Err(Refusal::NoBase);
        }
        stack.push((id, true));
        stack.extend(links.parents.iter().rev().map(|parent| (*parent, false)));
    }
    Ok(out)
}

async fn commit<B: yard_objects::Blobs>(
    id: ObjectId,
    store: &Store<B>,
    hand: &mut Hand,
) -> Result<Commit, Refusal> {
    if hand.get(&id).is_none() {
        hand.load(store, BTreeSet::from([id])).await?;
    }
    let object = hand.get(&id).ok_or_else(|| Refusal::Internal { during: format!("reading commit {id}") })?;
    Commit::parse(&object.data)
        .map_err(|fault| Refusal::Invalid { why: format!("commit {id}: {}", fault.why) })
}

/// The author's note on the head, wherever git has fanned it out to.
async fn note<B: yard_objects::Blobs>(
    notes: ObjectId,
    head: ObjectId,
    store: &Store<B>,
    hand: &mut Hand,
) -> Result<Option<String>, Refusal> {
    let root = commit(notes, store, hand).await?.tree;
    let name = head.to_string();
    let (two, rest) = name.split_at(2);
    let (four, deep) = rest.split_at(2);
    for path in [name.clone(), format!("{two}/{rest}"), format!("{two}/{four}/{deep}")] {
        let path = RepoPath::new(path)?;
        let entry = hand.until(store, |hand| tree::lookup(hand, root, &path)).await?;
        let Some(entry) = entry else { continue };
        hand.load(store, BTreeSet::from([entry.id])).await?;
        return Ok(hand.get(&entry.id).map(|blob| String::from_utf8_lossy(&blob.data).into_owned()));
    }
    Ok(None)
}

/// The fork's packs that hold what the new commits need and the parent does not have.
///
/// What stands in the parent's catalogue is complete, so the walk ends there.
async fn packs<B: yard_objects::Blobs + Clone>(
    new: &[CommitInfo],
    store: &Store<B>,
    hand: &mut Hand,
) -> Result<Vec<IndexedPack>, Refusal> {
    let [own, parent] = store.sets() else { return Ok(Vec::new()) };
    let parent: PackView = parent.view(store.blobs()).await?;
    let own = own.view(store.blobs()).await?;
    let mut needed: BTreeMap<PackKey, IndexedPack> = BTreeMap::new();
    let mut seen: BTreeSet<ObjectId> = BTreeSet::new();
    let mut level: BTreeSet<ObjectId> = new.iter().flat_map(|commit| [commit.id, commit.tree]).collect();
    while !level.is_empty() {
        level.retain(|id| !parent.contains(id) && seen.insert(*id));
        if seen.len() > CLOSURE_MAX {
            let what = "the change (push the imported history as a branch first): its new objects".to_owned();
            return Err(Refusal::TooLarge { what, size: seen.len() as u64, limit: CLOSURE_MAX as u64 });
        }
        for id in &level {
            let Some((place, _)) = own.find(id) else { continue };
            if let Some(pack) = own.pack(place) {
                let indexed = || IndexedPack { pack: pack.clone(), index: own.inline_index(place) };
                needed.entry(pack.key.clone()).or_insert_with(indexed);
            }
        }
        level = below(&level, &own, store, hand).await?;
    }
    Ok(needed.into_values().collect())
}

/// What the trees among these name.
async fn below<B: yard_objects::Blobs>(
    level: &BTreeSet<ObjectId>,
    own: &PackView,
    store: &Store<B>,
    hand: &mut Hand,
) -> Result<BTreeSet<ObjectId>, Refusal> {
    let mut next = BTreeSet::new();
    let there: Vec<ObjectId> = level.iter().copied().filter(|id| own.contains(id)).collect();
    for some in there.chunks(1000) {
        for (id, object) in store.read(&some.iter().copied().collect()).await? {
            if object.kind != Kind::Blob {
                hand.insert(id, std::sync::Arc::clone(&object));
            }
            if object.kind == Kind::Tree {
                let entries = tree::entries(&object.data).filter_map(Result::ok);
                next.extend(
                    entries
                        .filter(|entry| !matches!(entry.mode, TreeMode::Leaf(yard_git::Mode::Gitlink)))
                        .map(|entry| entry.id),
                );
            }
        }
    }
    Ok(next)
}

/// One attempt: the base as it is now, the edits against it, the intent.
async fn propose<P: Platform>(
    session: &Session<'_, P>,
    head: &Head,
    store: &Store<P::Blobs>,
    graph: &Ancestry,
    hand: &mut Hand,
) -> Result<Proposal, Refusal> {
    let text = head.commit.message_text();
    let named = offer::offer((&head.commit.author, &text), &[], None, session.options)?.change;
    let prepare = Prepare {
        commits: head.new.clone(),
        head: head.id,
        is_base: false,
        change: named,
        fork: session.remote.fork.clone(),
    };
    let parent = names::repository(&Remote::parent(session.remote.repo.clone()));
    let prepared = session.event.calls().call(&parent, &prepare).await?;
    let fresh;
    let mut store = store;
    if !prepared.without_objects.is_empty() {
        let ids = prepared.without_objects.iter().copied().collect();
        heads::build(session.event, &session.remote.repo, &ids).await?;
        fresh = Store::of(session.event, &session.remote).await?;
        store = &fresh;
    }
    let base_tree = fold::base_tree(&prepared, hand, store).await?;
    let bases: Vec<ObjectId> = prepared.bases.iter().map(|commit| commit.id).collect();
    let ids = between(graph, head.id, &bases)?;
    let commits = infos(&ids, graph)?;
    let older = older(&ids, store, hand).await?;
    let offer = offer::offer((&head.commit.author, &text), &older, head.note.as_deref(), session.options)?;
    let tree = head.commit.tree;
    let mains = &prepared.mains_before;
    let measured = hand.until(store, |hand| measure::measure(hand, base_tree, tree, mains)).await?;
    if measured.edits.is_empty() {
        return Err(Refusal::NoEdits);
    }
    readable_config(&measured.edits, store, hand).await?;
    let list = list::keep(session.event, &session.remote.repo, &measured.edits).await?;
    Ok(Proposal {
        list,
        key: IdempotencyKey::new(format!("submit-{}", session.id))?,
        request: None,
        change: offer.change,
        new_change: offer.new_change,
        fork: session.remote.fork.clone(),
        via: Via::Git,
        replay_of: None,
        replay: None,
        author: head.commit.author.clone(),
        head: head.id,
        head_tree: tree,
        commits,
        base_commits: bases,
        base_tree,
        edits: measured.edits,
        differs_from_mains: measured.differs_from_mains,
        takes_back: measured.takes_back,
        reverts: offer.reverts,
        intent: offer.intent,
        warnings: offer.warnings,
        contents: Vec::new(),
        head_object: None,
        packs: head.packs.clone(),
    })
}

async fn readable_config<B: yard_objects::Blobs>(
    edits: &[RowEdit],
    store: &Store<B>,
    hand: &mut Hand,
) -> Result<(), Refusal> {
    let Some(id) = config::brought(edits)? else { return Ok(()) };
    hand.load(store, BTreeSet::from([id])).await?;
    hand.get(&id).map_or(Ok(()), |blob| config::check(&blob.data))
}

fn infos(ids: &[ObjectId], graph: &dyn CommitGraph) -> Result<Vec<CommitInfo>, Refusal> {
    let info = |id: &ObjectId| {
        let links =
            graph.commit(id).ok_or_else(|| Refusal::Internal { during: format!("reading commit {id}") })?;
        Ok(CommitInfo { id: *id, tree: links.tree, parents: links.parents, seconds: links.committed_at })
    };
    ids.iter().map(info).collect()
}

/// Authors and messages of the commits before the head, oldest first.
async fn older<B: yard_objects::Blobs>(
    ids: &[ObjectId],
    store: &Store<B>,
    hand: &mut Hand,
) -> Result<Vec<(Signature, String)>, Refusal> {
    let (_, older) = ids.split_last().unwrap_or((&ObjectId::ZERO, &[]));
    let lacking: BTreeSet<ObjectId> = older.iter().copied().filter(|id| hand.get(id).is_none()).collect();
    if !lacking.is_empty() {
        hand.load(store, lacking).await?;
    }
    let mut out = Vec::new();
    for id in older {
        let commit = commit(*id, store, hand).await?;
        out.push((commit.author.clone(), commit.message_text().into_owned()));
    }
    Ok(out)
}
