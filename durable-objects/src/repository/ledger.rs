//! The kernel's ledger over SQLite: reads through, writes gathered and stored in one block.

mod prefetch;
mod write;

pub(crate) use prefetch::KnownRows;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use yard_common::fact::{Standing, Turns};
use yard_common::landing::{AttemptId, PackRef};
use yard_common::policy::Policy;
use yard_common::submission::{CommitNode, Submission};
use yard_common::{
    ChangeId, Epoch, Fact, FactNo, Fence, ForkName, IdempotencyKey, LaneName, Millis, ObjectId, OwnerEpoch,
    RefName, Refusal, RepoPath, Seq, Version,
};
use yard_landing::{
    ChangeState, Claim, CommitInfo, LandingAnswer, Ledger, LedgerMut as _, Step, StoredSubmission,
    SubmissionAnswer, fold,
};

use super::fact_text;
use super::lists::{Lists, filled};
use super::tables::{Scalars, StateRow};
use crate::sql::{Row, Sql, SqlFault, Value};

/// A commit that waits to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewCommit {
    pub info: CommitInfo,
    pub seconds: u64,
    pub ever: bool,
}

/// What a block will write.
#[derive(Default)]
pub(crate) struct Pending {
    pub facts: Vec<(FactNo, Millis, Fact)>,
    pub commits: BTreeMap<ObjectId, NewCommit>,
    /// Their order: parents first.
    pub commit_order: Vec<ObjectId>,
    /// Tips whose ancestors were on main from now on.
    pub tips: Vec<ObjectId>,
    pub refs: BTreeMap<RefName, Option<ObjectId>>,
    pub peeled: BTreeMap<RefName, ObjectId>,
    pub rows: BTreeMap<(ChangeId, Version), (Arc<Submission>, FactNo)>,
    pub states: BTreeMap<ChangeId, (ChangeState, FactNo)>,
    pub landings: BTreeMap<ObjectId, Standing>,
    pub steps: BTreeMap<ObjectId, Step>,
    pub claims: BTreeMap<Fence, (Claim, bool)>,
    pub lanes: BTreeMap<LaneName, OwnerEpoch>,
    pub answers: BTreeMap<(&'static str, String), String>,
    pub live_packs: Vec<PackRef>,
}

/// What was read already in this block.
#[derive(Default)]
struct Read {
    newest: BTreeMap<ChangeId, Option<Arc<Submission>>>,
    states: BTreeMap<ChangeId, (ChangeState, FactNo)>,
    commits: BTreeMap<ObjectId, Option<(CommitInfo, bool)>>,
    versions: BTreeMap<ObjectId, Vec<(ChangeId, Version)>>,
    answers: BTreeMap<(&'static str, String), Option<String>>,
    claims: Option<Vec<Claim>>,
    on_path: BTreeMap<(String, String), BTreeSet<ChangeId>>,
}

/// The state at one moment, and what a block changes in it.
pub(crate) struct SqlLedger<'a, S: Sql> {
    pub sql: &'a S,
    pub scalars: Scalars,
    pub pending: Pending,
    /// The edits of rows that have them in the bucket, as far as they were read for this decision.
    pub lists: Lists,
    /// Committer's times of commits that the fold will name without them.
    pub seconds: BTreeMap<ObjectId, u64>,
    no: FactNo,
    policy: Arc<Policy>,
    read: RefCell<Read>,
    fault: RefCell<Option<SqlFault>>,
}

#[derive(Serialize, Deserialize)]
struct StepRow {
    from: Option<ObjectId>,
    paths: Option<Vec<RepoPath>>,
}

#[derive(Serialize, Deserialize)]
struct ClaimRow {
    fork: Option<ForkName>,
    paths: Vec<RepoPath>,
    task: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SubmissionAnswerRow {
    content: String,
    accepted: Option<(ChangeId, Version)>,
    refused: Option<Refusal>,
}

#[derive(Serialize, Deserialize)]
struct LandingAnswerRow {
    tip: Option<ObjectId>,
    refused: Option<Refusal>,
    turn_until: Option<Millis>,
}

fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn fork_key(fork: Option<&ForkName>) -> &str {
    fork.map_or("", ForkName::as_str)
}

fn joined(ids: &[ObjectId]) -> String {
    ids.iter().map(ToString::to_string).collect()
}

fn split(text: &str) -> Vec<ObjectId> {
    let digits = text.as_bytes();
    let ids = digits.chunks(40).filter_map(|chunk| std::str::from_utf8(chunk).ok()?.parse().ok());
    ids.collect()
}

/// Reads a row `tree, parents, generation, ever` from column `at` on.
fn commit_row(row: &Row, at: usize) -> Result<(CommitInfo, bool), SqlFault> {
    let info =
        CommitInfo { tree: row.id(at)?, parents: split(row.text(at + 1)?), generation: row.number(at + 2)? };
    Ok((info, row.int(at + 3)? != 0))
}

impl<'a, S: Sql> SqlLedger<'a, S> {
    pub(crate) fn new(sql: &'a S, scalars: Scalars) -> Self {
        let no = scalars.folded;
        let policy = Arc::new(scalars.policy.clone());
        Self {
            sql,
            scalars,
            pending: Pending::default(),
            lists: Lists::new(),
            seconds: BTreeMap::new(),
            no,
            policy,
            read: RefCell::default(),
            fault: RefCell::default(),
        }
    }

