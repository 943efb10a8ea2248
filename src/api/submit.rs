//! `POST /api/repos/{repo}/changes`: several changes in one request, each of which stands alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_common::bytes::Base64;
use yard_common::submission::{RowEdit, Via};
use yard_common::{ForkName, IdempotencyKey, ObjectId, Refusal, RepoName};
use yard_git::{Kind, Object, Objects as _, ReadError, RunningTree};
use yard_objects::Calls as _;
use yard_wire::api::{ApiChange, SubmitChanges, SubmitReply, SubmitResult};
use yard_wire::key::ClientKey;
use yard_wire::names::{self, Remote};
use yard_wire::problem::Problem;
use yard_wire::repository::{Accepted, Offered, Prepare, PrepareReply, Proposal, Submit};

use super::{Call, Event, Platform};
use crate::auth::Bearer;
use crate::hand::{Hand, Lacking};
use crate::respond::Answer;
use crate::store::Store;
use crate::submit::build::{self, Built};
use crate::submit::measure::{self, Measured};
use crate::submit::{config, heads, list};

/// Changes in one request.
const CHANGES_MAX: usize = 500;
/// How often a submission is prepared anew when the repository moved meanwhile.
pub const TRIES: usize = 4;

type Outcome = Result<Accepted, Refusal>;

struct Ask {
    key: IdempotencyKey,
    request: String,
    change: ApiChange,
    base: ObjectId,
}

/// A distinct base, as the repository knows it.
struct Base {
    prepared: PrepareReply,
    tree: RunningTree,
}

pub(super) async fn submit<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let asked: SubmitChanges = call.body()?;
    let (repo, bearer) = (call.repo()?, call.bearer()?);
    let fork = bearer.acting_fork(asked.fork)?;
    let key = ClientKey::new(call.key()?, &bearer.claims, fork.as_ref());
    if asked.changes.is_empty() || asked.changes.len() > CHANGES_MAX {
        return Err(Refusal::Invalid { why: format!("a request offers 1 to {CHANGES_MAX} changes") });
    }
    let (mut outcomes, mut todo) = (BTreeMap::new(), BTreeMap::new());
    let (answers, main) = offered(event, &repo, bearer, &asked.changes, (&key, fork.as_ref())).await?;
    for (n, (change, (stored, request, answer))) in asked.changes.into_iter().zip(answers).enumerate() {
        match (answer, build::check(&change), change.base.or(main)) {
            (Some(answer), ..) => drop(outcomes.insert(n, answer)),
            (None, Ok(()), Some(base)) => drop(todo.insert(n, Ask { key: stored, request, change, base })),
            (None, Ok(()), None) => drop(outcomes.insert(n, Err(Refusal::NoMain))),
            (None, Err(refusal), _) => drop(outcomes.insert(n, Err(refusal))),
        }
    }
    for left in (0..TRIES).rev() {
        let round = round(event, &repo, fork.as_ref(), bearer.id(), &todo).await?;
        for (n, outcome) in round {
            if left == 0 || outcome != Err(Refusal::Raced) {
                todo.remove(&n);
                outcomes.insert(n, outcome);
            }
        }
        if todo.is_empty() {
            break;
        }
    }
    let results = outcomes.into_values().map(|outcome| match outcome {
        Ok(accepted) => SubmitResult::Accepted(accepted),
        Err(refusal) => SubmitResult::Refused(Problem::from(key.named(refusal))),
    });
    Ok(Answer::json(&SubmitReply { results: results.collect() }))
}

/// The stored key of each change with its digest and the answer it has got, and main's commit.
async fn offered<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    bearer: &Bearer,
    changes: &[ApiChange],
    (key, fork): (&ClientKey, Option<&ForkName>),
) -> Result<(Vec<(IdempotencyKey, String, Option<Outcome>)>, Option<ObjectId>), Refusal> {
    let keys = changes.iter().enumerate();
    let keys = keys.map(|(n, change)| Ok((key.stored(Some(n))?, change.digest(fork))));
    let keys: Vec<(IdempotencyKey, String)> = keys.collect::<Result<_, Refusal>>()?;
    let asked = Offered { keys: keys.clone(), token: Some(bearer.id().clone()) };
    let reply = event.calls().call(&names::repository(&Remote::parent(repo.clone())), &asked).await?;
    let answers = keys.into_iter().zip(reply.answers);
    Ok((answers.map(|((stored, request), answer)| (stored, request, answer)).collect(), reply.main))
}

