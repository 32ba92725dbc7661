//! Real work for a runtime, and the figures of a run.
//!
//! A workload is a function that takes a [`Runtime`](crate::runtime::Runtime) and its data, submits a task graph, waits
//! for it, and gives back the result with the [`Figures`] of the run. What comes before and after, making the data and
//! checking the result, is done outside the runtime, so that the figures, and what a component does wrong, are those of
//! the graph alone: [`cut`] and [`residual`].
//!
//! ```no_run
//! use sched_host::linalg::{RandomSpd, tolerance};
//! use sched_host::runtime::Runtime;
//! use sched_host::workload::{cholesky, cut, residual};
//!
//! let runtime = Runtime::builder().policy("tree-eager").build()?;
//! let a = RandomSpd::new(2048, 42);
//! let factored = cholesky(&runtime, cut(&a, 256))?;
//! assert!(residual(&a, &factored.factor) <= tolerance(2048));
//! println!("{:.1} GFlop/s", factored.figures.gflops());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cholesky;
mod error;
mod figures;
mod parallel;

pub use cholesky::{Factored, cholesky};
pub use error::WorkloadError;
pub use figures::{Figures, WorkerShare};
pub use parallel::{cut, residual};
