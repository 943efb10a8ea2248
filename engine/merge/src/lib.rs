//! The three-way merge of trees, without IO: what a lane calls to put one change on the running tree.
//!
//! [`apply_row`] is the lane's entry: edits whose path nobody touched meanwhile are decided by
//! comparing entries alone, paths that both sides changed are merged by an exact rule or as text,
//! and only where a path went or moved on one side is the whole-tree merge, [`merge_trees`], run.
//!
//! The answer is never a guess: what cannot be decided is a collision, and an object that is not
//! at hand is asked for ([`yard_git::Missing`]) before anything is decided.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod apply;
mod attributes;
mod changes;
mod content;
mod doubles;
mod lookup;
mod outcome;
mod renames;
mod store;
mod stranded;
pub mod text;
mod trees;

pub use apply::{Row, apply_row};
pub use lookup::{At, Lookup, RunningLookup, TreeLookup};
pub use outcome::{Applied, Collision, CollisionKind, NewBlob, Outcome};
pub use trees::{Trees, merge_trees};
pub use yard_rules::{Rule, Rules};
