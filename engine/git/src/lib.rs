//! Git objects, packs and wire formats, without IO.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod commit;
pub mod diff;
pub mod editor;
pub mod error;
pub mod message;
pub mod object;
pub mod pack;
pub mod special;
pub mod tree;

mod cache;

#[cfg(test)]
mod testing;

pub use commit::{Commit, Tag};
pub use editor::RunningTree;
pub use error::{Malformed, Missing, ReadError};
pub use object::{CachedObjects, Kind, MemoryObjects, Object, Objects, Overlay, hash};
pub use yard_common::submission::{Entry, Mode};
