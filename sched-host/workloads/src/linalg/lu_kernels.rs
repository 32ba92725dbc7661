//! The kernels of the tiled LU factorisation, each on whole tiles and on the calling thread only. None of them
//! allocates in the steady state.

pub(crate) mod on_views;

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Par};

use super::Tile;

/// A tile that has no LU factorisation without pivoting, found by [`getrf`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pivot in row {row} of the tile (counted from 0) is zero or not finite")]
pub struct ZeroPivot {
    /// Row within the tile, from 0, where the factorisation met a pivot that is zero, infinite or not a number.
    pub row: usize,
}

/// A := L and U with A = L·U: the factors of a square tile, in place and without pivoting. U overwrites the upper
/// triangle with the diagonal; L, whose diagonal is 1, the part below.
///
/// # Errors
///
/// [`ZeroPivot`] if a pivot is exactly zero, or not finite. `a` is then partly overwritten.
///
/// # Panics
///
/// If `a` is not square.
pub fn getrf(a: &mut Tile) -> Result<(), ZeroPivot> {
    on_views::getrf(a.entries_mut())
}

/// B := L⁻¹·B, right of a factored diagonal tile. Only the part of `l` below the diagonal is read.
///
/// # Panics
///
/// If `l` is not square, or `b` does not have as many rows as `l`.
pub fn trsm_row(l: &Tile, b: &mut Tile) {
    on_views::trsm_row(l.entries(), b.entries_mut());
}

/// B := B·U⁻¹, below a factored diagonal tile. Only the upper triangle of `u`, with its diagonal, is read.
///
/// # Panics
///
/// If `u` is not square, or `b` does not have as many columns as `u`.
pub fn trsm_column(u: &Tile, b: &mut Tile) {
    on_views::trsm_column(u.entries(), b.entries_mut());
}

/// C := C − A·B.
///
/// # Panics
///
/// If the shapes do not match: `a` is m×k, `b` k×n and `c` m×n.
pub fn gemm_nn(a: &Tile, b: &Tile, c: &mut Tile) {
    on_views::gemm_nn(a.entries(), b.entries(), c.entries_mut());
}

/// C := C − L·U. Of a factored tile `l` only the part below the diagonal is used (with a unit diagonal), of a factored
/// tile `u` only the upper triangle.
pub(super) fn subtract_product(l: &Tile, l_is_factored: bool, u: &Tile, u_is_factored: bool, c: &mut Tile) {
    let lower = if l_is_factored { BlockStructure::UnitTriangularLower } else { BlockStructure::Rectangular };
    let upper = if u_is_factored { BlockStructure::TriangularUpper } else { BlockStructure::Rectangular };
    let whole = BlockStructure::Rectangular;
    triangular::matmul(c.view_mut(), whole, Accum::Add, l.view(), lower, u.view(), upper, -1.0, Par::Seq);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(rows: usize, cols: usize, salt: usize) -> Tile {
        Tile::from_fn(rows, cols, |r, c| ((r * 31 + c * 17 + salt * 7) % 23) as f64 / 23.0 - 0.4)
    }

    fn dominant(order: usize) -> Tile {
        let mut tile = sample(order, order, 1);
        (0..order).for_each(|d| tile.set(d, d, order as f64));
        tile
    }

    fn assert_close(found: &Tile, expected: impl Fn(usize, usize) -> f64) {
        for c in 0..found.cols() {
            for r in 0..found.rows() {
                let (found, expected) = (found.get(r, c), expected(r, c));
                assert!(
                    (found - expected).abs() <= 1e-11 * expected.abs().max(1.0),
                    "{found}, not {expected}, at ({r}, {c})"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn getrf_multiplies_back_to_the_tile(n in 0usize..80) {
            let a = dominant(n);
            let mut f = a.clone();
            getrf(&mut f).expect("the diagonal dominates");
            let lower = |r: usize, c: usize| if r == c { 1.0 } else { f.get(r, c) };
            assert_close(&a, |r, c| (0..=r.min(c)).map(|k| lower(r, k) * f.get(k, c)).sum());
        }

        #[test]
        fn getrf_names_the_row_of_a_bad_pivot(n in 1usize..100, at in any::<prop::sample::Index>(), bad in 0usize..3) {
            let row = at.index(n);
            let mut a = Tile::from_fn(n, n, |r, c| if r == c { -1.0 } else { 0.0 });
            a.set(row, row, [0.0, f64::NAN, f64::INFINITY][bad]);
            prop_assert_eq!(getrf(&mut a), Err(ZeroPivot { row }));
        }

        #[test]
        fn the_solves_undo_products_with_the_factors(m in 1usize..40, n in 1usize..40) {
            let f = dominant(n);
            let x = sample(n, m, 2);
            let lower = |r: usize, c: usize| if r == c { 1.0 } else { f.get(r, c) };
            let mut b = Tile::from_fn(n, m, |r, c| (0..=r).map(|k| lower(r, k) * x.get(k, c)).sum());
            // Nothing else of the tile is read.
            let only_lower = Tile::from_fn(n, n, |r, c| if r > c { f.get(r, c) } else { f64::NAN });
            trsm_row(&only_lower, &mut b);
            assert_close(&b, |r, c| x.get(r, c));
            let x = sample(m, n, 3);
            let mut b = Tile::from_fn(m, n, |r, c| (0..=c).map(|k| x.get(r, k) * f.get(k, c)).sum());
            let only_upper = Tile::from_fn(n, n, |r, c| if r <= c { f.get(r, c) } else { f64::NAN });
            trsm_column(&only_upper, &mut b);
            assert_close(&b, |r, c| x.get(r, c));
        }

        #[test]
        fn gemm_subtracts_the_product(m in 1usize..40, n in 1usize..40, k in 1usize..40) {
            let (a, b, before) = (sample(m, k, 4), sample(k, n, 5), sample(m, n, 6));
            let mut c = before.clone();
            gemm_nn(&a, &b, &mut c);
            assert_close(&c, |i, j| before.get(i, j) - (0..k).map(|p| a.get(i, p) * b.get(p, j)).sum::<f64>());
        }
    }
}
