//! Residuals of factorisations, and of Cholesky factors in particular.

use super::{Entries, LowerTiles, Tile};
use std::f64::consts::FRAC_1_SQRT_2;

/// Frobenius norms of a part of the residual, such as A − L·Lᵀ, and of the same part of A. [`Norms::and`] combines
/// parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Norms {
    /// ‖A − L·Lᵀ‖ over the part.
    pub residual: f64,
    /// ‖A‖ over the part.
    pub matrix: f64,
}

impl Norms {
    /// Combines the norms of two parts.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        // `hypot` avoids intermediate overflow and underflow.
        Self { residual: self.residual.hypot(other.residual), matrix: self.matrix.hypot(other.matrix) }
    }

    /// ‖A − L·Lᵀ‖ / ‖A‖; zero if both are zero, and NaN if the factor contains one.
    pub fn relative(self) -> f64 {
        if self.residual == 0.0 { 0.0 } else { self.residual / self.matrix }
    }
}

/// The relative residual ‖A − L·Lᵀ‖ / ‖A‖ in the Frobenius norm, where `l` is the Cholesky factor.
///
/// Only lower triangles are computed (n³/3 operations); an entry below the diagonal counts twice, for its mirror image.
/// If `l` contains an infinity or a NaN, so does the result, and the comparison `residual(…) <= tolerance(…)` is false.
///
/// # Panics
///
/// If the orders differ.
pub fn residual(a: &(impl Entries + ?Sized), l: &LowerTiles) -> f64 {
    assert_eq!(a.order(), l.tiling().order(), "orders of A and L");
    l.tiling().lower_tiles().map(|(i, j)| tile_norms(a, l, i, j)).fold(Norms::default(), Norms::and).relative()
}

/// The norms over tile (i, j) and, off the diagonal, its mirror image: the parts of [`residual`], for computing them in
/// parallel.
///
/// # Panics
///
/// If the orders differ, or the tile lies above the diagonal or outside the matrix.
pub fn tile_norms(a: &(impl Entries + ?Sized), l: &LowerTiles, i: usize, j: usize) -> Norms {
    let tiling = l.tiling();
    assert_eq!(a.order(), tiling.order(), "orders of A and L");
    let mut tile = Tile::of(a, tiling, i, j);
    let on_diagonal = i == j;
    let matrix = symmetric_norm(&tile, on_diagonal);
    l.subtract_square(i, j, &mut tile);
    Norms { residual: symmetric_norm(&tile, on_diagonal), matrix }
}

/// Upper bound of the relative residual of a correct factorisation of order n: 15·n·ε with ε = 2⁻⁵².
///
/// The computed factor of a positive definite matrix satisfies L·Lᵀ = A + ΔA with |ΔA| ≤ γₙ₊₁·|L|·|Lᵀ|, where γₙ =
/// n·u/(1 − n·u) and u = ε/2 (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition, theorem 10.3), in
/// whatever order the sums are formed and therefore also with tiles. Because ‖|L|·|Lᵀ|‖ ≤ ‖L‖² = trace(L·Lᵀ) ≤
/// √n·‖L·Lᵀ‖, the relative residual is at most about n^1.5·u; rounding errors partly cancel, so that it is usually
/// closer to u. The bound used here is that of LAPACK's own tests of `xPOTRF`, `xGETRF` and `xGEQRF` (a ratio of 30 to
/// n·u): far above correct results and far below those of a lost or repeated update.
pub fn tolerance(order: usize) -> f64 {
    15.0 * order as f64 * f64::EPSILON
}

/// Frobenius norm of a tile.
pub(super) fn frobenius(tile: &Tile) -> f64 {
    // `symmetric_norm` counts off-diagonal tiles twice.
    symmetric_norm(tile, false) * FRAC_1_SQRT_2
}

