//! The base of a submission: what its edits are measured from.

use std::collections::BTreeSet;

use yard_common::fact::Terminal;
use yard_common::submission::CommitNode;
use yard_common::{ChangeId, ForkName, ObjectId, Refusal, limits};

use crate::decision::Stop;
use crate::graph::Graph;
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

/// A main before the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OlderMain {
    /// The commit.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
}

/// The base of a head, as the ledger knows it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bases {
    /// All maximal known proper ancestors of the head, in id order; never empty.
    pub commits: Vec<ObjectId>,
    /// The commits between them and the head (exclusive), the own change's earlier ones included.
    pub between: Vec<ObjectId>,
    /// Their trees.
    pub trees: Vec<ObjectId>,
    /// What each base but the first is merged over into the ones before it; `None`: the empty tree.
    pub merge_bases: Vec<Option<ObjectId>>,
    /// Open changes that the bases belong to, in id order: they land first.
    pub waits_for: Vec<ChangeId>,
    /// The mains before the base, one landing before it first, at most
    /// [`limits::STALE_MAINS_MAX`]: what a stale tree would look like.
    pub mains_before: Vec<OlderMain>,
}

/// What the walk stands on.
enum Known {
    /// It is or was on main, or belongs to a change that landed.
    Settled,
    /// It belongs to a change that is open.
    Open(ChangeId),
    /// It belongs to a change that was taken back.
    Dead(ChangeId),
}

/// The base of a pushed head (DESIGN 3, "base").
///
/// Known are commits that are or ever were on main, and those of versions of another landed,
/// rewritten or open change; the own change's never count. `pushed` are the commits that the
/// ledger does not know, at least back to known ones.
///
/// # Errors
/// [`Refusal::NoBase`], [`Refusal::BuiltOnWithdrawn`], [`Refusal::Invalid`] for a head that was on
/// main itself; or commits to be passed in `pushed` as well.
pub fn find_base(
    ledger: &dyn Ledger,
    pushed: &[CommitNode],
    head: ObjectId,
    change: Option<&ChangeId>,
    fork: Option<&ForkName>,
) -> Result<Bases, Stop> {
    if ledger.was_on_main(&head) {
        let why = format!("commit {head} is or was on main: commit your own work on top of it");
        return Err(Refusal::Invalid { why }.into());
    }
    let graph = Graph::new(ledger, pushed);
    let Some(info) = graph.info(&head) else { return Err(Stop::Missing(BTreeSet::from([head]))) };
    bases(ledger, &graph, &info.parents, own(ledger, change, fork))
}

/// The base of a commit that will be made on top of `base`, as an API submission names it.
///
/// # Errors
/// As [`find_base`].
pub fn base_of_new(
    ledger: &dyn Ledger,
    base: ObjectId,
    change: Option<&ChangeId>,
    fork: Option<&ForkName>,
) -> Result<Bases, Stop> {
    bases(ledger, &Graph::new(ledger, &[]), &[base], own(ledger, change, fork))
}

/// The change, if a version offered by this fork would be its own.
fn own<'c>(
    ledger: &dyn Ledger,
    change: Option<&'c ChangeId>,
    fork: Option<&ForkName>,
) -> Option<&'c ChangeId> {
    let change = change?;
    match ledger.newest(change) {
        Some(row) if row.fork.as_ref() != fork => None,
        _ => Some(change),
    }
}

fn bases(
    ledger: &dyn Ledger,
    graph: &Graph<'_>,
    starts: &[ObjectId],
    own: Option<&ChangeId>,
) -> Result<Bases, Stop> {
    let (found, between) = known_ancestors(ledger, graph, starts, own)?;
    let mut commits = graph.maximal(&found);
    if off(Mutant::BaseAll) {
        commits.truncate(1);
    }
    let mut waits_for = BTreeSet::new();
    for commit in &commits {
        match known(ledger, commit, own) {
            Some(Known::Dead(change)) if !off(Mutant::BuiltOnWithdrawn) => {
                return Err(Refusal::BuiltOnWithdrawn { change, commit: *commit }.into());
            }
            Some(Known::Open(change)) if !off(Mutant::WaitsFor) => {
                waits_for.insert(change);
            }
            _ => {}
        }
    }
    let trees: Vec<ObjectId> = commits.iter().filter_map(|id| graph.info(id)).map(|info| info.tree).collect();
    if commits.is_empty() && ledger.main().is_none() {
        return Err(Refusal::NoMain.into());
    }
    if commits.is_empty() || trees.len() != commits.len() {
        return Err(Refusal::NoBase.into());
    }
    let merge_bases = (1..commits.len())
        .map(|n| {
            let (left, right) = commits.split_at_checked(n)?;
            graph.merge_base(left, *right.first()?)
        })
        .collect();
    let mains_before = mains_before(ledger, graph, &commits);
    let waits_for = waits_for.into_iter().collect();
    Ok(Bases { commits, between, trees, merge_bases, waits_for, mains_before })
}

/// The known commits at which walks from `starts` end, and the others on the way.
fn known_ancestors(
    ledger: &dyn Ledger,
    graph: &Graph<'_>,
    starts: &[ObjectId],
    own: Option<&ChangeId>,
) -> Result<(BTreeSet<ObjectId>, Vec<ObjectId>), Stop> {
    let (mut found, mut missing, mut between) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let mut seen = BTreeSet::new();
    let mut todo = starts.to_vec();
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        if known(ledger, &id, own).is_some() {
            found.insert(id);
            continue;
        }
        match graph.info(&id) {
            Some(info) => {
                between.push(id);
                todo.extend(info.parents);
            }
            None => {
                missing.insert(id);
            }
        }
    }
    if missing.is_empty() { Ok((found, between)) } else { Err(Stop::Missing(missing)) }
}

/// What is known of a commit, the own change apart; the surest answer first.
fn known(ledger: &dyn Ledger, commit: &ObjectId, own: Option<&ChangeId>) -> Option<Known> {
    let on_main = if off(Mutant::BaseEver) {
        ledger.main().is_some_and(|main| Graph::new(ledger, &[]).is_ancestor(*commit, main))
    } else {
        ledger.was_on_main(commit)
    };
    if on_main {
        return Some(Known::Settled);
    }
    let (mut open, mut dead) = (None, None);
    for (change, _) in ledger.versions_with(commit) {
        if Some(&change) == own && !off(Mutant::BaseOwn) {
            continue;
        }
        let state = ledger.state(&change);
        match state.closed.map(|closed| closed.stage) {
            _ if state.landed.is_some() || state.rewritten.is_some() => return Some(Known::Settled),
            Some(Terminal::Landed | Terminal::AlreadyOnMain) => return Some(Known::Settled),
            Some(Terminal::Withdrawn | Terminal::Expired) => {
                dead.get_or_insert(change);
            }
            None => {
                open.get_or_insert(change);
            }
        }
    }
    dead.map(Known::Dead).or(open.map(Known::Open))
}

fn mains_before(ledger: &dyn Ledger, graph: &Graph<'_>, bases: &[ObjectId]) -> Vec<OlderMain> {
    let anchor = graph.nearest(bases, |id| ledger.was_on_main(id));
    let parent = |id: ObjectId| graph.info(&id)?.parents.first().copied();
    std::iter::successors(anchor.and_then(parent), |id| parent(*id))
        .take(limits::STALE_MAINS_MAX)
        .filter_map(|commit| graph.info(&commit).map(|info| OlderMain { commit, tree: info.tree }))
        .collect()
}
