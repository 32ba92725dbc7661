//! Random general matrices from a seed.

use super::{Entries, Tile};
use sched_text::hash::{SplitMix64, unit};

/// A matrix that is determined by its order, kind and seed, on every machine; nothing is stored.
///
/// Its entries are uniform in [−1, 1); the diagonal entries of a dominant matrix of order n are uniform in [n, n + 1)
/// instead, so that each row and each column is strictly diagonally dominant. Such a matrix has a stable LU
/// factorisation without pivoting.
///
/// As in [`RandomSpd`](super::RandomSpd) the random numbers are the outputs of SplitMix64: entry (r, c) uses output
/// number c·2³² + r, so that it depends neither on the order nor on the tiles.
///
/// ```
/// use sched_workloads::linalg::{Entries, RandomMatrix};
/// let a = RandomMatrix::dominant(3, 42);
/// assert_ne!(a.get(2, 1), a.get(1, 2));
/// assert!(a.get(1, 1) > a.get(1, 0).abs() + a.get(1, 2).abs());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomMatrix {
    order: usize,
    seed: u64,
    dominant: bool,
}

impl RandomMatrix {
    /// The diagonally dominant matrix of the given order for `seed`.
    pub fn dominant(order: usize, seed: u64) -> Self {
        Self { order, seed, dominant: true }
    }

    /// The matrix of the given order for `seed` whose entries all have the same distribution.
    pub fn uniform(order: usize, seed: u64) -> Self {
        Self { order, seed, dominant: false }
    }

    /// The random number for entry (r, c), uniform in [0, 1).
    fn unit(&self, r: usize, c: usize) -> f64 {
        unit(SplitMix64::output(self.seed, ((c as u64) << 32).wrapping_add(r as u64)))
    }

    fn entry(&self, r: usize, c: usize) -> f64 {
        2.0 * self.unit(r, c) - 1.0
    }
}

impl Entries for RandomMatrix {
    fn order(&self) -> usize {
        self.order
    }

    fn get(&self, r: usize, c: usize) -> f64 {
        assert!(r < self.order && c < self.order, "entry ({r}, {c})");
        if self.dominant && r == c { self.order as f64 + self.unit(r, c) } else { self.entry(r, c) }
    }

    fn fill_tile(&self, first_row: usize, first_col: usize, tile: &mut Tile) {
        // Without a case distinction per entry, the compiler can vectorise it.
        tile.fill(|r, c| self.entry(first_row + r, first_col + c));
        if self.dominant {
            let (last_row, last_col) = (first_row + tile.rows(), first_col + tile.cols());
            for d in first_row.max(first_col)..last_row.min(last_col) {
                tile.set(d - first_row, d - first_col, self.get(d, d));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_stays_what_it_was() {
        let a = RandomMatrix::dominant(2, 42);
        let entries = [a.get(0, 0), a.get(1, 0), a.get(0, 1), a.get(1, 1)];
        insta::assert_snapshot!(format!("{entries:?}"), @"[2.741564878771823, -0.6801792142461598, 0.49684673149621905, 2.068500821439218]");
        let b = RandomMatrix::uniform(2, 42);
        assert_eq!((b.get(1, 0), b.get(0, 1)), (entries[1], entries[2]));
        assert_ne!(RandomMatrix::uniform(2, 43).get(0, 1), b.get(0, 1));
    }

    #[test]
    fn rows_and_columns_are_dominated_by_their_diagonal() {
        let a = RandomMatrix::dominant(60, 7);
        for d in 0..60 {
            let others =
                |entry: &dyn Fn(usize) -> f64| (0..60).filter(|&o| o != d).map(|o| entry(o).abs()).sum::<f64>();
            assert!(a.get(d, d) > others(&|c| a.get(d, c)) && a.get(d, d) > others(&|r| a.get(r, d)));
        }
    }

    #[test]
    fn tiles_anywhere_hold_the_entries() {
        for a in [RandomMatrix::dominant(9, 3), RandomMatrix::uniform(9, 3)] {
            for (first_row, first_col) in [(0, 0), (4, 1), (2, 3), (6, 7), (3, 4)] {
                let mut tile = Tile::zeros(3, 2);
                a.fill_tile(first_row, first_col, &mut tile);
                assert_eq!(tile, Tile::from_fn(3, 2, |r, c| a.get(first_row + r, first_col + c)));
            }
        }
    }
}