    /// The first fault of a read: nothing that was decided on this ledger may be stored then.
    pub(crate) fn check(&self) -> Result<(), SqlFault> {
        self.fault.borrow().clone().map_or(Ok(()), Err)
    }

    fn ok<T>(&self, result: Result<T, SqlFault>) -> Option<T> {
        result.map_err(|fault| *self.fault.borrow_mut() = Some(fault)).ok()
    }

    fn rows(&self, sql: &str, params: &[Value]) -> Vec<Row> {
        self.ok(self.sql.run(sql, params)).unwrap_or_default()
    }

    fn first<T>(
        &self,
        sql: &str,
        params: &[Value],
        read: impl FnOnce(&Row) -> Result<T, SqlFault>,
    ) -> Option<T> {
        let rows = self.rows(sql, params);
        rows.first().and_then(|row| self.ok(read(row)))
    }

    /// Takes a fact into the block: it is numbered, kept, and folded over what was read.
    pub(crate) fn apply(&mut self, fact: Fact, at: Millis) -> FactNo {
        self.no = self.no.next();
        match &fact {
            Fact::Landed { untested, .. } => self.scalars.tip_tested = untested.is_none(),
            Fact::DirectPush { .. } => self.scalars.tip_tested = false,
            _ => {}
        }
        fold(self, &fact);
        self.scalars.folded = self.no;
        self.pending.facts.push((self.no, at, fact));
        self.no
    }

    /// Folds a fact that is stored already but not in the tables (after a fault).
    pub(crate) fn refold(&mut self, no: FactNo, at: Millis, fact: Fact) {
        self.no = FactNo(no.0.saturating_sub(1));
        self.apply(fact, at);
        self.pending.facts.pop();
    }

    fn commit_at(&self, id: &ObjectId) -> Option<(CommitInfo, bool)> {
        if let Some(new) = self.pending.commits.get(id) {
            return Some((new.info.clone(), new.ever));
        }
        if let Some(found) = self.read.borrow().commits.get(id) {
            return found.clone();
        }
        let found = self.first(
            "SELECT tree, parents, generation, ever FROM commits WHERE id = ?1",
            &[id.into()],
            |row| commit_row(row, 0),
        );
        self.read.borrow_mut().commits.insert(*id, found.clone());
        found
    }

    /// Puts commits with their times, in whatever order they come.
    pub(crate) fn put_commits(&mut self, commits: &[yard_wire::repository::CommitInfo]) {
        let by_id: BTreeMap<ObjectId, &yard_wire::repository::CommitInfo> =
            commits.iter().map(|commit| (commit.id, commit)).collect();
        let ids: BTreeSet<ObjectId> =
            commits.iter().flat_map(|commit| commit.parents.iter().copied().chain([commit.id])).collect();
        self.prefetch_commits(&ids.into_iter().collect::<Vec<_>>());
        let (mut entered, mut done) = (BTreeSet::new(), BTreeSet::new());
        for start in commits {
            let mut todo = vec![start.id];
            while let Some(id) = todo.last().copied() {
                let Some(commit) = by_id.get(&id).filter(|_| !done.contains(&id)) else {
                    todo.pop();
                    continue;
                };
                if entered.insert(id) {
                    let before = todo.len();
                    todo.extend(
                        commit.parents.iter().filter(|id| by_id.contains_key(*id) && !done.contains(*id)),
                    );
                    if todo.len() > before {
                        continue;
                    }
                }
                todo.pop();
                done.insert(id);
                self.seconds.insert(id, commit.seconds);
                self.put_commit(&CommitNode { id, parents: commit.parents.clone(), tree: commit.tree });
            }
        }
    }

