//! The kernels on entries that a [`Tile`](crate::linalg::Tile) need not own.

use super::NotPositiveDefinite;
use crate::linalg::transposed::with_transposed;
use crate::linalg::{Number, TileMut, TileRef};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::{
    LltError, LltParams, LltRegularization, cholesky_in_place, cholesky_in_place_scratch,
};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::{matmul::matmul, triangular_solve};
use faer::{Accum, Auto, MatRef, Par, Spec};
use std::cell::RefCell;

/// From this many rows on, the second operand of a product is first copied transposed.
///
/// faer reads that operand in place, with consecutive entries one column apart: this wastes cache lines, and with 512
/// rows all entries fall into the same cache set. For smaller tiles the copy costs as much as it saves; at 512 rows it
/// nearly doubles the speed (measured).
pub(super) const LARGE: usize = 384;

thread_local! {
    /// Scratch of [`potrf`], and the number of bytes for which it suffices.
    static SCRATCH: RefCell<(usize, MemBuffer)> = RefCell::new((0, MemBuffer::new(StackReq::EMPTY)));
}

/// A := L with A = L·Lᵀ; see [`potrf`](super::potrf).
///
/// # Errors
///
/// [`NotPositiveDefinite`].
///
/// # Panics
///
/// If `a` is not square.
pub fn potrf<T: Number>(mut a: TileMut<'_, T>) -> Result<(), NotPositiveDefinite> {
    let order = a.rows();
    assert_eq!(order, a.cols(), "potrf needs a square tile");
    if order == 0 {
        return Ok(());
    }
    // Measured up to 320 rows: 10 to 33 % faster than with faer's threshold of 64 rows, and no slower beyond.
    let mut settings = Spec::new(<LltParams as Auto<T>>::auto());
    settings.recursion_threshold = 16;
    let needed = cholesky_in_place_scratch::<T>(order, Par::Seq, settings);
    let bytes = needed.unaligned_bytes_required();
    SCRATCH.with_borrow_mut(|(large_enough_for, buffer)| {
        if *large_enough_for < bytes {
            *buffer = MemBuffer::new(needed);
            *large_enough_for = bytes;
        }
        let no_regularization = LltRegularization::default();
        cholesky_in_place(a.view_mut(), no_regularization, Par::Seq, MemStack::new(buffer), settings)
            .map(|_| ())
            .map_err(|LltError::NonPositivePivot { index }| NotPositiveDefinite { row: index })
    })
}

/// B := B·L⁻ᵀ; see [`trsm`](super::trsm).
///
/// # Panics
///
/// If the shapes do not match.
pub fn trsm<T: Number>(l: TileRef<'_, T>, mut b: TileMut<'_, T>) {
    // X·Lᵀ = B is L·Xᵀ = Bᵀ; faer solves it in the transposed view without a copy.
    triangular_solve::solve_lower_triangular_in_place(l.view(), b.view_mut().transpose_mut(), Par::Seq);
}

/// C := C − A·Aᵀ in the lower triangle; see [`syrk`](super::syrk).
///
/// # Panics
///
/// If the shapes do not match.
pub fn syrk<T: Number>(a: TileRef<'_, T>, mut c: TileMut<'_, T>) {
    let mut subtract = |transposed: MatRef<'_, T>| {
        triangular::matmul(
            c.view_mut(),
            BlockStructure::TriangularLower,
            Accum::Add,
            a.view(),
            BlockStructure::Rectangular,
            transposed,
            BlockStructure::Rectangular,
            -T::one(),
            Par::Seq,
        );
    };
    if a.rows() < LARGE {
        subtract(a.view().transpose());
    } else {
        with_transposed(a, |transposed| subtract(transposed));
    }
}

/// C := C − A·Bᵀ; see [`gemm`](super::gemm).
///
/// # Panics
///
/// If the shapes do not match.
pub fn gemm<T: Number>(a: TileRef<'_, T>, b: TileRef<'_, T>, mut c: TileMut<'_, T>) {
    let mut subtract = |transposed: MatRef<'_, T>| {
        matmul(c.view_mut(), Accum::Add, a.view(), transposed, -T::one(), Par::Seq);
    };
    if b.rows() < LARGE {
        subtract(b.view().transpose());
    } else {
        with_transposed(b, |transposed| subtract(transposed));
    }
}
