//! The sequential tiled LU factorisation without pivoting.

use super::lu_kernels::{gemm_nn, getrf, subtract_product, trsm_column, trsm_row};
use super::residual::frobenius;
use super::{Entries, LuStep, Norms, SquareTiles, Tile, Tiling, ZeroPivot, lu_steps};

/// A matrix that has no LU factorisation without pivoting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the matrix has no LU factorisation without pivoting: the pivot in row {row} is zero, or not finite, once the rows above are eliminated"
)]
pub struct NoLuFactors {
    /// Row of the whole matrix, from 1.
    pub row: usize,
}

impl NoLuFactors {
    /// Translates a failed [`LuStep::Getrf`] of tile (k, k) to the whole matrix.
    pub fn new(tiling: Tiling, k: usize, in_tile: ZeroPivot) -> Self {
        Self { row: tiling.rows(k).start + in_tile.row + 1 }
    }
}

/// Replaces the matrix by its factors, step by step on the calling thread: U in the upper triangle, and L, whose
/// diagonal is 1, below it.
///
/// # Errors
///
/// [`NoLuFactors`] if a pivot is zero or not finite; the matrix is then partly overwritten.
pub fn lu_in_place(matrix: &mut SquareTiles) -> Result<(), NoLuFactors> {
    let tiling = matrix.tiling();
    for step in lu_steps(tiling.n_tiles()) {
        match step {
            LuStep::Getrf { k } => getrf(matrix.tile_mut(k, k)).map_err(|found| NoLuFactors::new(tiling, k, found))?,
            LuStep::TrsmRow { k, j } => {
                let [l, b] = matrix.several([(k, k), (k, j)]);
                trsm_row(l, b);
            }
            LuStep::TrsmColumn { k, i } => {
                let [u, b] = matrix.several([(k, k), (i, k)]);
                trsm_column(u, b);
            }
            LuStep::Gemm { k, i, j } => {
                let [a, b, c] = matrix.several([(i, k), (k, j), (i, j)]);
                gemm_nn(a, b, c);
            }
        }
    }
    Ok(())
}

/// The norms of A − L·U and of A over tile (i, j), to be combined with [`Norms::and`]: ‖A − L·U‖ / ‖A‖ is the relative
/// residual, which should be at most [`tolerance`](super::tolerance) if the diagonal of A dominates.
///
/// # Panics
///
/// If the orders differ, or there is no such tile.
pub fn lu_norms(a: &(impl Entries + ?Sized), factors: &SquareTiles, i: usize, j: usize) -> Norms {
    let mut tile = Tile::of(a, factors.tiling(), i, j);
    let matrix = frobenius(&tile);
    let last = i.min(j);
    for k in 0..last {
        gemm_nn(factors.tile(i, k), factors.tile(k, j), &mut tile);
    }
    subtract_product(factors.tile(i, last), i == last, factors.tile(last, j), j == last, &mut tile);
    Norms { residual: frobenius(&tile), matrix }
}

/// A row that its diagonal entry does not dominate, in a matrix with a column that is not dominated either.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "the diagonal does not dominate the matrix: in row {row} it is {diagonal:.3e}, and the other entries sum up to {others:.3e} (absolute values)"
)]
pub struct NotDominant {
    /// Its number, from 1.
    pub row: usize,
    /// Absolute value of its diagonal entry.
    pub diagonal: f64,
    /// The sum of the absolute values of its other entries.
    pub others: f64,
}

