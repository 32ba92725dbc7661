//! The kernels of the tiled LU factorisation, each on whole tiles and on the calling thread only. None of them
//! allocates in the steady state.

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::{matmul::matmul, triangular_solve};
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Accum, MatMut, Par};

use super::Tile;

/// Maximum number of rows of a block that is factored in plain loops.
const SMALL: usize = 16;

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
    assert_eq!(a.rows(), a.cols(), "getrf needs a square tile");
    factor(a.view_mut(), 0)
}

/// Factors a block whose first row is `first`, recursively by halves, so that nearly all the work is in matrix
/// products.
fn factor(a: MatMut<'_, f64>, first: usize) -> Result<(), ZeroPivot> {
    if a.nrows() <= SMALL {
        return factor_small(a, first);
    }
    let half = (a.nrows() / 2).next_multiple_of(8);
    let (mut a00, mut a01, mut a10, mut a11) = a.split_at_mut(half, half);
    factor(a00.rb_mut(), first)?;
    triangular_solve::solve_unit_lower_triangular_in_place(a00.rb(), a01.rb_mut(), Par::Seq);
    // X·U = B is Uᵀ·Xᵀ = Bᵀ, solved in the transposed view.
    let transposed = a10.rb_mut().transpose_mut();
    triangular_solve::solve_lower_triangular_in_place(a00.rb().transpose(), transposed, Par::Seq);
    matmul(a11.rb_mut(), Accum::Add, a10.rb(), a01.rb(), -1.0, Par::Seq);
    factor(a11, first + half)
}

fn factor_small(mut a: MatMut<'_, f64>, first: usize) -> Result<(), ZeroPivot> {
    let n = a.nrows();
    // Arrays of fixed length, which the compiler can vectorise.
    let mut columns = [[0.0; SMALL]; SMALL];
    for (c, column) in columns.iter_mut().enumerate().take(n) {
        for (r, x) in column.iter_mut().enumerate().take(n) {
            *x = a[(r, c)];
        }
    }
    for k in 0..n {
        let pivot = columns[k][k];
        if pivot == 0.0 || !pivot.is_finite() {
            return Err(ZeroPivot { row: first + k });
        }
        for x in &mut columns[k][k + 1..n] {
            *x /= pivot;
        }
        let (done, behind) = columns.split_at_mut(k + 1);
        let lower = &done[k];
        for column in &mut behind[..n - k - 1] {
            let upper = column[k];
            for (x, l) in column[k + 1..n].iter_mut().zip(&lower[k + 1..n]) {
                *x -= l * upper;
            }
        }
    }
    for (c, column) in columns.iter().enumerate().take(n) {
        for (r, x) in column.iter().enumerate().take(n) {
            a[(r, c)] = *x;
        }
    }
    Ok(())
}

/// B := L⁻¹·B, right of a factored diagonal tile. Only the part of `l` below the diagonal is read.
///
/// # Panics
///
/// If `l` is not square, or `b` does not have as many rows as `l`.
pub fn trsm_row(l: &Tile, b: &mut Tile) {
    triangular_solve::solve_unit_lower_triangular_in_place(l.view(), b.view_mut(), Par::Seq);
}

/// B := B·U⁻¹, below a factored diagonal tile. Only the upper triangle of `u`, with its diagonal, is read.
///
/// # Panics
///
/// If `u` is not square, or `b` does not have as many columns as `u`.
pub fn trsm_column(u: &Tile, b: &mut Tile) {
    triangular_solve::solve_lower_triangular_in_place(u.view().transpose(), b.view_mut().transpose_mut(), Par::Seq);
}

/// C := C − A·B.
///
/// # Panics
///
/// If the shapes do not match: `a` is m×k, `b` k×n and `c` m×n.
pub fn gemm_nn(a: &Tile, b: &Tile, c: &mut Tile) {
    matmul(c.view_mut(), Accum::Add, a.view(), b.view(), -1.0, Par::Seq);
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
