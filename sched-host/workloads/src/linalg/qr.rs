//! The sequential tiled QR factorisation.

use super::qr_kernels::{Apply, factor_shape, geqrt, tsmqr, tsqrt, unmqr};
use super::residual::frobenius;
use super::{Entries, Norms, QrStep, RandomMatrix, SquareTiles, Tile, Tiling, qr_steps};

/// The tiles of a matrix and of the other data of its QR factorisation: the matrix before, Q and R afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct QrTiles {
    /// The matrix; afterwards R in the upper triangle, and the reflectors of each elimination below the diagonal tiles.
    pub matrix: SquareTiles,
    /// For each panel, the reflectors of its diagonal tile.
    pub panels: Vec<Tile>,
    /// The factors T of the reflectors of each tile on and below the diagonal, in the order of [`Tiling::lower_tiles`].
    pub factors: Vec<Tile>,
}

impl QrTiles {
    /// Takes the tiles of `matrix`, and allocates the rest.
    pub fn new(matrix: SquareTiles) -> Self {
        let tiling = matrix.tiling();
        let panel = |k| Tile::zeros(tiling.size(k), tiling.size(k));
        let factor = |(_, k)| {
            let (rows, cols) = factor_shape(tiling.size(k));
            Tile::zeros(rows, cols)
        };
        let panels = (0..tiling.n_tiles()).map(panel).collect();
        Self { panels, factors: tiling.lower_tiles().map(factor).collect(), matrix }
    }

    /// The tiling of the matrix.
    pub fn tiling(&self) -> Tiling {
        self.matrix.tiling()
    }

    /// Executes one step of the factorisation.
    ///
    /// # Panics
    ///
    /// If the step is not one of [`qr_steps`] for this number of tiles.
    pub fn apply(&mut self, step: QrStep) {
        let tiling = self.tiling();
        let factor = |i, k| tiling.lower_index(i, k);
        match step {
            QrStep::Geqrt { k } => {
                geqrt(self.matrix.tile_mut(k, k), &mut self.panels[k], &mut self.factors[factor(k, k)]);
            }
            QrStep::Unmqr { k, j } => {
                unmqr(&self.panels[k], &self.factors[factor(k, k)], self.matrix.tile_mut(k, j), Apply::Transposed);
            }
            QrStep::Tsqrt { k, i } => {
                let [r, a] = self.matrix.several([(k, k), (i, k)]);
                tsqrt(r, a, &mut self.factors[factor(i, k)]);
            }
            QrStep::Tsmqr { k, i, j } => {
                let [v, c1, c2] = self.matrix.several([(i, k), (k, j), (i, j)]);
                tsmqr(v, &self.factors[factor(i, k)], c1, c2, Apply::Transposed);
            }
        }
    }

    /// Multiplies a column of tiles, one for each row of tiles, from the left by the Q of the first `n_panels` panels,
    /// or by its transpose.
    fn multiply(&self, column: &mut [Tile], n_panels: usize, apply: Apply) {
        let tiling = self.tiling();
        let n = tiling.n_tiles();
        let mut step = |(k, i): (usize, usize)| {
            let factor = &self.factors[tiling.lower_index(i, k)];
            if i == k {
                return unmqr(&self.panels[k], factor, &mut column[k], apply);
            }
            let [c1, c2] = column.get_disjoint_mut([k, i]).expect("i is below k");
            tsmqr(self.matrix.tile(i, k), factor, c1, c2, apply);
        };
        let steps = (0..n_panels).flat_map(|k| (k..n).map(move |i| (k, i)));
        match apply {
            Apply::Transposed => steps.for_each(&mut step),
            Apply::Q => steps.collect::<Vec<_>>().into_iter().rev().for_each(&mut step),
        }
    }
}

/// Replaces the matrix by its QR factorisation, step by step on the calling thread.
pub fn qr_in_place(tiles: &mut QrTiles) {
    qr_steps(tiles.tiling().n_tiles()).for_each(|step| tiles.apply(step));
}

/// The norms of A − Q·R and of A over column j of tiles, to be combined with [`Norms::and`]: ‖A − Q·R‖ / ‖A‖ is the
/// relative residual, which should be at most [`tolerance`](super::tolerance).
///
/// # Panics
///
/// If the orders differ, or there is no such column.
pub fn qr_norms(a: &(impl Entries + ?Sized), factors: &QrTiles, j: usize) -> Norms {
    let tiling = factors.tiling();
    let r = |i: usize| {
        let tile = factors.matrix.tile(i, j);
        Tile::from_fn(tiling.size(i), tiling.size(j), |row, col| match i.cmp(&j) {
            std::cmp::Ordering::Less => tile.get(row, col),
            std::cmp::Ordering::Equal if row <= col => tile.get(row, col),
            _ => 0.0,
        })
    };
    let mut column: Vec<Tile> = (0..tiling.n_tiles()).map(r).collect();
    // The other panels do not change the zeros below row j.
    factors.multiply(&mut column, j + 1, Apply::Q);
    let part = |(i, found): (usize, &mut Tile)| {
        let tile = Tile::of(a, tiling, i, j);
        let matrix = frobenius(&tile);
        found.as_mut_slice().iter_mut().zip(tile.as_slice()).for_each(|(found, a)| *found -= a);
        Norms { residual: frobenius(found), matrix }
    };
    column.iter_mut().enumerate().map(part).fold(Norms::default(), Norms::and)
}

