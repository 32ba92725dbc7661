//! The tiled QR factorisation as a list of steps, and run one step after the other.
//!
//! It is that of Buttari, Langou, Kurzak and Dongarra, "A class of parallel tiled linear algebra algorithms for multicore
//! architectures", Parallel Computing 35 (2009), with its flat tree: the tiles of a panel go into its diagonal tile one by one.

use super::qr_kernels::{Apply, factor_shape, geqrt, tsmqr, tsqrt, unmqr};
use super::residual::frobenius;
use super::{Entries, Norms, RandomMatrix, SquareTiles, Tile, Tiling};

/// One kernel on named tiles. Indices count tiles, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QrStep {
    /// Factors tile (k, k).
    Geqrt {
        /// Tile row and column.
        k: usize,
    },
    /// Applies what Geqrt did to tile (k, j); j > k.
    Unmqr {
        /// Tile row.
        k: usize,
        /// Tile column.
        j: usize,
    },
    /// Eliminates tile (i, k) with the upper triangle of tile (k, k); i > k.
    Tsqrt {
        /// Tile column.
        k: usize,
        /// Tile row.
        i: usize,
    },
    /// Applies what Tsqrt did to tiles (k, j) and (i, j); i, j > k.
    Tsmqr {
        /// Tile row of the first tile.
        k: usize,
        /// Tile row of the second one.
        i: usize,
        /// Tile column of both.
        j: usize,
    },
}

impl QrStep {
    /// The panel k, and the row and the column of the last tile that the step writes.
    fn place(&self) -> (usize, usize, usize) {
        match *self {
            Self::Geqrt { k } => (k, k, k),
            Self::Unmqr { k, j } => (k, k, j),
            Self::Tsqrt { k, i } => (k, i, k),
            Self::Tsmqr { k, i, j } => (k, i, j),
        }
    }

    /// How urgent the step is: the number of steps on the longest chain of dependent steps that begins with it (its *bottom
    /// level* with steps of equal length). It is 3·(N − 1) + 1 less the step's panel, tile row and tile column, with N rows of
    /// tiles: a step is always more urgent than those that wait for it, and the last one has 1.
    pub fn priority(&self, n_tiles: usize) -> usize {
        let (k, i, j) = self.place();
        (3 * n_tiles).saturating_sub(2 + k + i + j)
    }
}

/// The steps of a QR factorisation of `n_tiles`×`n_tiles` tiles, in the order of submission: for each panel k, the factors of
/// its diagonal tile and what they do to the tiles right of it; then for each tile below, its elimination and what that does
/// to the two rows. They are N·(N + 1)·(2·N + 1)/6 for N rows of tiles.
///
/// ```
/// use sched_host::linalg::{QrStep::*, qr_steps};
/// let steps: Vec<_> = qr_steps(2).collect();
/// let update = Tsmqr { k: 0, i: 1, j: 1 };
/// assert_eq!(steps, [Geqrt { k: 0 }, Unmqr { k: 0, j: 1 }, Tsqrt { k: 0, i: 1 }, update, Geqrt { k: 1 }]);
/// assert_eq!(qr_steps(16).count(), 16 * 17 * 33 / 6);
/// ```
pub fn qr_steps(n_tiles: usize) -> impl Iterator<Item = QrStep> + Clone {
    (0..n_tiles).flat_map(move |k| {
        let behind = k + 1..n_tiles;
        let rows = behind.clone().map(move |j| QrStep::Unmqr { k, j });
        let rest = behind.clone().flat_map(move |i| {
            let updates = behind.clone().map(move |j| QrStep::Tsmqr { k, i, j });
            std::iter::once(QrStep::Tsqrt { k, i }).chain(updates)
        });
        std::iter::once(QrStep::Geqrt { k }).chain(rows).chain(rest)
    })
}

/// The tiles of a matrix and of what its QR factorisation needs beside: the matrix before, Q and R afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct QrTiles {
    /// The matrix; then R in the upper triangle, and the reflectors of each elimination below the diagonal tiles.
    pub matrix: SquareTiles,
    /// For each panel, the reflectors of its diagonal tile.
    pub panels: Vec<Tile>,
    /// The factors of the reflectors of each tile on the diagonal and below, in the order of [`Tiling::lower_tiles`].
    pub factors: Vec<Tile>,
}

impl QrTiles {
    /// The tiles of `matrix`, and room for what its factorisation needs beside.
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

    /// How the matrix is cut.
    pub fn tiling(&self) -> Tiling {
        self.matrix.tiling()
    }

    /// Carries out one step of the factorisation.
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

    /// Multiplies a column of tiles, one for each row of tiles, by the Q of the first `n_panels` panels, or by its transpose,
    /// from the left.
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

/// Replaces the matrix by its QR factorisation, one step after the other on the calling thread.
pub fn qr_in_place(tiles: &mut QrTiles) {
    qr_steps(tiles.tiling().n_tiles()).for_each(|step| tiles.apply(step));
}

/// The norms of A − Q·R and of A over column j of tiles, for who sums them up with [`Norms::and`]: ‖A − Q·R‖ / ‖A‖ is the
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
    // The other panels leave what is zero below row j as it is.
    factors.multiply(&mut column, j + 1, Apply::Q);
    let part = |(i, found): (usize, &mut Tile)| {
        let tile = tiling.tile_of(a, i, j);
        let matrix = frobenius(&tile);
        found.as_mut_slice().iter_mut().zip(tile.as_slice()).for_each(|(found, a)| *found -= a);
        Norms { residual: frobenius(found), matrix }
    };
    column.iter_mut().enumerate().map(part).fold(Norms::default(), Norms::and)
}

/// How far Q is from orthogonal: ‖Qᵀ·(Q·X) − X‖ / ‖X‖ for a fixed X with a few random columns, in the Frobenius norm. It should
/// be at most [`tolerance`](super::tolerance) too.
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
    use crate::linalg::graph::{bottom_levels, successors};
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

    /// R by modified Gram-Schmidt, with a diagonal that is not negative: it is unique, but for the signs of its rows.
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

    #[test]
    fn a_step_is_as_urgent_as_the_longest_chain_behind_it() {
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        enum Data {
            Tile(usize, usize),
            Panel(usize),
            Factor(usize, usize),
        }
        use Data::*;
        let accesses = |step: &QrStep| match *step {
            QrStep::Geqrt { k } => (vec![], vec![Tile(k, k), Panel(k), Factor(k, k)]),
            QrStep::Unmqr { k, j } => (vec![Panel(k), Factor(k, k)], vec![Tile(k, j)]),
            QrStep::Tsqrt { k, i } => (vec![], vec![Tile(k, k), Tile(i, k), Factor(i, k)]),
            QrStep::Tsmqr { k, i, j } => (vec![Tile(i, k), Factor(i, k)], vec![Tile(k, j), Tile(i, j)]),
        };
        for n_tiles in 0..8 {
            let steps: Vec<QrStep> = qr_steps(n_tiles).collect();
            let levels = bottom_levels(&successors(steps.iter().map(accesses)));
            assert_eq!(steps.len(), n_tiles * (n_tiles + 1) * (2 * n_tiles + 1) / 6);
            assert_eq!(steps.iter().map(|step| step.priority(n_tiles)).collect::<Vec<_>>(), levels);
        }
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
            // Below the diagonal of a diagonal tile nothing is of use.
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
