//! The kernels on entries that a [`Tile`](crate::linalg::Tile) need not own.

use super::{Apply, INNER, factor_shape};
use crate::linalg::{Number, TileMut, TileRef};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply_sequence,
    apply_block_householder_sequence_transpose_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj as apply_sequence_transposed,
    make_householder_in_place,
};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch};
use faer::linalg::{matmul::matmul, triangular_solve};
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Accum, Conj, MatMut, MatRef, Par};
use std::cell::RefCell;

thread_local! {
    /// Scratch of faer's functions and of [`apply_pair`]; it only grows.
    static SCRATCH: RefCell<(usize, MemBuffer)> = RefCell::new((0, MemBuffer::new(StackReq::EMPTY)));
    static PRODUCT: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// Calls `use_it` with scratch memory of this thread.
fn with_scratch<R>(needed: StackReq, use_it: impl FnOnce(&mut MemStack) -> R) -> R {
    let bytes = needed.unaligned_bytes_required();
    SCRATCH.with_borrow_mut(|(large_enough_for, buffer)| {
        if *large_enough_for < bytes {
            *buffer = MemBuffer::new(needed);
            *large_enough_for = bytes;
        }
        use_it(MemStack::new(buffer))
    })
}

/// A := R with A = Q·R; see [`geqrt`](super::geqrt).
pub(crate) fn geqrt<T: Number>(mut a: TileMut<'_, T>, mut v: TileMut<'_, T>, mut t: TileMut<'_, T>) {
    let n = a.rows();
    assert_eq!((n, n), (a.cols(), v.cols()), "geqrt needs square tiles");
    assert_eq!((t.rows(), t.cols()), factor_shape(n), "shape of T");
    if n == 0 {
        return;
    }
    let needed = qr_in_place_scratch::<T>(n, n, t.rows(), Par::Seq, Default::default());
    with_scratch(needed, |stack| qr_in_place(a.view_mut(), t.view_mut(), Par::Seq, stack, Default::default()));
    v.as_mut_slice().copy_from_slice(a.entries().as_slice());
}

/// C := Qᵀ·C or Q·C; see [`unmqr`](super::unmqr).
pub(crate) fn unmqr<T: Number>(v: TileRef<'_, T>, t: TileRef<'_, T>, mut c: TileMut<'_, T>, apply: Apply) {
    assert_eq!(v.rows(), c.rows(), "rows of V and C");
    if v.rows() == 0 {
        return;
    }
    with_scratch(apply_scratch::<T>(v.rows(), t.rows(), c.cols()), |stack| match apply {
        Apply::Q => apply_sequence(v.view(), t.view(), Conj::No, c.view_mut(), Par::Seq, stack),
        Apply::Transposed => apply_sequence_transposed(v.view(), t.view(), Conj::No, c.view_mut(), Par::Seq, stack),
    });
}

/// (R; A) := (R'; V); see [`tsqrt`](super::tsqrt).
pub(crate) fn tsqrt<T: Number>(mut r: TileMut<'_, T>, mut a: TileMut<'_, T>, mut t: TileMut<'_, T>) {
    let n = r.cols();
    assert_eq!((n, n), (r.rows(), a.cols()), "shapes of R and A");
    assert_eq!((t.rows(), t.cols()), factor_shape(n), "shape of T");
    for first in (0..n).step_by(INNER) {
        let width = INNER.min(n - first);
        let end = first + width;
        for c in first..end {
            reflect(&mut r, &mut a, &mut t, first, c, end);
        }
        // T + Tᵀ = (I; V)ᵀ·(I; V), whose diagonal is already computed.
        let (done, mut behind) = a.view_mut().split_at_col_mut(end);
        let v = done.rb().subcols(first, width);
        let mut t = t.view_mut().submatrix_mut(0, first, width, width);
        triangular::matmul(
            t.rb_mut(),
            BlockStructure::StrictTriangularUpper,
            Accum::Replace,
            v.transpose(),
            BlockStructure::Rectangular,
            v,
            BlockStructure::Rectangular,
            T::one(),
            Par::Seq,
        );
        let top = r.view_mut().submatrix_mut(first, end, width, n - end);
        apply_block(v, t.rb(), top, behind.rb_mut(), Apply::Transposed);
    }
}

/// Computes the reflector of column `c`, and applies it to the columns after it, up to `end`.
fn reflect<T: Number>(
    r: &mut TileMut<'_, T>,
    a: &mut TileMut<'_, T>,
    t: &mut TileMut<'_, T>,
    first: usize,
    c: usize,
    end: usize,
) {
    let mut head = r.get(c, c);
    let (done, mut behind) = a.view_mut().split_at_col_mut(c + 1);
    let mut v = done.col_mut(c);
    let tau = make_householder_in_place(&mut head, v.rb_mut()).tau;
    r.set(c, c, head);
    t.set(c - first, c, tau);
    // An infinite value means that the column is already zero: the reflector is the identity.
    if tau.widened().is_infinite() {
        return;
    }
    let v = v.try_as_col_major().expect("columns of tiles are contiguous").as_slice();
    for j in c + 1..end {
        let column = behind.rb_mut().col_mut(j - c - 1);
        let column = column.try_as_col_major_mut().expect("columns of tiles are contiguous").as_slice_mut();
        let factor = (r.get(c, j) + dot(v, column)) / tau;
        r.set(c, j, r.get(c, j) - factor);
        column.iter_mut().zip(v).for_each(|(x, v)| *x -= factor * *v);
    }
}

/// The dot product of two vectors, in several partial sums that the compiler can keep in vector registers.
fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 16;
    let mut sums = [T::default(); LANES];
    let (a_lines, a_rest) = a.as_chunks::<LANES>();
    let (b_lines, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_lines.iter().zip(b_lines) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += *a * *b;
        }
    }
    let rest = a_rest.iter().zip(b_rest).fold(T::default(), |sum, (a, b)| sum + *a * *b);
    sums.iter().fold(T::default(), |sum, part| sum + *part) + rest
}

