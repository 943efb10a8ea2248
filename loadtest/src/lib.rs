//! The load generator and the benchmarks.
