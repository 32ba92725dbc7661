//! Lower bounds of makespans.
//!
//! - The **critical path**: the longest chain of tasks, each where it is fastest.
//! - The **area**: all work, divided among the workers as well as possible, as if no task waited for another and tasks
//!   could be split. It is the optimum of a linear program over the classes of tasks that take equally long, and the
//!   pools of workers that are equally fast.
//! - The **mixed** bound: the area with the constraint that one chain of tasks runs in sequence, wherever the program
//!   puts them (Agullo, Beaumont, Eyraud-Dubois, Herrmann, Kumar, Marchal and Thibault, *Bridging the gap between
//!   performance and bounds of Cholesky factorization on heterogeneous platforms*, 2015). It is at least as large as
//!   both.
//!
//! Transfers take no time, so no schedule is shorter than the bounds, and not every bound can be reached.
//!
//! - The bound with **transfers** is the largest of these and of two more. One is the longest chain in which data that
//!   one task writes and the next one reads in another memory crosses a link, as does each initial value that is read
//!   elsewhere than at home. Each task chooses its pool, each transfer takes what it would alone, and pools of several
//!   memories may keep data where it is: the critical path with the communication costs of the static schedulers
//!   (Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for heterogeneous computing*,
//!   2002), with minima in the place of their means. The other is a linear program with all chains at once, and with
//!   the area of the tasks that such chains keep from beginning before some time and from ending after another, put
//!   between the two (Fernandez and Bussell, *Bounds on the number of processors and time for multiprocessor optimal
//!   schedules*, 1973). [`bound_with_transfers`] has the formulas. It does not count the volume that all chains move
//!   together. Tasks are not divided among workers there, and not put where they would end too late.
//!
//! ```
//! use sched_graph::bound::{Pool, bounds};
//! use sched_graph::generate::cholesky;
//!
//! let graph = cholesky(8, 960);
//! // Eight cores, and a device that is ten times as fast, except with potrf.
//! let pools = [Pool { workers: 8 }, Pool { workers: 1 }];
//! let bounds = bounds(&graph, &graph.dependencies(), &pools, |task, pool| {
//!     let speedup = if pool == 0 || task.kind.0 == 0 { 1.0 } else { 10.0 };
//!     Some(task.flops * 1e-10 / speedup)
//! })?;
//! assert!(bounds.mixed >= bounds.area && bounds.mixed >= bounds.critical_path);
//! assert_eq!(bounds.best(), bounds.mixed);
//! # Ok::<(), sched_graph::bound::BoundError>(())
//! ```

mod classes;
mod crowd;
mod game;
mod program;
mod spans;
#[cfg(test)]
mod tests;
mod transfers;

pub use transfers::{LeastCosts, Origin, bound_with_transfers};

use crate::priorities::bottom_levels;
use crate::{Dependencies, Task, TaskGraph, TaskId};
use classes::Classes;
use serde::Serialize;

/// Workers that all take the same time for the same task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Number of workers.
    pub workers: u32,
}

/// Lower bounds of the makespan of a graph, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bounds {
    /// The longest chain of tasks, each where it is fastest.
    pub critical_path: f64,
    /// All work, divided as well as possible.
    pub area: f64,
    /// The area with one chain of tasks that must run in sequence.
    pub mixed: f64,
    /// The largest of these, of the longest chain with its transfers, and of all chains and the areas between them at
    /// once; equal to the largest of the others where nothing is known of transfers.
    pub transfers: f64,
}

impl Bounds {
    /// Largest of the bounds without transfers.
    #[must_use]
    pub fn best(&self) -> f64 {
        self.critical_path.max(self.area).max(self.mixed)
    }

    /// `makespan` in seconds divided by the largest bound without transfers; 1 is optimal. Also 1 if there is no work.
    #[must_use]
    pub fn ratio(&self, makespan: f64) -> f64 {
        if self.best() > 0.0 { makespan / self.best() } else { 1.0 }
    }
}

impl std::fmt::Display for Bounds {
    /// Lists the bounds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Bounds { critical_path, area, mixed, transfers } = self;
        write!(f, "critical path {critical_path:.6} s, area {area:.6} s, mixed {mixed:.6} s")?;
        if *transfers > self.best() { write!(f, ", with whole tasks and transfers {transfers:.6} s") } else { Ok(()) }
    }
}

/// Reason why there are no bounds.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoundError {
    /// A task can run in no pool.
    #[error("task {number} ({what}) can run on none of the workers, so that no time is long enough")]
    Unrunnable {
        /// Its number, from 0.
        number: usize,
        /// Its name or kind.
        what: String,
    },
    /// The linear program was not solved.
    #[error("the linear program of the area bound was not solved: {why}")]
    Unsolved {
        /// Message of the solver.
        why: String,
    },
}

/// Number of chains tried for the mixed bound.
const CHAINS: usize = 4;