/// (C₁; C₂) := Qᵀ·(C₁; C₂) or Q·(C₁; C₂); see [`tsmqr`](super::tsmqr).
pub(crate) fn tsmqr<T: Number>(
    v: TileRef<'_, T>,
    t: TileRef<'_, T>,
    mut c1: TileMut<'_, T>,
    mut c2: TileMut<'_, T>,
    apply: Apply,
) {
    let n = v.cols();
    assert_eq!((n, v.rows()), (c1.rows(), c2.rows()), "rows of the tiles");
    assert_eq!(c1.cols(), c2.cols(), "columns of the tiles");
    let mut block = |first: usize| {
        let width = INNER.min(n - first);
        let top = c1.view_mut().subrows_mut(first, width);
        let (v, t) = (v.view().subcols(first, width), t.view().submatrix(0, first, width, width));
        apply_block(v, t, top, c2.view_mut(), apply);
    };
    match apply {
        Apply::Transposed => (0..n).step_by(INNER).for_each(&mut block),
        Apply::Q => (0..n).step_by(INNER).rev().for_each(&mut block),
    }
}

/// Applies one block of reflectors (I; V) with the factor T.
fn apply_block<T: Number>(
    v: MatRef<'_, T>,
    t: MatRef<'_, T>,
    mut c1: MatMut<'_, T>,
    mut c2: MatMut<'_, T>,
    apply: Apply,
) {
    let (width, cols) = (c1.nrows(), c1.ncols());
    PRODUCT.with_borrow_mut(|memory| {
        if memory.len() < width * cols {
            memory.resize(width * cols, 0.0);
        }
        let of_type: &mut [T] = bytemuck::cast_slice_mut(memory);
        let mut product = MatMut::from_column_major_slice_mut(&mut of_type[..width * cols], width, cols);
        product.copy_from(c1.rb());
        matmul(product.rb_mut(), Accum::Add, v.transpose(), c2.rb(), T::one(), Par::Seq);
        match apply {
            Apply::Q => triangular_solve::solve_upper_triangular_in_place(t, product.rb_mut(), Par::Seq),
            Apply::Transposed => {
                triangular_solve::solve_lower_triangular_in_place(t.transpose(), product.rb_mut(), Par::Seq);
            }
        }
        c1 -= product.rb();
        matmul(c2.rb_mut(), Accum::Add, v, product.rb(), -T::one(), Par::Seq);
    });
}
