//! Sources of the entries of a matrix.

use super::Tile;

/// A source of the entries of a square matrix: stored in memory, or computed from a description on demand.
pub trait Entries {
    /// Number of rows and of columns.
    fn order(&self) -> usize;

    /// Entry in row `r` and column `c`, from 0.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    fn get(&self, r: usize, c: usize) -> f64;

    /// Fills `tile` with the block whose first entry is in row `first_row` and column `first_col`, from 0.
    ///
    /// # Panics
    ///
    /// If the block extends beyond the matrix.
    fn fill_tile(&self, first_row: usize, first_col: usize, tile: &mut Tile) {
        tile.fill(|r, c| self.get(first_row + r, first_col + c));
    }
}
