//! What persons and lanes do to changes and to landing as a whole; revoked tokens.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use yard_common::{Fact, Fence, ForkName, Millis, ObjectId, Refusal};
use yard_landing::Decision;
use yard_landing::act::{Actor, Close, approve, cancel, close, freeze, hold, protect, requeue};
use yard_landing::claim::{claim, release};
use yard_wire::repository as wire;

use super::ledger::SqlLedger;
use super::lists::Lists;
use super::{Platform, Repository};
use crate::pack_set::Needed;
use crate::sql::Sql as _;

/// What a key was used for, and its answer.
#[derive(Serialize, Deserialize)]
struct Done {
    act: wire::Act,
    #[serde(default)]
    fork: Option<ForkName>,
    fence: Option<Fence>,
}

fn of(fact: Result<Fact, Refusal>) -> Decision<()> {
    match fact {
        Ok(fact) => Decision::Fact(Box::new(fact)),
        Err(refusal) => Decision::Refused(refusal),
    }
}

impl<P: Platform> Repository<P> {
    /// Does one act; a repeat under its key gets the same answer.
    pub(super) async fn act(&self, asked: wire::Do, now: Millis) -> Result<Option<Fence>, Refusal> {
        self.parent_only()?;
        self.sync_packs()?;
        let lists = match &asked.act {
            wire::Act::Close { change, .. } => self.lists_of(std::slice::from_ref(change)).await?,
            _ => Lists::new(),
        };
        let mut needed = Needed::default();
        loop {
            let missing = match self.decide_act(&asked, &needed, &lists, now)? {
                Ok(answer) => return Ok(answer),
                Err(missing) => missing,
            };
            let lost = self.packs.load(&self.blobs, &missing, &mut needed).await?;
            if let Some(id) = lost.first() {
                return Err(Refusal::NotFound { kind: "object".into(), name: id.to_string() });
            }
        }
    }

    /// One synchronous block. `Err` names objects to load.
    #[allow(clippy::type_complexity, reason = "a refusal, objects to load, or the answer")]
    fn decide_act(
        &self,
        asked: &wire::Do,
        needed: &Needed,
        lists: &Lists,
        now: Millis,
    ) -> Result<Result<Option<Fence>, BTreeSet<ObjectId>>, Refusal> {
        let mut ledger = self.ledger()?;
        ledger.lists = lists.clone();
        if let Some(Done { act, fork, fence }) = ledger.other_answer("do", asked.key.as_str()) {
            // Another fork's claim under the same key is not this one's.
            if act == asked.act && fork == asked.fork {
                return Ok(Ok(fence));
            }
            return Err(Refusal::KeyReused { key: asked.key.to_string() });
        }
        let decision = decide(&ledger, asked, needed, now);
        ledger.check()?;
        let fence = match decision {
            Decision::Refused(refusal) => return Err(refusal),
            Decision::Missing(ids) => return Ok(Err(ids)),
            Decision::Answered(()) => return Ok(Ok(None)),
            Decision::Fact(fact) => {
                let fence = match &*fact {
                    Fact::Claimed { fence, .. } => Some(*fence),
                    _ => None,
                };
                ledger.apply(*fact, now);
                fence
            }
        };
        let done = Done { act: asked.act.clone(), fork: asked.fork.clone(), fence };
        ledger.keep_answer("do", asked.key.as_str(), &done);
        self.save(ledger)?;
        Ok(Ok(fence))
    }

    /// Revokes a token here.
    pub(super) fn revoke(&self, asked: &wire::Revoke) -> Result<(), Refusal> {
        self.remote()?;
        crate::point("repository.revoke.before");
        self.sql.run("INSERT OR IGNORE INTO revoked (token) VALUES (?1)", &[asked.token.as_str().into()])?;
        crate::point("repository.revoke.after");
        Ok(())
    }
}

fn decide<S: crate::Sql>(
    ledger: &SqlLedger<'_, S>,
    asked: &wire::Do,
    needed: &Needed,
    now: Millis,
) -> Decision<()> {
    let actor = Actor { fork: asked.fork.clone(), admin: asked.admin, by: asked.by.clone() };
    match &asked.act {
        wire::Act::Cancel { change, reason } => cancel(ledger, change, reason, &actor, now),
        wire::Act::Close { change, version, stage, head } => {
            let asked = Close { change, version: *version, stage: *stage, head: *head, by: &asked.by };
            close(ledger, &asked, needed, now)
        }
        wire::Act::Hold { change, reason } => hold(ledger, change, reason.clone(), &actor),
        wire::Act::Requeue { change } => requeue(ledger, change, &actor),
        wire::Act::Freeze { reason } => freeze(ledger, reason.clone(), &actor),
        wire::Act::Claim { paths, for_ms } => {
            of(claim(ledger, asked.fork.as_ref(), paths, None, *for_ms, now))
        }
        wire::Act::Release { fence } => of(release(ledger, *fence, &actor)),
        wire::Act::Approve { change, version } => approve(ledger, change, *version, &actor),
        wire::Act::Protect { protected } => protect(ledger, *protected, &actor),
    }
}
