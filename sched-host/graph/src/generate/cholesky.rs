//! The tiled Cholesky factorisation.

use super::Tiles;
use crate::factorisation::{CholeskyStep as Step, Tiling, cholesky_steps};
use crate::{AccessMode, Task, TaskGraph};

/// The graph of `sched run cholesky`: the factorisation of a symmetric matrix of `tiles` × `tiles` tiles of `tile_size`
/// rows, with kinds potrf, trsm, syrk and gemm, in the same order, with the same priorities.
///
/// ```
/// use sched_graph::generate::cholesky;
/// assert_eq!(cholesky(8, 960).tasks.len(), 8 * 9 * 10 / 6);
/// ```
///
/// # Panics
/// If `tile_size` is 0.
#[must_use]
pub fn cholesky(tiles: usize, tile_size: usize) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("cholesky of {tiles} × {tiles} tiles of {tile_size}"));
    let kinds = ["potrf", "trsm", "syrk", "gemm"].map(|kind| (kind, graph.add_kind(kind)));
    let data = Tiles::new(&mut graph, "A", tiles, super::tile_bytes(tile_size), |i, j| i >= j);
    let tiling = Tiling::new(tiles * tile_size, tile_size);
    for step in cholesky_steps(tiles) {
        let (_, kind) = kinds
            .into_iter()
            .find(|(kind, _)| *kind == step.kernel())
            .expect("these are all kernels of the factorisation");
        let mut task = Task::new(kind).named(name(step));
        task.priority = i32::try_from(step.priority(tiles)).unwrap_or(i32::MAX);
        task.flops = step.flops(tiling);
        for (i, j) in step.reads() {
            task = task.access(data.at(i, j), AccessMode::Read);
        }
        let (i, j) = step.writes();
        graph.add_task(task.access(data.at(i, j), AccessMode::ReadWrite));
    }
    graph
}

fn name(step: Step) -> String {
    match step {
        Step::Potrf { k } => format!("potrf({k})"),
        Step::Trsm { k, i } => format!("trsm({i},{k})"),
        Step::Syrk { k, i } => format!("syrk({i},{k})"),
        Step::Gemm { k, i, j } => format!("gemm({i},{j},{k})"),
    }
}