/// One attempt: one `prepare` for each distinct base, one `submit` for all.
async fn round<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    fork: Option<&ForkName>,
    token: &yard_common::TokenId,
    todo: &BTreeMap<usize, Ask>,
) -> Result<BTreeMap<usize, Outcome>, Refusal> {
    let mut outcomes = BTreeMap::new();
    let mut bases = prepare(event, repo, fork, todo, &mut outcomes).await?;
    let unbuilt = bases.values().flat_map(|base| base.prepared.without_objects.iter().copied());
    heads::build(event, repo, &unbuilt.collect()).await?;
    let store = Store::of(event, &Remote::parent(repo.clone())).await?;
    let mut proposals = propose(&store, fork, todo, &mut bases, &mut outcomes).await?;
    for (n, proposal) in &mut proposals {
        match list::keep(event, repo, &proposal.edits).await {
            Ok(list) => proposal.list = list,
            Err(refusal @ Refusal::TooLarge { .. }) => drop(outcomes.insert(*n, Err(refusal))),
            Err(refusal) => return Err(refusal),
        }
    }
    proposals.retain(|n, _| !outcomes.contains_key(n));
    if proposals.is_empty() {
        return Ok(outcomes);
    }
    let (places, items): (Vec<usize>, Vec<Proposal>) = proposals.into_iter().unzip();
    let submit = Submit { items, token: Some(token.clone()) };
    let object = names::repository(&Remote::parent(repo.clone()));
    let reply = event.calls().call(&object, &submit).await?;
    reply.lanes.into_iter().for_each(|lane| event.hint(repo, lane));
    outcomes.extend(places.into_iter().zip(reply.results));
    Ok(outcomes)
}

async fn prepare<P: Platform>(
    event: &Event<P>,
    repo: &RepoName,
    fork: Option<&ForkName>,
    todo: &BTreeMap<usize, Ask>,
    outcomes: &mut BTreeMap<usize, Outcome>,
) -> Result<BTreeMap<ObjectId, Base>, Refusal> {
    let object = names::repository(&Remote::parent(repo.clone()));
    let mut bases = BTreeMap::new();
    let wanted: BTreeSet<ObjectId> = todo.values().map(|ask| ask.base).collect();
    for base in wanted {
        let ask =
            Prepare { commits: Vec::new(), head: base, is_base: true, change: None, fork: fork.cloned() };
        let refusal = match event.calls().call(&object, &ask).await {
            Ok(prepared) => match prepared.bases.first() {
                Some(commit) => {
                    let tree = RunningTree::new(commit.tree);
                    bases.insert(base, Base { prepared, tree });
                    continue;
                }
                None => Refusal::NoBase,
            },
            Err(refusal @ (Refusal::Internal { .. } | Refusal::Overloaded { .. })) => return Err(refusal),
            Err(refusal) => refusal,
        };
        let of_base = todo.iter().filter(|(_, ask)| ask.base == base);
        outcomes.extend(of_base.map(|(n, _)| (*n, Err(refusal.clone()))));
    }
    Ok(bases)
}

/// Builds and measures all heads; what is missing for all of them is read in one batch.
async fn propose<S: crate::hand::Source>(
    store: &S,
    fork: Option<&ForkName>,
    todo: &BTreeMap<usize, Ask>,
    bases: &mut BTreeMap<ObjectId, Base>,
    outcomes: &mut BTreeMap<usize, Outcome>,
) -> Result<BTreeMap<usize, Proposal>, Refusal> {
    let mut hand = Hand::default();
    read_bases(store, todo, bases, &mut hand, outcomes).await?;
    let mut proposals = BTreeMap::new();
    loop {
        let mut missing = BTreeSet::new();
        for (n, ask) in todo {
            let Some(base) = bases.get_mut(&ask.base) else { continue };
            if proposals.contains_key(n) || outcomes.contains_key(n) {
                continue;
            }
            match proposal(&mut hand, base, ask, fork) {
                Ok(made) => drop(proposals.insert(*n, made)),
                Err(Lacking::Objects(more)) => missing.extend(more),
                Err(Lacking::Refused(refusal)) => drop(outcomes.insert(*n, Err(refusal))),
            }
        }
        if missing.is_empty() {
            return Ok(proposals);
        }
        hand.load(store, missing).await?;
    }
}

