//! The kernel under test: stories check by check, a naive model, a simulation with lying lanes, git as
//! an oracle, and mutants of every check.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod merge;
mod model;
mod mutants;
mod oracle;
mod property;
mod rng;
mod scenarios;
mod simulation;
mod world;
