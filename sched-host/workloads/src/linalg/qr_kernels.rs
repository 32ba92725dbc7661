//! The kernels of the tiled QR factorisation, each on whole tiles and on the calling thread only. None of them
//! allocates in the steady state.
//!
//! Reflectors are grouped in blocks of [`INNER`]: the product of a block's reflectors is I − V·T⁻¹·Vᵀ, with T upper
//! triangular. A tile of T has a block of columns for each block of reflectors.

pub(crate) mod on_views;

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
    on_views::geqrt(a.entries_mut(), v.entries_mut(), t.entries_mut());
}

/// C := Qᵀ·C or Q·C, with the reflectors that [`geqrt`] stored in `v` and `t`.
///
/// # Panics
///
/// If the shapes do not match: `c` has as many rows as `v`.
pub fn unmqr(v: &Tile, t: &Tile, c: &mut Tile, apply: Apply) {
    on_views::unmqr(v.entries(), t.entries(), c.entries_mut(), apply);
}

/// (R; A) := (R'; V) with (R; A) = Q·(R'; 0), where R is upper triangular: the QR factorisation of a square tile, of
/// which only the upper triangle is read and written, stacked on another one. The reflectors are (I; V), and their
/// factor is stored in `t`.
///
/// # Panics
///
/// If the shapes do not match: `r` is n×n, `a` has n columns, and `t` has the [`factor_shape`] of n.
pub fn tsqrt(r: &mut Tile, a: &mut Tile, t: &mut Tile) {
    on_views::tsqrt(r.entries_mut(), a.entries_mut(), t.entries_mut());
}

/// (C₁; C₂) := Qᵀ·(C₁; C₂) or Q·(C₁; C₂), with the reflectors that [`tsqrt`] stored in `v` and `t`.
///
/// # Panics
///
/// If the shapes do not match: `c1` has as many rows as `v` columns, `c2` as many rows as `v`, and both as many
/// columns.
pub fn tsmqr(v: &Tile, t: &Tile, c1: &mut Tile, c2: &mut Tile, apply: Apply) {
    on_views::tsmqr(v.entries(), t.entries(), c1.entries_mut(), c2.entries_mut(), apply);
}
