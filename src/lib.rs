//! The Worker at the edge: it parses, authenticates, routes and relays; it does the heavy reading and
//! decides nothing.
#![allow(async_fn_in_trait, reason = "an isolate has one thread: no future of ours is Send")]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod api;
pub mod auth;
pub mod git;
pub mod hand;
pub mod openapi;
pub mod replay;
pub mod respond;
pub mod router;
pub mod store;
pub mod submit;

#[cfg(target_arch = "wasm32")]
mod edge;

// A class of a dependency crate is absent from the module's exports unless the root crate re-exports it.
#[cfg(target_arch = "wasm32")]
pub use yard_objects::worker::{Board, Lane, Registry, Repository};