/// Checks that the diagonal dominates every row, or every column: an LU factorisation without pivoting then succeeds,
/// and is as accurate as one with pivoting. Reads every entry.
///
/// # Errors
///
/// [`NotDominant`] with the first row that is not dominated.
pub fn check_dominance(matrix: &(impl Entries + ?Sized)) -> Result<(), NotDominant> {
    let n = matrix.order();
    let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; n]);
    for (c, column) in columns.iter_mut().enumerate() {
        for (r, row) in rows.iter_mut().enumerate().filter(|(r, _)| *r != c) {
            let size = matrix.get(r, c).abs();
            *row += size;
            *column += size;
        }
    }
    let diagonal = |d: usize| matrix.get(d, d).abs();
    if (0..n).all(|c| diagonal(c) > columns[c]) {
        return Ok(());
    }
    match (0..n).find(|&r| diagonal(r) <= rows[r]) {
        Some(r) => Err(NotDominant { row: r + 1, diagonal: diagonal(r), others: rows[r] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::{Matrix, RandomMatrix, tolerance};

    fn residual(a: &impl Entries, factors: &SquareTiles) -> f64 {
        factors
            .tiling()
            .square_tiles()
            .map(|(i, j)| lu_norms(a, factors, i, j))
            .fold(Norms::default(), Norms::and)
            .relative()
    }

    /// The relative residual by its definition, entry by entry.
    fn naive(a: &impl Entries, factors: &SquareTiles) -> f64 {
        let n = a.order();
        let lower = |r: usize, c: usize| if r == c { 1.0 } else { factors.get(r, c) };
        let (mut residual, mut matrix) = (0.0, 0.0);
        for (r, c) in (0..n).flat_map(|r| (0..n).map(move |c| (r, c))) {
            let product: f64 = (0..=r.min(c)).map(|k| lower(r, k) * factors.get(k, c)).sum();
            residual += (a.get(r, c) - product).powi(2);
            matrix += a.get(r, c).powi(2);
        }
        (residual / matrix).sqrt()
    }

    proptest! {
        #[test]
        fn the_factors_multiply_back_for_every_way_to_cut(order in 0usize..70, tile_size in 1usize..80, seed: u64) {
            let a = RandomMatrix::dominant(order, seed);
            let mut factors = SquareTiles::cut(&a, tile_size);
            lu_in_place(&mut factors).expect("the diagonal dominates");
            let found = residual(&a, &factors);
            prop_assert!(found <= tolerance(order), "residual {}", found);
        }

        #[test]
        fn a_wrong_entry_shows_in_the_residual(order in 1usize..40, tile_size in 1usize..45, row in any::<prop::sample::Index>(), col in any::<prop::sample::Index>()) {
            let a = RandomMatrix::dominant(order, 3);
            let mut factors = SquareTiles::cut(&a, tile_size);
            lu_in_place(&mut factors).expect("the diagonal dominates");
            let (r, c) = (row.index(order), col.index(order));
            let entry = factors.get(r, c) + 0.25;
            factors.tile_mut(r / tile_size, c / tile_size).set(r % tile_size, c % tile_size, entry);
            let (found, expected) = (residual(&a, &factors), naive(&a, &factors));
            prop_assert!((found - expected).abs() <= 1e-12 && found > tolerance(order), "{} instead of {}", found, expected);
        }

        #[test]
        fn a_bad_pivot_is_named_by_its_row_in_the_matrix(order in 1usize..60, tile_size in 1usize..70, at in any::<prop::sample::Index>()) {
            let bad = at.index(order);
            // Nothing is eliminated before the bad row, so its pivot is exactly the given entry.
            let a = Matrix::from_fn(order, |r, c| match r == c {
                true => if r == bad { 0.0 } else { 2.0 },
                false => if r.min(c) < bad { 0.0 } else { 0.5 },
            }).unwrap();
            let result = lu_in_place(&mut SquareTiles::cut(&a, tile_size));
            prop_assert_eq!(result, Err(NoLuFactors { row: bad + 1 }));
        }
    }

    #[test]
    fn dominance_is_by_rows_or_by_columns() {
        let a = |text: [[f64; 2]; 2]| Matrix::from_fn(2, |r, c| text[r][c]).unwrap();
        assert_eq!(check_dominance(&a([[2.0, 1.0], [-3.0, 4.0]])), Ok(()));
        assert_eq!(check_dominance(&a([[4.0, -3.0], [1.0, 4.0]])), Ok(()));
        let error = check_dominance(&a([[1.0, 3.0], [5.0, 1.0]])).expect_err("no diagonal entry is large");
        insta::assert_snapshot!(error, @"the diagonal does not dominate the matrix: in row 1 it is 1.000e0, and the other entries sum up to 3.000e0 (absolute values)");
        assert_eq!(check_dominance(&RandomMatrix::dominant(50, 1)), Ok(()));
        assert!(check_dominance(&RandomMatrix::uniform(50, 1)).is_err());
    }
}