/// Frobenius norm of the symmetric part of a matrix that a tile represents: a diagonal tile represents itself, given by
/// its lower triangle; any other represents itself and its mirror image.
fn symmetric_norm(tile: &Tile, on_diagonal: bool) -> f64 {
    let weighted_squares = |scale: f64| -> f64 {
        let squares = |column: &[f64]| column.iter().map(|x| (x * scale).powi(2)).sum::<f64>();
        let below_and_on = |c: usize| {
            let column = tile.column(c);
            if on_diagonal {
                2.0 * squares(&column[c + 1..]) + (column[c] * scale).powi(2)
            } else {
                2.0 * squares(column)
            }
        };
        (0..tile.cols()).map(below_and_on).sum()
    };
    let sum = weighted_squares(1.0);
    if sum.is_normal() || sum.is_nan() {
        return sum.sqrt();
    }
    // The squares overflowed or underflowed: repeat relative to the largest entry (rare, so the plain sum is tried
    // first).
    let entries = (0..tile.cols()).flat_map(|c| &tile.column(c)[if on_diagonal { c } else { 0 }..]);
    let largest = entries.fold(0.0_f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    // A power of two scales exactly, and within these bounds so does its reciprocal.
    let exponent = largest.log2().floor().clamp(-1000.0, 1000.0);
    let scale = (-exponent).exp2();
    weighted_squares(scale).sqrt() / scale
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::{RandomSpd, SymmetricMatrix, cholesky_in_place};

    fn factored(a: &impl Entries, tile_size: usize) -> LowerTiles {
        let mut l = LowerTiles::cut(a, tile_size);
        cholesky_in_place(&mut l).expect("the matrix is positive definite");
        l
    }

    /// The relative residual by its definition, over all n² entries.
    fn naive(a: &(impl Entries + ?Sized), l: &LowerTiles) -> f64 {
        let n = a.order();
        let (mut residual, mut matrix) = (0.0, 0.0);
        for r in 0..n {
            for c in 0..n {
                let product: f64 = (0..n).map(|k| l.lower_entry(r, k) * l.lower_entry(c, k)).sum();
                residual += (a.get(r, c) - product).powi(2);
                matrix += a.get(r, c).powi(2);
            }
        }
        (residual / matrix).sqrt()
    }

    proptest! {
        #[test]
        fn it_is_the_residual_of_the_definition(order in 1usize..40, size in 1usize..45, row in any::<prop::sample::Index>(), col in any::<prop::sample::Index>()) {
            let a = RandomSpd::new(order, 3);
            let mut l = factored(&a, size);
            let (r, c) = (row.index(order), col.index(order));
            let (r, c) = (r.max(c), r.min(c));
            let entry = l.lower_entry(r, c) + 0.25;
            l.tile_mut(r / size, c / size).set(r % size, c % size, entry);
            let (found, expected) = (residual(&a, &l), naive(&a, &l));
            prop_assert!((found - expected).abs() <= 1e-12, "{} instead of {}", found, expected);
            prop_assert!(found > tolerance(order));
        }
    }

    #[test]
    fn a_slightly_wrong_entry_is_noticed() {
        let a = RandomSpd::new(500, 9);
        let mut l = factored(&a, 64);
        assert!(residual(&a, &l) <= tolerance(500));
        let entry = l.lower_entry(499, 0);
        l.tile_mut(7, 0).set(499 % 64, 0, entry + 1e-6);
        assert!(residual(&a, &l) > tolerance(500));
    }

    #[test]
    fn a_factor_with_a_nan_does_not_pass() {
        let a = RandomSpd::new(20, 9);
        for bad in [f64::NAN, f64::INFINITY] {
            for (r, c) in [(0, 0), (19, 0), (19, 19), (10, 9)] {
                let mut l = factored(&a, 8);
                l.tile_mut(r / 8, c / 8).set(r % 8, c % 8, bad);
                let passes = residual(&a, &l) <= tolerance(20);
                assert!(!passes, "{bad} at ({r}, {c})");
            }
        }
    }

    #[test]
    fn tiny_and_huge_numbers_do_not_leave_the_range() {
        for scale in [1e-300, 1e-160, 1e160, 1e300] {
            let spd = RandomSpd::new(30, 5);
            let a = SymmetricMatrix::from_lower(30, |r, c| spd.get(r, c) * scale).unwrap();
            let l = factored(&a, 8);
            let found = residual(&a, &l);
            assert!(found <= tolerance(30), "{found} at scale {scale}");
            let wrong = LowerTiles::cut(&RandomSpd::new(30, 6), 8);
            assert!(residual(&a, &wrong) > tolerance(30));
        }
    }
}
