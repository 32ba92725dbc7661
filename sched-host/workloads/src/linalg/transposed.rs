//! A transposed copy of a tile, for kernels that would otherwise read it with a large stride.

use std::cell::RefCell;

use faer::MatRef;

use super::Number;
use super::tile::{ALIGNMENT, TileRef};

/// Number of rows and columns of the blocks that are transposed in registers: one cache line of numbers, or half of
/// one.
const BLOCK: usize = ALIGNMENT / size_of::<f64>();

thread_local! {
    /// Memory of this thread's copies; it only grows.
    static MEMORY: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// Calls `use_it` with the transpose of `tile`, stored by columns in reusable memory of the thread.
///
/// # Panics
///
/// If `use_it` calls this function again.
pub(super) fn with_transposed<T: Number, R>(tile: TileRef<'_, T>, use_it: impl FnOnce(MatRef<'_, T>) -> R) -> R {
    // With a stride of a power of two, columns would compete for the same few cache sets: hence one block more.
    let stride = tile.cols().next_multiple_of(BLOCK) + BLOCK;
    let needed = stride * tile.rows() + BLOCK;
    MEMORY.with_borrow_mut(|memory| {
        if memory.len() < needed {
            memory.resize(needed, 0.0);
        }
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(BLOCK);
        let out: &mut [T] = bytemuck::cast_slice_mut(&mut memory[start..]);
        transpose(tile, out, stride);
        use_it(MatRef::from_column_major_slice_with_stride(out, tile.cols(), tile.rows(), stride))
    })
}

/// Writes row r of `tile` to `out`, starting at index `r * stride`.
fn transpose<T: Number>(tile: TileRef<'_, T>, out: &mut [T], stride: usize) {
    let (rows, cols) = (tile.rows(), tile.cols());
    let whole = |n: usize| n - n % BLOCK;
    for first_col in (0..whole(cols)).step_by(BLOCK) {
        for first_row in (0..whole(rows)).step_by(BLOCK) {
            let mut block = [[T::default(); BLOCK]; BLOCK];
            for c in 0..BLOCK {
                let column = &tile.column(first_col + c)[first_row..][..BLOCK];
                for (row, &x) in block.iter_mut().zip(column) {
                    row[c] = x;
                }
            }
            for (r, row) in block.iter().enumerate() {
                out[(first_row + r) * stride + first_col..][..BLOCK].copy_from_slice(row);
            }
        }
    }
    // The remainder: the last rows of all columns, and the last columns.
    for c in 0..cols {
        let first_row = if c < whole(cols) { whole(rows) } else { 0 };
        for (r, &x) in tile.column(c).iter().enumerate().skip(first_row) {
            out[r * stride + c] = x;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::Tile;

    proptest! {
        #[test]
        fn rows_become_columns(rows in 0usize..40, cols in 0usize..40) {
            let tile = Tile::from_fn(rows, cols, |r, c| (100 * r + c + 1) as f64);
            with_transposed(tile.entries(), |transposed| {
                assert_eq!((transposed.nrows(), transposed.ncols()), (cols, rows));
                for r in 0..rows {
                    for c in 0..cols {
                        assert_eq!(transposed[(c, r)], tile.get(r, c));
                    }
                }
            });
        }
    }
}
