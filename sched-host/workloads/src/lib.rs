//! Real work for the runtime: tiled factorisations, and benchmarks of what scheduling costs.

pub mod bench;
pub mod linalg;
pub mod workload;
