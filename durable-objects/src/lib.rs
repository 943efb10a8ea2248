//! The hosts: load, ask the engine, save, act.
