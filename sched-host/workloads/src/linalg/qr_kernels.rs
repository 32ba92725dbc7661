//! The kernels of the tiled QR factorisation, each on whole tiles and on the calling thread only. None of them
//! allocates in the steady state.
//!
//! Reflectors are grouped in blocks of [`INNER`]: the product of a block's reflectors is I − V·T⁻¹·Vᵀ, with T upper
//! triangular. A tile of T has a block of columns for each block of reflectors.

use std::cell::RefCell;

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

use super::Tile;

/// Number of reflectors in a block. Larger blocks mean longer products and more redundant work.
pub const INNER: usize = 32;

/// The direction in which reflectors are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apply {
    /// C := Q·C.
    Q,
    /// C := Qᵀ·C.
    Transposed,
}

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

/// Shape of the tile T for `n` reflectors.
pub fn factor_shape(n: usize) -> (usize, usize) {
    (n.clamp(1, INNER), n)
}

/// A := R with A = Q·R for a square tile: R overwrites the upper triangle, and the part below becomes meaningless. Q is
/// stored as the reflectors, in `v` below the diagonal, and `t`.
///
/// # Panics
///
/// If `a` is not square, `v` has another shape, or `t` does not have that of [`factor_shape`].
pub fn geqrt(a: &mut Tile, v: &mut Tile, t: &mut Tile) {
    let n = a.rows();
    assert_eq!((n, n), (a.cols(), v.cols()), "geqrt needs square tiles");
    assert_eq!((t.rows(), t.cols()), factor_shape(n), "shape of T");
    if n == 0 {
        return;
    }
    let needed = qr_in_place_scratch::<f64>(n, n, t.rows(), Par::Seq, Default::default());
    with_scratch(needed, |stack| qr_in_place(a.view_mut(), t.view_mut(), Par::Seq, stack, Default::default()));
    v.as_mut_slice().copy_from_slice(a.as_slice());
}

/// C := Qᵀ·C or Q·C, with the reflectors that [`geqrt`] stored in `v` and `t`.
///
/// # Panics
///
/// If the shapes do not match: `c` has as many rows as `v`.
pub fn unmqr(v: &Tile, t: &Tile, c: &mut Tile, apply: Apply) {
    assert_eq!(v.rows(), c.rows(), "rows of V and C");
    if v.rows() == 0 {
        return;
    }
    with_scratch(apply_scratch::<f64>(v.rows(), t.rows(), c.cols()), |stack| match apply {
        Apply::Q => apply_sequence(v.view(), t.view(), Conj::No, c.view_mut(), Par::Seq, stack),
        Apply::Transposed => apply_sequence_transposed(v.view(), t.view(), Conj::No, c.view_mut(), Par::Seq, stack),
    });
}

/// (R; A) := (R'; V) with (R; A) = Q·(R'; 0), where R is upper triangular: the QR factorisation of a square tile, of
/// which only the upper triangle is read and written, stacked on another one. The reflectors are (I; V), and their
/// factor is stored in `t`.
///
/// # Panics
///
/// If the shapes do not match: `r` is n×n, `a` has n columns, and `t` has the [`factor_shape`] of n.
pub fn tsqrt(r: &mut Tile, a: &mut Tile, t: &mut Tile) {
    let n = r.cols();
    assert_eq!((n, n), (r.rows(), a.cols()), "shapes of R and A");
    assert_eq!((t.rows(), t.cols()), factor_shape(n), "shape of T");
    for first in (0..n).step_by(INNER) {
        let width = INNER.min(n - first);
        let end = first + width;
        for c in first..end {
            reflect(r, a, t, first, c, end);
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
            1.0,
            Par::Seq,
        );
        let top = r.view_mut().submatrix_mut(first, end, width, n - end);
        apply_block(v, t.rb(), top, behind.rb_mut(), Apply::Transposed);
    }
}

/// Computes the reflector of column `c`, and applies it to the columns after it, up to `end`.
fn reflect(r: &mut Tile, a: &mut Tile, t: &mut Tile, first: usize, c: usize, end: usize) {
    let mut head = r.get(c, c);
    let (done, mut behind) = a.view_mut().split_at_col_mut(c + 1);
    let mut v = done.col_mut(c);
    let tau = make_householder_in_place(&mut head, v.rb_mut()).tau;
    r.set(c, c, head);
    t.set(c - first, c, tau);
    // An infinite value means that the column is already zero: the reflector is the identity.
    if tau.is_infinite() {
        return;
    }
    let v = v.try_as_col_major().expect("columns of tiles are contiguous").as_slice();
    for j in c + 1..end {
        let column = behind.rb_mut().col_mut(j - c - 1);
        let column = column.try_as_col_major_mut().expect("columns of tiles are contiguous").as_slice_mut();
        let factor = (r.get(c, j) + dot(v, column)) / tau;
        r.set(c, j, r.get(c, j) - factor);
        column.iter_mut().zip(v).for_each(|(x, v)| *x -= factor * v);
    }
}

/// The dot product of two vectors, in several partial sums that the compiler can keep in vector registers.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (a_lines, a_rest) = a.as_chunks::<LANES>();
    let (b_lines, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_lines.iter().zip(b_lines) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// (C₁; C₂) := Qᵀ·(C₁; C₂) or Q·(C₁; C₂), with the reflectors that [`tsqrt`] stored in `v` and `t`.
///
/// # Panics
///
/// If the shapes do not match: `c1` has as many rows as `v` columns, `c2` as many rows as `v`, and both as many
/// columns.
pub fn tsmqr(v: &Tile, t: &Tile, c1: &mut Tile, c2: &mut Tile, apply: Apply) {
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
fn apply_block(v: MatRef<'_, f64>, t: MatRef<'_, f64>, mut c1: MatMut<'_, f64>, mut c2: MatMut<'_, f64>, apply: Apply) {
    let (width, cols) = (c1.nrows(), c1.ncols());
    PRODUCT.with_borrow_mut(|memory| {
        if memory.len() < width * cols {
            memory.resize(width * cols, 0.0);
        }
        let mut product = MatMut::from_column_major_slice_mut(&mut memory[..width * cols], width, cols);
        product.copy_from(c1.rb());
        matmul(product.rb_mut(), Accum::Add, v.transpose(), c2.rb(), 1.0, Par::Seq);
        match apply {
            Apply::Q => triangular_solve::solve_upper_triangular_in_place(t, product.rb_mut(), Par::Seq),
            Apply::Transposed => {
                triangular_solve::solve_lower_triangular_in_place(t.transpose(), product.rb_mut(), Par::Seq);
            }
        }
        c1 -= product.rb();
        matmul(c2.rb_mut(), Accum::Add, v, product.rb(), -1.0, Par::Seq);
    });
}
