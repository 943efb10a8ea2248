//! Acceptance: from a prepared proposal to a row of the submissions log.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use yard_common::edit_list::EditList;
use yard_common::fact::{Fact, Terminal};
use yard_common::id::hex;
use yard_common::intent::{Intent, Signature};
use yard_common::replay::Origin;
use yard_common::submission::{Base, CommitNode, RowEdit, Submission, Via};
use yard_common::{
    ChangeId, Fence, ForkName, IdempotencyKey, LaneName, Millis, ObjectId, Refusal, RepoPath, Version, limits,
};

use crate::base::{Bases, find_base};
use crate::change_id::{Target, target};
use crate::decision::{Decision, Stop};
use crate::graph::parents_first;
use crate::ledger::{Ledger, StoredSubmission, SubmissionAnswer};
use crate::mutant::{Mutant, off};

/// Largest row with its commits, in bytes of JSON: the landing's edits have four values where the row's
/// have two, and must fit a fact alone (2 * 448 kB < 1 MB).
pub const ROW_BYTES_MAX: usize = 448 * 1024;
const _: () = assert!(2 * ROW_BYTES_MAX < limits::FACT_BYTES_MAX);

/// A submission, prepared: trees are read, edits made, the base's trees merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// A digest of the whole request, where the caller's host made one: the key is bound to it, and not to
    /// the head, which the same request builds anew on another main.
    pub request: Option<String>,
    /// The change, if its id was given.
    pub change: Option<ChangeId>,
    /// It is another change although its id or its paths say otherwise.
    pub new_change: bool,
    /// A replay of this version of `change`; hosts take it from the platform's own lanes only.
    pub replay_of: Option<Version>,
    /// The fork that offers it; for a replay the kernel takes the replayed row's.
    pub fork: Option<ForkName>,
    /// How it came in.
    pub via: Via,
    /// Author of the head.
    pub author: Signature,
    /// The head.
    pub head: ObjectId,
    /// The head's tree.
    pub head_tree: ObjectId,
    /// The head, and every commit between it and the base that the ledger does not know.
    pub commits: Vec<CommitNode>,
    /// The base commits as [`find_base`] gave them, and their tree.
    pub base: Base,
    /// The differing paths between base tree and head tree, in path order.
    pub edits: Vec<RowEdit>,
    /// Where they are kept, when they are too many for a fact.
    pub list: Option<EditList>,
    /// Differing paths between the head's tree and each of [`Bases::mains_before`], in its order,
    /// counted no further than the number of edits.
    pub differs_from_mains: Vec<u32>,
    /// Paths that the nearest of those mains would take back, at most 1,000.
    pub takes_back: Vec<RepoPath>,
    /// Declared reverts.
    pub reverts: Vec<ChangeId>,
    /// The lane that its paths belong to.
    pub lane: LaneName,
    /// What was asked.
    pub intent: Intent,
    /// Warnings found while it was prepared.
    pub warnings: Vec<String>,
    /// How a model made it, for a replay.
    pub replay: Option<Box<Origin>>,
}

impl Proposal {
    /// A digest of what the caller sent (not of what preparing found), in hex.
    #[must_use]
    pub fn content(&self) -> String {
        if let Some(request) = &self.request {
            return request.clone();
        }
        let text = format!(
            "{:?}\n{:?}\n{}\n{:?}\n{}\n{:?}\n",
            self.fork, self.change, self.new_change, self.replay_of, self.head, self.reverts
        );
        hex(&Sha256::digest(text))
    }
}

/// The answer that a key has got, for the same content.
///
/// # Errors
/// [`Refusal::KeyReused`] when the content was another one.
pub fn answered(
    ledger: &dyn Ledger,
    key: &IdempotencyKey,
    content: &str,
) -> Result<Option<SubmissionAnswer>, Refusal> {
    match ledger.submission_answer(key) {
        Some(StoredSubmission { content: before, answer })
            if before == content || off(Mutant::SubmissionContent) =>
        {
            Ok(Some(answer))
        }
        Some(_) => Err(Refusal::KeyReused { key: key.to_string() }),
        None => Ok(None),
    }
}

