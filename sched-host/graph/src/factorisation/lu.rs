//! The tiled LU factorisation without pivoting as a list of steps.

use super::{Tiling, flops};

/// One kernel on named tiles of a square matrix. Indices count tiles, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LuStep {
    /// Factors tile (k, k).
    Getrf {
        /// Tile row and column.
        k: usize,
    },
    /// Solves tile (k, j) with the lower factor in tile (k, k); j > k.
    TrsmRow {
        /// Tile row.
        k: usize,
        /// Tile column.
        j: usize,
    },
    /// Solves tile (i, k) with the upper factor in tile (k, k); i > k.
    TrsmColumn {
        /// Tile column.
        k: usize,
        /// Tile row.
        i: usize,
    },
    /// Updates tile (i, j) with tiles (i, k) and (k, j); i, j > k.
    Gemm {
        /// Tile column and row of what is read.
        k: usize,
        /// Tile row of what is written.
        i: usize,
        /// Tile column of what is written.
        j: usize,
    },
}

impl LuStep {
    /// The tile (row, column) that the step reads and writes.
    pub fn writes(&self) -> (usize, usize) {
        match *self {
            Self::Getrf { k } => (k, k),
            Self::TrsmRow { k, j } => (k, j),
            Self::TrsmColumn { k, i } => (i, k),
            Self::Gemm { i, j, .. } => (i, j),
        }
    }

    /// The tiles (row, column) that the step only reads, in the order of the kernel's arguments.
    pub fn reads(&self) -> impl Iterator<Item = (usize, usize)> + Clone + use<> {
        let (first, second) = match *self {
            Self::Getrf { .. } => (None, None),
            Self::TrsmRow { k, .. } | Self::TrsmColumn { k, .. } => (Some((k, k)), None),
            Self::Gemm { k, i, j } => (Some((i, k)), Some((k, j))),
        };
        first.into_iter().chain(second)
    }

    /// Floating-point operations of the step; the sum over all steps is [`flops::lu`].
    pub fn flops(&self, tiling: Tiling) -> f64 {
        match *self {
            Self::Getrf { k } => flops::lu(tiling.size(k)),
            Self::TrsmRow { k, j } => flops::unit_trsm(tiling.size(k), tiling.size(j)),
            Self::TrsmColumn { k, i } => flops::trsm(tiling.size(i), tiling.size(k)),
            Self::Gemm { k, i, j } => flops::gemm(tiling.size(i), tiling.size(j), tiling.size(k)),
        }
    }

    /// How urgent the step is: the number of steps on the longest chain of dependent steps that begins with it (its
    /// *bottom level* with steps of equal length). It is 3·(N − 1) + 1 less the step's panel, tile row and tile column,
    /// with N rows of tiles: a step is always more urgent than those that wait for it, and the last one has 1.
    pub fn priority(&self, n_tiles: usize) -> usize {
        let panel = match *self {
            Self::Getrf { k } | Self::TrsmRow { k, .. } | Self::TrsmColumn { k, .. } | Self::Gemm { k, .. } => k,
        };
        let (i, j) = self.writes();
        (3 * n_tiles).saturating_sub(2 + panel + i + j)
    }
}

/// The steps of a right-looking LU factorisation of `n_tiles`×`n_tiles` tiles, in the order of submission: for each
/// panel k, the factors of its diagonal tile, the solves right of it, the solves below it, then, row by row, the
/// updates of the rest. They are N·(N + 1)·(2·N + 1)/6 for N rows of tiles.
///
/// ```
/// use sched_graph::factorisation::{LuStep::*, lu_steps};
/// let steps: Vec<_> = lu_steps(2).collect();
/// let update = Gemm { k: 0, i: 1, j: 1 };
/// assert_eq!(steps, [Getrf { k: 0 }, TrsmRow { k: 0, j: 1 }, TrsmColumn { k: 0, i: 1 }, update, Getrf { k: 1 }]);
/// assert_eq!(lu_steps(16).count(), 16 * 17 * 33 / 6);
/// ```
pub fn lu_steps(n_tiles: usize) -> impl Iterator<Item = LuStep> + Clone {
    (0..n_tiles).flat_map(move |k| {
        let behind = k + 1..n_tiles;
        let rows = behind.clone().map(move |j| LuStep::TrsmRow { k, j });
        let columns = behind.clone().map(move |i| LuStep::TrsmColumn { k, i });
        let updates = behind.clone().flat_map(move |i| behind.clone().map(move |j| LuStep::Gemm { k, i, j }));
        std::iter::once(LuStep::Getrf { k }).chain(rows).chain(columns).chain(updates)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::successors::{bottom_levels, successors};
    use super::*;

    #[test]
    fn a_step_is_as_urgent_as_the_longest_chain_behind_it() {
        for n_tiles in 0..8 {
            let steps: Vec<LuStep> = lu_steps(n_tiles).collect();
            let accesses = steps.iter().map(|step| (step.reads().collect(), vec![step.writes()]));
            let levels = bottom_levels(&successors(accesses));
            assert_eq!(steps.len(), n_tiles * (n_tiles + 1) * (2 * n_tiles + 1) / 6);
            assert_eq!(steps.iter().map(|step| step.priority(n_tiles)).collect::<Vec<_>>(), levels);
        }
    }

    proptest! {
        #[test]
        fn the_steps_do_the_work_of_the_whole(order in 0usize..200, tile_size in 1usize..100) {
            let tiling = Tiling::new(order, tile_size);
            let sum: f64 = lu_steps(tiling.n_tiles()).map(|step| step.flops(tiling)).sum();
            prop_assert!((sum - flops::lu(order)).abs() <= 1e-9 * sum.max(1.0), "{} instead of {}", sum, flops::lu(order));
        }
    }
}
