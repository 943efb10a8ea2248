//! Which change a push is about: the id rule of DESIGN 4.

use sha2::{Digest as _, Sha256};
use yard_common::id::hex;
use yard_common::{ChangeId, Refusal};

use crate::accept::Proposal;
use crate::ledger::Ledger;
use crate::mutant::{Mutant, off};

/// The change that a proposal makes or continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The change.
    pub change: ChangeId,
    /// Has it no version yet?
    pub is_new: bool,
    /// What the author should know.
    pub warning: Option<String>,
}

/// The change that the proposal is about.
///
/// An id belongs to the fork that made it. Somebody else's id, or the word that it is another
/// change, makes a new one with a generated id.
///
/// # Errors
/// [`Refusal::WhichChange`] for a push without an id of its own whose paths overlap with an open
/// change of the same fork.
pub fn target(ledger: &dyn Ledger, proposal: &Proposal) -> Result<Target, Refusal> {
    let replay = proposal.replay_of.is_some();
    let mut warning = None;
    if let Some(change) = &proposal.change {
        let Some(row) = ledger.newest(change) else {
            return Ok(Target { change: change.clone(), is_new: true, warning });
        };
        let own = row.fork == proposal.fork || replay || off(Mutant::ForeignId);
        if own && !proposal.new_change {
            return Ok(Target { change: change.clone(), is_new: false, warning });
        }
        let owner = row.fork.as_ref().map_or("the parent repository", |fork| fork.as_str());
        warning = Some(if own {
            format!("this is another change than {change}, whose Change-Id its message carries")
        } else {
            format!("Change-Id {change} belongs to {owner}: this is a new change made from it")
        });
    }
    // Whoever works without a fork shares the parent's name with others: nobody can say whose is whose.
    if !proposal.new_change && proposal.fork.is_some() && !off(Mutant::WhichChange) {
        refuse_overlap(ledger, proposal)?;
    }
    Ok(Target { change: generated(ledger, proposal)?, is_new: true, warning })
}

fn refuse_overlap(ledger: &dyn Ledger, proposal: &Proposal) -> Result<(), Refusal> {
    for edit in &proposal.edits {
        let open = ledger
            .on_path(proposal.fork.as_ref(), &edit.path)
            .into_iter()
            .find(|change| ledger.state(change).is_open());
        if let Some(open) = open {
            return Err(Refusal::WhichChange { open, path: edit.path.clone() });
        }
    }
    Ok(())
}

/// "I" and 40 hex digits of SHA-256 over key and head, counted on while the id is taken.
fn generated(ledger: &dyn Ledger, proposal: &Proposal) -> Result<ChangeId, Refusal> {
    for n in 0..100u8 {
        let digest = Sha256::digest(format!("{}\n{}\n{n}\n", proposal.key, proposal.head));
        let id = ChangeId::new(format!("I{}", hex(digest.get(..20).unwrap_or_default())))?;
        if ledger.newest(&id).is_none() {
            return Ok(id);
        }
    }
    Err(Refusal::Internal { during: "the making of a change id".into() })
}
