//! What each fact means for the tables.

use std::collections::BTreeSet;

use yard_common::fact::{Fact, Standing};
use yard_common::landing::LandRequest;
use yard_common::submission::{CommitNode, Submission};
use yard_common::{ChangeId, ObjectId, RepoPath};

use crate::ledger::{
    ChangeState, Claim, Closed, LandingAnswer, LedgerMut, Step, StoredSubmission, SubmissionAnswer,
};

/// Brings the tables from before the fact to after it: THE meaning of each fact.
///
/// Deterministic, without objects or clock; applying all facts in order to an empty ledger (and
/// telling it the commits of directly pushed packs) rebuilds every table.
pub fn fold(ledger: &mut impl LedgerMut, fact: &Fact) {
    match fact {
        Fact::Submitted { row, nodes } => submitted(ledger, row, nodes),
        Fact::SubmissionRefused { key, content, refusal } => {
            let answer = SubmissionAnswer::Refused(refusal.clone());
            ledger.put_submission_answer(key, &StoredSubmission { content: content.clone(), answer });
        }
        Fact::Landed { request, trees, policy, turns, .. } => {
            landed(ledger, request, trees);
            if let Some(policy) = policy {
                ledger.set_policy(policy);
            }
            ledger.set_turns(turns);
        }
        Fact::LandingRefused { key, refusal, turn_until, turns } => {
            let answer = LandingAnswer::Refused { refusal: refusal.clone(), turn_until: *turn_until };
            ledger.put_landing_answer(key, &answer);
            ledger.set_turns(turns);
        }
        Fact::DirectPush { .. } => pushed(ledger, fact),
        Fact::RefMoved { name, new, .. } => ledger.set_ref(name, *new),
        Fact::FreezeSet { reason } => ledger.set_frozen(reason.as_deref()),
        Fact::ProtectedSet { protected } => ledger.set_protected(*protected),
        Fact::Claimed { fork, paths, task, fence, until } => ledger.put_claim(&Claim {
            fork: fork.clone(),
            paths: paths.clone(),
            task: task.clone(),
            fence: *fence,
            until: *until,
        }),
        Fact::ClaimReleased { fence } => ledger.end_claim(*fence),
        Fact::Closed { change, version, stage, .. } => {
            let closed = Closed { stage: *stage, version: *version };
            update(ledger, change, |state| state.closed = Some(closed));
        }
        Fact::HoldSet { change, reason, .. } => update(ledger, change, |state| state.hold = reason.clone()),
        Fact::Requeued { change, .. } => update(ledger, change, |state| state.rewritten = None),
        Fact::Approved { change, version, .. } => {
            update(ledger, change, |state| state.approved = Some(*version));
        }
        Fact::OwnerSet { change, lane, owner_epoch } => {
            update(ledger, change, |state| state.owner = Some((lane.clone(), *owner_epoch)));
            ledger.raise_lane_epoch(lane, *owner_epoch);
        }
    }
}

fn update(ledger: &mut impl LedgerMut, change: &ChangeId, with: impl FnOnce(&mut ChangeState)) {
    let mut state = ledger.state(change);
    with(&mut state);
    ledger.set_state(change, &state);
}

fn submitted(ledger: &mut impl LedgerMut, row: &Submission, nodes: &[CommitNode]) {
    for node in nodes {
        ledger.put_commit(node);
    }
    ledger.put_row(row);
    update(ledger, &row.change, |state| {
        state.owner = Some((row.lane.clone(), row.owner_epoch));
        state.rewritten = None;
    });
    ledger.raise_lane_epoch(&row.lane, row.owner_epoch);
    let answer = SubmissionAnswer::Accepted { change: row.change.clone(), version: row.version };
    ledger.put_submission_answer(&row.key, &StoredSubmission { content: row.content.clone(), answer });
}

fn landed(ledger: &mut impl LedgerMut, request: &LandRequest, trees: &[ObjectId]) {
    let mut parent = request.head;
    for (listed, tree) in request.changes.iter().zip(trees) {
        ledger.put_commit(&CommitNode { id: listed.commit, parents: vec![parent], tree: *tree });
        parent = listed.commit;
        let standing =
            Standing { change: listed.change.clone(), version: listed.version, commit: listed.commit };
        ledger.put_landing(&standing);
        update(ledger, &listed.change, |state| {
            state.landed = Some(standing);
            state.rewritten = None;
            state.closed = None;
        });
    }
    let paths: BTreeSet<&RepoPath> = request
        .changes
        .iter()
        .flat_map(|listed| &listed.edits)
        .filter(|edit| edit.result != edit.ours)
        .map(|edit| &edit.path)
        .collect();
    // A fact with a list elsewhere says the same when it is folded anew: nothing of the paths.
    let known = request.changes.iter().all(|listed| listed.list.is_none());
    let paths = known.then(|| paths.into_iter().cloned().collect());
    let step = Step { from: Some(request.head), paths };
    let epoch = ledger.epoch();
    ledger.set_main(request.tip, epoch, &step);
    ledger.set_notes(request.notes_tip);
    ledger.put_pack(&request.candidate);
    ledger.put_pack(&request.notes);
    ledger.put_landing_answer(&request.key, &LandingAnswer::Landed { tip: request.tip });
}

fn pushed(ledger: &mut impl LedgerMut, fact: &Fact) {
    let Fact::DirectPush { old, new, epoch, rewritten, standing, policy, .. } = fact else { return };
    ledger.set_main(*new, *epoch, &Step { from: *old, paths: None });
    for change in rewritten {
        update(ledger, change, |state| state.rewritten = state.landed.take());
    }
    for landing in standing {
        update(ledger, &landing.change, |state| {
            state.landed = Some(landing.clone());
            state.rewritten = None;
            state.closed = None;
        });
    }
    if let Some(policy) = policy {
        ledger.set_policy(policy);
    }
}
