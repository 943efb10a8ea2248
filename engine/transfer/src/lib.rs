//! The smart git protocol without IO: pkt-lines, fetch plans, pushes.
//!
//! A host reads requests, drives [`receive::Parser`] and [`upload::Upload`], fetches the objects they ask
//! for, and writes what they return; nothing here waits or does IO.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod advertise;
pub mod pktline;
pub mod plan;
pub mod receive;
pub mod refs;
pub mod upload;

pub use refs::{RefTip, RefView};
