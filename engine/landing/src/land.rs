//! The kernel: what may move main.

use std::collections::BTreeSet;

use yard_common::bytes::json_len;
use yard_common::fact::{Fact, Turns};
use yard_common::landing::LandRequest;
use yard_common::policy::Policy;
use yard_common::{Millis, ObjectId, Refusal, limits};
use yard_git::{Objects, RunningTree};

use crate::check::proof::Proof;
use crate::check::{bound, chain, fence, folded, once, place, proof};
use crate::decision::{Decision, Stop};
use crate::ledger::{LandingAnswer, Ledger};
use crate::mutant::{Mutant, off};
use crate::sign::Verifier;
use crate::turn;

/// Reads a configuration, which is not the kernel's business.
pub trait Configuration {
    /// The policy in a configuration's blob (id and bytes); of no configuration when `None`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    fn policy(&self, blob: Option<(ObjectId, &[u8])>) -> Result<Policy, String>;
}

/// What a decision may look at besides the ledger.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The objects at hand: head's trees on the request's paths, the candidate, the notes.
    pub objects: &'a dyn Objects,
    /// Knows the runners' tokens.
    pub verifier: &'a dyn Verifier,
    /// Reads a configuration that the train brings.
    pub configuration: &'a dyn Configuration,
    /// Now.
    pub now: Millis,
    /// Length of a landing turn, in milliseconds: the lane's limit for one assembly and test.
    pub turn_ms: u64,
}

/// Decides on a landing request, in one synchronous block (DESIGN 3, "the Repository object").
///
/// A fact moves main, the notes ref, the catalogue and the landed rows together, or keeps the
/// refusal under the request's key. Objects that are not at hand are asked for in batches: one
/// round a level of the trees concerned.
#[must_use]
pub fn land(ledger: &dyn Ledger, request: &LandRequest, context: &Context<'_>) -> Decision<LandingAnswer> {
    if let Some(answer) = ledger.landing_answer(&request.key)
        && !off(Mutant::Key)
    {
        return Decision::Answered(answer);
    }
    match decide(ledger, request, context) {
        Ok((trees, Proof { untested, policy })) => Decision::Fact(Box::new(Fact::Landed {
            request: Box::new(request.clone()),
            untested,
            trees,
            policy: policy.map(Box::new),
            turns: turn::finish(&ledger.turns(), &request.key.lane, context.now),
            at: context.now,
        })),
        Err(Stop::Missing(ids)) => Decision::Missing(ids),
        Err(Stop::No(refusal)) => refuse(ledger, request, refusal, context),
    }
}

/// Refuses a request for which the host could not find these objects anywhere.
#[must_use]
pub fn refuse_missing(
    ledger: &dyn Ledger,
    request: &LandRequest,
    ids: &BTreeSet<ObjectId>,
    context: &Context<'_>,
) -> Decision<LandingAnswer> {
    if let Some(answer) = ledger.landing_answer(&request.key) {
        return Decision::Answered(answer);
    }
    let first = ids.first().copied().unwrap_or(ObjectId::ZERO);
    let why = format!("{} objects are in no pack that it names, {first} among them", ids.len());
    refuse(ledger, request, Refusal::Malformed { why }, context)
}

fn decide(
    ledger: &dyn Ledger,
    request: &LandRequest,
    context: &Context<'_>,
) -> Result<(Vec<ObjectId>, Proof), Stop> {
    small_enough(request)?;
    place::check(ledger, request, context.now)?;
    let bound = bound::check(ledger, request)?;
    once::check(&bound)?;
    fence::check(ledger, &bound, context.now)?;

    let head = ledger.main().unwrap_or(ObjectId::ZERO);
    let head_tree = ledger.commit(&head).map_or(ObjectId::EMPTY_TREE, |info| info.tree);
    let mut tree = RunningTree::new(head_tree);
    let loaded = folded::prefetch(&mut tree, context.objects, &bound);
    let noted = chain::notes(ledger, context.objects, request);
    let trees = all(loaded, noted, chain::commits(context.objects, request))?;
    folded::check(&mut tree, context.objects, &bound, &trees)?;
    let proof = proof::check(ledger, request, &bound, &mut tree, context)?;
    Ok((trees, proof))
}

/// Joins what is missing, so that it can be loaded in one batch; a refusal comes first.
fn all<T>(loaded: Result<(), Stop>, noted: Result<(), Stop>, chained: Result<T, Stop>) -> Result<T, Stop> {
    let mut missing = BTreeSet::new();
    for step in [loaded, noted] {
        match step {
            Ok(()) => {}
            Err(Stop::Missing(ids)) => missing.extend(ids),
            Err(no) => return Err(no),
        }
    }
    match chained {
        Err(Stop::Missing(ids)) => missing.extend(ids),
        chained if missing.is_empty() => return chained,
        Err(no) => return Err(no),
        Ok(_) => {}
    }
    Err(Stop::Missing(missing))
}

fn small_enough(request: &LandRequest) -> Result<(), Refusal> {
    let too_large = |what: &str, size: u64, limit: usize| {
        Err(Refusal::TooLarge { what: what.into(), size, limit: limit as u64 })
    };
    if request.changes.is_empty() {
        return Err(Refusal::Malformed { why: "a landing lists at least one change".into() });
    }
    if request.changes.len() > limits::TRAIN_CHANGES_MAX {
        let why = format!("a train has at most {} changes", limits::TRAIN_CHANGES_MAX);
        return Err(Refusal::Malformed { why });
    }
    if request.candidate.bytes > limits::CANDIDATE_PACK_BYTES_MAX as u64 {
        return too_large("the candidate pack", request.candidate.bytes, limits::CANDIDATE_PACK_BYTES_MAX);
    }
    let size = json_len(&*request.without_lists()).unwrap_or(usize::MAX);
    if size > limits::FACT_BYTES_MAX {
        return too_large("the landing request", size as u64, limits::FACT_BYTES_MAX);
    }
    Ok(())
}

/// The fact of a refusal, and what it does to the landing turns.
///
/// A lane that was refused because main had moved asks for a turn with it. A freeze and another
/// lane's turn leave the turns alone: the same candidate comes again. Any other answer ends a turn.
fn refuse(
    ledger: &dyn Ledger,
    request: &LandRequest,
    refusal: Refusal,
    context: &Context<'_>,
) -> Decision<LandingAnswer> {
    let (lane, now) = (&request.key.lane, context.now);
    let turns: Turns = match refusal {
        Refusal::Moved { .. } => turn::ask(&ledger.turns(), lane, now, context.turn_ms),
        Refusal::Turn { .. } | Refusal::Frozen { .. } => turn::current(&ledger.turns(), now),
        _ => turn::finish(&ledger.turns(), lane, now),
    };
    let turn_until = turns.queue.first().filter(|first| *first == lane).map(|_| turns.until);
    Decision::Fact(Box::new(Fact::LandingRefused { key: request.key.clone(), refusal, turn_until, turns }))
}
