//! What a person or a lane may do to a change, or to landing as a whole.

use std::collections::BTreeSet;

use yard_common::edit_list::EditList;
use yard_common::fact::{Fact, Terminal};
use yard_common::submission::Submission;
use yard_common::{ChangeId, ForkName, LaneName, Millis, ObjectId, Refusal, Version};
use yard_git::{Objects, tree};

use crate::decision::{Decision, Stop};
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The fork that the actor speaks for.
    pub fork: Option<ForkName>,
    /// May the actor act on everybody's changes?
    pub admin: bool,
    /// The name kept with the fact: a token's id or a lane's name.
    pub by: String,
}

impl Actor {
    /// May the actor touch what belongs to this fork?
    ///
    /// # Errors
    /// [`Refusal::Forbidden`] when not.
    pub fn may_touch(&self, fork: Option<&ForkName>) -> Result<(), Refusal> {
        if self.admin || (self.fork.is_some() && self.fork.as_ref() == fork) {
            return Ok(());
        }
        Err(Refusal::Forbidden { needs: "admin, or a token of the fork that made it".into() })
    }
}

fn newest(ledger: &dyn Ledger, change: &ChangeId) -> Result<std::sync::Arc<Submission>, Refusal> {
    ledger.newest(change).ok_or_else(|| Refusal::NotFound { kind: "change".into(), name: change.to_string() })
}

fn fact<A>(fact: Fact) -> Decision<A> {
    Decision::Fact(Box::new(fact))
}

/// Takes a change back for a reason. After the landing fact the answer is "too late: revert".
#[must_use]
pub fn cancel(
    ledger: &dyn Ledger,
    change: &ChangeId,
    reason: &str,
    actor: &Actor,
    now: Millis,
) -> Decision<()> {
    let row = match newest(ledger, change) {
        Ok(row) => row,
        Err(refusal) => return Decision::Refused(refusal),
    };
    if let Err(refusal) = actor.may_touch(row.fork.as_ref()) {
        return Decision::Refused(refusal);
    }
    let state = ledger.state(change);
    if state.landed.is_some() && !off(Mutant::TooLate) {
        return Decision::Refused(Refusal::TooLate { change: change.clone() });
    }
    if state.closed.is_some() {
        return Decision::Answered(());
    }
    fact(Fact::Closed {
        change: change.clone(),
        version: row.version,
        stage: Terminal::Withdrawn,
        by: actor.by.clone(),
        reason: reason.to_owned(),
        at: now,
    })
}

/// A lane closes a change at the version and the main that it has seen.
///
/// For already-on-main every `theirs` of the row must stand on main.
#[must_use]
pub fn close(ledger: &dyn Ledger, close: &Close<'_>, objects: &dyn Objects, now: Millis) -> Decision<()> {
    match closing(ledger, close, objects) {
        Ok(false) => Decision::Answered(()),
        Ok(true) => fact(Fact::Closed {
            change: close.change.clone(),
            version: close.version,
            stage: close.stage,
            by: close.by.to_owned(),
            reason: String::new(),
            at: now,
        }),
        Err(Stop::No(refusal)) => Decision::Refused(refusal),
        Err(Stop::Missing(ids)) => Decision::Missing(ids),
    }
}

/// What a lane asks to be closed.
#[derive(Debug, Clone)]
pub struct Close<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The version that the lane has seen.
    pub version: Version,
    /// Already-on-main or expired.
    pub stage: Terminal,
    /// Main as the lane has seen it.
    pub head: ObjectId,
    /// The lane.
    pub by: &'a str,
}

/// Is there something to close?
fn closing(ledger: &dyn Ledger, close: &Close<'_>, objects: &dyn Objects) -> Result<bool, Stop> {
    let change = close.change;
    let row = newest(ledger, change)?;
    let state = ledger.state(change);
    if state.landed.is_some() {
        return Err(Refusal::AlreadyLanded { changes: vec![change.clone()] }.into());
    }
    if let Some(closed) = state.closed {
        return match closed.stage {
            stage if stage == close.stage => Ok(false),
            _ => Err(Refusal::Withdrawn { changes: vec![change.clone()] }.into()),
        };
    }
    if row.version != close.version {
        return Err(Refusal::Superseded { changes: vec![change.clone()] }.into());
    }
    match close.stage {
        Terminal::Expired => Ok(true),
        Terminal::AlreadyOnMain => stands_on_main(ledger, &row, close.head, objects).map(|()| true),
        Terminal::Landed | Terminal::Withdrawn => {
            let why = "a lane closes a change as already-on-main or expired only".to_owned();
            Err(Refusal::Invalid { why }.into())
        }
    }
}

