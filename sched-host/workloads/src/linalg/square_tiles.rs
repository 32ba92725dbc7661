//! The tiles of a general square matrix.

use super::{Entries, Tile, Tiling};

/// The tiles of a general square matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct SquareTiles {
    tiling: Tiling,
    tiles: Vec<Tile>,
}

impl SquareTiles {
    /// Cuts `matrix` into tiles of `tile_size` rows and columns.
    ///
    /// # Panics
    ///
    /// If `tile_size` is 0.
    pub fn cut(matrix: &(impl Entries + ?Sized), tile_size: usize) -> Self {
        let tiling = Tiling::new(matrix.order(), tile_size);
        Self { tiling, tiles: tiling.square_tiles().map(|(i, j)| Tile::of(matrix, tiling, i, j)).collect() }
    }

    /// Reassembles tiles from [`into_tiles`](Self::into_tiles), in the same order.
    ///
    /// # Panics
    ///
    /// If the number of tiles or the shape of one does not match `tiling`.
    pub fn from_tiles(tiling: Tiling, tiles: Vec<Tile>) -> Self {
        Tile::check_shapes(&tiles, tiling, tiling.square_tiles());
        Self { tiling, tiles }
    }

    /// The tiles, in the order of [`Tiling::square_tiles`].
    pub fn into_tiles(self) -> Vec<Tile> {
        self.tiles
    }

    /// The tiling of the matrix.
    pub fn tiling(&self) -> Tiling {
        self.tiling
    }

    /// Tile (i, j).
    ///
    /// # Panics
    ///
    /// If there is no such tile.
    pub fn tile(&self, i: usize, j: usize) -> &Tile {
        &self.tiles[self.tiling.square_index(i, j)]
    }

    /// Tile (i, j).
    ///
    /// # Panics
    ///
    /// If there is no such tile.
    pub fn tile_mut(&mut self, i: usize, j: usize) -> &mut Tile {
        let index = self.tiling.square_index(i, j);
        &mut self.tiles[index]
    }

    /// Several distinct tiles at once, for a kernel.
    ///
    /// # Panics
    ///
    /// If one of them does not exist, or two are the same.
    pub(super) fn several<const N: usize>(&mut self, wanted: [(usize, usize); N]) -> [&mut Tile; N] {
        let wanted = wanted.map(|(i, j)| self.tiling.square_index(i, j));
        self.tiles.get_disjoint_mut(wanted).expect("the tiles of one step are distinct")
    }
}

impl Entries for SquareTiles {
    fn order(&self) -> usize {
        self.tiling.order()
    }

    fn get(&self, r: usize, c: usize) -> f64 {
        let order = self.tiling.order();
        assert!(r < order && c < order, "entry ({r}, {c}) of order {order}");
        let size = self.tiling.tile_size();
        self.tile(r / size, c / size).get(r % size, c % size)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::RandomMatrix;

    proptest! {
        #[test]
        fn cutting_and_putting_together_changes_nothing(order in 0usize..40, size in 1usize..50) {
            let a = RandomMatrix::uniform(order, 1);
            let tiles = SquareTiles::cut(&a, size);
            let again = SquareTiles::from_tiles(tiles.tiling(), tiles.clone().into_tiles());
            prop_assert_eq!(&again, &tiles);
            for (r, c) in (0..order).flat_map(|r| (0..order).map(move |c| (r, c))) {
                prop_assert_eq!(tiles.get(r, c), a.get(r, c));
            }
        }
    }

    #[test]
    #[should_panic(expected = "shape of tile (1, 0)")]
    fn tiles_of_another_shape_are_refused() {
        let mut tiles = SquareTiles::cut(&RandomMatrix::uniform(5, 1), 3).into_tiles();
        tiles[2] = Tile::zeros(3, 3);
        SquareTiles::from_tiles(Tiling::new(5, 3), tiles);
    }
}