/// Lower bounds of the makespan of `graph` on `pools` of workers, where `seconds` gives the execution time of a task in
/// the pool with this index, or `None` if it cannot run there.
///
/// Where there are very many different execution times, some are rounded down to keep the program small; the bounds are
/// then slightly lower than they could be.
///
/// # Errors
/// [`BoundError::Unrunnable`] with the first task that can run nowhere; [`BoundError::Unsolved`] when the solver gives
/// up because magnitudes differ too much.
pub fn bounds(
    graph: &TaskGraph,
    dependencies: &Dependencies,
    pools: &[Pool],
    seconds: impl Fn(&Task, usize) -> Option<f64>,
) -> Result<Bounds, BoundError> {
    let lengths = Durations::of(graph, pools, seconds)?;
    let fastest = |task: TaskId| lengths.of_task(task).iter().copied().fold(f64::INFINITY, f64::min);
    let critical_path = bottom_levels(dependencies, fastest).into_iter().fold(0.0, f64::max);
    let classes = Classes::of(&lengths);

    let area = program::solve(&classes, pools, &[])?;
    // With one pool there is one way to divide the work, and a chain takes its own length.
    let mut mixed = area.makespan.max(critical_path);
    if pools.iter().filter(|pool| pool.workers > 0).count() > 1 {
        let mut chain = longest_chain(dependencies, fastest);
        for tried in 0..CHAINS {
            let with_chain = program::solve(&classes, pools, &classes.count(&chain))?;
            mixed = mixed.max(with_chain.makespan);
            // The chain that is longest where the program puts its tasks may give a larger bound.
            let shared = if tried == 0 { &area } else { &with_chain };
            let next = longest_chain(dependencies, |task| shared.mean_length[classes.of_task(task)]);
            if next == chain {
                break;
            }
            chain = next;
        }
    }
    Ok(Bounds { critical_path, area: area.makespan, mixed, transfers: mixed })
}

/// Lower bounds where several workers of a pool may execute a task together: `work` gives the least worker time in
/// seconds that it takes in the pool with this index, and `seconds` the least execution time. Chain and work are not
/// combined: the mixed bound is the larger of the two others.
///
/// # Errors
/// As for [`bounds`].
pub fn team_bounds(
    graph: &TaskGraph,
    dependencies: &Dependencies,
    pools: &[Pool],
    work: impl Fn(&Task, usize) -> Option<f64>,
    seconds: impl Fn(&Task, usize) -> Option<f64>,
) -> Result<Bounds, BoundError> {
    let area = program::solve(&Classes::of(&Durations::of(graph, pools, work)?), pools, &[])?.makespan;
    let lengths = Durations::of(graph, pools, seconds)?;
    let fastest = |task: TaskId| lengths.of_task(task).iter().copied().fold(f64::INFINITY, f64::min);
    let critical_path = bottom_levels(dependencies, fastest).into_iter().fold(0.0, f64::max);
    let mixed = area.max(critical_path);
    Ok(Bounds { critical_path, area, mixed, transfers: mixed })
}

/// Tasks of a longest chain, where `length` gives the length of a task.
fn longest_chain(dependencies: &Dependencies, length: impl Fn(TaskId) -> f64) -> Vec<TaskId> {
    let levels = bottom_levels(dependencies, length);
    let longest = |tasks: &mut dyn Iterator<Item = TaskId>| {
        tasks.reduce(|best, task| if levels[task.index()] > levels[best.index()] { task } else { best })
    };
    let mut chain = Vec::new();
    let mut next = longest(&mut dependencies.entries());
    while let Some(task) = next {
        chain.push(task);
        next = longest(&mut dependencies.successors(task).iter().copied());
    }
    chain
}

/// Execution time of each task in each pool in seconds, task by task; infinite where it cannot run.
struct Durations {
    pools: usize,
    seconds: Vec<f64>,
}

impl Durations {
    fn of(
        graph: &TaskGraph,
        pools: &[Pool],
        seconds: impl Fn(&Task, usize) -> Option<f64>,
    ) -> Result<Durations, BoundError> {
        let mut all = Vec::with_capacity(graph.tasks.len() * pools.len());
        for (number, task) in graph.tasks.iter().enumerate() {
            let first = all.len();
            all.extend(pools.iter().enumerate().map(|(pool, Pool { workers })| match graph.kind_of(task).runs {
                true if *workers == 0 => f64::INFINITY,
                true => seconds(task, pool).filter(|seconds| *seconds >= 0.0).unwrap_or(f64::INFINITY),
                false => 0.0,
            }));
            if all[first..].iter().all(|seconds| seconds.is_infinite()) {
                let what = task.name.as_deref().unwrap_or(&graph.kind_of(task).name).to_owned();
                return Err(BoundError::Unrunnable { number, what });
            }
        }
        Ok(Durations { pools: pools.len(), seconds: all })
    }

    #[inline]
    fn of_task(&self, task: TaskId) -> &[f64] {
        &self.seconds[task.index() * self.pools..(task.index() + 1) * self.pools]
    }

    fn n_tasks(&self) -> usize {
        self.seconds.len().checked_div(self.pools).unwrap_or(0)
    }
}
