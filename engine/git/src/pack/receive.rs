//! Receiving.