/// Decides on a proposal, in one synchronous block (DESIGN 3, "submission row").
///
/// A refusal is a fact too, so that the key keeps its answer; but for [`Refusal::Raced`] (prepare
/// it anew) and [`Refusal::KeyReused`], which leave no trace.
#[must_use]
pub fn accept(ledger: &dyn Ledger, proposal: &Proposal, now: Millis) -> Decision<SubmissionAnswer> {
    let content = proposal.content();
    if !off(Mutant::SubmissionKey) {
        match answered(ledger, &proposal.key, &content) {
            Ok(Some(answer)) => return Decision::Answered(answer),
            Ok(None) => {}
            Err(refusal) => return Decision::Refused(refusal),
        }
    }
    if let Some(answer) = offered_before(ledger, proposal) {
        return Decision::Answered(answer);
    }
    match row(ledger, proposal, now) {
        Ok(row) => submitted(ledger, proposal, Submission { content, ..row }),
        Err(Stop::Missing(ids)) => Decision::Missing(ids),
        Err(Stop::No(Refusal::Raced)) => Decision::Refused(Refusal::Raced),
        Err(Stop::No(refusal)) => refused(proposal, content, refusal),
    }
}

/// The same commit, offered again by its fork under another key (git repeats a push whose answer was
/// lost): it is accepted already, and no other version.
fn offered_before(ledger: &dyn Ledger, proposal: &Proposal) -> Option<SubmissionAnswer> {
    if proposal.replay_of.is_some() || proposal.new_change || proposal.fork.is_none() {
        return None;
    }
    let named = |change: &ChangeId| proposal.change.as_ref().is_none_or(|id| id == change);
    ledger.versions_with(&proposal.head).into_iter().find_map(|(change, version)| {
        let (row, state) = (ledger.newest(&change)?, ledger.state(&change));
        let same = row.version == version && row.head == proposal.head && row.fork == proposal.fork;
        let waits = state.is_open() && state.rewritten.is_none();
        (same && waits && named(&change)).then_some(SubmissionAnswer::Accepted { change, version })
    })
}

fn submitted(ledger: &dyn Ledger, proposal: &Proposal, row: Submission) -> Decision<SubmissionAnswer> {
    let content = row.content.clone();
    let fact = Fact::Submitted { row: Box::new(row), nodes: parents_first(ledger, &proposal.commits) };
    let size = yard_common::bytes::json_len(&*fact.stored()).unwrap_or(usize::MAX);
    if size > ROW_BYTES_MAX {
        let what = "the list of paths and commits".to_owned();
        let refusal = Refusal::TooLarge { what, size: size as u64, limit: ROW_BYTES_MAX as u64 };
        return refused(proposal, content, refusal);
    }
    Decision::Fact(Box::new(fact))
}

fn refused(proposal: &Proposal, content: String, refusal: Refusal) -> Decision<SubmissionAnswer> {
    let key = proposal.key.clone();
    Decision::Fact(Box::new(Fact::SubmissionRefused { key, content, refusal }))
}

fn row(ledger: &dyn Ledger, proposal: &Proposal, now: Millis) -> Result<Submission, Stop> {
    well_formed(proposal)?;
    let Target { change, is_new, warning } = target(ledger, proposal)?;
    let newest = ledger.newest(&change);
    let fork = newest.as_ref().map_or(&proposal.fork, |row| &row.fork);
    if !is_new {
        may_have_version(ledger, proposal, &change)?;
    }
    let bases = find_base(ledger, &proposal.commits, proposal.head, Some(&change), fork.as_ref())?;
    if bases.commits != proposal.base.commits && !off(Mutant::Raced) {
        return Err(Refusal::Raced.into());
    }
    not_contained(ledger, &change, fork.as_ref(), proposal.head)?;
    no_cycle(ledger, &change, &bases.waits_for)?;
    let mut warnings = proposal.warnings.clone();
    warnings.extend(warning);
    warnings.extend(stale_tree(ledger, proposal, &bases)?);
    Ok(Submission {
        seq: ledger.next_seq(),
        version: newest.as_ref().map_or(Version(1), |row| row.version.next()),
        fork: fork.clone(),
        author: proposal.author.clone(),
        head: proposal.head,
        head_tree: proposal.head_tree,
        commits: std::iter::once(proposal.head).chain(bases.between).collect(),
        base: proposal.base.clone(),
        edits: proposal.edits.clone(),
        list: proposal.list.clone(),
        fences: fences(ledger, fork.as_ref(), &proposal.edits, now),
        reverts: proposal.reverts.clone(),
        owner_epoch: ledger.lane_epoch(&proposal.lane),
        lane: proposal.lane.clone(),
        waits_for: bases.waits_for,
        key: proposal.key.clone(),
        at: now,
        via: proposal.via,
        intent: proposal.intent.clone(),
        warnings,
        content: String::new(),
        replay: proposal.replay.clone(),
        change,
    })
}

