//! StarPU's files: imports and exports years of calibration.
//!
//! StarPU keeps its measurements in a directory, usually `~/.starpu/sampling`: `codelets/45/` has one performance model
//! for each codelet and machine ([`CodeletFile`]), `bus/` the costs of transfers between memory nodes
//! ([`Bus`](super::Bus)). [`Sampling::load`] reads a whole directory:
//!
//! ```no_run
//! use sched_core::Arch;
//! use sched_model::starpu::Sampling;
//! use sched_model::{DataShape, task_footprint};
//!
//! let sampling = Sampling::load("/home/me/.starpu/sampling", "mirage")?;
//! for problem in &sampling.problems {
//!     eprintln!("{problem}");
//! }
//! // Duration of one GEMM on tiles of 960 × 960 floats, in microseconds.
//! let tile = DataShape::Matrix { nx: 960, ny: 960 };
//! let gemm = sampling.codelets.get("chol_model_gemm").expect("this machine ran a Cholesky factorisation");
//! let on_a_core = gemm.history_mean(Arch::CPU, 0, 1, 0, task_footprint(&[tile; 3]));
//! let on_the_second_gpu = gemm.history_mean(Arch::CUDA, 1, 1, 0, task_footprint(&[tile; 3]));
//! // Duration of a tile's transfer from main memory (node 0) to the first GPU (node 1), in microseconds.
//! let transfer = sampling.bus.as_ref().and_then(|bus| bus.transfer(0, 1, 960 * 960 * 4));
//! # Ok::<(), sched_model::ModelError>(())
//! ```

mod codelet;
mod convert;
mod history;
mod sampling;
mod scan;
mod write;

#[cfg(test)]
mod tests;

pub use codelet::{CodeletFile, Comb, Device, Implementation, LinearRegression};
pub use convert::Imported;
pub use history::HistoryEntry;
pub use sampling::{Sampling, directories, host_name};
pub(crate) use scan::Scan;
pub(crate) use write::Scientific;
