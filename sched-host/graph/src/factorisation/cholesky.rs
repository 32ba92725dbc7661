//! The tiled Cholesky factorisation as a list of steps.

use std::iter::FusedIterator;

use super::{Tiling, flops};

/// One kernel on named tiles of the lower triangle. Indices count tiles, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CholeskyStep {
    /// Factors tile (k, k).
    Potrf {
        /// Tile row and column.
        k: usize,
    },
    /// Solves tile (i, k) with the factor in tile (k, k); i > k.
    Trsm {
        /// Tile column.
        k: usize,
        /// Tile row.
        i: usize,
    },
    /// Updates the lower triangle of tile (i, i) with tile (i, k); i > k.
    Syrk {
        /// Tile column of what is read.
        k: usize,
        /// Tile row.
        i: usize,
    },
    /// Updates tile (i, j) with tiles (i, k) and (j, k); i > j > k.
    Gemm {
        /// Tile column of what is read.
        k: usize,
        /// Tile row of what is written.
        i: usize,
        /// Tile column of what is written.
        j: usize,
    },
}

impl CholeskyStep {
    /// Name of the kernel: `potrf`, `trsm`, `syrk` or `gemm`.
    pub fn kernel(&self) -> &'static str {
        match self {
            Self::Potrf { .. } => "potrf",
            Self::Trsm { .. } => "trsm",
            Self::Syrk { .. } => "syrk",
            Self::Gemm { .. } => "gemm",
        }
    }

    /// The tile (row, column) that the step reads and writes.
    pub fn writes(&self) -> (usize, usize) {
        match *self {
            Self::Potrf { k } => (k, k),
            Self::Trsm { k, i } => (i, k),
            Self::Syrk { i, .. } => (i, i),
            Self::Gemm { i, j, .. } => (i, j),
        }
    }

    /// The tiles (row, column) that the step only reads, in the order of the kernel's arguments.
    pub fn reads(&self) -> impl Iterator<Item = (usize, usize)> + Clone + use<> {
        let (first, second) = match *self {
            Self::Potrf { .. } => (None, None),
            Self::Trsm { k, .. } => (Some((k, k)), None),
            Self::Syrk { k, i } => (Some((i, k)), None),
            Self::Gemm { k, i, j } => (Some((i, k)), Some((j, k))),
        };
        first.into_iter().chain(second)
    }

    /// Floating-point operations of the step; the sum over all steps is [`flops::cholesky`].
    pub fn flops(&self, tiling: Tiling) -> f64 {
        match *self {
            Self::Potrf { k } => flops::potrf(tiling.size(k)),
            Self::Trsm { k, i } => flops::trsm(tiling.size(i), tiling.size(k)),
            Self::Syrk { k, i } => flops::syrk(tiling.size(i), tiling.size(k)),
            Self::Gemm { k, i, j } => flops::gemm(tiling.size(i), tiling.size(j), tiling.size(k)),
        }
    }

    /// How urgent the step is: larger is more urgent, and the last step has 1.
    ///
    /// It is the number of steps on the longest chain of dependent steps that begins with this one (its *bottom level*
    /// with steps of equal length), or, below the diagonal, with the most urgent step of the same column: those steps
    /// share a tile, and a worker that runs them one after the other finds it in its cache. (With the exact bottom
    /// level, which is the same along antidiagonals, one worker took 5 % longer for 16 × 16 tiles of 256.) The regular
    /// shape of the graph gives it in closed form: with N rows of tiles, 3·(N − 1) + 1 less
    ///
    /// | step | less |
    /// |---|---|
    /// | potrf(k) | 3·k |
    /// | trsm(k, i) | 3·k + 1 |
    /// | syrk(k, i) | k + 2·i |
    /// | gemm(k, i, j) | k + 2·j + 1 |
    ///
    /// A step is always more urgent than those that wait for it. On as many workers as one likes, a factorisation takes
    /// at least 3·(N − 1) + 1 steps' time.
    pub fn priority(&self, n_tiles: usize) -> usize {
        let less = match *self {
            Self::Potrf { k } => 3 * k,
            Self::Trsm { k, .. } => 3 * k + 1,
            Self::Syrk { k, i } => k + 2 * i,
            Self::Gemm { k, j, .. } => k + 2 * j + 1,
        };
        (3 * n_tiles).saturating_sub(2 + less)
    }
}

/// The steps of a right-looking tiled Cholesky factorisation; see [`cholesky_steps`].
#[derive(Debug, Clone)]
pub struct CholeskySteps {
    n_tiles: usize,
    next: Option<CholeskyStep>,
    left: usize,
}

