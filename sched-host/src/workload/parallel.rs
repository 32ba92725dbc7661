//! What comes before and after a run, on the threads of the current rayon pool.

use crate::linalg::{Norms, SymmetricEntries, Tile, TiledMatrix, Tiling, tile_norms};
use rayon::prelude::*;

/// [`TiledMatrix::cut`], in parallel.
///
/// # Panics
/// If `tile_size` is 0.
pub fn cut(matrix: &(impl SymmetricEntries + Sync), tile_size: usize) -> TiledMatrix {
    let tiling = Tiling::new(matrix.order(), tile_size);
    let places: Vec<(usize, usize)> = tiling.lower_tiles().collect();
    let tiles = places.into_par_iter().map(|(i, j)| {
        let mut tile = Tile::zeros(tiling.size(i), tiling.size(j));
        matrix.fill_tile(tiling.rows(i).start, tiling.rows(j).start, &mut tile);
        tile
    });
    TiledMatrix::from_tiles(tiling, tiles.collect())
}

/// [`linalg::residual`](crate::linalg::residual), in parallel.
///
/// # Panics
/// If the orders differ.
pub fn residual(a: &(impl SymmetricEntries + Sync), l: &TiledMatrix) -> f64 {
    let places: Vec<(usize, usize)> = l.tiling().lower_tiles().collect();
    // Summed up in order, so that the same factor always has the same residual.
    let norms: Vec<Norms> = places.into_par_iter().map(|(i, j)| tile_norms(a, l, i, j)).collect();
    norms.into_iter().fold(Norms::default(), Norms::and).relative()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{self, RandomSpd, cholesky_in_place};

    #[test]
    fn they_do_what_the_sequential_ones_do() {
        for (order, tile_size) in [(0, 3), (1, 3), (50, 7), (64, 16)] {
            let a = RandomSpd::new(order, 3);
            let mut l = cut(&a, tile_size);
            assert_eq!(l, TiledMatrix::cut(&a, tile_size));
            cholesky_in_place(&mut l).expect("the matrix is positive definite");
            assert_eq!(residual(&a, &l), linalg::residual(&a, &l));
        }
    }
}
