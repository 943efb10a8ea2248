//! The hosts: load, ask the engine, save, act.

#[cfg(target_arch = "wasm32")]
pub mod worker;
