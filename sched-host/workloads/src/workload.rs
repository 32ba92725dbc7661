//! Workloads for a runtime, and the figures of a run.
//!
//! A [`Workload`] takes a [`Runtime`] and its data, submits a task graph, waits for it, and returns the result with the
//! [`Figures`] of the run. Preparing the data and checking the result happen outside the runtime, on the threads of the
//! current rayon pool, so that the figures, and a component's faults, are those of the graph alone.
//!
//! | workload | its graph for N × N tiles, with a critical path of 3·N − 2 steps |
//! |---|---|
//! | [`Cholesky`] | N³/6 tasks; the panel is one column of independent tasks |
//! | [`Lu`] | N³/3 tasks; the panel is a row and a column of independent tasks |
//! | [`Qr`] | N³/3 tasks, twice as long; the panel is a chain of tiles, and so is each column of updates |
//!
//! ```no_run
//! use sched_workloads::linalg::{RandomSpd, tolerance};
//! use sched_runtime::Runtime;
//! use sched_workloads::workload::{Cholesky, Workload};
//!
//! let runtime = Runtime::builder().policy("tree-eager").build()?;
//! let a = RandomSpd::new(2048, 42);
//! let factored = Cholesky::run(&runtime, Cholesky::cut(&a, 256))?;
//! assert!(Cholesky::residual(&a, &factored.factors) <= tolerance(2048));
//! println!("{:.1} GFlop/s", factored.figures.gflops());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrays;
pub(crate) mod cholesky;
mod elimination;
mod error;
mod figures;
#[cfg(test)]
mod generated;
mod lu;
mod qr;
mod ranks;
#[cfg(test)]
pub(crate) mod testing;

pub use cholesky::Cholesky;
pub use error::WorkloadError;
pub use figures::{Figures, WorkerShare};
pub use lu::Lu;
pub use qr::Qr;
pub use ranks::{OnRanks, OnTiles, run_each};

use crate::linalg::{Entries, MatrixMarketError, Norms, Precision, ReadLimits, Tile, Tiling, tolerance};
use rayon::prelude::*;
use sched_model::DataShape;
use sched_runtime::{DataError, Handle, Runtime};
use std::path::Path;

/// A matrix with any source of entries.
pub type AnyMatrix = Box<dyn Entries + Send + Sync>;

/// A factorisation of a tiled matrix, whose result can be checked.
pub trait Workload {
    /// Its name, as in `sched run NAME`.
    const NAME: &'static str;

    /// Codelets that have kernels for devices as well.
    const ON_DEVICES: &'static [&'static str];

    /// The matrix, cut into tiles.
    type Tiles: Send;

    /// The result.
    type Factors: Send + Sync;

    /// A random matrix of the given order that certainly has a result; determined by the seed.
    fn random(order: usize, seed: u64) -> AnyMatrix;

    /// Reads a matrix from a Matrix Market file.
    ///
    /// # Errors
    /// If the file contains no matrix that the workload accepts: all problems of the file.
    fn read(path: &Path, limits: ReadLimits) -> Result<AnyMatrix, MatrixMarketError>;

    /// Number of tasks of the graph for `n_tiles` rows of tiles; a float, because it may exceed every integer type.
    fn tasks(n_tiles: f64) -> f64;

    /// Count of numbers in memory during a run, for `n_tiles` rows of tiles with `tile_size` rows each; a float,
    /// because it may exceed every integer type.
    fn numbers(n_tiles: f64, tile_size: f64) -> f64;

    /// Cuts the matrix into tiles of `tile_size` rows.
    ///
    /// # Panics
    /// If `tile_size` is 0.
    fn cut(matrix: &(dyn Entries + Sync), tile_size: usize) -> Self::Tiles;

    /// Submits the graph, in which tasks with a longer critical path behind them have a higher priority, and waits for
    /// it.
    ///
    /// # Errors
    /// See [`WorkloadError`]. The runtime remains usable, unless it is stalled.
    fn run(runtime: &Runtime, tiles: Self::Tiles) -> Result<Factored<Self::Factors>, WorkloadError> {
        Self::run_in(runtime, tiles, Precision::Double)
    }

    /// [`run`](Self::run) with kernels that compute in this precision: the numbers are rounded to it before, and are as
    /// exact as it is.
    ///
    /// # Errors
    /// See [`WorkloadError`]. The runtime remains usable, unless it is stalled.
    fn run_in(
        runtime: &Runtime,
        tiles: Self::Tiles,
        precision: Precision,
    ) -> Result<Factored<Self::Factors>, WorkloadError>;

    /// The relative error of the result.
    ///
    /// # Panics
    /// If the result is not that of a matrix of this order.
    fn residual(matrix: &(dyn Entries + Sync), factors: &Self::Factors) -> f64;

    /// Upper bound of the residual of a correct result in double precision, for a matrix of order `order`.
    fn tolerance(order: usize) -> f64 {
        tolerance(order)
    }

    /// [`tolerance`](Self::tolerance) of a result in this precision.
    fn tolerance_in(order: usize, precision: Precision) -> f64 {
        Self::tolerance(order) * (precision.epsilon() / f64::EPSILON)
    }

    /// A property of the matrix that may make the result inaccurate although every task was executed correctly.
    fn caveat(matrix: &(dyn Entries + Sync), precision: Precision) -> Option<String> {
        out_of_range(matrix, precision)
    }
}

