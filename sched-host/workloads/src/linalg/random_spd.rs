//! Random symmetric positive definite matrices from a seed.

use super::{Entries, Tile};
use sched_text::hash::{SplitMix64, unit};

/// A symmetric positive definite matrix that is determined by its order and seed, on every machine; nothing is stored.
///
/// Entry (r, c) with r > c is uniform in [−1, 1); entry (r, r) is uniform in [n, n + 1) for order n. Each row is
/// strictly diagonally dominant (the diagonal is at least n, the rest sums to at most n − 1 in absolute value), so the
/// matrix is positive definite, with a condition number below 2n.
///
/// The random numbers are the outputs of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014) from the seed: entry (r, c) of the lower triangle uses output number r·(r + 1)/2 + c. That
/// generator can jump to any output, so tiles can be generated in any order, by any thread, and do not depend on the
/// tile size.
///
/// ```
/// use sched_workloads::linalg::{RandomSpd, Entries};
/// let a = RandomSpd::new(3, 42);
/// assert_eq!(a.get(2, 1), a.get(1, 2));
/// assert_eq!(a.get(2, 1), RandomSpd::new(3, 42).get(2, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomSpd {
    order: usize,
    seed: u64,
}

impl RandomSpd {
    /// The matrix of the given order for `seed`.
    pub fn new(order: usize, seed: u64) -> Self {
        Self { order, seed }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Entry (r, c) of the lower triangle without its diagonal, uniform in [−1, 1).
    fn off_diagonal(&self, r: usize, c: usize) -> f64 {
        2.0 * self.unit(r, c) - 1.0
    }

    /// Entry (r, r).
    fn diagonal(&self, r: usize) -> f64 {
        self.order as f64 + self.unit(r, r)
    }

    /// The random number for entry (r, c) with r ≥ c, uniform in [0, 1).
    fn unit(&self, r: usize, c: usize) -> f64 {
        let r = r as u64;
        let place = (r * (r + 1) / 2).wrapping_add(c as u64);
        unit(SplitMix64::output(self.seed, place))
    }
}

impl Entries for RandomSpd {
    fn order(&self) -> usize {
        self.order
    }

    fn get(&self, r: usize, c: usize) -> f64 {
        assert!(r < self.order && c < self.order, "entry ({r}, {c})");
        if r == c { self.diagonal(r) } else { self.off_diagonal(r.max(c), r.min(c)) }
    }

    fn fill_tile(&self, first_row: usize, first_col: usize, tile: &mut Tile) {
        // A tile entirely below the diagonal needs no case distinction per entry, so the compiler can vectorise it.
        if first_row >= first_col + tile.cols() {
            tile.fill(|r, c| self.off_diagonal(first_row + r, first_col + c));
        } else {
            tile.fill(|r, c| self.get(first_row + r, first_col + c));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_stays_what_it_was() {
        let a = RandomSpd::new(3, 42);
        insta::assert_snapshot!(
            format!("{:?}", [a.get(0, 0), a.get(1, 0), a.get(1, 1), a.get(2, 0), a.get(2, 1), a.get(2, 2)]),
            @"[3.741564878771823, -0.6801792142461598, 3.2786011302551388, -0.31161856695272494, -0.9239396629195076, 3.8682280765465324]"
        );
    }

    #[test]
    fn rows_are_dominated_by_their_diagonal() {
        let a = RandomSpd::new(60, 7);
        for r in 0..60 {
            let others: f64 = (0..60).filter(|&c| c != r).map(|c| a.get(r, c).abs()).sum();
            assert!(a.get(r, r) > others);
        }
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(RandomSpd::new(2, 1).get(1, 0), RandomSpd::new(2, 2).get(1, 0));
    }
}