    pub(crate) fn live_claims(&self, now: Millis) -> Vec<Claim> {
        if self.read.borrow().claims.is_none() {
            let rows = self.rows(
                "SELECT fence, until, json FROM claims WHERE ended = 0 AND until > ?1 ORDER BY fence",
                &[now.0.into()],
            );
            let claims = rows.iter().filter_map(|row| self.ok(claim_of(row))).collect();
            self.read.borrow_mut().claims = Some(claims);
        }
        let mut claims: BTreeMap<Fence, Claim> = BTreeMap::new();
        for claim in self.read.borrow().claims.iter().flatten() {
            claims.insert(claim.fence, claim.clone());
        }
        for (fence, (claim, ended)) in &self.pending.claims {
            if *ended {
                claims.remove(fence);
            } else {
                claims.insert(*fence, claim.clone());
            }
        }
        claims.into_values().filter(|claim| claim.until > now).collect()
    }

    fn answer<T: serde::de::DeserializeOwned>(&self, kind: &'static str, key: &str) -> Option<T> {
        if let Some(json) = self.pending.answers.get(&(kind, key.to_owned())) {
            return serde_json::from_str(json).ok();
        }
        if let Some(found) = self.read.borrow().answers.get(&(kind, key.to_owned())) {
            return found.as_ref().and_then(|json| serde_json::from_str(json).ok());
        }
        self.first(
            "SELECT json FROM answers WHERE kind = ?1 AND key = ?2",
            &[kind.into(), key.into()],
            |row| row.json(0),
        )
    }

    /// An answer that is kept under a key besides the kernel's own.
    pub(crate) fn other_answer<T: serde::de::DeserializeOwned>(
        &self,
        kind: &'static str,
        key: &str,
    ) -> Option<T> {
        self.answer(kind, key)
    }

    pub(crate) fn keep_answer<T: Serialize>(&mut self, kind: &'static str, key: &str, answer: &T) {
        self.pending.answers.entry((kind, key.to_owned())).or_insert_with(|| to_json(answer));
    }

    pub(crate) fn target(&self, name: &RefName) -> Option<ObjectId> {
        if let Some(target) = self.pending.refs.get(name) {
            return *target;
        }
        self.first("SELECT target FROM refs WHERE name = ?1", &[name.as_str().into()], |row| row.id(0))
    }
}

/// Reads a row `change, version` from column `at` on.
fn version_of(row: &Row, at: usize) -> Result<(ChangeId, Version), SqlFault> {
    Ok((row.parse(at, "change id")?, Version(row.number(at + 1)?)))
}

fn row_of_fact(json: &str) -> Result<Arc<Submission>, SqlFault> {
    fact_text::submission(json).map(Arc::new)
}

fn state_of(row: &Row) -> Result<(ChangeId, (ChangeState, FactNo)), SqlFault> {
    let state: StateRow = row.json(1)?;
    Ok((row.parse(0, "change id")?, (state.into(), FactNo(row.number(2)?))))
}

/// Reads a row `fence, until, json`.
pub(crate) fn claim_of(row: &Row) -> Result<Claim, SqlFault> {
    let ClaimRow { fork, paths, task } = row.json(2)?;
    Ok(Claim { fork, paths, task, fence: Fence(row.number(0)?), until: Millis(row.number(1)?) })
}

pub(crate) fn claim_json(claim: &Claim) -> String {
    let Claim { fork, paths, task, .. } = claim.clone();
    to_json(&ClaimRow { fork, paths, task })
}

pub(crate) fn step_json(step: &Step) -> String {
    to_json(&StepRow { from: step.from, paths: step.paths.clone() })
}

pub(crate) fn parents_text(parents: &[ObjectId]) -> String {
    joined(parents)
}

/// Parents as a row keeps them.
pub(crate) fn parents_of(text: &str) -> Vec<ObjectId> {
    split(text)
}

pub(crate) fn fork_text(fork: Option<&ForkName>) -> &str {
    fork_key(fork)
}

impl<S: Sql> Ledger for SqlLedger<'_, S> {
    fn main(&self) -> Option<ObjectId> {
        self.scalars.main
    }

