//! Submissions: prepare, accept, contents.

use std::collections::BTreeSet;

use serde_json::json;
use yard_common::bytes::Base64;
use yard_common::edit_list::EditList;
use yard_common::limits::CANDIDATE_PACK_BYTES_MAX;
use yard_common::submission::{Base, CommitNode, Submission};
use yard_common::{ChangeId, Fact, Millis, ObjectId, Refusal};
use yard_landing::accept::{Proposal, accept, answered};
use yard_landing::base::{Bases, base_of_new, find_base};
use yard_landing::claim::{of_train, renew};
use yard_landing::decision::Stop;
use yard_landing::{Decision, Ledger as _, SubmissionAnswer};
use yard_wire::repository as wire;

use super::ledger::{KnownRows, SqlLedger};
use super::read::commit_info;
use super::{Platform, Repository};
use crate::sql::{Sql as _, SqlFault, Value, each_ids};

/// Edits of which it is known without writing them down that they fit a fact, and that are looked up one by
/// one: 300 bytes each, of paths of 100, are far below 256 kB.
const EDITS_COUNTED: usize = 100;

fn node(commit: &wire::CommitInfo) -> CommitNode {
    CommitNode { id: commit.id, parents: commit.parents.clone(), tree: commit.tree }
}

/// A commit that is not known here must come with the push.
fn unknown(id: Option<&ObjectId>) -> Refusal {
    let name = id.map_or_else(String::new, ToString::to_string);
    Refusal::NotFound { kind: "commit".into(), name }
}

fn accepted(row: &Submission) -> wire::Accepted {
    wire::Accepted {
        change: row.change.clone(),
        version: row.version,
        head: row.head,
        waits_for: row.waits_for.clone(),
        warnings: row.warnings.clone(),
    }
}

impl<P: Platform> Repository<P> {
    /// The base of a head, as it is now.
    pub(super) fn prepare(&self, asked: &wire::Prepare) -> Result<wire::PrepareReply, Refusal> {
        self.parent_only()?;
        let ledger = self.ledger()?;
        if ledger.main().is_none() {
            return Err(Refusal::NoMain);
        }
        let (change, fork) = (asked.change.as_ref(), asked.fork.as_ref());
        let found = if asked.is_base {
            base_of_new(&ledger, asked.head, change, fork)
        } else {
            let nodes: Vec<CommitNode> = asked.commits.iter().map(node).collect();
            find_base(&ledger, &nodes, asked.head, change, fork)
        };
        ledger.check()?;
        let bases = found.map_err(|stop| match stop {
            Stop::No(refusal) => refusal,
            Stop::Missing(ids) => unknown(ids.first()),
        })?;
        self.base_reply(&bases)
    }

    fn base_reply(&self, bases: &Bases) -> Result<wire::PrepareReply, Refusal> {
        let commits: Vec<ObjectId> =
            bases.commits.iter().copied().chain(bases.merge_bases.iter().filter_map(|id| *id)).collect();
        let rows = each_ids(
            &self.sql,
            "SELECT c.id, c.tree, c.parents, c.seconds FROM ids JOIN commits AS c ON c.id = ids.id",
            &commits,
            &[],
        )?;
        let infos = rows.iter().map(|row| commit_info(row, 0)).collect::<Result<Vec<_>, SqlFault>>()?;
        let info = |id: &ObjectId| infos.iter().find(|info| info.id == *id).cloned();
        let nothing = wire::CommitInfo {
            id: ObjectId::ZERO,
            tree: ObjectId::EMPTY_TREE,
            parents: Vec::new(),
            seconds: 0,
        };
        Ok(wire::PrepareReply {
            bases: bases.commits.iter().filter_map(info).collect(),
            merge_bases: bases
                .merge_bases
                .iter()
                .map(|id| id.as_ref().and_then(info).unwrap_or_else(|| nothing.clone()))
                .collect(),
            waits_for: bases.waits_for.clone(),
            mains_before: bases.mains_before.iter().map(|main| main.tree).collect(),
            without_objects: self.without_objects(&bases.commits)?,
        })
    }

    /// The answers that keys have got, and main.
    pub(super) fn offered(&self, asked: &wire::Offered) -> Result<wire::OfferedReply, Refusal> {
        self.not_revoked(asked.token.as_ref())?;
        self.parent_only()?;
        let ledger = self.ledger()?;
        ledger.prefetch_answers(
            "submission",
            &asked.keys.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        );
        let answers = asked.keys.iter().map(|(key, content)| {
            Some(match answered(&ledger, key, content) {
                Ok(None) => return None,
                Ok(Some(SubmissionAnswer::Accepted { change, version })) => {
                    ledger.row(&change, version).map(|row| accepted(&row)).ok_or_else(|| unknown(None))
                }
                Ok(Some(SubmissionAnswer::Refused(refusal))) | Err(refusal) => Err(refusal),
            })
        });
        let answers = answers.collect();
        ledger.check()?;
        Ok(wire::OfferedReply { answers, main: ledger.scalars.main })
    }

