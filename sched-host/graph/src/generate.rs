//! Generated task graphs: tiled factorisations, and regular and random shapes for testing schedulers.

mod cholesky;
mod layered;
mod lu;
mod qr;
mod shapes;

pub use cholesky::cholesky;
pub use layered::{Layered, layered};
pub use lu::lu;
pub use qr::qr;
pub use shapes::{fork_join, independent, stencil};

use super::priorities::{bottom_levels, ranks};
use super::{DataId, Datum, TaskGraph};

/// Adds data for the tiles of a matrix of `tiles` × `tiles` tiles of 8-byte numbers, row by row; `cut` selects the
/// tiles that exist.
struct Tiles {
    tiles: usize,
    ids: Vec<Option<DataId>>,
}

impl Tiles {
    fn new(graph: &mut TaskGraph, name: &str, tiles: usize, bytes: u64, cut: impl Fn(usize, usize) -> bool) -> Tiles {
        let places = (0..tiles).flat_map(|i| (0..tiles).map(move |j| (i, j)));
        let mut add = |i, j| graph.add_data(Datum::new(bytes).named(format!("{name}({i},{j})")));
        Tiles { tiles, ids: places.map(|(i, j)| cut(i, j).then(|| add(i, j))).collect() }
    }

    fn at(&self, i: usize, j: usize) -> DataId {
        self.ids[i * self.tiles + j].expect("the factorisation uses tiles that there are only")
    }
}

/// Bytes of a square tile of `tile_size` rows.
fn tile_bytes(tile_size: usize) -> u64 {
    8 * (tile_size as u64).pow(2)
}

/// Sets the priority of each task to the number of tasks on the longest chain that begins with it.
fn prioritise_by_depth(graph: &mut TaskGraph) {
    let levels = bottom_levels(&graph.dependencies(), |_| 1.0);
    for (task, rank) in graph.tasks.iter_mut().zip(ranks(&levels)) {
        task.priority = rank;
    }
}

#[cfg(test)]
mod tests;
