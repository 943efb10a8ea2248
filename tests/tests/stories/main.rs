//! Stories: real git and the real client against the real platform in workerd.
//!
//! Few of them: rules are tested in the engine, stories prove the wiring. Each has a repository of
//! its own on one shared platform.

mod cli;
mod git_http;
mod landing;
mod large;
mod offering;
mod refusals;
mod replays;
mod rules;
mod runner;