    fn epoch(&self) -> Epoch {
        self.scalars.epoch
    }

    fn notes(&self) -> Option<ObjectId> {
        self.scalars.notes
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy)
    }

    fn frozen(&self) -> Option<String> {
        self.scalars.frozen.clone()
    }

    fn protected(&self) -> bool {
        self.scalars.protected
    }

    fn turns(&self) -> Turns {
        self.scalars.turns.clone()
    }

    fn next_seq(&self) -> Seq {
        Seq(self.scalars.rows + 1)
    }

    fn newest(&self, change: &ChangeId) -> Option<Arc<Submission>> {
        let versions = (change.clone(), Version(0))..=(change.clone(), Version(u64::MAX));
        if let Some((_, (row, _))) = self.pending.rows.range(versions).next_back() {
            return Some(Arc::clone(row));
        }
        if let Some(found) = self.read.borrow().newest.get(change) {
            return found.clone();
        }
        let found = self.first(
            "SELECT f.json FROM submissions AS s JOIN facts AS f ON f.no = s.fact
             WHERE s.change = ?1 ORDER BY s.version DESC LIMIT 1",
            &[change.as_str().into()],
            |row| Ok(filled(row_of_fact(row.text(0)?)?, &self.lists)),
        );
        self.read.borrow_mut().newest.insert(change.clone(), found.clone());
        found
    }

    fn row(&self, change: &ChangeId, version: Version) -> Option<Arc<Submission>> {
        if let Some((row, _)) = self.pending.rows.get(&(change.clone(), version)) {
            return Some(Arc::clone(row));
        }
        if let Some(row) = self.newest(change).filter(|row| row.version == version) {
            return Some(row);
        }
        self.first(
            "SELECT f.json FROM submissions AS s JOIN facts AS f ON f.no = s.fact
             WHERE s.change = ?1 AND s.version = ?2",
            &[change.as_str().into(), version.0.into()],
            |row| Ok(filled(row_of_fact(row.text(0)?)?, &self.lists)),
        )
    }

    fn state(&self, change: &ChangeId) -> ChangeState {
        if let Some((state, _)) = self.pending.states.get(change) {
            return state.clone();
        }
        if let Some((state, _)) = self.read.borrow().states.get(change) {
            return state.clone();
        }
        let found = self.first(
            "SELECT change, state, upto FROM changes WHERE change = ?1",
            &[change.as_str().into()],
            |row| state_of(row).map(|found| found.1),
        );
        let found = found.unwrap_or_default();
        self.read.borrow_mut().states.insert(change.clone(), found.clone());
        found.0
    }

    fn on_path(&self, fork: Option<&ForkName>, path: &RepoPath) -> Vec<ChangeId> {
        let key = (fork_key(fork).to_owned(), path_text(path));
        let read = self.read.borrow().on_path.get(&key).cloned();
        let mut found: BTreeSet<ChangeId> = read.unwrap_or_else(|| {
            let params = [key.0.as_str().into(), key.1.as_str().into()];
            let rows = self.rows("SELECT change FROM paths WHERE fork = ?1 AND path = ?2", &params);
            rows.iter().filter_map(|row| self.ok(row.parse(0, "change id"))).collect()
        });
        let new = self.pending.rows.values().filter(|(row, _)| row.fork.as_ref() == fork);
        found.extend(new.map(|(row, _)| row.change.clone()));
        // A stored path may be that of a version before one in this block.
        found.retain(|change| {
            // The paths of a row whose edits are in the bucket are the stored ones.
            let touches = |row: Arc<Submission>| {
                row.edits.is_empty() || row.edits.binary_search_by(|edit| edit.path.cmp(path)).is_ok()
            };
            self.newest(change).is_some_and(touches)
        });
        found.into_iter().collect()
    }

