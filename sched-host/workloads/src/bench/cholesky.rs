//! The Cholesky factorisation as tasks, beside threads that run the same kernels each in a plain loop of its own.

use crate::linalg::{Entries, RandomSpd, TiledMatrix, cholesky_in_place, cholesky_steps, flops};
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
    /// Workers, and threads of the floor.
    pub workers: usize,
    /// Tiles in a row of tiles.
    pub tiles: usize,
    /// Rows of a tile.
    pub tile_size: usize,
    /// Rounds; at least 1.
    pub rounds: usize,
}

/// The speeds of one round, in GFlop/s.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CholeskyRound {
    /// Of the runtime: one factorisation by all workers.
    pub gflops: f64,
    /// Of the floor: a factorisation by each of as many bound threads, without any runtime; the sum of their speeds.
    pub floor_gflops: f64,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CholeskyReport {
    /// The policy.
    pub policy: String,
    /// Workers, and threads of the floor.
    pub workers: usize,
    /// Of the workers, those bound to a hardware thread.
    pub workers_bound: usize,
    /// Rows of the matrix.
    pub order: usize,
    /// Tiles in a row of tiles.
    pub tiles: usize,
    /// Rows of a tile.
    pub tile_size: usize,
    /// Tasks of one factorisation.
    pub tasks: usize,
    /// Each round.
    pub rounds: Vec<CholeskyRound>,
    /// The median of all rounds.
    pub median: CholeskyRound,
    /// The best of all rounds.
    pub best: CholeskyRound,
    /// The runtime's median by the floor's.
    pub ratio: f64,
    /// The runtime's best by the floor's.
    pub ratio_of_best: f64,
}

/// Why nothing was measured.
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

/// Measures, telling `progress` how much of all is done, from 0 to 1.
///
/// Each round measures the floor and then the runtime, on matrices of one order that are made beforehand. One round before
/// the first is not counted: it is for the memory that kernels and the runtime keep.
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

/// A thread for each worker of `plan`, where that would be, factorises a matrix of its own: the sum of their GFlop/s.
fn side_by_side(plan: &BindingPlan, matrix: RandomSpd, tile_size: usize) -> Result<f64, BindingError> {
    let count = plan.workers().len();
    let (together, whole) = (Barrier::new(count), flops::cholesky(matrix.order()));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|id| {
                let together = &together;
                scope.spawn(move || {
                    let bound = plan.bind_current_thread(id);
                    // The kernels' memory belongs to the thread: it is reserved by a first use of each.
                    factorise(&mut TiledMatrix::cut(&RandomSpd::new(3 * tile_size, 1), tile_size));
                    let mut tiles = TiledMatrix::cut(&matrix, tile_size);
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

fn factorise(matrix: &mut TiledMatrix) {
    cholesky_in_place(matrix).expect("the matrix is positive definite");
}
