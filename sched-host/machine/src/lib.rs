//! The machine: its topology from hwloc, the binding of workers to processing units, and its energy counters.

pub mod energy;
pub mod topology;