    /// Decides on proposals, each by itself, and stores all by one block.
    pub(super) fn submit(&self, asked: wire::Submit, now: Millis) -> Result<wire::SubmitReply, Refusal> {
        self.not_revoked(asked.token.as_ref())?;
        self.parent_only()?;
        let lane = Self::default_lane()?;
        let mut ledger = self.ledger()?;
        let ids: Vec<ChangeId> = asked.items.iter().filter_map(|item| item.change.clone()).collect();
        ledger.prefetch(&ids, &mut KnownRows::new());
        let commits = asked.items.iter().flat_map(|item| &item.commits);
        let mut commits: BTreeSet<ObjectId> =
            commits.flat_map(|commit| commit.parents.iter().copied().chain([commit.id])).collect();
        commits.extend(asked.items.iter().flat_map(|item| &item.base_commits));
        ledger.prefetch_commits(&commits.into_iter().collect::<Vec<_>>());
        let keys: Vec<&str> = asked.items.iter().map(|item| item.key.as_str()).collect();
        ledger.prefetch_answers("submission", &keys);
        let mut results = Vec::with_capacity(asked.items.len());
        let mut stored = Vec::new();
        for item in asked.items {
            let result = self.decide_submission(&mut ledger, &item, now);
            ledger.check()?;
            if let Ok((accepted, true)) = &result {
                stored.push((accepted.clone(), item));
            }
            results.push(result.map(|(accepted, _)| accepted));
        }
        for (accepted, item) in &stored {
            self.put_contents(&accepted.change, &item.contents)?;
            if let Some(bytes) = &item.head_object {
                self.put_head(accepted, bytes)?;
            }
            for pack in &item.packs {
                self.put_pack(pack, "staged", now)?;
                ledger.pending.live_packs.push(pack.pack.clone());
            }
        }
        if !ledger.pending.facts.is_empty() {
            self.save(ledger)?;
        }
        let lanes = if stored.is_empty() { Vec::new() } else { vec![lane] };
        Ok(wire::SubmitReply { results, lanes })
    }

    /// The answer, and whether it is a new row.
    fn decide_submission(
        &self,
        ledger: &mut SqlLedger<'_, P::Sql>,
        item: &wire::Proposal,
        now: Millis,
    ) -> Result<(wire::Accepted, bool), Refusal> {
        if item.list.is_some() || item.edits.len() > EDITS_COUNTED {
            let list = EditList::of(&item.edits)?.map(|(list, _)| list);
            if list != item.list {
                return Err(Refusal::Internal { during: "keeping a list of edits".into() });
            }
        }
        if item.edits.len() > EDITS_COUNTED {
            ledger.prefetch_paths(item.fork.as_ref(), &item.edits);
        }
        self.not_dead(&item.packs.iter().map(|pack| &pack.pack.key).collect::<Vec<_>>())?;
        let proposal = Proposal {
            key: item.key.clone(),
            request: item.request.clone(),
            change: item.change.clone(),
            new_change: item.new_change,
            replay_of: item.replay_of,
            fork: item.fork.clone(),
            via: item.via,
            author: item.author.clone(),
            head: item.head,
            head_tree: item.head_tree,
            commits: item.commits.iter().map(node).collect(),
            base: Base { commits: item.base_commits.clone(), tree: item.base_tree },
            edits: item.edits.clone(),
            list: item.list.clone(),
            differs_from_mains: item.differs_from_mains.clone(),
            takes_back: item.takes_back.clone(),
            reverts: item.reverts.clone(),
            lane: Self::default_lane()?,
            intent: item.intent.clone(),
            warnings: item.warnings.clone(),
            replay: item.replay.clone(),
        };
        match accept(&*ledger, &proposal, now) {
            Decision::Fact(fact) => {
                let answer = match &*fact {
                    Fact::Submitted { row, .. } => Ok((accepted(row), true)),
                    Fact::SubmissionRefused { refusal, .. } => Err(refusal.clone()),
                    _ => Err(Refusal::Internal { during: "accepting a submission".into() }),
                };
                ledger.seconds.extend(item.commits.iter().map(|commit| (commit.id, commit.seconds)));
                ledger.apply(*fact, now);
                answer
            }
            Decision::Answered(SubmissionAnswer::Accepted { change, version }) => {
                let row = ledger.row(&change, version);
                row.map(|row| (accepted(&row), false)).ok_or_else(|| unknown(None))
            }
            Decision::Answered(SubmissionAnswer::Refused(refusal)) | Decision::Refused(refusal) => {
                Err(refusal)
            }
            Decision::Missing(ids) => Err(unknown(ids.first())),
        }
    }