fn well_formed(proposal: &Proposal) -> Result<(), Refusal> {
    let invalid = |why: &str| Err(Refusal::Invalid { why: why.into() });
    if proposal.edits.is_empty() {
        return Err(Refusal::NoEdits);
    }
    if !EditList::is_whole(proposal.list.as_ref(), proposal.edits.len()) {
        return invalid("the list of edits is not these edits");
    }
    let ordered = proposal.edits.iter().zip(proposal.edits.iter().skip(1));
    if ordered.into_iter().any(|(a, b)| a.path >= b.path) {
        return invalid("the edits are not in path order, each path once");
    }
    if proposal.edits.iter().any(|edit| edit.base == edit.theirs) {
        return invalid("an edit changes nothing");
    }
    if !proposal.commits.iter().any(|node| node.id == proposal.head && node.tree == proposal.head_tree) {
        return invalid("the head is not among the commits");
    }
    if proposal.replay_of.is_some() && proposal.change.is_none() {
        return invalid("a replay names its change");
    }
    let (size, limit) = (proposal.intent.bytes(), limits::INTENT_BYTES_MAX);
    if size > limit {
        return Err(Refusal::TooLarge { what: "the intent".into(), size: size as u64, limit: limit as u64 });
    }
    Ok(())
}

/// May the change, which has versions, get another one?
fn may_have_version(ledger: &dyn Ledger, proposal: &Proposal, change: &ChangeId) -> Result<(), Refusal> {
    let state = ledger.state(change);
    if let Some(landed) = state.landed
        && !off(Mutant::LateVersion)
    {
        return Err(Refusal::Landed { change: change.clone(), commit: landed.commit });
    }
    match state.closed.map(|closed| closed.stage) {
        Some(Terminal::Withdrawn) if !off(Mutant::WithdrawnVersion) => {
            return Err(Refusal::ChangeWithdrawn { change: change.clone() });
        }
        Some(Terminal::AlreadyOnMain | Terminal::Landed) => {
            let why = format!("main has all of change {change}: push the work under a new Change-Id");
            return Err(Refusal::Invalid { why });
        }
        Some(Terminal::Expired) => {
            let why = format!("change {change} has expired: push the work under a new Change-Id");
            return Err(Refusal::Invalid { why });
        }
        _ => {}
    }
    let newest = ledger.newest(change);
    let version = newest.as_ref().map(|row| row.version);
    if proposal.replay_of.is_some() {
        if version != proposal.replay_of && !off(Mutant::LateReplay) {
            return Err(Refusal::LateReplay { change: change.clone() });
        }
        let replayed = newest.as_ref().and_then(|row| row.replay.as_ref());
        let reviewed = match replayed {
            // What a model made was not reviewed; it may have left paths out, or carried them on.
            Some(origin) if !off(Mutant::ReviewedRow) => ledger.row(change, origin.reviewed),
            _ => newest.clone(),
        };
        within_review(proposal, change, reviewed.as_deref())?;
    }
    match newest {
        Some(row) if row.head == proposal.head => {
            let name = format!("{} of change {change}", row.version);
            Err(Refusal::Exists { kind: "version".into(), name })
        }
        _ => Ok(()),
    }
}

/// A replay touches only the paths of the reviewed version, carried through main's renames.
fn within_review(
    proposal: &Proposal,
    change: &ChangeId,
    reviewed: Option<&Submission>,
) -> Result<(), Refusal> {
    let reviewed: BTreeSet<&RepoPath> =
        reviewed.iter().flat_map(|row| &row.edits).map(|edit| &edit.path).collect();
    let renames = proposal.replay.iter().flat_map(|origin| &origin.renames);
    let renamed: BTreeSet<&RepoPath> =
        renames.filter(|(from, _)| reviewed.contains(from)).map(|(_, to)| to).collect();
    let outside =
        proposal.edits.iter().find(|edit| !reviewed.contains(&edit.path) && !renamed.contains(&edit.path));
    match outside {
        Some(edit) if !off(Mutant::OutsideReview) => {
            Err(Refusal::OutsideReview { change: change.clone(), path: edit.path.clone() })
        }
        _ => Ok(()),
    }
}

