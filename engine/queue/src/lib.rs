//! The brain of a lane: order, trains, verdicts.
