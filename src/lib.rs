//! The Worker at the edge.

#[cfg(target_arch = "wasm32")]
mod edge;

// A class of a dependency crate is absent from the module's exports unless the root crate re-exports it.
#[cfg(target_arch = "wasm32")]
pub use yard_objects::worker::{Board, Lane, Registry, Repository};
