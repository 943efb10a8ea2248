//! Stories of a lane, played against a small repository that keeps sets of changes for trees.

mod blame;
mod order;
mod refusals;
mod replays;
mod simulation;
mod story;
mod yard;
