//! Claims: leases on paths or a task, with a fencing number.

use std::collections::BTreeSet;

use yard_common::fact::Fact;
use yard_common::{ChangeId, Fence, ForkName, Millis, Refusal, RepoPath, Version};

use crate::act::Actor;
use crate::ledger::{Claim, Ledger};
use crate::mutant::{Mutant, off};

/// Longest lease, in milliseconds: one day.
pub const CLAIM_MS_MAX: u64 = 24 * 3600 * 1000;
/// Most paths in one claim; a directory stands for all below it.
pub const CLAIM_PATHS_MAX: usize = 1000;

fn holder_of(claim: &Claim) -> String {
    claim.fork.as_ref().map_or("the parent repository", ForkName::as_str).to_owned()
}

/// Leases paths, or a task, to a fork; of two that ask, exactly one gets them.
///
/// # Errors
/// [`Refusal::Claimed`] with the holder; [`Refusal::Invalid`] for an empty, too large or too long claim.
pub fn claim(
    ledger: &dyn Ledger,
    fork: Option<&ForkName>,
    paths: &[RepoPath],
    task: Option<&str>,
    for_ms: u64,
    now: Millis,
) -> Result<Fact, Refusal> {
    let nothing = paths.is_empty() && task.is_none();
    if nothing || paths.len() > CLAIM_PATHS_MAX || for_ms == 0 || for_ms > CLAIM_MS_MAX {
        let why = "a claim has 1 to 1000 paths or a task, and lasts up to 24 hours".to_owned();
        return Err(Refusal::Invalid { why });
    }
    let taken = |what: String, claim: Claim| {
        Err(Refusal::Claimed { what, holder: holder_of(&claim), until: claim.until })
    };
    let other = |claim: &Claim| claim.fork.as_ref() != fork && !off(Mutant::ClaimOnce);
    for path in paths {
        if let Some(claim) = ledger.claims_touching(path, now).into_iter().find(other) {
            return taken(path.to_string(), claim);
        }
    }
    if let Some(task) = task
        && let Some(claim) = ledger.task_claim(task, now).filter(other)
    {
        return taken(task.to_owned(), claim);
    }
    Ok(Fact::Claimed {
        fork: fork.cloned(),
        paths: paths.to_vec(),
        task: task.map(str::to_owned),
        fence: ledger.next_fence(),
        until: now.plus(for_ms),
    })
}

/// Lengthens a live claim: its owner's wish, or a train's that carries a change under it.
///
/// # Errors
/// [`Refusal::NotFound`], or [`Refusal::Stale`] when its time is over.
pub fn renew(ledger: &dyn Ledger, fence: Fence, until: Millis, now: Millis) -> Result<Fact, Refusal> {
    let claim = find(ledger, fence)?;
    if claim.until <= now {
        return Err(Refusal::Stale { what: format!("the renewal of claim {fence}") });
    }
    let longest = now.plus(CLAIM_MS_MAX);
    Ok(Fact::Claimed {
        fork: claim.fork,
        paths: claim.paths,
        task: claim.task,
        fence,
        until: claim.until.max(until.min(longest)),
    })
}

/// The live claims that these versions were made under: a train lengthens them for its life.
#[must_use]
pub fn of_train(ledger: &dyn Ledger, changes: &[(ChangeId, Version)], now: Millis) -> Vec<Fence> {
    let rows = changes.iter().filter_map(|(change, version)| ledger.row(change, *version));
    let mut held = BTreeSet::new();
    rows.for_each(|row| held.extend(row.fences.values().copied()));
    held.into_iter().filter(|fence| ledger.claim(*fence).is_some_and(|claim| claim.until > now)).collect()
}

/// Gives a claim back.
///
/// # Errors
/// [`Refusal::NotFound`]; [`Refusal::Forbidden`] for somebody else's.
pub fn release(ledger: &dyn Ledger, fence: Fence, actor: &Actor) -> Result<Fact, Refusal> {
    let claim = find(ledger, fence)?;
    actor.may_touch(claim.fork.as_ref())?;
    Ok(Fact::ClaimReleased { fence })
}

fn find(ledger: &dyn Ledger, fence: Fence) -> Result<Claim, Refusal> {
    ledger.claim(fence).ok_or_else(|| Refusal::NotFound { kind: "claim".into(), name: fence.to_string() })
}
