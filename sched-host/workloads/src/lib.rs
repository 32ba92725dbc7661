//! Workloads for the runtime: tiled factorisations, and benchmarks of the cost of scheduling.

pub mod bench;
pub mod linalg;
pub mod workload;
