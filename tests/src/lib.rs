//! Stories, simulation, oracle and tidy.
