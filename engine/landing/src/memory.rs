//! A ledger in memory: for tests, simulations and `yard fsck`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_common::fact::{Fact, Standing, Turns};
use yard_common::landing::{AttemptId, PackRef};
use yard_common::policy::Policy;
use yard_common::submission::{CommitNode, Submission};
use yard_common::{
    ChangeId, Epoch, FactNo, Fence, ForkName, IdempotencyKey, LaneName, Millis, ObjectId, OwnerEpoch,
    RefName, RepoPath, Seq, Version,
};

use crate::fold::fold;
use crate::ledger::{
    ChangeState, Claim, CommitInfo, LandingAnswer, Ledger, LedgerMut, Step, StoredSubmission,
};

/// All tables of a Repository, in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryLedger {
    fact_no: FactNo,
    main: Option<ObjectId>,
    epoch: Epoch,
    notes: Option<ObjectId>,
    refs: BTreeMap<RefName, ObjectId>,
    policy: Arc<Policy>,
    frozen: Option<String>,
    protected: bool,
    turns: Turns,
    rows: BTreeMap<ChangeId, BTreeMap<Version, Arc<Submission>>>,
    rows_count: u64,
    states: BTreeMap<ChangeId, ChangeState>,
    paths: BTreeMap<(Option<ForkName>, RepoPath), BTreeSet<ChangeId>>,
    versions: BTreeMap<ObjectId, Vec<(ChangeId, Version)>>,
    ever: BTreeSet<ObjectId>,
    commits: BTreeMap<ObjectId, CommitInfo>,
    landings: BTreeMap<ObjectId, Standing>,
    steps: BTreeMap<ObjectId, Step>,
    claims: BTreeMap<Fence, Claim>,
    over: BTreeSet<Fence>,
    lanes: BTreeMap<LaneName, OwnerEpoch>,
    submission_answers: BTreeMap<IdempotencyKey, StoredSubmission>,
    landing_answers: BTreeMap<AttemptId, LandingAnswer>,
    packs: Vec<PackRef>,
}

impl MemoryLedger {
    /// An empty repository whose first main will be under this policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(policy), ..Self::default() }
    }

    /// Takes in a fact and its meaning.
    pub fn apply(&mut self, fact: &Fact) {
        fold(self, fact);
        self.fact_no = self.fact_no.next();
    }

    /// How many facts were taken in.
    #[must_use]
    pub fn fact_no(&self) -> FactNo {
        self.fact_no
    }

    /// Every change that has a row, in id order.
    pub fn changes(&self) -> impl Iterator<Item = &ChangeId> {
        self.rows.keys()
    }

    /// A ref other than main and the notes ref.
    #[must_use]
    pub fn target(&self, name: &RefName) -> Option<ObjectId> {
        self.refs.get(name).copied()
    }

    /// The packs of main's catalogue, oldest first.
    #[must_use]
    pub fn packs(&self) -> &[PackRef] {
        &self.packs
    }

    fn live(&self, now: Millis) -> impl Iterator<Item = &Claim> {
        self.claims.values().filter(move |claim| claim.until > now && !self.over.contains(&claim.fence))
    }
}

impl Ledger for MemoryLedger {
    fn main(&self) -> Option<ObjectId> {
        self.main
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn notes(&self) -> Option<ObjectId> {
        self.notes
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy)
    }

    fn frozen(&self) -> Option<String> {
        self.frozen.clone()
    }

    fn protected(&self) -> bool {
        self.protected
    }

    fn turns(&self) -> Turns {
        self.turns.clone()
    }

    fn next_seq(&self) -> Seq {
        Seq(self.rows_count + 1)
    }

    fn newest(&self, change: &ChangeId) -> Option<Arc<Submission>> {
        self.rows.get(change)?.values().next_back().cloned()
    }

    fn row(&self, change: &ChangeId, version: Version) -> Option<Arc<Submission>> {
        self.rows.get(change)?.get(&version).cloned()
    }

    fn state(&self, change: &ChangeId) -> ChangeState {
        self.states.get(change).cloned().unwrap_or_default()
    }

    fn on_path(&self, fork: Option<&ForkName>, path: &RepoPath) -> Vec<ChangeId> {
        let key = (fork.cloned(), path.clone());
        self.paths.get(&key).map(|changes| changes.iter().cloned().collect()).unwrap_or_default()
    }

    fn versions_with(&self, commit: &ObjectId) -> Vec<(ChangeId, Version)> {
        self.versions.get(commit).cloned().unwrap_or_default()
    }

    fn was_on_main(&self, commit: &ObjectId) -> bool {
        self.ever.contains(commit)
    }

    fn commit(&self, commit: &ObjectId) -> Option<CommitInfo> {
        self.commits.get(commit).cloned()
    }

