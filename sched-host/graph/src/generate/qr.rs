//! The tiled QR factorisation.

use super::{Tiles, tile_bytes};
use crate::factorisation::{QrStep, qr_steps};
use crate::{AccessMode, Task, TaskGraph};

/// Number of reflectors that a triangle goes with, in `sched run qr`: those of a tile have a row of triangles.
const INNER: usize = 32;

/// The graph of `sched run qr`: the factorisation of a matrix of `tiles` × `tiles` tiles of `tile_size` rows, with a
/// flat tree in each column of tiles, with kinds geqrt (a diagonal tile), unmqr (right of it), tsqrt (a tile below it)
/// and tsmqr (the update of two tiles), in the same order, with the same priorities.
///
/// As of Buttari, Langou, Kurzak and Dongarra, *A class of parallel tiled linear algebra algorithms for multicore
/// architectures* (2009), with triangles for 32 reflectors at a time. The reflectors of a diagonal tile, and the
/// triangles, are data of their own, so that the updates to its right need not keep the column waiting. Operations are
/// counted to the leading order; the priority of a task is the number of tasks on the longest chain that begins with
/// it.
///
/// ```
/// use sched_graph::generate::qr;
/// assert_eq!(qr(8, 960).tasks.len(), 8 * 9 * 17 / 6);
/// ```
#[must_use]
pub fn qr(tiles: usize, tile_size: usize) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("QR of {tiles} × {tiles} tiles of {tile_size}"));
    let [geqrt, unmqr, tsqrt, tsmqr] = ["geqrt", "unmqr", "tsqrt", "tsmqr"].map(|kind| graph.add_kind(kind));
    let bytes = tile_bytes(tile_size);
    let data = Tiles::new(&mut graph, "A", tiles, bytes, |_, _| true);
    let reflectors = Tiles::new(&mut graph, "V", tiles, bytes, |i, j| i == j);
    let triangles = Tiles::new(&mut graph, "T", tiles, 8 * (INNER.min(tile_size) * tile_size) as u64, |i, j| i >= j);
    let cube = (tile_size as f64).powi(3);
    for step in qr_steps(tiles) {
        let (mut task, flops) = match step {
            QrStep::Geqrt { k } => {
                let task = Task::new(geqrt).named(format!("geqrt({k})"));
                let task = task.access(data.at(k, k), AccessMode::ReadWrite);
                let task = task.access(reflectors.at(k, k), AccessMode::Write);
                let task = task.access(triangles.at(k, k), AccessMode::Write);
                (task, 4.0 / 3.0 * cube)
            }
            QrStep::Unmqr { k, j } => {
                let task = Task::new(unmqr).named(format!("unmqr({k},{j})"));
                let task = task.access(reflectors.at(k, k), AccessMode::Read);
                let task = task.access(triangles.at(k, k), AccessMode::Read);
                let task = task.access(data.at(k, j), AccessMode::ReadWrite);
                (task, 2.0 * cube)
            }
            QrStep::Tsqrt { k, i } => {
                let task = Task::new(tsqrt).named(format!("tsqrt({i},{k})"));
                let task =
                    task.access(data.at(k, k), AccessMode::ReadWrite).access(data.at(i, k), AccessMode::ReadWrite);
                (task.access(triangles.at(i, k), AccessMode::Write), 2.0 * cube)
            }
            QrStep::Tsmqr { k, i, j } => {
                let task = Task::new(tsmqr).named(format!("tsmqr({i},{j},{k})"));
                let task = task.access(data.at(i, k), AccessMode::Read).access(triangles.at(i, k), AccessMode::Read);
                let task =
                    task.access(data.at(k, j), AccessMode::ReadWrite).access(data.at(i, j), AccessMode::ReadWrite);
                (task, 4.0 * cube)
            }
        };
        task.priority = i32::try_from(step.priority(tiles)).unwrap_or(i32::MAX);
        task.flops = flops;
        graph.add_task(task);
    }
    graph
}
