//! Duration of a run, and each worker's share in it.

use super::WorkloadError;
use sched_runtime::{Runtime, SubmitError, WorkerStats};
use serde::Serialize;
use std::time::{Duration, Instant};

/// The figures of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// Number of tasks executed.
    pub tasks: u64,
    /// Time from just before the first submission to the end of all tasks.
    pub makespan: Duration,
    /// Number of floating-point operations of all tasks.
    pub flops: f64,
    /// Each worker's share, in the order of their numbers.
    pub per_worker: Vec<WorkerShare>,
}

/// One worker's share in a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WorkerShare {
    /// Its number.
    pub id: u32,
    /// Number of tasks executed.
    pub tasks: u64,
    /// Time spent on tasks, in seconds: in kernels, and in getting and ending tasks.
    pub busy_s: f64,
    /// Number of wakes.
    pub wakes: u64,
    /// Number of wakes after which it found no task.
    pub wakes_in_vain: u64,
}

impl Figures {
    /// What the workers did in the `makespan` between two looks at their figures.
    #[must_use]
    pub fn between(before: &[WorkerStats], after: &[WorkerStats], makespan: Duration, flops: f64) -> Figures {
        let share = |(before, after): (&WorkerStats, &WorkerStats)| {
            let idle = after.idle.saturating_sub(before.idle);
            WorkerShare {
                id: after.id,
                tasks: after.tasks - before.tasks,
                busy_s: makespan.saturating_sub(idle).as_secs_f64(),
                wakes: after.wakes - before.wakes,
                wakes_in_vain: after.wakes_in_vain - before.wakes_in_vain,
            }
        };
        let per_worker: Vec<WorkerShare> = before.iter().zip(after).map(share).collect();
        Figures { tasks: per_worker.iter().map(|worker| worker.tasks).sum(), makespan, flops, per_worker }
    }

    /// How much of the time a worker was busy, from 0 to 1: the mean over all of them.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        let busy: f64 = self.per_worker.iter().map(|worker| worker.busy_s).sum();
        busy / (self.makespan.as_secs_f64() * self.per_worker.len() as f64).max(f64::MIN_POSITIVE)
    }

    /// Billions of floating-point operations per second; 0 if nothing was executed.
    #[must_use]
    pub fn gflops(&self) -> f64 {
        let seconds = self.makespan.as_secs_f64();
        if seconds > 0.0 { self.flops / seconds / 1e9 } else { 0.0 }
    }
}

/// Submits a task graph of `flops` floating-point operations, waits for it, and measures from just before to just
/// after.
pub(super) fn run_measured(
    runtime: &Runtime,
    flops: f64,
    submit: impl FnOnce() -> Result<(), SubmitError>,
) -> Result<Figures, WorkloadError> {
    let before = runtime.stats();
    let began = Instant::now();
    submit()?;
    let ended = runtime.wait_current();
    let makespan = began.elapsed();
    ended?;
    let after = runtime.stats();
    Ok(Figures::between(&before, &after, makespan, flops))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_work_by_time() {
        let figures = |makespan| Figures { tasks: 3, makespan, flops: 4e9, per_worker: Vec::new() };
        assert_eq!(figures(Duration::from_secs(2)).gflops(), 2.0);
        assert_eq!(figures(Duration::ZERO).gflops(), 0.0);
    }
}
