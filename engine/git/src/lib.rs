//! Git objects, packs and wire formats, without IO.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod object;

pub use object::{Kind, MemoryObjects, Object, Objects};
