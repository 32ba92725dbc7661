//! The tiled QR factorisation as a list of steps.
//!
//! It is that of Buttari, Langou, Kurzak and Dongarra, "A class of parallel tiled linear algebra algorithms for
//! multicore architectures", Parallel Computing 35 (2009), with its flat tree: the tiles of a panel go into its
//! diagonal tile one by one.

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

    /// How urgent the step is: the number of steps on the longest chain of dependent steps that begins with it (its
    /// *bottom level* with steps of equal length). It is 3·(N − 1) + 1 less the step's panel, tile row and tile column,
    /// with N rows of tiles: a step is always more urgent than those that wait for it, and the last one has 1.
    pub fn priority(&self, n_tiles: usize) -> usize {
        let (k, i, j) = self.place();
        (3 * n_tiles).saturating_sub(2 + k + i + j)
    }
}

/// The steps of a QR factorisation of `n_tiles`×`n_tiles` tiles, in the order of submission: for each panel k, the
/// factors of its diagonal tile and what they do to the tiles right of it; then for each tile below, its elimination
/// and what that does to the two rows. They are N·(N + 1)·(2·N + 1)/6 for N rows of tiles.
///
/// ```
/// use sched_graph::factorisation::{QrStep::*, qr_steps};
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

#[cfg(test)]
mod tests {
    use super::super::successors::{bottom_levels, successors};
    use super::*;

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
}
