//! The landing kernel: what may move main.