/// The head must not lie inside the newest head of another open change of the same fork.
fn not_contained(
    ledger: &dyn Ledger,
    change: &ChangeId,
    fork: Option<&ForkName>,
    head: ObjectId,
) -> Result<(), Refusal> {
    for (other, version) in ledger.versions_with(&head) {
        let newest = ledger.newest(&other);
        let holds = newest.is_some_and(|row| row.version == version && row.fork.as_ref() == fork);
        if other != *change && holds && ledger.state(&other).is_open() && !off(Mutant::ContainedIn) {
            return Err(Refusal::ContainedIn { change: other });
        }
    }
    Ok(())
}

/// Nothing that the change would wait for may wait for it.
fn no_cycle(ledger: &dyn Ledger, change: &ChangeId, waits_for: &[ChangeId]) -> Result<(), Refusal> {
    let mut came_from: BTreeMap<ChangeId, ChangeId> = BTreeMap::new();
    let mut todo: Vec<ChangeId> = waits_for.to_vec();
    let mut seen: BTreeSet<ChangeId> = todo.iter().cloned().collect();
    while let Some(at) = todo.pop() {
        if at == *change && !off(Mutant::Cycle) {
            let mut cycle: Vec<ChangeId> =
                std::iter::successors(Some(at), |step| came_from.get(step).cloned()).collect();
            cycle.push(change.clone());
            cycle.reverse();
            return Err(Refusal::WaitingCycle { cycle });
        }
        if !ledger.state(&at).is_open() {
            continue;
        }
        for next in ledger.newest(&at).map(|row| row.waits_for.clone()).unwrap_or_default() {
            if seen.insert(next.clone()) {
                came_from.insert(next.clone(), at.clone());
                todo.push(next);
            }
        }
    }
    Ok(())
}

/// A guard, not a law: a tree that is nearer to an older main than to its own base.
///
/// A declared revert may take back the paths of the changes that it names, and no others.
fn stale_tree(ledger: &dyn Ledger, proposal: &Proposal, bases: &Bases) -> Result<Option<String>, Refusal> {
    let mut declared: BTreeSet<RepoPath> = BTreeSet::new();
    for change in &proposal.reverts {
        let named = ledger.newest(change).ok_or_else(|| Refusal::NotFound {
            kind: "change".into(),
            name: change.to_string(),
        })?;
        declared.extend(named.edits.iter().map(|edit| edit.path.clone()));
    }
    let taken: Vec<&RepoPath> = proposal.takes_back.iter().filter(|path| !declared.contains(path)).collect();
    if !proposal.reverts.is_empty() && (taken.is_empty() || off(Mutant::Reverts)) {
        return Ok(None);
    }
    if proposal.replay_of.is_some() || off(Mutant::StaleTree) {
        return Ok(None);
    }
    if proposal.differs_from_mains.len() != bases.mains_before.len() {
        return Err(Refusal::Raced);
    }
    let edits = proposal.edits.len();
    let nearer = |count: &u32| usize::try_from(*count).is_ok_and(|count| count < edits);
    let counts = proposal.differs_from_mains.iter().enumerate().filter(|(_, count)| nearer(count));
    // The nearest of the mains that are nearer than the base says what was taken.
    let Some((place, _)) = counts.clone().filter(|(place, _)| *place >= 1).min_by_key(|(_, count)| **count)
    else {
        return Ok(counts.map(|_| warning(ledger, &taken, bases)).next());
    };
    let paths = taken.into_iter().take(100).cloned().collect();
    Err(Refusal::StaleTree { landings: place + 1, paths })
}

fn warning(ledger: &dyn Ledger, taken: &[&RepoPath], bases: &Bases) -> String {
    let last = bases.commits.iter().find_map(|base| ledger.landing_of(base));
    let last = last.map_or_else(|| "the last landing".to_owned(), |last| format!("change {}", last.change));
    let paths: Vec<String> = taken.iter().take(10).map(ToString::to_string).collect();
    let paths = paths.join(", ");
    format!("this takes back what {last} brought ({paths}); if it is meant, declare it: 'Reverts: CHANGE'")
}

/// The highest fence number that the fork holds now, path by path.
fn fences(
    ledger: &dyn Ledger,
    fork: Option<&ForkName>,
    edits: &[RowEdit],
    now: Millis,
) -> BTreeMap<RepoPath, Fence> {
    let held = |path: &RepoPath| {
        let claims = ledger.claims_touching(path, now);
        claims.iter().filter(|claim| claim.fork.as_ref() == fork).map(|claim| claim.fence).max()
    };
    edits.iter().filter_map(|edit| Some((edit.path.clone(), held(&edit.path)?))).collect()
}
