//! The words all rooms share: ids, time, limits, refusals, facts.
//!
//! Nothing here reads a clock, draws a random number, waits or does IO: time and randomness are
//! arguments everywhere in the engine.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod bytes;
pub mod config;
pub mod edit_list;
pub mod fact;
pub mod id;
pub mod intent;
pub mod landing;
pub mod limits;
pub mod path;
pub mod policy;
pub mod refusal;
pub mod replay;
pub mod stage;
pub mod submission;
pub mod time;

pub use fact::Fact;
pub use id::*;
pub use path::RepoPath;
pub use refusal::Refusal;
pub use time::Millis;
