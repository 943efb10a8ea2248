//! Submissions before they are stored: reading what was offered, measuring it against its base.

pub mod between;
pub mod build;
pub mod config;
pub mod fold;
pub mod heads;
pub mod list;
pub mod measure;
pub mod offer;