    fn landing_of(&self, commit: &ObjectId) -> Option<Standing> {
        self.landings.get(commit).cloned()
    }

    fn step(&self, commit: &ObjectId) -> Option<Step> {
        self.steps.get(commit).cloned()
    }

    fn claims_touching(&self, path: &RepoPath, now: Millis) -> Vec<Claim> {
        self.live(now).filter(|claim| claim.touches(path)).cloned().collect()
    }

    fn task_claim(&self, task: &str, now: Millis) -> Option<Claim> {
        self.live(now).find(|claim| claim.task.as_deref() == Some(task)).cloned()
    }

    fn claim(&self, fence: Fence) -> Option<Claim> {
        self.claims.get(&fence).cloned()
    }

    fn next_fence(&self) -> Fence {
        self.claims.keys().next_back().copied().unwrap_or_default().next()
    }

    fn lane_epoch(&self, lane: &LaneName) -> OwnerEpoch {
        self.lanes.get(lane).copied().unwrap_or_default()
    }

    fn submission_answer(&self, key: &IdempotencyKey) -> Option<StoredSubmission> {
        self.submission_answers.get(key).cloned()
    }

    fn landing_answer(&self, key: &AttemptId) -> Option<LandingAnswer> {
        self.landing_answers.get(key).cloned()
    }
}

impl LedgerMut for MemoryLedger {
    fn set_main(&mut self, tip: ObjectId, epoch: Epoch, step: &Step) {
        self.main = Some(tip);
        self.epoch = epoch;
        self.steps.insert(tip, step.clone());
        let mut todo = vec![tip];
        while let Some(id) = todo.pop() {
            if self.ever.insert(id)
                && let Some(info) = self.commits.get(&id)
            {
                todo.extend(&info.parents);
            }
        }
    }

    fn set_notes(&mut self, tip: ObjectId) {
        self.notes = Some(tip);
    }

    fn set_ref(&mut self, name: &RefName, target: Option<ObjectId>) {
        match target {
            Some(target) => self.refs.insert(name.clone(), target),
            None => self.refs.remove(name),
        };
    }

    fn set_policy(&mut self, policy: &Policy) {
        self.policy = Arc::new(policy.clone());
    }

    fn set_frozen(&mut self, reason: Option<&str>) {
        self.frozen = reason.map(str::to_owned);
    }

    fn set_protected(&mut self, protected: bool) {
        self.protected = protected;
    }

    fn set_turns(&mut self, turns: &Turns) {
        self.turns = turns.clone();
    }

    fn put_commit(&mut self, node: &CommitNode) {
        let known = node.parents.iter().filter_map(|id| self.commits.get(id));
        let generation = 1 + known.map(|info| info.generation).max().unwrap_or(0);
        let info = CommitInfo { tree: node.tree, parents: node.parents.clone(), generation };
        self.commits.entry(node.id).or_insert(info);
    }

    fn put_row(&mut self, row: &Submission) {
        self.rows_count += 1;
        if let Some(before) = self.newest(&row.change) {
            for edit in &before.edits {
                if let Some(changes) = self.paths.get_mut(&(before.fork.clone(), edit.path.clone())) {
                    changes.remove(&row.change);
                }
            }
        }
        for edit in &row.edits {
            let key = (row.fork.clone(), edit.path.clone());
            self.paths.entry(key).or_default().insert(row.change.clone());
        }
        for commit in &row.commits {
            self.versions.entry(*commit).or_default().push((row.change.clone(), row.version));
        }
        self.rows.entry(row.change.clone()).or_default().insert(row.version, Arc::new(row.clone()));
    }

    fn set_state(&mut self, change: &ChangeId, state: &ChangeState) {
        self.states.insert(change.clone(), state.clone());
    }

    fn put_landing(&mut self, landing: &Standing) {
        self.landings.insert(landing.commit, landing.clone());
    }

    fn put_claim(&mut self, claim: &Claim) {
        self.claims.insert(claim.fence, claim.clone());
    }

    fn end_claim(&mut self, fence: Fence) {
        self.over.insert(fence);
    }

    fn raise_lane_epoch(&mut self, lane: &LaneName, epoch: OwnerEpoch) {
        let known = self.lanes.entry(lane.clone()).or_default();
        *known = epoch.max(*known);
    }

    fn put_submission_answer(&mut self, key: &IdempotencyKey, stored: &StoredSubmission) {
        self.submission_answers.entry(key.clone()).or_insert_with(|| stored.clone());
    }

    fn put_landing_answer(&mut self, key: &AttemptId, answer: &LandingAnswer) {
        self.landing_answers.entry(key.clone()).or_insert_with(|| answer.clone());
    }

    fn put_pack(&mut self, pack: &PackRef) {
        if !self.packs.contains(pack) {
            self.packs.push(pack.clone());
        }
    }
}
