//! Ranks as a grid, to which the blocks of a matrix are dealt.

use crate::Datum;

/// Ranks in rows and columns, as square as their number allows. Blocks are dealt to them in turn, by row and by column
/// (the distribution of ScaLAPACK, Choi et al. 1992).
///
/// ```
/// use sched_graph::ranks::Grid;
/// let grid = Grid::new(6);
/// let owners: Vec<Vec<usize>> = (0..3).map(|i| (0..4).map(|j| grid.owner(i, j)).collect()).collect();
/// assert_eq!(owners, [[0, 1, 2, 0], [3, 4, 5, 3], [0, 1, 2, 0]]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    rows: usize,
    columns: usize,
}

impl Grid {
    /// A grid of this number of ranks, at least one.
    #[must_use]
    pub fn new(ranks: usize) -> Grid {
        let ranks = ranks.max(1);
        let rows = (1..=ranks.isqrt()).filter(|rows| ranks.is_multiple_of(*rows)).max().unwrap_or(1);
        Grid { rows, columns: ranks / rows }
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(self) -> usize {
        self.rows * self.columns
    }

    /// The owner of block (`row`, `column`).
    #[inline]
    #[must_use]
    pub fn owner(self, row: usize, column: usize) -> usize {
        row % self.rows * self.columns + column % self.columns
    }

    /// The owner of each datum: of a block of a matrix, whose name ends with its row and column, such as `A(3,1)`, by
    /// these; other data are dealt to the ranks in turn.
    #[must_use]
    pub fn owners(self, data: &[Datum]) -> Vec<usize> {
        let place = |datum: &Datum| block(datum.name.as_deref()?);
        let owner = |(index, datum): (usize, &Datum)| {
            place(datum).map_or(index % self.ranks(), |(row, column)| self.owner(row, column))
        };
        data.iter().enumerate().map(owner).collect()
    }
}

/// The row and the column at the end of a name.
fn block(name: &str) -> Option<(usize, usize)> {
    let (_, place) = name.strip_suffix(')')?.rsplit_once('(')?;
    let (row, column) = place.split_once(',')?;
    Some((row.trim().parse().ok()?, column.trim().parse().ok()?))
}
