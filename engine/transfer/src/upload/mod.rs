//! Clones and fetches: the request, the negotiation, the answer up to where its pack starts.
//!
//! Formats: git's `gitprotocol-v2` and `gitprotocol-pack`, as stateless HTTP requests. A request body may
//! be compressed (`Content-Encoding: gzip`): the host inflates it before it parses.

mod acknowledge;
mod request;
mod v0;
mod v2;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use yard_common::{ObjectId, Refusal};

use crate::pktline::{DELIM, FLUSH, Framing, write_line};
use crate::plan::{Deepen, FetchPlan, PlanRequest, Planner, Step, World};
use crate::refs::RefView;

pub use request::{Acks, Deepening, FetchRequest, LsRefs, RoundEnd, parse_filter};
pub use v2::Command;

/// One request body in bytes, inflated: 80,000 wants of 50 bytes, a large partial checkout.
pub const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads the body of `POST /git-upload-pack`.
///
/// # Errors
/// [`Refusal::Invalid`] for what is no such request or asks for what was not offered, [`Refusal::TooLarge`]
/// above [`REQUEST_BYTES_MAX`]. The answer is [`crate::pktline::error_body`] of its text.
pub fn parse(protocol: crate::advertise::Protocol, body: &[u8]) -> Result<Command, Refusal> {
    if body.len() > REQUEST_BYTES_MAX {
        return Err(Refusal::TooLarge {
            what: "the fetch request".to_owned(),
            size: body.len() as u64,
            limit: REQUEST_BYTES_MAX as u64,
        });
    }
    match protocol {
        crate::advertise::Protocol::V2 => v2::parse(body),
        _ => v0::parse(body),
    }
}

/// Which wants are allowed besides the tips of refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WantPolicy {
    /// All that the catalogue has: as git in protocol v2.
    #[default]
    Existing,
    /// Commits that a ref reaches; trees and blobs by existence, for partial clones.
    Reachable,
}

/// What the host does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadStep {
    /// Fetch these objects, then step again.
    Need(Vec<ObjectId>),
    /// Send this and nothing more.
    Answer(Vec<u8>),
    /// Send `head`, then the pack of the plan through [`UploadPack::framing`], then its end.
    Pack(Box<UploadPack>),
}

/// An answer with a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPack {
    /// The answer up to the pack.
    pub head: Vec<u8>,
    /// What the pack holds.
    pub plan: FetchPlan,
    /// How pack and progress are framed.
    pub framing: Framing,
    /// May the pack hold deltas by offset?
    pub ofs_delta: bool,
    /// May progress be sent?
    pub progress: bool,
}

/// Answers one fetch request.
#[derive(Debug)]
pub struct Upload {
    request: FetchRequest,
    common: Vec<ObjectId>,
    planner: Planner,
    allowed: Option<Planner>,
    head: Option<Vec<u8>>,
}

impl Upload {
    /// Begins to answer; `exists` tells what the catalogue has.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when a want or an excluded ref is not there.
    pub fn new(
        request: FetchRequest,
        refs: &RefView,
        policy: WantPolicy,
        exists: &dyn Fn(&ObjectId) -> bool,
    ) -> Result<Self, Refusal> {
        if let Some(id) = request.wants.iter().find(|id| !exists(id)) {
            return Err(not_ours(id));
        }
        let common: Vec<ObjectId> = request.haves.iter().copied().filter(|id| exists(id)).collect();
        let tags = if request.include_tag { refs.annotated_tags().collect() } else { Vec::new() };
        let planner = Planner::new(PlanRequest {
            wants: request.wants.clone(),
            haves: common.clone(),
            shallow: request.shallow.clone(),
            deepen: request.deepening.resolve(refs)?,
            filter: request.filter,
            tags,
        });
        let allowed = match policy {
            WantPolicy::Existing => None,
            WantPolicy::Reachable => proof_of_wants(&request.wants, refs),
        };
        Ok(Self { request, common, planner, allowed, head: None })
    }

    /// The request being answered.
    #[must_use]
    pub fn request(&self) -> &FetchRequest {
        &self.request
    }