    /// Keeps the new blobs of an API submission until it has ended; each change has its own copy, so that
    /// none loses what another had too.
    fn put_contents(&self, change: &ChangeId, contents: &[(ObjectId, Base64)]) -> Result<(), Refusal> {
        // 30 rows of three parameters are below the 100 of the platform.
        for bundle in contents.chunks(30) {
            let marks = vec!["(?, ?, ?)"; bundle.len()].join(", ");
            let params: Vec<Value> = bundle
                .iter()
                .flat_map(|(id, bytes)| [id.into(), Value::Blob(bytes.0.clone()), change.as_str().into()])
                .collect();
            self.sql.run(
                &format!("INSERT OR IGNORE INTO contents (id, bytes, change) VALUES {marks}"),
                &params,
            )?;
        }
        Ok(())
    }

    /// Contents that have not landed.
    pub(super) fn contents(&self, asked: &wire::Contents) -> Result<Vec<(ObjectId, Base64)>, Refusal> {
        self.parent_only()?;
        let rows = each_ids(
            &self.sql,
            "SELECT c.id, length(c.bytes) FROM ids JOIN contents AS c ON c.id = ids.id GROUP BY c.id",
            &asked.ids,
            &[],
        )?;
        let (mut ids, mut bytes) = (Vec::new(), 0);
        for row in &rows {
            bytes += row.number(1)?;
            if bytes > CANDIDATE_PACK_BYTES_MAX as u64 {
                break;
            }
            ids.push(row.id(0)?);
        }
        let rows = each_ids(
            &self.sql,
            "SELECT c.id, c.bytes FROM ids JOIN contents AS c ON c.id = ids.id GROUP BY c.id",
            &ids,
            &[],
        )?;
        let found = rows.iter().map(|row| Ok((row.id(0)?, Base64(row.blob(1)?.to_vec()))));
        Ok(found.collect::<Result<Vec<_>, SqlFault>>()?)
    }

    /// Claims under which the candidate's changes were made hold for its test and landing: one that
    /// ended meanwhile would let another fork in, whose claim then stops the tested train.
    fn lengthen_claims(&self, asked: &wire::StageCandidate, now: Millis) -> Result<(), Refusal> {
        let until = now.plus(asked.for_ms);
        let ledger = self.ledger()?;
        if ledger.live_claims(now).is_empty() {
            return Ok(ledger.check()?);
        }
        let live = of_train(&ledger, &asked.changes, now);
        ledger.check()?;
        for fence in live {
            let mut ledger = self.ledger()?;
            let Ok(fact) = renew(&ledger, fence, until, now) else { continue };
            let longer = matches!(&fact, Fact::Claimed { until, .. }
                if ledger.claim(fence).is_some_and(|claim| claim.until < *until));
            ledger.check()?;
            if longer {
                ledger.apply(fact, now);
                self.save(ledger)?;
            }
        }
        Ok(())
    }

    /// Stages a candidate under its hidden ref.
    pub(super) fn stage_candidate(&self, asked: &wire::StageCandidate, now: Millis) -> Result<(), Refusal> {
        self.parent_only()?;
        self.not_dead(&[&asked.pack.pack.key])?;
        crate::point("repository.candidate.before");
        self.lengthen_claims(asked, now)?;
        self.put_pack(&asked.pack, "candidate", now)?;
        self.sql.run(
            "UPDATE packs SET attempt = ?2, lane = ?3, train = ?4 WHERE key = ?1 AND state = 'candidate'",
            &[
                asked.pack.pack.key.as_str().into(),
                asked.attempt.to_string().into(),
                asked.attempt.lane.as_str().into(),
                asked.attempt.train.0.into(),
            ],
        )?;
        self.sql.run(
            "INSERT OR REPLACE INTO candidates (attempt, tip, commits, at) VALUES (?1, ?2, ?3, ?4)",
            &[
                asked.attempt.to_string().into(),
                asked.tip.into(),
                json!(asked.commits).to_string().into(),
                now.0.into(),
            ],
        )?;
        crate::point("repository.candidate.after");
        Ok(())
    }
}
