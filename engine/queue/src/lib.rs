//! The brain of a lane: order, trains, verdicts.
//!
//! [`Lane`] is the state, a fold of [`LaneFact`]s. The host feeds it an [`Input`], stores the facts
//! that come out, and does what [`Lane::next`] says; it asks again after each step and after a
//! restart, so nothing that is to be done is kept but as state. Nothing here reads a clock or does
//! IO.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod apply;
pub mod assemble;
pub mod choose;
pub mod fact;
pub mod fold;
pub mod input;
pub mod judge;
pub mod limits;
pub mod next;
pub mod note;
pub mod replay;
pub mod settle;
mod special;
pub mod stage;
pub mod state;
pub mod story;
pub mod without;

pub use fact::{Candidate, Check, LaneFact, Member, Purpose};
pub use input::{Answer, Input, Work};
pub use next::Step;
pub use stage::EntryStage;
pub use state::{Lane, World};

#[cfg(test)]
mod tests;
