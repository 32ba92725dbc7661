//! Real work for a runtime, and the figures of a run.
//!
//! A [`Workload`] takes a [`Runtime`] and its data, submits a task graph, waits for it, and gives
//! back the result with the [`Figures`] of the run. What comes before and after, making the data and checking the result, is
//! done outside the runtime, on the threads of the current rayon pool, so that the figures, and what a component does wrong,
//! are those of the graph alone.
//!
//! | workload | its graph of N × N tiles, in 3·N − 2 steps one after the other |
//! |---|---|
//! | [`Cholesky`] | N³/6 tasks; the panel is one column of independent tasks |
//! | [`Lu`] | N³/3 tasks; the panel is a row and a column of independent tasks |
//! | [`Qr`] | N³/3 tasks, twice as long; the panel is a chain, one tile after the other, and so is each column of updates |
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

mod cholesky;
mod elimination;
mod error;
mod figures;
mod lu;
mod qr;
#[cfg(test)]
mod testing;

pub use cholesky::Cholesky;
pub use error::WorkloadError;
pub use figures::{Figures, WorkerShare};
pub use lu::Lu;
pub use qr::Qr;

use crate::linalg::{Entries, MatrixMarketError, Norms, ReadLimits, Tile, Tiling, tolerance};
use rayon::prelude::*;
use sched_model::DataShape;
use sched_runtime::{DataError, Handle, Runtime};
use std::path::Path;

/// A matrix, wherever its entries come from.
pub type AnyMatrix = Box<dyn Entries + Send + Sync>;

/// Work on a tiled matrix whose result can be checked.
pub trait Workload {
    /// Its name, as in `sched run NAME`.
    const NAME: &'static str;

    /// The matrix, cut into tiles.
    type Tiles: Send;

    /// The result.
    type Factors: Send + Sync;

    /// A matrix of the given order that is sure to have a result: the same one whenever the seed is the same.
    fn random(order: usize, seed: u64) -> AnyMatrix;

    /// Reads a matrix from a Matrix Market file.
    ///
    /// # Errors
    /// When the file holds no matrix that the workload can take: everything that is wrong with it.
    fn read(path: &Path, limits: ReadLimits) -> Result<AnyMatrix, MatrixMarketError>;

    /// Tasks of the graph for `n_tiles` rows of tiles, also where they are too many to be counted.
    fn tasks(n_tiles: f64) -> f64;

    /// Numbers in memory while it runs, for `n_tiles` rows of tiles with `tile_size` rows each, also where they are too many to
    /// be counted.
    fn numbers(n_tiles: f64, tile_size: f64) -> f64;

    /// Cuts the matrix into tiles of `tile_size` rows.
    ///
    /// # Panics
    /// If `tile_size` is 0.
    fn cut(matrix: &(dyn Entries + Sync), tile_size: usize) -> Self::Tiles;

    /// Submits the graph, in which a task is the more urgent the longer the chain of tasks behind it is, and waits for it.
    ///
    /// # Errors
    /// See [`WorkloadError`]. The runtime can be used on, unless nothing moves any more.
    fn run(runtime: &Runtime, tiles: Self::Tiles) -> Result<Factored<Self::Factors>, WorkloadError>;

    /// How far the result is from right, relative to the matrix.
    ///
    /// # Panics
    /// If the result is not that of a matrix of this order.
    fn residual(matrix: &(dyn Entries + Sync), factors: &Self::Factors) -> f64;

    /// The largest residual of a right result, for a matrix with so many rows.
    fn tolerance(order: usize) -> f64 {
        tolerance(order)
    }

    /// What it is about the matrix that may make the result wrong though every task did what it should.
    fn caveat(_matrix: &(dyn Entries + Sync)) -> Option<String> {
        None
    }
}

/// The result of a workload, and how it was come by.
#[derive(Clone, PartialEq, Debug)]
pub struct Factored<F> {
    /// The result.
    pub factors: F,
    /// The figures of the run.
    pub figures: Figures,
}

/// Hands tiles over to a runtime, which copies them where it has several memory nodes.
fn register(runtime: &Runtime, tiles: Vec<Tile>) -> Vec<Handle<Tile>> {
    let sized = |tile: Tile| {
        let bytes = tile.bytes() as u64;
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let shape = DataShape::Matrix { nx: length(tile.rows()), ny: length(tile.cols()) };
        runtime.replicated(tile).shape(bytes, shape).register()
    };
    tiles.into_iter().map(sized).collect()
}

/// Takes tiles back from a runtime, once all tasks have ended.
fn take_back(runtime: &Runtime, tiles: Vec<Handle<Tile>>) -> Result<Vec<Tile>, DataError> {
    let taken = tiles.into_iter().map(|tile| {
        let back = runtime.unregister(tile)?;
        Ok(back.expect("tasks let go of their tiles when they end"))
    });
    taken.collect()
}

/// The tiles of `places`, made in parallel.
fn make_tiles(matrix: &(dyn Entries + Sync), tiling: Tiling, places: Vec<(usize, usize)>) -> Vec<Tile> {
    places.into_par_iter().map(|(i, j)| Tile::of(matrix, tiling, i, j)).collect()
}

/// The relative residual whose parts in `places` `norms` has, computed in parallel.
fn sum_up<P: Send + Sync>(places: Vec<P>, norms: impl Fn(P) -> Norms + Send + Sync) -> f64 {
    // Summed up in order, so that the same factors always have the same residual.
    let parts: Vec<Norms> = places.into_par_iter().map(norms).collect();
    parts.into_iter().fold(Norms::default(), Norms::and).relative()
}
