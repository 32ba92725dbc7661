//! The four kernels of the tiled Cholesky factorisation, each on whole tiles and on the calling thread only.
//!
//! In the steady state none of them allocates: faer packs its operands into a buffer of the thread (reserved at the
//! thread's first call, as virtual memory of a few times the last-level cache; only touched pages become resident),
//! [`potrf`] keeps its own few kilobytes of scratch per thread, and [`syrk`] and [`gemm`] on large tiles keep a copy of
//! one tile.

pub mod on_views;

use super::Tile;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Par};

/// A tile that has no Cholesky factor, found by [`potrf`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pivot in row {row} of the tile (counted from 0) is not positive and finite")]
pub struct NotPositiveDefinite {
    /// Row within the tile, from 0, where the factorisation met a pivot that is zero, negative, infinite or not a
    /// number.
    pub row: usize,
}

/// A := L with A = L·Lᵀ: the Cholesky factor of a square tile, in place.
///
/// Only the lower triangle of `a` is read and overwritten by L; the part above the diagonal is unspecified afterwards
/// (the other kernels do not read it from a factored tile).
///
/// # Errors
///
/// [`NotPositiveDefinite`] if A is not positive definite to working precision, or contains an infinity or NaN that
/// reaches a pivot. `a` is then partly overwritten.
///
/// # Panics
///
/// If `a` is not square.
pub fn potrf(a: &mut Tile) -> Result<(), NotPositiveDefinite> {
    on_views::potrf(a.entries_mut())
}

/// B := B·L⁻ᵀ, the panel update below a factored diagonal tile.
///
/// Only the lower triangle of `l`, with its diagonal, is read.
///
/// # Panics
///
/// If `l` is not square, or `b` does not have as many columns as `l`.
pub fn trsm(l: &Tile, b: &mut Tile) {
    on_views::trsm(l.entries(), b.entries_mut());
}

/// C := C − A·Aᵀ in the lower triangle of C, diagonal included; the part above the diagonal is neither read nor
/// written.
///
/// # Panics
///
/// If `c` is not square, or `a` does not have as many rows as `c`.
pub fn syrk(a: &Tile, c: &mut Tile) {
    on_views::syrk(a.entries(), c.entries_mut());
}

/// C := C − A·Bᵀ.
///
/// # Panics
///
/// If the shapes do not match: `a` is m×k, `b` n×k and `c` m×n.
pub fn gemm(a: &Tile, b: &Tile, c: &mut Tile) {
    on_views::gemm(a.entries(), b.entries(), c.entries_mut());
}