    /// Goes on as far as the objects at hand allow.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for a want that no ref reaches or a depth that leaves nothing,
    /// [`Refusal::Internal`] when the catalogue lacks an object. Nothing has been sent by then.
    pub fn step(&mut self, world: &World<'_>) -> Result<UploadStep, Refusal> {
        if let Some(allowed) = &mut self.allowed {
            match allowed.unreached(world)? {
                Step::Need(ids) => return Ok(UploadStep::Need(ids)),
                Step::Done(Some(id)) => return Err(not_ours(&id)),
                Step::Done(None) => self.allowed = None,
            }
        }
        if self.head.is_none() {
            match self.negotiate(world)? {
                Step::Need(ids) => return Ok(UploadStep::Need(ids)),
                Step::Done((head, true)) => self.head = Some(head),
                Step::Done((answer, false)) => return Ok(UploadStep::Answer(answer)),
            }
        }
        match self.planner.step(world)? {
            Step::Need(ids) => Ok(UploadStep::Need(ids)),
            Step::Done(plan) => Ok(UploadStep::Pack(Box::new(UploadPack {
                head: self.head.take().unwrap_or_default(),
                plan,
                framing: self.request.framing,
                ofs_delta: self.request.ofs_delta,
                progress: !self.request.no_progress,
            }))),
        }
    }

    /// The answer up to the pack, and whether a pack follows.
    fn negotiate(&mut self, world: &World<'_>) -> Result<Step<(Vec<u8>, bool)>, Refusal> {
        let boundary = match self.planner.boundary(world)? {
            Step::Need(ids) => return Ok(Step::Need(ids)),
            Step::Done(boundary) => boundary,
        };
        let ready = if acknowledge::asks_ready(&self.request, &self.common) {
            match self.planner.ready(world)? {
                Step::Need(ids) => return Ok(Step::Need(ids)),
                Step::Done(ready) => ready,
            }
        } else {
            false
        };
        let mut out = Vec::new();
        let cut: Vec<String> = boundary.shallow.iter().map(|id| format!("shallow {id}")).collect();
        let uncut = boundary.unshallow.iter().map(|id| format!("unshallow {id}"));
        let lines: Vec<String> = cut.into_iter().chain(uncut).collect();
        let asked = !self.request.deepening.is_empty();
        if self.request.acks != Acks::V2 {
            if asked {
                lines.iter().for_each(|line| write_line(&mut out, line));
                out.extend_from_slice(FLUSH);
            }
            let pack = acknowledge::v0(&mut out, &self.request, &self.common, ready);
            return Ok(Step::Done((out, pack)));
        }
        if !acknowledge::v2(&mut out, &self.request, &self.common, ready) {
            return Ok(Step::Done((out, false)));
        }
        if asked || !self.request.shallow.is_empty() {
            write_line(&mut out, "shallow-info");
            lines.iter().for_each(|line| write_line(&mut out, line));
            out.extend_from_slice(DELIM);
        }
        write_line(&mut out, "packfile");
        Ok(Step::Done((out, true)))
    }
}

/// The walk from all refs to the wants that are no tips; `None` when there is no such want.
fn proof_of_wants(wants: &[ObjectId], refs: &RefView) -> Option<Planner> {
    let tips = refs.tips().iter();
    let ids: BTreeSet<ObjectId> = tips.flat_map(|tip| [tip.id, tip.peeled.unwrap_or(tip.id)]).collect();
    let unproven: Vec<ObjectId> = wants.iter().copied().filter(|id| !ids.contains(id)).collect();
    let wants = ids.into_iter().collect();
    (!unproven.is_empty())
        .then(|| Planner::new(PlanRequest { wants, haves: unproven, ..PlanRequest::default() }))
}

fn not_ours(id: &ObjectId) -> Refusal {
    Refusal::Invalid { why: format!("upload-pack: not our ref {id}: nothing here by this id can be fetched") }
}

impl Deepening {
    fn resolve(&self, refs: &RefView) -> Result<Deepen, Refusal> {
        let resolve = |name: &String| {
            let tries = [
                name.clone(),
                format!("refs/{name}"),
                format!("refs/tags/{name}"),
                format!("refs/heads/{name}"),
            ];
            let found = tries.iter().find_map(|name| refs.get(name));
            found.map(|tip| tip.peeled.unwrap_or(tip.id)).ok_or_else(|| Refusal::Invalid {
                why: format!("git upload-pack: deepen-not is not a ref: {name}"),
            })
        };
        let not = self.not.iter().map(resolve).collect::<Result<_, _>>()?;
        Ok(Deepen { depth: self.depth, relative: self.relative, since: self.since, not })
    }
}