fn stands_on_main(
    ledger: &dyn Ledger,
    row: &Submission,
    head: ObjectId,
    objects: &dyn Objects,
) -> Result<(), Stop> {
    let main = ledger.main().unwrap_or(ObjectId::ZERO);
    if main != head {
        return Err(Refusal::Moved { head: main, paths: Vec::new() }.into());
    }
    if off(Mutant::AlreadyOnMain) {
        return Ok(());
    }
    if !EditList::is_whole(row.list.as_ref(), row.edits.len()) {
        return Err(Refusal::Internal { during: "reading a list of edits".into() }.into());
    }
    let tree = ledger.commit(&main).map_or(ObjectId::EMPTY_TREE, |info| info.tree);
    let mut missing = BTreeSet::new();
    for edit in &row.edits {
        match tree::lookup(&objects, tree, &edit.path).map_err(Stop::from) {
            Ok(stands) if stands == edit.theirs => {}
            Ok(_) => {
                let (change, path) = (row.change.clone(), edit.path.clone());
                return Err(Refusal::GoesBack { change, path }.into());
            }
            Err(Stop::Missing(ids)) => missing.extend(ids),
            Err(stop) => return Err(stop),
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Stop::Missing(missing)) }
}

/// Holds a change for a reason, or releases it.
#[must_use]
pub fn hold(ledger: &dyn Ledger, change: &ChangeId, reason: Option<String>, actor: &Actor) -> Decision<()> {
    let row = match newest(ledger, change) {
        Ok(row) => row,
        Err(refusal) => return Decision::Refused(refusal),
    };
    if let Err(refusal) = actor.may_touch(row.fork.as_ref()) {
        return Decision::Refused(refusal);
    }
    let state = ledger.state(change);
    if !state.is_open() {
        return ended(ledger, change);
    }
    if state.hold == reason {
        return Decision::Answered(());
    }
    fact(Fact::HoldSet { change: change.clone(), reason, by: actor.by.clone() })
}

/// Offers a rewritten or sent-back change again as it is.
#[must_use]
pub fn requeue(ledger: &dyn Ledger, change: &ChangeId, actor: &Actor) -> Decision<()> {
    let row = match newest(ledger, change) {
        Ok(row) => row,
        Err(refusal) => return Decision::Refused(refusal),
    };
    if let Err(refusal) = actor.may_touch(row.fork.as_ref()) {
        return Decision::Refused(refusal);
    }
    if !ledger.state(change).is_open() {
        return ended(ledger, change);
    }
    fact(Fact::Requeued { change: change.clone(), by: actor.by.clone() })
}

fn ended(ledger: &dyn Ledger, change: &ChangeId) -> Decision<()> {
    let change = change.clone();
    Decision::Refused(match ledger.state(&change).landed {
        Some(_) => Refusal::TooLate { change },
        None => Refusal::ChangeWithdrawn { change },
    })
}

/// An admin allows the newest version to change what only admins may change.
#[must_use]
pub fn approve(ledger: &dyn Ledger, change: &ChangeId, version: Version, actor: &Actor) -> Decision<()> {
    let row = match newest(ledger, change) {
        Ok(row) => row,
        Err(refusal) => return Decision::Refused(refusal),
    };
    if !actor.admin {
        return Decision::Refused(Refusal::Forbidden { needs: "admin".into() });
    }
    if row.version != version {
        let newest = row.version;
        let why = match version > newest {
            true => format!("change {change} has no version {version}: its newest is {newest}"),
            false => format!("version {version} of change {change} is not the newest: {newest} is"),
        };
        return Decision::Refused(Refusal::Invalid {
            why: format!("{why}: read that one, then say  yard approve {change} {newest}"),
        });
    }
    if ledger.state(change).approved == Some(version) {
        return Decision::Answered(());
    }
    fact(Fact::Approved { change: change.clone(), version, by: actor.by.clone() })
}

/// Freezes landing for a reason, or thaws it.
#[must_use]
pub fn freeze(ledger: &dyn Ledger, reason: Option<String>, actor: &Actor) -> Decision<()> {
    if !actor.admin {
        return Decision::Refused(Refusal::Forbidden { needs: "admin".into() });
    }
    if ledger.frozen() == reason {
        return Decision::Answered(());
    }
    fact(Fact::FreezeSet { reason })
}

/// Forbids or allows direct pushes to main.
#[must_use]
pub fn protect(ledger: &dyn Ledger, protected: bool, actor: &Actor) -> Decision<()> {
    if !actor.admin {
        return Decision::Refused(Refusal::Forbidden { needs: "admin".into() });
    }
    if ledger.protected() == protected {
        return Decision::Answered(());
    }
    fact(Fact::ProtectedSet { protected })
}

/// Hands a change over to another lane, under an owner epoch larger than both lanes have seen.
#[must_use]
pub fn hand_over(ledger: &dyn Ledger, change: &ChangeId, lane: &LaneName) -> Decision<()> {
    let state = ledger.state(change);
    let Some((owner, epoch)) = state.owner.clone().filter(|_| state.is_open()) else {
        return Decision::Refused(Refusal::NotFound { kind: "open change".into(), name: change.to_string() });
    };
    if owner == *lane {
        return Decision::Answered(());
    }
    let newest = epoch.max(ledger.lane_epoch(&owner)).max(ledger.lane_epoch(lane));
    fact(Fact::OwnerSet { change: change.clone(), lane: lane.clone(), owner_epoch: newest.next() })
}