/// C := C − A·Lᵀ, where only the lower triangle of L, with its diagonal, is read.
///
/// With `lower_only` only the lower triangle of C is written, and only that of A is read: the product of a factored
/// diagonal tile with its own transpose.
pub(super) fn multiply_by_factor(a: &Tile, l: &Tile, c: &mut Tile, lower_only: bool) {
    let structure = if lower_only { BlockStructure::TriangularLower } else { BlockStructure::Rectangular };
    triangular::matmul(
        c.view_mut(),
        structure,
        Accum::Add,
        a.view(),
        structure,
        l.view().transpose(),
        BlockStructure::TriangularUpper,
        -1.0,
        Par::Seq,
    );
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::on_views::LARGE;
    use super::*;
    use crate::linalg::{Entries, RandomSpd};

    /// A tile of small numbers that depend on the position and on `salt`.
    fn sample(rows: usize, cols: usize, salt: usize) -> Tile {
        Tile::from_fn(rows, cols, |r, c| ((r * 31 + c * 17 + salt * 7) % 23) as f64 / 23.0 - 0.4)
    }

    /// A well-conditioned lower triangular tile with arbitrary entries above the diagonal.
    fn lower(order: usize) -> Tile {
        Tile::from_fn(order, order, |r, c| match r.cmp(&c) {
            std::cmp::Ordering::Less => f64::NAN,
            std::cmp::Ordering::Equal => 2.0 + (r % 3) as f64,
            std::cmp::Ordering::Greater => ((r * 5 + c * 3) % 7) as f64 / (7.0 * order as f64),
        })
    }

    fn assert_close(found: f64, expected: f64, at: (usize, usize)) {
        let error = (found - expected).abs();
        assert!(error <= 1e-12 * expected.abs().max(1.0), "{found} instead of {expected} at {at:?}");
    }

    /// Asserts that every entry of `tile` is as `expected`.
    fn assert_entries(tile: &Tile, expected: impl Fn(usize, usize) -> f64) {
        for (r, c) in (0..tile.cols()).flat_map(|c| (0..tile.rows()).map(move |r| (r, c))) {
            assert_close(tile.get(r, c), expected(r, c), (r, c));
        }
    }

    /// Entry (r, c) of A·Bᵀ, using the first `n` columns of both.
    fn product(a: &Tile, b: &Tile, r: usize, c: usize, n: usize) -> f64 {
        (0..n).map(|p| a.get(r, p) * b.get(c, p)).sum()
    }

    proptest! {
        #[test]
        fn potrf_multiplies_back_to_the_tile(n in 1usize..40, seed: u64) {
            let mut a = Tile::zeros(n, n);
            RandomSpd::new(n, seed).fill_tile(0, 0, &mut a);
            let mut l = a.clone();
            l.fill(|r, c| if r < c { f64::NAN } else { a.get(r, c) });
            potrf(&mut l).expect("the matrix is positive definite");
            for c in 0..n {
                for r in c..n {
                    let product = (0..=c).map(|k| l.get(r, k) * l.get(c, k)).sum();
                    assert_close(product, a.get(r, c), (r, c));
                }
            }
        }

        #[test]
        fn potrf_names_the_row_of_a_bad_pivot(n in 1usize..200, at in any::<prop::sample::Index>(), bad in 0usize..4) {
            let row = at.index(n);
            let pivot = [0.0, -1.0, f64::NAN, f64::INFINITY][bad];
            let mut a = Tile::from_fn(n, n, |r, c| if r == c { 1.0 } else { 0.0 });
            a.set(row, row, pivot);
            prop_assert_eq!(potrf(&mut a), Err(NotPositiveDefinite { row }));
        }

        #[test]
        fn trsm_undoes_a_product_with_the_factor(m in 1usize..40, n in 1usize..40) {
            let l = lower(n);
            let x = sample(m, n, 1);
            let mut b = Tile::from_fn(m, n, |r, c| product(&x, &l, r, c, c + 1));
            trsm(&l, &mut b);
            assert_entries(&b, |r, c| x.get(r, c));
        }

        #[test]
        fn syrk_subtracts_in_the_lower_triangle_only(n in 1usize..40, k in 1usize..40) {
            let (a, before) = (sample(n, k, 2), sample(n, n, 3));
            let mut c = before.clone();
            syrk(&a, &mut c);
            let change = |i, j| if i >= j { product(&a, &a, i, j, k) } else { 0.0 };
            assert_entries(&c, |i, j| before.get(i, j) - change(i, j));
        }

        #[test]
        fn gemm_subtracts_the_product(m in 1usize..40, n in 1usize..40, k in 1usize..40) {
            let (a, b, before) = (sample(m, k, 4), sample(n, k, 5), sample(m, n, 6));
            let mut c = before.clone();
            gemm(&a, &b, &mut c);
            assert_entries(&c, |i, j| before.get(i, j) - product(&a, &b, i, j, k));
        }

        #[test]
        fn the_product_with_a_factor_ignores_what_lies_above_its_diagonal(m in 1usize..40, n in 1usize..40) {
            let (a, l, before) = (sample(m, n, 7), lower(n), sample(m, n, 8));
            let mut c = before.clone();
            multiply_by_factor(&a, &l, &mut c, false);
            assert_entries(&c, |i, j| before.get(i, j) - product(&a, &l, i, j, j + 1));
            let before = sample(n, n, 9);
            let mut c = before.clone();
            multiply_by_factor(&l, &l, &mut c, true);
            let change = |i, j| if i >= j { product(&l, &l, i, j, j + 1) } else { 0.0 };
            assert_entries(&c, |i, j| before.get(i, j) - change(i, j));
        }
    }

    #[test]
    fn large_tiles_are_updated_like_small_ones() {
        let (m, n, k) = (7, LARGE + 5, 11);
        let (a, b, before) = (sample(m, k, 4), sample(n, k, 5), sample(m, n, 6));
        let mut c = before.clone();
        gemm(&a, &b, &mut c);
        assert_entries(&c, |i, j| before.get(i, j) - product(&a, &b, i, j, k));
        let mut c = Tile::zeros(n, n);
        syrk(&b, &mut c);
        assert_entries(&c, |i, j| if i >= j { -product(&b, &b, i, j, k) } else { 0.0 });
    }

    #[test]
    fn empty_tiles_are_no_trouble() {
        let mut empty = Tile::zeros(0, 0);
        assert_eq!(potrf(&mut empty), Ok(()));
        trsm(&Tile::zeros(0, 0), &mut Tile::zeros(3, 0));
        syrk(&Tile::zeros(2, 0), &mut Tile::zeros(2, 2));
    }
}
