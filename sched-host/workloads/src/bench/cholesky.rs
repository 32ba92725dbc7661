//! The Cholesky factorisation as tasks, compared with threads that each run the same kernels in a plain loop.

use crate::linalg::{Entries, LowerTiles, RandomSpd, cholesky_in_place, cholesky_steps, flops};
use crate::workload::{Cholesky, Workload, WorkloadError};
use sched_machine::topology::{BindingError, BindingPlan, Topology};
use sched_runtime::{Runtime, StartError};
use sched_text::median;
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct CholeskyBench {
    /// The policy, by name or path.
    pub policy: String,
    /// Number of workers, and of threads of the floor.
    pub workers: usize,
    /// Number of tiles in a row of tiles.
    pub tiles: usize,
    /// Number of rows of a tile.
    pub tile_size: usize,
    /// Number of rounds; at least 1.
    pub rounds: usize,
}

/// The speeds of one round, in GFlop/s.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CholeskyRound {
    /// Speed of the runtime: one factorisation by all workers.
    pub gflops: f64,
    /// Speed of the floor: as many bound threads, without a runtime, each with its own factorisation; the sum of their
    /// speeds.
    pub floor_gflops: f64,
}

/// The results of all measurements.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CholeskyReport {
    /// The policy.
    pub policy: String,
    /// Number of workers, and of threads of the floor.
    pub workers: usize,
    /// Number of workers bound to a hardware thread.
    pub workers_bound: usize,
    /// Number of rows of the matrix.
    pub order: usize,
    /// Number of tiles in a row of tiles.
    pub tiles: usize,
    /// Number of rows of a tile.
    pub tile_size: usize,
    /// Number of tasks of one factorisation.
    pub tasks: usize,
    /// The results of each round.
    pub rounds: Vec<CholeskyRound>,
    /// The median of all rounds.
    pub median: CholeskyRound,
    /// The best of all rounds.
    pub best: CholeskyRound,
    /// The runtime's median divided by the floor's.
    pub ratio: f64,
    /// The runtime's best divided by the floor's.
    pub ratio_of_best: f64,
}

/// Why a measurement failed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum CholeskyBenchError {
    /// The runtime does not start.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Start(#[from] StartError),
    /// A thread of the floor could not be bound.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Binding(#[from] BindingError),
    /// The factorisation failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] WorkloadError),
}

/// Measures everything, and reports the progress, from 0 to 1, to `progress`.
///
/// Each round measures the floor and then the runtime, on matrices of one order that are prepared beforehand. One round
/// before the first is not counted: it allocates the memory that kernels and the runtime keep.
///
/// # Errors
/// See [`CholeskyBenchError`].
pub fn cholesky_bench(
    wanted: &CholeskyBench,
    registry: &Arc<Registry>,
    mut progress: impl FnMut(f64),
) -> Result<CholeskyReport, CholeskyBenchError> {
    let topology = Topology::this_machine().map_err(StartError::from)?;
    let plan = BindingPlan::new(&topology, wanted.workers)?;
    let runtime = Runtime::builder()
        .registry(Arc::clone(registry))
        .policy(&wanted.policy)
        .workers(wanted.workers)
        .topology(topology)
        .without_models()
        .build()?;
    let matrix = RandomSpd::new(wanted.tiles * wanted.tile_size, 42);
    let mut rounds = Vec::with_capacity(wanted.rounds);
    for round in 0..=wanted.rounds.max(1) {
        let floor_gflops = side_by_side(&plan, matrix, wanted.tile_size)?;
        let gflops = Cholesky::run(&runtime, Cholesky::cut(&matrix, wanted.tile_size))?.figures.gflops();
        if round > 0 {
            rounds.push(CholeskyRound { gflops, floor_gflops });
        }
        progress((round + 1) as f64 / (wanted.rounds.max(1) + 1) as f64);
    }
    let of_rounds = |choose: fn(&mut [f64]) -> f64| CholeskyRound {
        gflops: choose(&mut rounds.iter().map(|round| round.gflops).collect::<Vec<_>>()),
        floor_gflops: choose(&mut rounds.iter().map(|round| round.floor_gflops).collect::<Vec<_>>()),
    };
    let (median, best) = (of_rounds(median), of_rounds(|all| all.iter().copied().fold(0.0, f64::max)));
    Ok(CholeskyReport {
        policy: runtime.policy().to_owned(),
        workers: wanted.workers,
        workers_bound: runtime.bound_workers(),
        order: wanted.tiles * wanted.tile_size,
        tiles: wanted.tiles,
        tile_size: wanted.tile_size,
        tasks: cholesky_steps(wanted.tiles).len(),
        rounds,
        ratio: median.gflops / median.floor_gflops,
        ratio_of_best: best.gflops / best.floor_gflops,
        median,
        best,
    })
}

/// Factorises one matrix on a thread for each worker of `plan`, bound like that worker; returns the sum of their
/// GFlop/s.
fn side_by_side(plan: &BindingPlan, matrix: RandomSpd, tile_size: usize) -> Result<f64, BindingError> {
    let count = plan.workers().len();
    let (together, whole) = (Barrier::new(count), flops::cholesky(matrix.order()));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|id| {
                let together = &together;
                scope.spawn(move || {
                    let bound = plan.bind_current_thread(id);
                    // A first use of each kernel reserves the memory that it keeps per thread.
                    factorise(&mut LowerTiles::cut(&RandomSpd::new(3 * tile_size, 1), tile_size));
                    let mut tiles = LowerTiles::cut(&matrix, tile_size);
                    together.wait();
                    let began = Instant::now();
                    factorise(&mut tiles);
                    let speed = whole / began.elapsed().as_secs_f64() / 1e9;
                    bound.map(|()| speed)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("the kernels do not panic")).sum()
    })
}

fn factorise(matrix: &mut LowerTiles) {
    cholesky_in_place(matrix).expect("the matrix is positive definite");
}
