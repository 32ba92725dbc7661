//! Symmetric matrices in memory.

use super::{Entries, Tile};

/// The error for a matrix that does not fit in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory for a matrix of order {order}")]
pub struct OrderTooLarge {
    /// Number of rows of the requested matrix.
    pub order: usize,
}

/// A dense symmetric matrix in memory: its lower triangle, column by column without gaps, n·(n + 1)/2 numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricMatrix {
    order: usize,
    /// Column c starts with its diagonal entry, at [`column_start`].
    lower: Vec<f64>,
}

/// Index of entry (c, c) in the packed lower triangle of a matrix with `order` rows.
fn column_start(order: usize, c: usize) -> usize {
    // Columns 0 to c − 1 have order, order − 1, … entries; this form avoids negative intermediate values.
    c * (2 * order + 1 - c) / 2
}

impl SymmetricMatrix {
    /// A matrix of zeros.
    ///
    /// # Errors
    ///
    /// [`OrderTooLarge`] if there is not enough memory; the process continues.
    pub fn zeros(order: usize) -> Result<Self, OrderTooLarge> {
        let too_large = OrderTooLarge { order };
        let len = Self::stored(order).ok_or(too_large)?;
        let mut lower = Vec::new();
        lower.try_reserve_exact(len).map_err(|_| too_large)?;
        lower.resize(len, 0.0);
        Ok(Self { order, lower })
    }

    /// The matrix whose entries (r, c) and (c, r), for r ≥ c from 0, are `entry(r, c)`.
    ///
    /// # Errors
    ///
    /// [`OrderTooLarge`] if there is not enough memory.
    pub fn from_lower(order: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Result<Self, OrderTooLarge> {
        let mut matrix = Self::zeros(order)?;
        let mut places = matrix.lower.iter_mut();
        for c in 0..order {
            for (r, place) in (c..order).zip(&mut places) {
                *place = entry(r, c);
            }
        }
        Ok(matrix)
    }

    /// Sets the entries (r, c) and (c, r), from 0.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    pub fn set(&mut self, r: usize, c: usize, value: f64) {
        let place = self.place(r, c);
        self.lower[place] = value;
    }

    /// Number of entries stored for a matrix of this order, unless it overflows.
    fn stored(order: usize) -> Option<usize> {
        // The product in `column_start` must not overflow either.
        let twice = order.checked_mul(order.checked_mul(2)?.checked_add(1)?)?;
        Some((twice - order * order).div_ceil(2))
    }

    fn place(&self, r: usize, c: usize) -> usize {
        let (r, c) = (r.max(c), r.min(c));
        assert!(r < self.order, "entry ({r}, {c}) of a matrix of order {}", self.order);
        column_start(self.order, c) + (r - c)
    }
}

impl Entries for SymmetricMatrix {
    fn order(&self) -> usize {
        self.order
    }

    fn get(&self, r: usize, c: usize) -> f64 {
        self.lower[self.place(r, c)]
    }

    fn fill_tile(&self, first_row: usize, first_col: usize, tile: &mut Tile) {
        if first_row < first_col + tile.cols() {
            tile.fill(|r, c| self.get(first_row + r, first_col + c));
            return;
        }
        // Below the diagonal, a column of the tile is a piece of a stored column.
        let rows = tile.rows();
        assert!(first_row + rows <= self.order, "the tile lies in the matrix");
        for c in 0..tile.cols() {
            let start = self.place(first_row, first_col + c);
            tile.column_mut(c).copy_from_slice(&self.lower[start..][..rows]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_triangles_read_the_same() {
        let mut a = SymmetricMatrix::from_lower(5, |r, c| (10 * r + c) as f64).unwrap();
        assert_eq!(a.get(4, 2), 42.0);
        assert_eq!(a.get(2, 4), 42.0);
        assert_eq!(a.get(0, 0), 0.0);
        assert_eq!(a.get(4, 4), 44.0);
        a.set(1, 3, -1.0);
        assert_eq!(a.get(3, 1), -1.0);
    }

    #[test]
    fn tiles_anywhere_hold_the_entries() {
        let a = SymmetricMatrix::from_lower(9, |r, c| (10 * r + c) as f64).unwrap();
        for (first_row, first_col) in [(0, 0), (4, 1), (6, 2), (2, 5), (6, 6), (6, 0)] {
            let mut tile = Tile::zeros(3, 2);
            a.fill_tile(first_row, first_col, &mut tile);
            let expected = Tile::from_fn(3, 2, |r, c| a.get(first_row + r, first_col + c));
            assert_eq!(tile, expected);
        }
    }

    #[test]
    fn an_absurd_order_is_an_error() {
        for order in [usize::MAX, 1 << 40, 1 << 31] {
            assert_eq!(SymmetricMatrix::zeros(order), Err(OrderTooLarge { order }), "{order}");
        }
    }
}
