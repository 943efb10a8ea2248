//! The smart git protocol without IO: pkt-lines, fetch plans, pushes.
