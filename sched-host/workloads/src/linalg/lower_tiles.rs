//! The tiles of a matrix's lower triangle.

use super::{CholeskyStep, Entries, Tile, Tiling, kernels};
use super::{NotPositiveDefinite, gemm, potrf, syrk, trsm};

/// The tiles of the lower triangle of a square matrix: a symmetric matrix before its factorisation, its Cholesky factor
/// afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct LowerTiles {
    tiling: Tiling,
    tiles: Vec<Tile>,
}

impl LowerTiles {
    /// Cuts the lower triangle of the symmetric `matrix` into tiles of `tile_size` rows and columns. Diagonal tiles
    /// contain both triangles.
    ///
    /// # Panics
    ///
    /// If `tile_size` is 0.
    pub fn cut(matrix: &(impl Entries + ?Sized), tile_size: usize) -> Self {
        let tiling = Tiling::new(matrix.order(), tile_size);
        Self { tiling, tiles: tiling.lower_tiles().map(|(i, j)| Tile::of(matrix, tiling, i, j)).collect() }
    }

    /// Reassembles tiles from [`into_tiles`](Self::into_tiles), in the same order.
    ///
    /// # Panics
    ///
    /// If the number of tiles or the shape of one does not match `tiling`.
    pub fn from_tiles(tiling: Tiling, tiles: Vec<Tile>) -> Self {
        Tile::check_shapes(&tiles, tiling, tiling.lower_tiles());
        Self { tiling, tiles }
    }

    /// The tiles, in the order of [`Tiling::lower_tiles`].
    pub fn into_tiles(self) -> Vec<Tile> {
        self.tiles
    }

    /// The tiling of the matrix.
    pub fn tiling(&self) -> Tiling {
        self.tiling
    }

    /// Tile (i, j) of the lower triangle.
    ///
    /// # Panics
    ///
    /// If the tile lies above the diagonal or outside the matrix.
    pub fn tile(&self, i: usize, j: usize) -> &Tile {
        &self.tiles[self.tiling.lower_index(i, j)]
    }

    /// Tile (i, j) of the lower triangle.
    ///
    /// # Panics
    ///
    /// If the tile lies above the diagonal or outside the matrix.
    pub fn tile_mut(&mut self, i: usize, j: usize) -> &mut Tile {
        let index = self.tiling.lower_index(i, j);
        &mut self.tiles[index]
    }

    /// Several distinct tiles at once, for a kernel.
    fn several<const N: usize>(&mut self, wanted: [(usize, usize); N]) -> [&mut Tile; N] {
        let wanted = wanted.map(|(i, j)| self.tiling.lower_index(i, j));
        self.tiles.get_disjoint_mut(wanted).expect("the tiles of one step are distinct")
    }

    /// Entry of the lower triangular matrix in row `r` and column `c`, from 0: zero above the diagonal.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    pub fn lower_entry(&self, r: usize, c: usize) -> f64 {
        let order = self.tiling.order();
        assert!(r < order && c < order, "entry ({r}, {c}) of order {order}");
        if r < c {
            return 0.0;
        }
        let size = self.tiling.tile_size();
        self.tile(r / size, c / size).get(r % size, c % size)
    }

    /// Executes one step of the factorisation.
    ///
    /// # Errors
    ///
    /// [`NotPositiveDefinite`], for a [`CholeskyStep::Potrf`] only.
    ///
    /// # Panics
    ///
    /// If the step is not one of [`cholesky_steps`](super::cholesky_steps) for this number of tiles.
    pub fn apply(&mut self, step: CholeskyStep) -> Result<(), NotPositiveDefinite> {
        let written = step.writes();
        match step {
            CholeskyStep::Potrf { k } => return potrf(self.tile_mut(k, k)),
            CholeskyStep::Trsm { k, .. } => {
                let [l, b] = self.several([(k, k), written]);
                trsm(l, b);
            }
            CholeskyStep::Syrk { k, i } => {
                let [a, c] = self.several([(i, k), written]);
                syrk(a, c);
            }
            CholeskyStep::Gemm { k, i, j } => {
                let [a, b, c] = self.several([(i, k), (j, k), written]);
                gemm(a, b, c);
            }
        }
        Ok(())
    }

    /// Subtracts tile (i, j) of L·Lᵀ from `tile`, where `self` is L; for a diagonal tile, only in its lower triangle.
    pub(super) fn subtract_square(&self, i: usize, j: usize, tile: &mut Tile) {
        for k in 0..j {
            if i == j {
                syrk(self.tile(i, k), tile);
            } else {
                gemm(self.tile(i, k), self.tile(j, k), tile);
            }
        }
        kernels::multiply_by_factor(self.tile(i, j), self.tile(j, j), tile, i == j);
    }
}

/// The symmetric matrix with the lower triangle in the tiles.
impl Entries for LowerTiles {
    fn order(&self) -> usize {
        self.tiling.order()
    }

    fn get(&self, r: usize, c: usize) -> f64 {
        self.lower_entry(r.max(c), r.min(c))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::{RandomSpd, SymmetricMatrix};

    proptest! {
        #[test]
        fn cutting_and_putting_together_changes_nothing(order in 0usize..40, size in 1usize..50, other in 1usize..50) {
            let a = RandomSpd::new(order, 1);
            let tiled = LowerTiles::cut(&a, size);
            let tiling = tiled.tiling();
            let again = LowerTiles::from_tiles(tiling, tiled.clone().into_tiles());
            prop_assert_eq!(&again, &tiled);
            for r in 0..order {
                for c in 0..order {
                    prop_assert_eq!(tiled.get(r, c), a.get(r, c));
                    prop_assert_eq!(tiled.lower_entry(r, c), if r >= c { a.get(r, c) } else { 0.0 });
                }
            }
            let dense = SymmetricMatrix::from_lower(order, |r, c| tiled.get(r, c)).unwrap();
            prop_assert_eq!(LowerTiles::cut(&dense, other), LowerTiles::cut(&a, other));
        }
    }

    #[test]
    #[should_panic(expected = "shape of tile (1, 0)")]
    fn tiles_of_another_shape_are_refused() {
        let mut tiles = LowerTiles::cut(&RandomSpd::new(5, 1), 3).into_tiles();
        tiles[1] = Tile::zeros(3, 3);
        LowerTiles::from_tiles(Tiling::new(5, 3), tiles);
    }
}
