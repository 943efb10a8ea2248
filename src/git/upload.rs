//! Clones and fetches.

use std::collections::BTreeSet;
use std::rc::Rc;

use yard_common::{ObjectId, RefName, Refusal};
use yard_objects::Calls as _;
use yard_objects::pack_set::PackView;
use yard_transfer::advertise::{Protocol, Service};
use yard_transfer::pktline::error_body;
use yard_transfer::plan::World;
use yard_transfer::refs::{HIDDEN_PREFIX, RefTip};
use yard_transfer::upload::{self, Command, FetchRequest, LsRefs, REQUEST_BYTES_MAX, UploadStep, WantPolicy};
use yard_wire::names::{self, Remote};
use yard_wire::repository::Resolve;
use yard_wire::token::Scope;

use super::emit::Emitter;
use super::{Body, drain, refs, remote, view};
use crate::api::{Call, Event, Platform};
use crate::hand::Hand;
use crate::respond::Answer;
use crate::store::{self, Ancestry, Store};
use crate::submit::heads;

/// An answer to `POST /git-upload-pack`.
pub enum Upload<E> {
    /// It is whole.
    Whole(Answer),
    /// It is made while it is sent.
    Stream(E),
}

/// `POST /git-upload-pack`
///
/// # Errors
/// The refusal where git has not begun to speak its protocol; later ones are in the answer.
pub async fn upload<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    mut body: impl Body,
) -> Result<Upload<Emitter<P::Blobs>>, Refusal> {
    let remote = remote(call)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > REQUEST_BYTES_MAX {
            drain(&mut body).await;
            break;
        }
    }
    let protocol = Protocol::from_header(call.ask.header("git-protocol"));
    let answered = match upload::parse(protocol, &bytes) {
        Ok(Command::Empty) => Ok(Upload::Whole(whole(Vec::new()))),
        Ok(Command::LsRefs(ask)) => {
            list(event, call, &remote, &ask).await.map(|body| Upload::Whole(whole(body)))
        }
        Ok(Command::Fetch(ask)) => fetch(event, call, &remote, *ask).await,
        Err(refusal) => Err(refusal),
    };
    match answered {
        Ok(answer) => Ok(answer),
        Err(
            refusal
            @ (Refusal::Unauthenticated { .. } | Refusal::Forbidden { .. } | Refusal::NotFound { .. }),
        ) => Err(call.named(refusal)),
        Err(refusal) => Ok(Upload::Whole(whole(error_body(&refusal.to_string())))),
    }
}

fn whole(body: Vec<u8>) -> Answer {
    Answer::new(200, Service::UploadPack.result_type(), body)
}

/// May the bearer see candidates?
fn sees_candidates(call: &Call<'_>, remote: &Remote) -> bool {
    remote.fork.is_none()
        && call.bearer().is_ok_and(|bearer| bearer.claims.allows(Scope::Run, Some(&remote.repo)))
}

async fn list<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    remote: &Remote,
    ask: &LsRefs,
) -> Result<Vec<u8>, Refusal> {
    // Whoever asks for all refs, or for some below these, gets them; a clone asks for branches and tags.
    let names =
        |prefix: &String| prefix.starts_with("refs/changes") || "refs/changes/".starts_with(prefix.as_str());
    let wants_changes = ask.prefixes.is_empty() || ask.prefixes.iter().any(names);
    let reply = refs(event, call, remote, !wants_changes).await?;
    let mut hidden = Vec::new();
    if sees_candidates(call, remote) {
        let named = ask.prefixes.iter().filter(|prefix| prefix.starts_with(HIDDEN_PREFIX));
        let named: Vec<RefName> =
            named.filter_map(|name| RefName::new(name.as_str()).ok()).take(10).collect();
        if !named.is_empty() {
            let resolve = Resolve { names: named.clone() };
            let ids = event.calls().call(&names::repository(remote), &resolve).await?;
            let found = named.into_iter().zip(ids);
            hidden.extend(found.filter_map(|(name, id)| Some(RefTip { name, id: id?, peeled: None })));
        }
    }
    Ok(ask.answer(&view(reply, hidden)))
}

async fn fetch<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    remote: &Remote,
    ask: FetchRequest,
) -> Result<Upload<Emitter<P::Blobs>>, Refusal> {
    // Refs before catalogue: what a ref names is then in the catalogue.
    let refs = view(refs(event, call, remote, true).await?, Vec::new());
    let mut store = Store::of(event, remote).await?;
    let mut packs = store.view().await?;
    let absent = |packs: &PackView| -> BTreeSet<ObjectId> {
        ask.wants.iter().filter(|id| !packs.contains(id)).copied().collect()
    };
    let tips = absent(&packs);
    let mut candidates = None;
    if !tips.is_empty() && sees_candidates(call, remote) {
        let set = store::candidates(event, remote, tips.into_iter().collect()).await?;
        store.add(Rc::clone(&set));
        candidates = Some(set);
        packs = store.view().await?;
    }
    let heads = absent(&packs);
    if !heads.is_empty() && heads::build(event, &remote.repo, &heads).await? {
        store = Store::of(event, remote).await?;
        candidates.into_iter().for_each(|set| store.add(set));
        packs = store.view().await?;
    }
    let graph = Ancestry::of(event, remote).await?;
    let exists = |id: &ObjectId| packs.contains(id);
    let mut upload = upload::Upload::new(ask, &refs, WantPolicy::Existing, &exists)?;
    let mut hand = Hand::default();
    loop {
        let step = upload.step(&World { objects: &hand, exists: &exists, graph: &graph })?;
        match step {
            UploadStep::Answer(body) => return Ok(Upload::Whole(whole(body))),
            UploadStep::Pack(pack) => return Ok(Upload::Stream(Emitter::new(store, packs, *pack))),
            // A planner never needs again what it was shown once.
            UploadStep::Need(ids) => {
                hand = Hand::default();
                hand.load(&store, ids.into_iter().collect::<BTreeSet<_>>()).await?;
            }
        }
    }
}
