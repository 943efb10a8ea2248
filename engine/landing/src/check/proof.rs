//! Check 7: the tip is a tested tree (law 2), or the kernel proves one of the two exceptions.

use std::collections::BTreeSet;

use yard_common::fact::Untested;
use yard_common::landing::{Edit, How, LandRequest, SignedRun};
use yard_common::policy::{CONFIG_PATH, Isolation, Policy};
use yard_common::{ObjectId, Refusal, RepoPath};
use yard_git::editor::Step;
use yard_git::{Objects, RunningTree, tree};

use super::Bound;
use super::place::moved_paths;
use crate::decision::Stop;
use crate::land::Context;
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

/// What the runs prove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proof {
    /// The exception that was needed.
    pub untested: Option<Untested>,
    /// The policy that the tip carries, where it is a new one.
    pub policy: Option<Policy>,
}

fn unproven<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Refusal::Unproven { why: why.into() }.into())
}

/// Every run is signed, green, complete, of the tip's tree and of a suite asked for; every suite asked
/// for has one: today's command and configuration, and a changed configuration's as well.
///
/// # Errors
/// [`Refusal::Unproven`] that says what is missing; or objects to load.
pub fn check(
    ledger: &dyn Ledger,
    request: &LandRequest,
    bound: &[Bound<'_>],
    tip: &mut RunningTree,
    context: &Context<'_>,
) -> Result<Proof, Stop> {
    let today = ledger.policy();
    let mut proof = Proof { untested: None, policy: new_policy(&today, tip, context)? };
    let mut asked = vec![&*today];
    asked.extend(proof.policy.as_ref().filter(|_| !off(Mutant::NewSuite)));
    if asked.iter().any(|policy| policy.command.is_empty()) {
        return unproven("the configuration has no test command");
    }
    let mut tested_trees = BTreeSet::new();
    let mut proven = vec![false; asked.len()];
    for run in &request.runs {
        valid(run, context)?;
        let suite = asked.iter().position(|policy| is_of(run, policy));
        match suite.and_then(|place| proven.get_mut(place)) {
            Some(proven) => *proven = true,
            None => return unproven(format!("run {} had another command or configuration", run.run)),
        }
        if run.tree != tip.id() && !off(Mutant::RunTree) {
            tested_trees.insert(run.tree);
        }
    }
    if let Some(policy) = asked.iter().zip(&proven).find(|(_, proven)| !**proven).map(|(policy, _)| policy) {
        return unproven(format!("there is no run of {:?} under its configuration", policy.command));
    }
    for tested in tested_trees {
        if proof.policy.is_some() {
            return unproven("a change of the configuration is tested as it lands");
        }
        proof.untested = Some(excepted(ledger, request, bound, tested, context)?);
    }
    Ok(proof)
}

fn valid(run: &SignedRun, context: &Context<'_>) -> Result<(), Stop> {
    if !context.verifier.run_is_signed(run) && !off(Mutant::Signed) {
        return unproven(format!("run {} is not signed by a runner of this repository", run.run));
    }
    let result = &run.result;
    let complete = result.complete && result.ran > 0;
    if !complete && !off(Mutant::Complete) {
        return unproven(format!("run {} is not complete or ran no test", run.run));
    }
    if (!result.green || !result.failed.is_empty()) && !off(Mutant::Green) {
        return unproven(format!("run {} is red", run.run));
    }
    Ok(())
}

fn is_of(run: &SignedRun, policy: &Policy) -> bool {
    off(Mutant::Suite) || (run.command == policy.command && run.config == policy.config)
}

/// The policy of the tip, where its configuration is not the one in force.
fn new_policy(today: &Policy, tip: &mut RunningTree, context: &Context<'_>) -> Result<Option<Policy>, Stop> {
    let path = RepoPath::new(CONFIG_PATH).map_err(Refusal::from)?;
    let config = tip.lookup(&context.objects, &path)?.map(|entry| entry.id);
    if config == today.config {
        return Ok(None);
    }
    let object = match config {
        Some(id) => Some(context.objects.get(&id).ok_or_else(|| Stop::Missing(BTreeSet::from([id])))?),
        None => None,
    };
    let blob = config.zip(object.as_ref()).map(|(id, object)| (id, object.data.as_slice()));
    match context.configuration.policy(blob) {
        Ok(policy) => Ok(Some(Policy { config, ..policy })),
        Err(why) => unproven(format!("{CONFIG_PATH} of the tip: {why}")),
    }
}

/// Is the edit one that its rule allows to be applied anew?
fn commutes(policy: &Policy, edit: &Edit) -> bool {
    match &edit.how {
        How::Rule(rule) => policy.is_commutative(&edit.path, rule) || off(Mutant::Commutative),
        _ => false,
    }
}

/// Law 2's exceptions: the tested tree is the train's edits on an older main, since when other
/// lanes' tested, disjoint paths came in ("paths"), and it differs from the tip besides only at edits
/// under a commutative rule ("operations").
///
/// That the tested tree is the fold on the older main is stronger than that it differs from the tip
/// only at moved paths: what stood at those paths was main's.
fn excepted(
    ledger: &dyn Ledger,
    request: &LandRequest,
    bound: &[Bound<'_>],
    tested: ObjectId,
    context: &Context<'_>,
) -> Result<Untested, Stop> {
    let policy = ledger.policy();
    if policy.isolation == Isolation::Strict && !off(Mutant::Strict) {
        return unproven("the run is of another tree");
    }
    let Some(moved) = moved_paths(ledger, request.tested_head, request.head) else {
        return unproven("main did not go from the tested head to the head by landings alone");
    };
    let trees = |commit: ObjectId| ledger.commit(&commit).map(|info| info.tree);
    let (Some(older), Some(newer)) = (trees(request.tested_head), trees(request.head)) else {
        return unproven("the tested head is not known");
    };
    let (mut operations, mut fixed) = (Vec::new(), Vec::new());
    for edit in bound.iter().flat_map(|change| &change.listed.edits) {
        if commutes(&policy, edit) { operations.push(edit) } else { fixed.push(edit) }
    }
    for edit in fixed {
        let mut paths = std::iter::once(&edit.path).chain(&edit.from);
        if paths.any(|path| moved.contains(path)) && !off(Mutant::PathsDisjoint) {
            return unproven(format!("{} has moved since the test", edit.path));
        }
        directory_stands(context.objects, edit, older, newer)?;
    }
    if !off(Mutant::PathsDiffer) && tested_fold(context.objects, bound, &policy, older, tested)? != tested {
        return unproven("the tested tree is not the train on the tested head");
    }
    Ok(if operations.is_empty() { Untested::Paths } else { Untested::Operations })
}

/// Adds, deletes and renames need the directory as it was: what is in it may matter to a test.
fn directory_stands(
    objects: &dyn Objects,
    edit: &Edit,
    older: ObjectId,
    newer: ObjectId,
) -> Result<(), Stop> {
    let moves = edit.ours.is_some() != edit.result.is_some() || edit.from.is_some();
    if !moves || off(Mutant::PathsDirectory) {
        return Ok(());
    }
    let stands = match edit.path.parent() {
        None => older == newer,
        Some(parent) => tree::spot(&objects, older, &parent)? == tree::spot(&objects, newer, &parent)?,
    };
    if stands { Ok(()) } else { unproven(format!("the directory of {} has moved since the test", edit.path)) }
}

/// The train on the tested head, with what the tested tree has at the paths of operations.
fn tested_fold(
    objects: &dyn Objects,
    bound: &[Bound<'_>],
    policy: &Policy,
    older: ObjectId,
    tested: ObjectId,
) -> Result<ObjectId, Stop> {
    let mut tree = RunningTree::new(older);
    let mut operations = Vec::new();
    for change in bound {
        let edits = || change.listed.edits.iter();
        let steps: Vec<Step<'_>> = edits()
            .filter(|edit| !commutes(policy, edit))
            .map(|edit| Step { path: &edit.path, ours: edit.ours, result: edit.result })
            .collect();
        match tree.fold(&objects, &steps) {
            Ok(_) => {}
            Err(yard_git::editor::EditError::Read(error)) => return Err(error.into()),
            Err(other) => return unproven(format!("the train does not fit on the tested head: {other}")),
        }
        operations.extend(edits().filter(|edit| commutes(policy, edit)).map(|edit| &edit.path));
    }
    let operations: BTreeSet<&RepoPath> = operations.into_iter().collect();
    for path in operations {
        let entry = tree::lookup(&objects, tested, path)?;
        match tree.apply(&objects, &[(path.clone(), entry)]) {
            Ok(_) => {}
            Err(yard_git::editor::EditError::Read(error)) => return Err(error.into()),
            Err(other) => return unproven(format!("the tested tree does not fit: {other}")),
        }
    }
    Ok(tree.id())
}
