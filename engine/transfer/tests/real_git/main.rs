//! Real git clones, fetches and pushes against the pure functions of this crate, over a small HTTP server
//! that hosts them on 127.0.0.1.
//!
//! `YARD_REAL_REPOS=dir:dir` adds bare repositories to the tests of plans and clones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

mod fetching;
mod history;
mod http;
mod planning;
mod pushing;
mod server;
mod shell;
mod store;
