//! Messages between rooms, errors as HTTP, names of objects.
//!
//! Everything that crosses a process or an object's border has its type here, and nowhere else.
//! Calls between the edge and the objects, and between objects, are `POST /{method}` with a JSON
//! body; a reply is `200` with the method's reply, or a [`Refusal`](yard_common::Refusal) as
//! problem+json.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod api;
pub mod board;
pub mod key;
pub mod lane;
pub mod method;
pub mod names;
pub mod problem;
pub mod registry;
pub mod repository;
pub mod token;

pub use method::Method;
