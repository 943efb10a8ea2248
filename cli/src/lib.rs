//! The client library behind `yard`: the API over HTTP, git as a child process, the runner.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod client;
pub mod commands;
pub mod git;
pub mod junit;
pub mod output;
pub mod place;
pub mod runner;
pub mod when;

pub use client::{Client, ClientError};