/// Deviation of Q from orthogonality: ‖Qᵀ·(Q·X) − X‖ / ‖X‖ for a fixed X with a few random columns, in the Frobenius
/// norm. It should be at most [`tolerance`](super::tolerance) too.
pub fn orthogonality(factors: &QrTiles) -> f64 {
    const COLUMNS: usize = 8;
    let tiling = factors.tiling();
    let n = tiling.n_tiles();
    let random = RandomMatrix::uniform(tiling.order(), 0);
    let x = |i: usize| {
        let first = tiling.rows(i).start;
        Tile::from_fn(tiling.size(i), COLUMNS.min(tiling.order()), |r, c| random.get(first + r, c))
    };
    let mut column: Vec<Tile> = (0..n).map(x).collect();
    factors.multiply(&mut column, n, Apply::Q);
    factors.multiply(&mut column, n, Apply::Transposed);
    let part = |(i, found): (usize, &mut Tile)| {
        let x = x(i);
        found.as_mut_slice().iter_mut().zip(x.as_slice()).for_each(|(found, x)| *found -= x);
        Norms { residual: frobenius(found), matrix: frobenius(&x) }
    };
    column.iter_mut().enumerate().map(part).fold(Norms::default(), Norms::and).relative()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::{Matrix, tolerance};

    fn factored(a: &impl Entries, tile_size: usize) -> QrTiles {
        let mut tiles = QrTiles::new(SquareTiles::cut(a, tile_size));
        qr_in_place(&mut tiles);
        tiles
    }

    fn residual(a: &impl Entries, factors: &QrTiles) -> f64 {
        (0..factors.tiling().n_tiles()).map(|j| qr_norms(a, factors, j)).fold(Norms::default(), Norms::and).relative()
    }

    fn assert_right(a: &impl Entries, factors: &QrTiles) {
        let (residual, orthogonality) = (residual(a, factors), orthogonality(factors));
        assert!(residual <= tolerance(a.order()), "residual {residual}");
        assert!(orthogonality <= tolerance(a.order()), "orthogonality {orthogonality}");
    }

    /// R by modified Gram-Schmidt, with a nonnegative diagonal: R is unique but for the signs of its rows.
    fn naive_r(a: &impl Entries) -> Vec<Vec<f64>> {
        let n = a.order();
        let mut columns: Vec<Vec<f64>> = (0..n).map(|c| (0..n).map(|r| a.get(r, c)).collect()).collect();
        let mut rows = vec![vec![0.0; n]; n];
        for k in 0..n {
            rows[k][k] = columns[k].iter().map(|x| x * x).sum::<f64>().sqrt();
            let q: Vec<f64> = columns[k].iter().map(|x| x / rows[k][k]).collect();
            for c in k + 1..n {
                rows[k][c] = q.iter().zip(&columns[c]).map(|(q, x)| q * x).sum();
                columns[c].iter_mut().zip(&q).for_each(|(x, q)| *x -= rows[k][c] * q);
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn the_factors_multiply_back_for_every_way_to_cut(order in 0usize..50, tile_size in 5usize..60, seed: u64) {
            let a = RandomMatrix::uniform(order, seed);
            assert_right(&a, &factored(&a, tile_size));
        }

        #[test]
        fn r_is_that_of_the_definition(order in 1usize..50, tile_size in 5usize..60) {
            let a = RandomMatrix::dominant(order, 4);
            let factors = factored(&a, tile_size);
            for (r, row) in naive_r(&a).iter().enumerate() {
                let sign = factors.matrix.get(r, r).signum();
                for (c, expected) in row.iter().enumerate().skip(r) {
                    let found = sign * factors.matrix.get(r, c);
                    prop_assert!((found - expected).abs() <= 1e-9 * order as f64, "{} instead of {}", found, expected);
                }
            }
        }

        #[test]
        fn a_matrix_without_full_rank_is_factored_too(order in 1usize..50, tile_size in 5usize..60, rank in 0usize..5) {
            let (left, right) = (RandomMatrix::uniform(order, 1), RandomMatrix::uniform(order, 2));
            let product = |r: usize, c: usize| (0..rank.min(order)).map(|k| left.get(r, k) * right.get(k, c)).sum();
            let a = Matrix::from_fn(order, product).unwrap();
            assert_right(&a, &factored(&a, tile_size));
        }

        #[test]
        fn a_wrong_entry_shows(order in 2usize..50, tile_size in 5usize..45, row in any::<prop::sample::Index>(), col in any::<prop::sample::Index>()) {
            let a = RandomMatrix::uniform(order, 3);
            let mut factors = factored(&a, tile_size);
            let (r, c) = (row.index(order), col.index(order));
            // The part of a diagonal tile below its diagonal is meaningless.
            prop_assume!(r <= c || r / tile_size > c / tile_size);
            let entry = factors.matrix.get(r, c) + 0.25;
            factors.matrix.tile_mut(r / tile_size, c / tile_size).set(r % tile_size, c % tile_size, entry);
            prop_assert!(residual(&a, &factors).max(orthogonality(&factors)) > tolerance(order));
        }
    }

    #[test]
    fn columns_of_zeros_are_no_trouble() {
        let full = RandomMatrix::uniform(45, 5);
        for zeros in [0..1, 0..40, 35..45, 44..45, 0..45] {
            let a = Matrix::from_fn(45, |r, c| if zeros.contains(&c) { 0.0 } else { full.get(r, c) }).unwrap();
            for tile_size in [7, 20, 45] {
                assert_right(&a, &factored(&a, tile_size));
            }
        }
    }

    #[test]
    fn a_factor_with_a_nan_does_not_pass() {
        let a = RandomMatrix::uniform(20, 9);
        for (r, c) in [(0, 0), (19, 0), (19, 19), (0, 19)] {
            let mut factors = factored(&a, 8);
            factors.matrix.tile_mut(r / 8, c / 8).set(r % 8, c % 8, f64::NAN);
            let passes = residual(&a, &factors) <= tolerance(20);
            assert!(!passes, "({r}, {c})");
        }
    }
}
