//! The kernels on entries that a [`Tile`](crate::linalg::Tile) need not own.

use super::ZeroPivot;
use crate::linalg::{Number, TileMut, TileRef};
use faer::linalg::{matmul::matmul, triangular_solve};
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Accum, MatMut, Par};

/// Maximum number of rows of a block that is factored in plain loops.
const SMALL: usize = 16;

/// A := L and U with A = L·U; see [`getrf`](super::getrf).
pub(crate) fn getrf<T: Number>(mut a: TileMut<'_, T>) -> Result<(), ZeroPivot> {
    assert_eq!(a.rows(), a.cols(), "getrf needs a square tile");
    factor(a.view_mut(), 0)
}

/// B := L⁻¹·B; see [`trsm_row`](super::trsm_row).
pub(crate) fn trsm_row<T: Number>(l: TileRef<'_, T>, mut b: TileMut<'_, T>) {
    triangular_solve::solve_unit_lower_triangular_in_place(l.view(), b.view_mut(), Par::Seq);
}

/// B := B·U⁻¹; see [`trsm_column`](super::trsm_column).
pub(crate) fn trsm_column<T: Number>(u: TileRef<'_, T>, mut b: TileMut<'_, T>) {
    triangular_solve::solve_lower_triangular_in_place(u.view().transpose(), b.view_mut().transpose_mut(), Par::Seq);
}

/// C := C − A·B; see [`gemm_nn`](super::gemm_nn).
pub(crate) fn gemm_nn<T: Number>(a: TileRef<'_, T>, b: TileRef<'_, T>, mut c: TileMut<'_, T>) {
    matmul(c.view_mut(), Accum::Add, a.view(), b.view(), -T::one(), Par::Seq);
}

/// Factors a block whose first row is `first`, recursively by halves, so that nearly all the work is in matrix
/// products.
fn factor<T: Number>(a: MatMut<'_, T>, first: usize) -> Result<(), ZeroPivot> {
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
    matmul(a11.rb_mut(), Accum::Add, a10.rb(), a01.rb(), -T::one(), Par::Seq);
    factor(a11, first + half)
}

fn factor_small<T: Number>(mut a: MatMut<'_, T>, first: usize) -> Result<(), ZeroPivot> {
    let n = a.nrows();
    // Arrays of fixed length, which the compiler can vectorise.
    let mut columns = [[T::default(); SMALL]; SMALL];
    for (c, column) in columns.iter_mut().enumerate().take(n) {
        for (r, x) in column.iter_mut().enumerate().take(n) {
            *x = a[(r, c)];
        }
    }
    for k in 0..n {
        let pivot = columns[k][k];
        if pivot == T::default() || !pivot.widened().is_finite() {
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
                *x -= *l * upper;
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
