//! Dense general matrices in memory.

use super::{Entries, OrderTooLarge, Tile};

/// A dense square matrix in memory, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    order: usize,
    entries: Vec<f64>,
}

impl Matrix {
    /// A matrix of zeros.
    ///
    /// # Errors
    ///
    /// [`OrderTooLarge`] if there is not enough memory; the process continues.
    pub fn zeros(order: usize) -> Result<Self, OrderTooLarge> {
        let too_large = OrderTooLarge { order };
        let len = order.checked_mul(order).ok_or(too_large)?;
        let mut entries = Vec::new();
        entries.try_reserve_exact(len).map_err(|_| too_large)?;
        entries.resize(len, 0.0);
        Ok(Self { order, entries })
    }

    /// The matrix with the entries `entry(r, c)`, indices from 0.
    ///
    /// # Errors
    ///
    /// [`OrderTooLarge`] if there is not enough memory.
    pub fn from_fn(order: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Result<Self, OrderTooLarge> {
        let mut matrix = Self::zeros(order)?;
        for (place, x) in matrix.entries.iter_mut().enumerate() {
            *x = entry(place % order, place / order);
        }
        Ok(matrix)
    }

    /// Sets the entry (r, c), from 0.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    pub fn set(&mut self, r: usize, c: usize, value: f64) {
        let place = self.place(r, c);
        self.entries[place] = value;
    }

    fn place(&self, r: usize, c: usize) -> usize {
        assert!(r < self.order && c < self.order, "entry ({r}, {c}) of a matrix of order {}", self.order);
        c * self.order + r
    }
}

impl Entries for Matrix {
    fn order(&self) -> usize {
        self.order
    }

    fn get(&self, r: usize, c: usize) -> f64 {
        self.entries[self.place(r, c)]
    }

    fn fill_tile(&self, first_row: usize, first_col: usize, tile: &mut Tile) {
        let rows = tile.rows();
        assert!(first_row + rows <= self.order, "the tile lies in the matrix");
        for c in 0..tile.cols() {
            let start = (first_col + c) * self.order + first_row;
            tile.column_mut(c).copy_from_slice(&self.entries[start..][..rows]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_anywhere_hold_the_entries() {
        let mut a = Matrix::from_fn(9, |r, c| (10 * r + c) as f64).unwrap();
        a.set(3, 4, -1.0);
        assert_eq!((a.get(3, 4), a.get(4, 3)), (-1.0, 43.0));
        for (first_row, first_col) in [(0, 0), (4, 1), (2, 3), (6, 7)] {
            let mut tile = Tile::zeros(3, 2);
            a.fill_tile(first_row, first_col, &mut tile);
            assert_eq!(tile, Tile::from_fn(3, 2, |r, c| a.get(first_row + r, first_col + c)));
        }
    }

    #[test]
    fn an_absurd_order_is_an_error() {
        for order in [usize::MAX, 1 << 40, 1 << 31] {
            assert_eq!(Matrix::zeros(order), Err(OrderTooLarge { order }), "{order}");
        }
    }
}