/// The steps that factor a matrix of `n_tiles`×`n_tiles` tiles, in the order of submission: for each column k of tiles,
/// the factor of its diagonal tile, then the solves below it, then, row by row, the updates of what lies to the right.
///
/// Run one after the other they are the factorisation. A task runtime that derives dependencies from what each step
/// [reads](CholeskyStep::reads) and [writes](CholeskyStep::writes) may run them as its scheduler likes.
///
/// ```
/// use sched_graph::factorisation::{CholeskyStep, cholesky_steps};
/// let steps: Vec<CholeskyStep> = cholesky_steps(2).collect();
/// assert_eq!(steps, [CholeskyStep::Potrf { k: 0 }, CholeskyStep::Trsm { k: 0, i: 1 }, CholeskyStep::Syrk { k: 0, i: 1 }, CholeskyStep::Potrf { k: 1 }]);
/// assert_eq!(cholesky_steps(40).len(), 40 * 41 * 42 / 6);
/// ```
pub fn cholesky_steps(n_tiles: usize) -> CholeskySteps {
    CholeskySteps {
        n_tiles,
        next: (n_tiles > 0).then_some(CholeskyStep::Potrf { k: 0 }),
        left: n_tiles * (n_tiles + 1) * (n_tiles + 2) / 6,
    }
}

impl Iterator for CholeskySteps {
    type Item = CholeskyStep;

    fn next(&mut self) -> Option<CholeskyStep> {
        let step = self.next?;
        let exists = |i: usize| i < self.n_tiles;
        // The first update in row i: of the tile next to column k, which is the diagonal one in row k + 1.
        let first_update = |k: usize, i: usize| match i == k + 1 {
            true => CholeskyStep::Syrk { k, i },
            false => CholeskyStep::Gemm { k, i, j: k + 1 },
        };
        self.next = match step {
            CholeskyStep::Potrf { k } => exists(k + 1).then_some(CholeskyStep::Trsm { k, i: k + 1 }),
            CholeskyStep::Trsm { k, i } if exists(i + 1) => Some(CholeskyStep::Trsm { k, i: i + 1 }),
            CholeskyStep::Trsm { k, .. } => Some(first_update(k, k + 1)),
            CholeskyStep::Gemm { k, i, j } if j + 1 < i => Some(CholeskyStep::Gemm { k, i, j: j + 1 }),
            CholeskyStep::Gemm { k, i, .. } => Some(CholeskyStep::Syrk { k, i }),
            CholeskyStep::Syrk { k, i } if exists(i + 1) => Some(first_update(k, i + 1)),
            CholeskyStep::Syrk { k, .. } => Some(CholeskyStep::Potrf { k: k + 1 }),
        };
        self.left -= 1;
        Some(step)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for CholeskySteps {}
impl FusedIterator for CholeskySteps {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::successors::{bottom_levels, successors};
    use super::*;

    /// For each step, the steps that must come after it, by number: the dependencies that the accesses imply.
    fn graph(n_tiles: usize) -> (Vec<CholeskyStep>, Vec<Vec<usize>>) {
        let steps: Vec<CholeskyStep> = cholesky_steps(n_tiles).collect();
        let after = successors(steps.iter().map(|step| (step.reads().collect(), vec![step.writes()])));
        (steps, after)
    }

    #[test]
    fn a_step_is_as_urgent_as_the_longest_chain_from_its_column() {
        for n_tiles in 1..9 {
            let (steps, after) = graph(n_tiles);
            let longest = bottom_levels(&after);
            let of_column = |step: &CholeskyStep| match *step {
                CholeskyStep::Trsm { k, .. } => CholeskyStep::Trsm { k, i: k + 1 },
                CholeskyStep::Gemm { k, j, .. } => CholeskyStep::Gemm { k, i: j + 1, j },
                other => other,
            };
            for step in &steps {
                let most_urgent = steps.iter().position(|other| *other == of_column(step)).unwrap();
                assert_eq!(step.priority(n_tiles), longest[most_urgent], "{step:?}");
            }
        }
    }

    #[test]
    fn a_step_is_more_urgent_than_those_that_wait_for_it() {
        for n_tiles in 1..9 {
            let (steps, after) = graph(n_tiles);
            for (step, waiting) in steps.iter().zip(&after) {
                for later in waiting {
                    assert!(step.priority(n_tiles) > steps[*later].priority(n_tiles), "{step:?}, {:?}", steps[*later]);
                }
            }
        }
    }

    #[test]
    fn the_steps_are_counted_and_no_tile_is_read_before_it_is_final() {
        for n_tiles in 0..9 {
            let steps = cholesky_steps(n_tiles);
            assert_eq!(steps.len(), steps.clone().count());
            let mut finished = std::collections::HashSet::new();
            for step in steps {
                assert!(step.reads().all(|tile| finished.contains(&tile)), "{step:?}");
                assert!(!finished.contains(&step.writes()), "{step:?}");
                if matches!(step, CholeskyStep::Potrf { .. } | CholeskyStep::Trsm { .. }) {
                    finished.insert(step.writes());
                }
            }
            assert_eq!(finished.len(), n_tiles * (n_tiles + 1) / 2);
        }
    }

    proptest! {
        #[test]
        fn the_steps_do_the_work_of_the_whole(order in 0usize..300, tile_size in 1usize..100) {
            let tiling = Tiling::new(order, tile_size);
            let sum: f64 = cholesky_steps(tiling.n_tiles()).map(|step| step.flops(tiling)).sum();
            let whole = flops::cholesky(order);
            prop_assert!((sum - whole).abs() <= 1e-9 * whole.max(1.0), "{} instead of {}", sum, whole);
        }
    }
}