/// Says so if squares of the entries, of which kernels and norms are made, are out of the range of `precision`.
fn out_of_range(matrix: &(dyn Entries + Sync), precision: Precision) -> Option<String> {
    let order = matrix.order();
    let entries = (0..order).flat_map(|column| (0..order).map(move |row| matrix.get(row, column).abs()));
    let largest = entries.fold(0.0, f64::max);
    let (least, most) = match precision {
        Precision::Double => (f64::MIN_POSITIVE, f64::MAX),
        Precision::Single => (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
    };
    let (least, most) = ((least / precision.epsilon()).sqrt(), most.sqrt() / order as f64);
    let is_out = largest > most || (largest > 0.0 && largest < least);
    is_out.then(|| {
        format!(
            "the largest entry of the matrix is {largest:.1e}, and squares of entries are in the range of {precision} \
             precision from {least:.0e} to {most:.0e}: scale the matrix"
        )
    })
}

/// The result of a workload, and the figures of its run.
#[derive(Clone, PartialEq, Debug)]
pub struct Factored<F> {
    /// The result.
    pub factors: F,
    /// The figures of the run.
    pub figures: Figures,
}

/// Registers tiles with a runtime, which copies them if it has several memory nodes.
fn register(runtime: &Runtime, tiles: Vec<Tile>) -> Vec<Handle<Tile>> {
    let sized = |tile: Tile| {
        let bytes = tile.bytes() as u64;
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let shape = DataShape::Matrix { nx: length(tile.rows()), ny: length(tile.cols()) };
        runtime.replicated(tile).shape(bytes, shape).register()
    };
    tiles.into_iter().map(sized).collect()
}

/// Takes tiles back from a runtime after all tasks have ended.
fn take_back(runtime: &Runtime, tiles: Vec<Handle<Tile>>) -> Result<Vec<Tile>, DataError> {
    let taken = tiles.into_iter().map(|tile| {
        let back = runtime.unregister(tile)?;
        Ok(back.expect("tasks let go of their tiles when they end"))
    });
    taken.collect()
}

/// Cuts out the tiles at `places`, in parallel.
fn make_tiles(matrix: &(dyn Entries + Sync), tiling: Tiling, places: Vec<(usize, usize)>) -> Vec<Tile> {
    places.into_par_iter().map(|(i, j)| Tile::of(matrix, tiling, i, j)).collect()
}

/// The relative residual whose parts `norms` computes for each of `places`, in parallel.
fn sum_up<P: Send + Sync>(places: Vec<P>, norms: impl Fn(P) -> Norms + Send + Sync) -> f64 {
    // Summed in order, so that equal factors always have equal residuals.
    let parts: Vec<Norms> = places.into_par_iter().map(norms).collect();
    parts.into_iter().fold(Norms::default(), Norms::and).relative()
}
