//! The hosts: load, ask the engine, save, act.
//!
//! Each host is generic over what the platform gives it ([`Sql`], [`Blobs`], [`Calls`], [`Index`]), so
//! that the same code runs in workerd (`worker`) and natively (`native`), where tests cut it off
//! anywhere.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]
#![allow(async_fn_in_trait, reason = "an isolate has one thread: no future of ours is Send")]

pub mod arm;
pub mod blobs;
pub mod board;
pub mod call;
pub mod clock;
pub mod index;
pub mod lane;
pub mod meter;
pub mod pack_set;
pub mod points;
pub mod registry;
pub mod repository;
pub mod sql;

#[cfg(not(target_arch = "wasm32"))]
pub mod native;
#[cfg(target_arch = "wasm32")]
pub mod worker;

pub use blobs::{BlobFault, Blobs};
pub use board::Board;
pub use call::{Calls, Object};
pub use index::Index;
pub use lane::Lane;
pub use pack_set::{Budget, Needed, PackSet};
pub use points::point;
pub use registry::Registry;
pub use repository::{Platform, Repository};
pub use sql::{Row, Sql, SqlFault, Value};
