//! The four object classes, as workerd sees them. Each must be re-exported by the root crate, else it is
//! silently absent from the module.
#![allow(missing_docs, reason = "the durable_object macro writes public methods without documentation")]

mod board;
mod lane;
pub mod platform;
mod registry;
mod repository;

pub use board::Board;
pub use lane::Lane;
pub use platform::{D1, R2, Stubs, WorkerSql};
pub use registry::Registry;
pub use repository::Repository;
