//! The tiled LU factorisation without pivoting.

use super::{Tiles, tile_bytes};
use crate::factorisation::{LuStep, Tiling, lu_steps};
use crate::{AccessMode, Task, TaskGraph};

/// The graph of `sched run lu`: the factorisation of a matrix of `tiles` × `tiles` tiles of `tile_size` rows into a
/// lower and an upper triangle, without pivoting, with kinds getrf (a diagonal tile), trsm_row (right of it),
/// trsm_column (below it) and gemm, in the same order, with the same priorities.
///
/// ```
/// use sched_graph::generate::lu;
/// assert_eq!(lu(8, 960).tasks.len(), 8 * 9 * 17 / 6);
/// ```
///
/// # Panics
/// If `tile_size` is 0.
#[must_use]
pub fn lu(tiles: usize, tile_size: usize) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("LU of {tiles} × {tiles} tiles of {tile_size}"));
    let [getrf, trsm_row, trsm_column, gemm] =
        ["getrf", "trsm_row", "trsm_column", "gemm"].map(|kind| graph.add_kind(kind));
    let data = Tiles::new(&mut graph, "A", tiles, tile_bytes(tile_size), |_, _| true);
    let tiling = Tiling::new(tiles * tile_size, tile_size);
    for step in lu_steps(tiles) {
        let task = match step {
            LuStep::Getrf { k } => Task::new(getrf).named(format!("getrf({k})")),
            LuStep::TrsmRow { k, j } => Task::new(trsm_row).named(format!("trsm_row({k},{j})")),
            LuStep::TrsmColumn { k, i } => Task::new(trsm_column).named(format!("trsm_column({i},{k})")),
            LuStep::Gemm { k, i, j } => Task::new(gemm).named(format!("gemm({i},{j},{k})")),
        };
        let (i, j) = step.writes();
        let mut task = step.reads().fold(task, |task, (i, j)| task.access(data.at(i, j), AccessMode::Read));
        task.priority = i32::try_from(step.priority(tiles)).unwrap_or(i32::MAX);
        task.flops = step.flops(tiling);
        graph.add_task(task.access(data.at(i, j), AccessMode::ReadWrite));
    }
    graph
}
