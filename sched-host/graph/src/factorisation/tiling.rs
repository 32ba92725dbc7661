//! How a square matrix is cut into tiles.

use std::ops::Range;

/// A square matrix of a given order, cut into square tiles of a given size from the first row and column on.
///
/// If the order is no multiple of the tile size, the tiles of the last row and of the last column of tiles are smaller.
/// Tiles are named (i, j), row before column, from 0.
///
/// ```
/// use sched_graph::factorisation::Tiling;
/// let tiling = Tiling::new(1000, 256);
/// assert_eq!(tiling.n_tiles(), 4);
/// assert_eq!(tiling.rows(3), 768..1000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tiling {
    order: usize,
    tile_size: usize,
}

impl Tiling {
    /// Cuts a matrix of `order` rows and columns into tiles of `tile_size` rows and columns. A tile size beyond the
    /// order means one tile.
    ///
    /// # Panics
    ///
    /// If `tile_size` is 0.
    pub fn new(order: usize, tile_size: usize) -> Self {
        assert!(tile_size > 0, "a tile has at least one row");
        Self { order, tile_size }
    }

    /// Rows of the matrix.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Rows of every tile but the last ones.
    pub fn tile_size(&self) -> usize {
        self.tile_size
    }

    /// Tiles in one row of tiles.
    pub fn n_tiles(&self) -> usize {
        self.order.div_ceil(self.tile_size)
    }

    /// Tiles in the lower triangle, diagonal included.
    pub fn n_lower_tiles(&self) -> usize {
        let n = self.n_tiles();
        n * (n + 1) / 2
    }

    /// The rows of the matrix, from 0, that the tiles of tile row `i` hold; also the columns of tile column `i`.
    ///
    /// # Panics
    ///
    /// If there is no such row of tiles.
    pub fn rows(&self, i: usize) -> Range<usize> {
        assert!(i < self.n_tiles(), "tile row {i} of {}", self.n_tiles());
        let first = i * self.tile_size;
        first..self.order.min(first.saturating_add(self.tile_size))
    }

    /// Number of rows of the tiles in tile row `i`; also of columns in tile column `i`.
    ///
    /// # Panics
    ///
    /// If there is no such row of tiles.
    pub fn size(&self, i: usize) -> usize {
        self.rows(i).len()
    }

    /// Place of tile (i, j) of the lower triangle among [`lower_tiles`](Self::lower_tiles).
    ///
    /// # Panics
    ///
    /// If the tile lies above the diagonal or outside the matrix.
    pub fn lower_index(&self, i: usize, j: usize) -> usize {
        assert!(
            j <= i && i < self.n_tiles(),
            "tile ({i}, {j}) is not in the lower triangle of {0}×{0} tiles",
            self.n_tiles()
        );
        i * (i + 1) / 2 + j
    }

    /// The tiles (i, j) of the lower triangle, row by row: (0, 0), (1, 0), (1, 1), (2, 0) and so on.
    pub fn lower_tiles(&self) -> impl Iterator<Item = (usize, usize)> + Clone + use<> {
        (0..self.n_tiles()).flat_map(|i| (0..=i).map(move |j| (i, j)))
    }

    /// Place of tile (i, j) among [`square_tiles`](Self::square_tiles).
    ///
    /// # Panics
    ///
    /// If there is no such tile.
    pub fn square_index(&self, i: usize, j: usize) -> usize {
        let n = self.n_tiles();
        assert!(i < n && j < n, "tile ({i}, {j}) of {n}×{n} tiles");
        i * n + j
    }

    /// All tiles (i, j), row by row: (0, 0), (0, 1) and so on.
    pub fn square_tiles(&self) -> impl Iterator<Item = (usize, usize)> + Clone + use<> {
        let n = self.n_tiles();
        (0..n).flat_map(move |i| (0..n).map(move |j| (i, j)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_tile_rows_cover_the_matrix_once(order in 0usize..200, tile_size in 1usize..250) {
            let tiling = Tiling::new(order, tile_size);
            let rows: Vec<usize> = (0..tiling.n_tiles()).flat_map(|i| tiling.rows(i)).collect();
            prop_assert_eq!(rows, (0..order).collect::<Vec<_>>());
            prop_assert!((0..tiling.n_tiles()).all(|i| (1..=tile_size).contains(&tiling.size(i))));
        }

        #[test]
        fn tiles_are_numbered_in_their_order(order in 0usize..50, tile_size in 1usize..10) {
            let tiling = Tiling::new(order, tile_size);
            let indices: Vec<usize> = tiling.lower_tiles().map(|(i, j)| tiling.lower_index(i, j)).collect();
            prop_assert_eq!(indices, (0..tiling.n_lower_tiles()).collect::<Vec<_>>());
            let indices: Vec<usize> = tiling.square_tiles().map(|(i, j)| tiling.square_index(i, j)).collect();
            prop_assert_eq!(indices, (0..tiling.n_tiles().pow(2)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_tile_size_beyond_the_order_means_one_tile() {
        let tiling = Tiling::new(10, usize::MAX);
        assert_eq!(tiling.n_tiles(), 1);
        assert_eq!(tiling.rows(0), 0..10);
    }
}
