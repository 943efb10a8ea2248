//! Smart HTTP for git: refs, fetch, push, and submission by push.

pub mod content;
pub mod emit;
pub mod inflate;
pub mod intake;
pub mod receive;
pub mod sink;
pub mod submit;
mod upload;

use yard_common::{ObjectId, Refusal};
use yard_objects::Calls as _;
use yard_transfer::advertise::{self, Protocol, Service};
use yard_transfer::{RefTip, RefView};
use yard_wire::names::{self, Remote};
use yard_wire::repository::{Refs, RefsReply};
use yard_wire::token::Scope;

use crate::api::{Call, Event, Platform};
use crate::respond::{self, Answer};

pub use receive::receive;
pub use upload::{Upload, upload};

/// Bytes of a body that are taken and forgotten after a refusal: what the platform lets through at most.
pub const DRAIN_BYTES_MAX: usize = 100 * 1000 * 1000;

/// A request's body as it arrives.
pub trait Body {
    /// The next bytes; `None` when it has ended.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when it was cut or cannot be inflated.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Refusal>;
}

/// Takes what is left of the body: a client that still sends when the answer ends sees a cut connection
/// in place of it.
async fn drain(body: &mut impl Body) {
    let mut left = DRAIN_BYTES_MAX;
    while let Ok(Some(chunk)) = body.next().await {
        left = left.saturating_sub(chunk.len().max(1));
        if left == 0 {
            return;
        }
    }
}

/// The remote of an address.
fn remote(call: &Call<'_>) -> Result<Remote, Refusal> {
    Ok(Remote { repo: call.repo()?, fork: call.fork()? })
}

/// The refs of a remote, read now: never from a cache.
async fn refs<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    remote: &Remote,
    without_changes: bool,
) -> Result<RefsReply, Refusal> {
    let token = call.bearer.as_ref().map(|bearer| bearer.id().clone());
    event.calls().call(&names::repository(remote), &Refs { without_changes, token }).await
}

fn view(reply: RefsReply, hidden: Vec<RefTip>) -> RefView {
    let tips =
        reply.refs.into_iter().map(|entry| RefTip { name: entry.name, id: entry.id, peeled: entry.peeled });
    RefView::new(tips.chain(hidden).collect(), reply.head)
}

/// `GET /info/refs?service=...`
pub async fn info_refs<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Answer {
    match advertise(event, call).await {
        Ok(answer) => answer,
        Err(refusal) => respond::refused_git(&call.named(refusal)),
    }
}

async fn advertise<P: Platform>(event: &Event<P>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let remote = remote(call)?;
    let service = call.ask.query("service").and_then(Service::from_name).ok_or_else(|| Refusal::Invalid {
        why: "this is a smart git remote: use git 1.6.6 or newer".into(),
    })?;
    let protocol = Protocol::from_header(call.ask.header("git-protocol"));
    let mut haves = Vec::new();
    if service == Service::ReceivePack {
        may_push(call, &remote)?;
    }
    let refs = refs(event, call, &remote, true).await?;
    if service == Service::ReceivePack && remote.fork.is_some() {
        haves = parent_tips(event, call, &remote, &refs).await?;
    }
    let body = advertise::info_refs(service, protocol, &view(refs, Vec::new()), &haves);
    Ok(Answer::new(200, service.advertisement_type(), body))
}

/// What a pusher to a fork need not send, for its parent has it.
async fn parent_tips<P: Platform>(
    event: &Event<P>,
    call: &Call<'_>,
    remote: &Remote,
    own: &RefsReply,
) -> Result<Vec<ObjectId>, Refusal> {
    let parent = refs(event, call, &Remote::parent(remote.repo.clone()), true).await?;
    let mut tips: Vec<ObjectId> = parent.refs.into_iter().map(|entry| entry.id).collect();
    tips.sort_unstable();
    tips.dedup();
    tips.retain(|id| !own.refs.iter().any(|entry| entry.id == *id));
    Ok(tips)
}

/// May the bearer push to this remote?
fn may_push(call: &Call<'_>, remote: &Remote) -> Result<(), Refusal> {
    let bearer = call.bearer()?;
    if !bearer.claims.allows(Scope::Submit, Some(&remote.repo)) {
        return Err(Refusal::Forbidden { needs: "submit".into() });
    }
    bearer.may_write(remote.fork.as_ref())
}

#[cfg(test)]
pub(crate) mod tests;
