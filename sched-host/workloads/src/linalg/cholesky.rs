//! The sequential tiled Cholesky factorisation.

use super::{LowerTiles, Tiling, cholesky_steps};

/// A matrix that has no Cholesky factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the matrix is not positive definite: its leading block of {row} rows and columns is not (the pivot in row {row} is not positive)"
)]
pub struct NotPositiveDefiniteMatrix {
    /// Row of the whole matrix, from 1, where the factorisation met a pivot that is zero, negative, infinite or not a
    /// number.
    pub row: usize,
}

impl NotPositiveDefiniteMatrix {
    /// Translates a failed [`CholeskyStep::Potrf`](super::CholeskyStep::Potrf) of tile (k, k) to the whole matrix.
    ///
    /// ```
    /// use sched_workloads::linalg::{NotPositiveDefinite, NotPositiveDefiniteMatrix, Tiling};
    /// let whole = NotPositiveDefiniteMatrix::new(Tiling::new(1000, 256), 2, NotPositiveDefinite { row: 5 });
    /// assert_eq!(whole.row, 518);
    /// ```
    pub fn new(tiling: Tiling, k: usize, in_tile: super::NotPositiveDefinite) -> Self {
        Self { row: tiling.rows(k).start + in_tile.row + 1 }
    }
}

/// Replaces the symmetric matrix by its Cholesky factor L, step by step on the calling thread.
///
/// Only the lower triangle is read and overwritten by L; the entries above the diagonal in the diagonal tiles are
/// unspecified afterwards ([`LowerTiles::lower_entry`] hides them).
///
/// # Errors
///
/// [`NotPositiveDefiniteMatrix`] if the matrix is not positive definite to working precision; it is then partly
/// overwritten.
pub fn cholesky_in_place(matrix: &mut LowerTiles) -> Result<(), NotPositiveDefiniteMatrix> {
    let tiling = matrix.tiling();
    for step in cholesky_steps(tiling.n_tiles()) {
        matrix.apply(step).map_err(|in_tile| NotPositiveDefiniteMatrix::new(tiling, step.writes().0, in_tile))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::{RandomSpd, SymmetricMatrix, residual, tolerance};

    proptest! {
        #[test]
        fn the_factor_multiplies_back_for_every_way_to_cut(order in 0usize..70, tile_size in 1usize..80, seed: u64) {
            let a = RandomSpd::new(order, seed);
            let mut l = LowerTiles::cut(&a, tile_size);
            cholesky_in_place(&mut l).expect("the matrix is positive definite");
            let found = residual(&a, &l);
            prop_assert!(found <= tolerance(order), "residual {}", found);
        }

        #[test]
        fn a_bad_pivot_is_named_by_its_row_in_the_matrix(order in 1usize..60, tile_size in 1usize..70, at in any::<prop::sample::Index>()) {
            let bad = at.index(order);
            // L has ones on the diagonal and small entries left of it, but in one row the square of the diagonal is
            // short by 2.
            let factor = |r: usize, c: usize| if r == c { 1.0 } else { ((r + 2 * c) % 5) as f64 / 64.0 };
            let a = SymmetricMatrix::from_lower(order, |r, c| {
                let product: f64 = (0..=c).map(|k| factor(r, k) * factor(c, k)).sum();
                if r == c && r == bad { product - 2.0 } else { product }
            }).unwrap();
            let result = cholesky_in_place(&mut LowerTiles::cut(&a, tile_size));
            prop_assert_eq!(result, Err(NotPositiveDefiniteMatrix { row: bad + 1 }));
        }
    }

    #[test]
    fn the_message_names_the_row() {
        insta::assert_snapshot!(NotPositiveDefiniteMatrix { row: 7 }, @"the matrix is not positive definite: its leading block of 7 rows and columns is not (the pivot in row 7 is not positive)");
    }
}
