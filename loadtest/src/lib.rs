//! What the demo, the benchmarks and the stories share: a platform in workerd, a repository on it,
//! a sandboxed git, figures, generated collisions.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod collisions;
pub mod crew;
pub mod figures;
pub mod platform;
pub mod progress;
pub mod sandbox;
pub mod scripted;

pub use crew::Crew;
pub use platform::{Platform, Start};
pub use progress::Progress;
pub use sandbox::Sandbox;
pub use scripted::Scripted;
