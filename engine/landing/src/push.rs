//! Direct pushes to main.

use std::collections::{BTreeMap, BTreeSet};

use yard_common::fact::{Fact, Standing};
use yard_common::policy::Policy;
use yard_common::submission::CommitNode;
use yard_common::{ChangeId, Millis, ObjectId, Refusal};

use crate::act::Actor;
use crate::decision::Decision;
use crate::graph::Graph;
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

/// An admin's push to main.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectPush {
    /// Main as the pusher has seen it; `None`: there is none yet.
    pub old: Option<ObjectId>,
    /// Where it shall stand.
    pub new: ObjectId,
    /// The pushed commits that the ledger may not know.
    pub commits: Vec<CommitNode>,
    /// Why, required when it is not a fast-forward.
    pub reason: String,
    /// The policy that `new` carries, where it is not the one in force.
    pub policy: Option<Policy>,
    /// The ref's name, for refusals.
    pub name: String,
}

/// Moves main by hand: forward, or, with a reason, anywhere.
///
/// Recomputes which changes stand on main: one whose commit is off it must be offered again, one
/// that is back counts as landed again. Before the fact is folded, the host puts `push.commits`
/// into the ledger.
#[must_use]
pub fn direct_push(ledger: &dyn Ledger, push: &DirectPush, actor: &Actor, now: Millis) -> Decision<()> {
    let reject =
        |why: &str| Decision::Refused(Refusal::RefRejected { name: push.name.clone(), why: why.to_owned() });
    if !actor.admin {
        return Decision::Refused(Refusal::Forbidden { needs: "admin".into() });
    }
    if ledger.protected() && !off(Mutant::ProtectedMain) {
        return reject("main is protected: submit a change with git push origin HEAD:refs/for/main");
    }
    let main = ledger.main();
    if main == Some(push.new) {
        return Decision::Answered(());
    }
    if main != push.old {
        return reject("fetch first");
    }
    let graph = Graph::new(ledger, &push.commits);
    if graph.info(&push.new).is_none() {
        return Decision::Missing(BTreeSet::from([push.new]));
    }
    let rewrites = main.is_some_and(|main| !graph.is_ancestor(main, push.new));
    if rewrites && push.reason.trim().is_empty() {
        return reject("non-fast-forward: say why with git push -o reason=...");
    }
    let Recomputed { rewritten, standing } = recompute(ledger, &graph, main, push.new);
    let bump = rewrites && !off(Mutant::EpochBump);
    Decision::Fact(Box::new(Fact::DirectPush {
        old: main,
        new: push.new,
        epoch: if bump { ledger.epoch().next() } else { ledger.epoch() },
        reason: push.reason.clone(),
        rewritten,
        restored: standing.iter().map(|standing| standing.change.clone()).collect(),
        standing,
        policy: push.policy.clone().map(Box::new),
        at: now,
    }))
}

#[derive(Default)]
struct Recomputed {
    rewritten: Vec<ChangeId>,
    standing: Vec<Standing>,
}

/// Which changes left main, and which stand on it again (also by another commit than before).
fn recompute(ledger: &dyn Ledger, graph: &Graph<'_>, old: Option<ObjectId>, new: ObjectId) -> Recomputed {
    let Some(old) = old else { return Recomputed::default() };
    let (lost, gained) = graph.difference(old, new);
    let landings = |commits: &[ObjectId]| -> BTreeMap<ChangeId, Standing> {
        // The walk ran newest first; of two commits of one change the newest stays.
        let found = commits.iter().rev().filter_map(|commit| ledger.landing_of(commit));
        found.map(|standing| (standing.change.clone(), standing)).collect()
    };
    let (left, back) = (landings(&lost), landings(&gained));
    let stands = |standing: &Standing| ledger.state(&standing.change).landed.as_ref() == Some(standing);
    let rewritten = left
        .values()
        .filter(|standing| stands(standing) && !back.contains_key(&standing.change))
        .filter(|_| !off(Mutant::Recompute))
        .map(|standing| standing.change.clone())
        .collect();
    let standing = back
        .into_values()
        .filter(|standing| {
            let now = ledger.state(&standing.change).landed;
            let stays = now.is_some_and(|now| !lost.contains(&now.commit));
            !stays && !off(Mutant::Restore)
        })
        .collect();
    Recomputed { rewritten, standing }
}
