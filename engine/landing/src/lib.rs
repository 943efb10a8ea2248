//! The landing kernel: what may move main.
//!
//! Pure: it reads the Repository's state through [`Ledger`], objects through
//! [`yard_git::Objects`], takes time as an argument, and answers with a [`Decision`]: the one fact
//! to store, an answer given before, or the objects to load first. [`fold::fold`] is the meaning of
//! every fact; a host implements [`LedgerMut`]'s setters over its tables and stores the fact and its
//! fold in one transaction. Whatever lanes, runners and networks send in whatever order, stale or
//! repeated, nothing is lost and nothing is doubled.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod accept;
pub mod act;
pub mod base;
pub mod change_id;
pub mod check;
pub mod claim;
pub mod decision;
pub mod fold;
pub mod graph;
pub mod land;
pub mod ledger;
pub mod memory;
pub mod mutant;
pub mod push;
pub mod sign;
pub mod turn;

pub use accept::{Proposal, accept};
pub use base::{Bases, base_of_new, find_base};
pub use decision::{Decision, Stop};
pub use fold::fold;
pub use land::{Configuration, Context, land};
pub use ledger::{
    ChangeState, Claim, Closed, CommitInfo, LandingAnswer, Ledger, LedgerMut, Step, StoredSubmission,
    SubmissionAnswer,
};
pub use memory::MemoryLedger;
pub use sign::Verifier;
