//! Submissions before they are stored: reading what was offered, measuring it against its base.

pub mod build;
pub mod measure;
pub mod offer;