/// Reads the bases' trees; those of API submissions that landed long ago are in no pack.
async fn read_bases<S: crate::hand::Source>(
    store: &S,
    todo: &BTreeMap<usize, Ask>,
    bases: &mut BTreeMap<ObjectId, Base>,
    hand: &mut Hand,
    outcomes: &mut BTreeMap<usize, Outcome>,
) -> Result<(), Refusal> {
    let tree = |base: &Base| base.prepared.bases.first().map(|commit| commit.tree);
    let wanted = bases.values().filter_map(tree).filter(|tree| *tree != ObjectId::EMPTY_TREE);
    let wanted: BTreeSet<ObjectId> = wanted.collect();
    for (id, object) in store.read(&wanted).await? {
        hand.insert(id, object);
    }
    bases.retain(|_, base| {
        tree(base).is_some_and(|tree| !wanted.contains(&tree) || hand.get(&tree).is_some())
    });
    for (n, ask) in todo.iter().filter(|(_, ask)| !bases.contains_key(&ask.base)) {
        let base = ask.base;
        let why = format!(
            "base {base} was offered by the API and has landed long ago: read the change to see as which \
             commit, and base it on that one or on main"
        );
        outcomes.entry(*n).or_insert(Err(Refusal::Invalid { why }));
    }
    Ok(())
}

fn proposal(
    hand: &mut Hand,
    base: &mut Base,
    ask: &Ask,
    fork: Option<&ForkName>,
) -> Result<Proposal, Lacking> {
    let commit = base.prepared.bases.first().ok_or(Lacking::Refused(Refusal::NoBase))?;
    let mut built = build::build(hand, commit, &mut base.tree, &ask.change, fork)?;
    for (id, data) in std::mem::take(&mut built.trees) {
        hand.insert(id, Arc::new(Object { kind: Kind::Tree, data }));
    }
    let edits = std::mem::take(&mut built.edits);
    readable_config(&edits, &built.contents).map_err(Lacking::Refused)?;
    let measured = measure::against_mains(hand, edits, built.commit.tree, &base.prepared.mains_before);
    Ok(assemble(base, ask, fork, built, measured.map_err(|error: ReadError| Lacking::from(error))?))
}

/// A configuration whose bytes are not among the new contents is main's own.
fn readable_config(edits: &[RowEdit], contents: &[(ObjectId, Base64)]) -> Result<(), Refusal> {
    let Some(id) = config::brought(edits)? else { return Ok(()) };
    let bytes = contents.iter().find(|(content, _)| *content == id);
    bytes.map_or(Ok(()), |(_, bytes)| config::check(&bytes.0))
}

fn assemble(base: &Base, ask: &Ask, fork: Option<&ForkName>, built: Built, measured: Measured) -> Proposal {
    Proposal {
        key: ask.key.clone(),
        request: Some(ask.request.clone()),
        change: ask.change.change.clone(),
        new_change: ask.change.new_change,
        fork: fork.cloned(),
        via: Via::Api,
        replay_of: None,
        replay: None,
        author: built.author,
        head: built.commit.id,
        head_tree: built.commit.tree,
        base_commits: base.prepared.bases.iter().map(|commit| commit.id).collect(),
        base_tree: base.prepared.bases.first().map_or(ObjectId::EMPTY_TREE, |commit| commit.tree),
        commits: vec![built.commit],
        edits: measured.edits,
        list: None,
        differs_from_mains: measured.differs_from_mains,
        takes_back: measured.takes_back,
        reverts: ask.change.reverts.clone(),
        intent: ask.change.intent.clone(),
        warnings: built.warnings,
        contents: built.contents,
        head_object: Some(Base64(built.encoded)),
        packs: Vec::new(),
    }
}
