//! Deterministic simulation: the real edge, hosts, tables and engine, driven by one seed in a world where
//! messages are lost, repeated and late, processes die, statements fail, runners vanish and models err.
//!
//! Everything runs on one thread as tasks of a [`clockwork::Clockwork`], whose time jumps from event to event.
//! What is not simulated, because it is the platform's promise: a Durable Object's statements between two
//! awaits happen together or not at all, and its name has one live instance.

pub mod actors;
pub mod client;
pub mod clockwork;
pub mod god;
pub mod laws;
pub mod objects;
pub mod platform;
pub mod run;
pub mod suite;
