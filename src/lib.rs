//! The Worker at the edge.
