//! The machine: what hwloc finds of it, which worker is bound where, and what its energy counters say.

pub mod energy;
pub mod topology;
