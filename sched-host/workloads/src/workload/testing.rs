//! Helpers of the tests of all workloads.

use super::{Figures, Workload};
use crate::linalg::Tiling;
use sched_runtime::{Builder, Runtime};
use sched_tree::plugin::Registry;
use std::sync::Arc;

/// A runtime with the stock components compiled in.
pub(crate) fn runtime(policy: &str, workers: usize) -> Runtime {
    builder(policy, workers).build().expect("the shipped policies start")
}

/// A builder of such a runtime.
pub(crate) fn builder(policy: &str, workers: usize) -> Builder {
    Runtime::builder().registry(Arc::new(Registry::compiled_in())).policy(policy).workers(workers)
}

/// Checks that the figures are those of a run of all tasks by `workers` workers.
pub(super) fn check_figures<W: Workload>(figures: &Figures, tiling: Tiling, workers: usize) {
    assert_eq!(figures.tasks as f64, W::tasks(tiling.n_tiles() as f64));
    assert_eq!(figures.per_worker.len(), workers);
    let makespan = figures.makespan.as_secs_f64();
    assert!(figures.per_worker.iter().all(|worker| (0.0..=makespan).contains(&worker.busy_s)));
}