    fn versions_with(&self, commit: &ObjectId) -> Vec<(ChangeId, Version)> {
        let read = self.read.borrow().versions.get(commit).cloned();
        let mut found: Vec<(ChangeId, Version)> = read.unwrap_or_else(|| {
            let rows = self.rows(
                "SELECT change, version FROM version_commits WHERE id = ?1 ORDER BY change, version",
                &[commit.into()],
            );
            rows.iter().filter_map(|row| self.ok(version_of(row, 0))).collect()
        });
        let new = self.pending.rows.values().filter(|(row, _)| row.commits.contains(commit));
        found.extend(new.map(|(row, _)| (row.change.clone(), row.version)));
        found.sort();
        found.dedup();
        found
    }

    fn was_on_main(&self, commit: &ObjectId) -> bool {
        self.commit_at(commit).is_some_and(|found| found.1)
    }

    fn commit(&self, commit: &ObjectId) -> Option<CommitInfo> {
        self.commit_at(commit).map(|found| found.0)
    }

    fn landing_of(&self, commit: &ObjectId) -> Option<Standing> {
        if let Some(standing) = self.pending.landings.get(commit) {
            return Some(standing.clone());
        }
        let found =
            self.first("SELECT change, version FROM landings WHERE id = ?1", &[commit.into()], |row| {
                Ok((row.parse(0, "change id")?, Version(row.number(1)?)))
            });
        found.map(|(change, version)| Standing { change, version, commit: *commit })
    }

    fn step(&self, commit: &ObjectId) -> Option<Step> {
        if let Some(step) = self.pending.steps.get(commit) {
            return Some(step.clone());
        }
        let found: Option<StepRow> =
            self.first("SELECT json FROM steps WHERE tip = ?1", &[commit.into()], |row| row.json(0));
        found.map(|StepRow { from, paths }| Step { from, paths })
    }

    fn claims_touching(&self, path: &RepoPath, now: Millis) -> Vec<Claim> {
        self.live_claims(now).into_iter().filter(|claim| claim.touches(path)).collect()
    }

    fn task_claim(&self, task: &str, now: Millis) -> Option<Claim> {
        self.live_claims(now).into_iter().find(|claim| claim.task.as_deref() == Some(task))
    }

    fn claim(&self, fence: Fence) -> Option<Claim> {
        if let Some((claim, _)) = self.pending.claims.get(&fence) {
            return Some(claim.clone());
        }
        self.first("SELECT fence, until, json FROM claims WHERE fence = ?1", &[fence.0.into()], claim_of)
    }

    fn next_fence(&self) -> Fence {
        self.scalars.fence.next()
    }

    fn lane_epoch(&self, lane: &LaneName) -> OwnerEpoch {
        if let Some(epoch) = self.pending.lanes.get(lane) {
            return *epoch;
        }
        self.first("SELECT epoch FROM lanes WHERE lane = ?1", &[lane.as_str().into()], |row| row.number(0))
            .map(OwnerEpoch)
            .unwrap_or_default()
    }

    fn submission_answer(&self, key: &IdempotencyKey) -> Option<StoredSubmission> {
        let row: SubmissionAnswerRow = self.answer("submission", key.as_str())?;
        let answer = match (row.accepted, row.refused) {
            (Some((change, version)), _) => SubmissionAnswer::Accepted { change, version },
            (None, Some(refusal)) => SubmissionAnswer::Refused(refusal),
            (None, None) => return None,
        };
        Some(StoredSubmission { content: row.content, answer })
    }

    fn landing_answer(&self, key: &AttemptId) -> Option<LandingAnswer> {
        let row: LandingAnswerRow = self.answer("landing", &key.to_string())?;
        match (row.tip, row.refused) {
            (Some(tip), _) => Some(LandingAnswer::Landed { tip }),
            (None, Some(refusal)) => Some(LandingAnswer::Refused { refusal, turn_until: row.turn_until }),
            (None, None) => None,
        }
    }
}

/// A path as a row keeps it: its JSON text, which is unambiguous for every byte string.
pub(crate) fn path_text(path: &RepoPath) -> String {
    to_json(path)
}
