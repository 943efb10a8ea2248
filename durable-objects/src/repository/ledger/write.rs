//! The setters that folds write with: all is gathered until the block is stored.

use std::sync::Arc;

use yard_common::fact::{Standing, Turns};
use yard_common::landing::{AttemptId, PackRef};
use yard_common::policy::Policy;
use yard_common::submission::{CommitNode, Submission};
use yard_common::{ChangeId, Epoch, Fence, IdempotencyKey, LaneName, ObjectId, OwnerEpoch, RefName};
use yard_landing::{
    ChangeState, Claim, CommitInfo, LandingAnswer, Ledger as _, LedgerMut, Step, StoredSubmission,
    SubmissionAnswer,
};

use super::{LandingAnswerRow, NewCommit, SqlLedger, SubmissionAnswerRow};
use crate::sql::Sql;

impl<S: Sql> LedgerMut for SqlLedger<'_, S> {
    fn set_main(&mut self, tip: ObjectId, epoch: Epoch, step: &Step) {
        self.scalars.main = Some(tip);
        self.scalars.epoch = epoch;
        self.pending.steps.insert(tip, step.clone());
        self.pending.tips.push(tip);
        let mut todo = vec![tip];
        while let Some(id) = todo.pop() {
            if let Some(new) = self.pending.commits.get_mut(&id).filter(|new| !new.ever) {
                new.ever = true;
                todo.extend(&new.info.parents);
            }
        }
    }

    fn set_notes(&mut self, tip: ObjectId) {
        self.scalars.notes = Some(tip);
    }

    fn set_ref(&mut self, name: &RefName, target: Option<ObjectId>) {
        self.pending.refs.insert(name.clone(), target);
    }

    fn set_policy(&mut self, policy: &Policy) {
        self.scalars.policy = policy.clone();
        self.policy = Arc::new(policy.clone());
    }

    fn set_frozen(&mut self, reason: Option<&str>) {
        self.scalars.frozen = reason.map(str::to_owned);
    }

    fn set_protected(&mut self, protected: bool) {
        self.scalars.protected = protected;
    }

    fn set_turns(&mut self, turns: &Turns) {
        self.scalars.turns = turns.clone();
    }

    fn put_commit(&mut self, node: &CommitNode) {
        if self.commit_at(&node.id).is_some() {
            return;
        }
        let known = node.parents.iter().filter_map(|id| self.commit(id));
        let generation = 1 + known.map(|info| info.generation).max().unwrap_or(0);
        let info = CommitInfo { tree: node.tree, parents: node.parents.clone(), generation };
        let seconds = self.seconds.get(&node.id).copied().unwrap_or(0);
        self.pending.commits.insert(node.id, NewCommit { info, seconds, ever: false });
        self.pending.commit_order.push(node.id);
    }

    fn put_row(&mut self, row: &Submission) {
        self.scalars.rows = self.scalars.rows.max(row.seq.0);
        // The head of an API submission lies in no pack until it lands, so no ref names it.
        let name = RefName::new(format!("refs/changes/{}/{}", row.change, row.version));
        if let Ok(name) = name
            && !row.via.is_inline()
        {
            self.pending.refs.insert(name, Some(row.head));
        }
        let key = (row.change.clone(), row.version);
        self.pending.rows.insert(key, (Arc::new(row.clone()), self.no));
    }

    fn set_state(&mut self, change: &ChangeId, state: &ChangeState) {
        let read = self.read.borrow().states.get(change).map(|found| found.1);
        // A row that holds this fact already is folded anew after a fault: it stays.
        if read.is_some_and(|upto| upto >= self.no) {
            return;
        }
        self.pending.states.insert(change.clone(), (state.clone(), self.no));
    }

    fn put_landing(&mut self, landing: &Standing) {
        self.pending.landings.insert(landing.commit, landing.clone());
    }

    fn put_claim(&mut self, claim: &Claim) {
        self.scalars.fence = self.scalars.fence.max(claim.fence);
        self.pending.claims.insert(claim.fence, (claim.clone(), false));
    }

    fn end_claim(&mut self, fence: Fence) {
        if let Some(claim) = self.claim(fence) {
            self.pending.claims.insert(fence, (claim, true));
        }
    }

    fn raise_lane_epoch(&mut self, lane: &LaneName, epoch: OwnerEpoch) {
        let raised = self.lane_epoch(lane).max(epoch);
        self.pending.lanes.insert(lane.clone(), raised);
    }

    fn put_submission_answer(&mut self, key: &IdempotencyKey, stored: &StoredSubmission) {
        let (accepted, refused) = match &stored.answer {
            SubmissionAnswer::Accepted { change, version } => (Some((change.clone(), *version)), None),
            SubmissionAnswer::Refused(refusal) => (None, Some(refusal.clone())),
        };
        let row = SubmissionAnswerRow { content: stored.content.clone(), accepted, refused };
        self.keep_answer("submission", key.as_str(), &row);
    }

    fn put_landing_answer(&mut self, key: &AttemptId, answer: &LandingAnswer) {
        let row = match answer {
            LandingAnswer::Landed { tip } => {
                LandingAnswerRow { tip: Some(*tip), refused: None, turn_until: None }
            }
            LandingAnswer::Refused { refusal, turn_until } => {
                LandingAnswerRow { tip: None, refused: Some(refusal.clone()), turn_until: *turn_until }
            }
        };
        self.keep_answer("landing", &key.to_string(), &row);
    }

    fn put_pack(&mut self, pack: &PackRef) {
        self.pending.live_packs.push(pack.clone());
    }
}
