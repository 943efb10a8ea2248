//! Redoing a collided change's reviewed intent on newest main by a model: everything but the calls.
//!
//! ```text
//! Brief --prompt--> Prompt --provider--> request ... reply --provider--> text --answer--> Replayed --proof--> Proof
//! ```
//!
//! A model's output is only ever a proposal: [`answer`] lets it touch the reviewed paths and nothing
//! else, and what comes out passes the same tests and the same kernel as any other version.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod answer;
pub mod brief;
pub mod coverage;
pub mod limits;
pub mod price;
pub mod prompt;
pub mod proof;
pub mod provider;
pub mod settings;
pub mod text;
