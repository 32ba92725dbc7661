//! A block of a matrix with its own memory.

use super::{Entries, Number, Tiling};
use faer::{MatMut, MatRef};
use sched_cluster::Message;

/// Bytes of one cache line, and of one AVX-512 vector: tiles start on such a boundary.
pub(super) const ALIGNMENT: usize = 64;

/// A dense rows×cols block of `f64`, column-major and contiguous: entry (r, c) has index `c * rows + r` in the slice.
///
/// Every tile owns its memory, so that tiles can be moved, copied and processed independently. The first entry lies on
/// a 64-byte boundary, so that with an order that is a multiple of 8 no vector load of a kernel straddles two cache
/// lines.
#[derive(Debug)]
pub struct Tile {
    rows: usize,
    cols: usize,
    /// `rows * cols` entries from `start` on; a few unused ones around them allow the alignment.
    memory: Vec<f64>,
    start: usize,
}

impl Tile {
    /// Tile (i, j) of `matrix` in the given `tiling`.
    ///
    /// # Panics
    ///
    /// If there is no such tile, or the matrix has another order.
    pub fn of(matrix: &(impl Entries + ?Sized), tiling: Tiling, i: usize, j: usize) -> Self {
        assert_eq!(matrix.order(), tiling.order(), "order of the matrix");
        let mut tile = Self::zeros(tiling.size(i), tiling.size(j));
        matrix.fill_tile(tiling.rows(i).start, tiling.rows(j).start, &mut tile);
        tile
    }

    /// Checks that `tiles` have the shapes of those at `places` of a tiled matrix.
    ///
    /// # Panics
    ///
    /// If their number or the shape of one does not match.
    pub(super) fn check_shapes(tiles: &[Tile], tiling: Tiling, places: impl Iterator<Item = (usize, usize)> + Clone) {
        assert_eq!(tiles.len(), places.clone().count(), "number of tiles");
        for ((i, j), tile) in places.zip(tiles) {
            let shape = (tiling.size(i), tiling.size(j));
            assert_eq!((tile.rows(), tile.cols()), shape, "shape of tile ({i}, {j})");
        }
    }

    /// A tile of zeros.
    ///
    /// # Panics
    ///
    /// If `rows * cols` entries do not fit in the address space.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let slack = ALIGNMENT / size_of::<f64>() - 1;
        let len =
            rows.checked_mul(cols).and_then(|len| len.checked_add(slack)).expect("a tile fits in the address space");
        let memory = vec![0.0; len];
        // `align_offset` may fail (only in constant evaluation); an unaligned tile is slower, not wrong.
        let start = Some(memory.as_ptr().align_offset(ALIGNMENT)).filter(|&start| start <= slack).unwrap_or(0);
        Self { rows, cols, memory, start }
    }

    /// A tile with the entries `entry(r, c)`, indices from 0.
    pub fn from_fn(rows: usize, cols: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut tile = Self::zeros(rows, cols);
        tile.fill(&mut entry);
        tile
    }

    /// Sets every entry (r, c) to `entry(r, c)`, column by column.
    pub fn fill(&mut self, mut entry: impl FnMut(usize, usize) -> f64) {
        for c in 0..self.cols {
            for (r, x) in self.column_mut(c).iter_mut().enumerate() {
                *x = entry(r, c);
            }
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Bytes of the entries.
    pub fn bytes(&self) -> usize {
        self.rows * self.cols * size_of::<f64>()
    }

    /// All entries, column by column.
    pub fn as_slice(&self) -> &[f64] {
        &self.memory[self.start..][..self.rows * self.cols]
    }

    /// All entries, column by column.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.memory[self.start..][..self.rows * self.cols]
    }

    /// The entries of column `c`, from row 0.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn column(&self, c: usize) -> &[f64] {
        let rows = self.rows;
        &self.as_slice()[c * rows..][..rows]
    }

    /// The entries of column `c`, from row 0.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn column_mut(&mut self, c: usize) -> &mut [f64] {
        let rows = self.rows;
        &mut self.as_mut_slice()[c * rows..][..rows]
    }

    /// Entry in row `r` and column `c`, from 0.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    pub fn get(&self, r: usize, c: usize) -> f64 {
        self.column(c)[r]
    }

    /// Sets the entry in row `r` and column `c`, from 0.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    pub fn set(&mut self, r: usize, c: usize, value: f64) {
        self.column_mut(c)[r] = value;
    }

    /// A tile of these entries, column by column.
    ///
    /// # Panics
    ///
    /// If there are not `rows * cols`.
    pub fn from_values<T: Number>(rows: usize, cols: usize, values: &[T]) -> Self {
        assert_eq!(values.len(), rows * cols, "entries of a tile of {rows} × {cols}");
        let mut tile = Self::zeros(rows, cols);
        tile.as_mut_slice().iter_mut().zip(values).for_each(|(entry, value)| *entry = value.widened());
        tile
    }

    /// The entries, column by column, rounded to numbers of this type.
    pub fn into_values<T: Number>(self) -> Vec<T> {
        self.as_slice().iter().map(|entry| T::rounded(*entry)).collect()
    }

    /// The entries to read, with their shape.
    pub fn entries(&self) -> TileRef<'_> {
        TileRef::new(self.rows, self.cols, self.as_slice())
    }

    /// The entries to modify, with their shape.
    pub fn entries_mut(&mut self) -> TileMut<'_> {
        let (rows, cols) = (self.rows, self.cols);
        TileMut::new(rows, cols, self.as_mut_slice())
    }

    /// A read-only view of the tile for faer.
    pub(super) fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(self.as_slice(), self.rows, self.cols)
    }

    /// A mutable view of the tile for faer.
    pub(super) fn view_mut(&mut self) -> MatMut<'_, f64> {
        let (rows, cols) = (self.rows, self.cols);
        MatMut::from_column_major_slice_mut(self.as_mut_slice(), rows, cols)
    }
}

/// The entries of a tile, column by column.
#[derive(Clone, Copy, Debug)]
pub struct TileRef<'a, T = f64> {
    rows: usize,
    cols: usize,
    values: &'a [T],
}

/// The entries of a tile, column by column, to modify.
#[derive(Debug)]
pub struct TileMut<'a, T = f64> {
    rows: usize,
    cols: usize,
    values: &'a mut [T],
}

impl<'a, T: Number> TileRef<'a, T> {
    /// A tile of these entries.
    ///
    /// # Panics
    ///
    /// If there are not `rows * cols`.
    pub fn new(rows: usize, cols: usize, values: &'a [T]) -> Self {
        assert_eq!(values.len(), rows * cols, "entries of a tile of {rows} × {cols}");
        Self { rows, cols, values }
    }

    pub(super) fn rows(self) -> usize {
        self.rows
    }

    pub(super) fn cols(self) -> usize {
        self.cols
    }

    /// The entries of column `c`.
    pub(super) fn column(self, c: usize) -> &'a [T] {
        &self.values[c * self.rows..][..self.rows]
    }

    /// All entries, column by column.
    pub(super) fn as_slice(self) -> &'a [T] {
        self.values
    }

    /// A view for faer.
    pub(super) fn view(self) -> MatRef<'a, T> {
        MatRef::from_column_major_slice(self.values, self.rows, self.cols)
    }
}

impl<'a, T: Number> TileMut<'a, T> {
    /// A tile of these entries.
    ///
    /// # Panics
    ///
    /// If there are not `rows * cols`.
    pub fn new(rows: usize, cols: usize, values: &'a mut [T]) -> Self {
        assert_eq!(values.len(), rows * cols, "entries of a tile of {rows} × {cols}");
        Self { rows, cols, values }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    /// Entry in row `r` and column `c`, from 0.
    pub(super) fn get(&self, r: usize, c: usize) -> T {
        self.values[c * self.rows + r]
    }

    /// Sets the entry in row `r` and column `c`, from 0.
    pub(super) fn set(&mut self, r: usize, c: usize, value: T) {
        self.values[c * self.rows + r] = value;
    }

    /// All entries, column by column.
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        self.values
    }

    /// The entries to read.
    pub(super) fn entries(&self) -> TileRef<'_, T> {
        TileRef { rows: self.rows, cols: self.cols, values: self.values }
    }

    /// A mutable view for faer.
    pub(super) fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_column_major_slice_mut(self.values, self.rows, self.cols)
    }
}

impl Clone for Tile {
    fn clone(&self) -> Self {
        // The copy's memory starts elsewhere, so its alignment must be computed again.
        let mut copy = Self::zeros(self.rows, self.cols);
        copy.as_mut_slice().copy_from_slice(self.as_slice());
        copy
    }

    fn clone_from(&mut self, source: &Self) {
        if (self.rows, self.cols) == (source.rows, source.cols) {
            self.as_mut_slice().copy_from_slice(source.as_slice());
        } else {
            *self = source.clone();
        }
    }
}

impl Default for Tile {
    /// A tile without entries.
    fn default() -> Self {
        Self::zeros(0, 0)
    }
}

impl Message for Tile {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.as_slice())
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.as_mut_slice())
    }

    fn shape(&self) -> u64 {
        self.rows as u64
    }
}

impl PartialEq for Tile {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.cols == other.cols && self.as_slice() == other.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lie_column_by_column_on_a_cache_line_boundary() {
        let tile = Tile::from_fn(3, 2, |r, c| (10 * r + c) as f64);
        assert_eq!(tile.as_slice(), [0.0, 10.0, 20.0, 1.0, 11.0, 21.0]);
        assert_eq!(tile.get(2, 1), 21.0);
        assert_eq!(tile.column(1), [1.0, 11.0, 21.0]);
        assert_eq!(tile.bytes(), 48);
        for size in 1..20 {
            let tile = Tile::zeros(size, size).clone();
            assert_eq!(tile.as_slice().as_ptr() as usize % ALIGNMENT, 0);
        }
    }

    #[test]
    fn a_copy_is_equal_and_independent() {
        let tile = Tile::from_fn(5, 7, |r, c| (r * c) as f64);
        let mut copy = tile.clone();
        assert_eq!(copy, tile);
        copy.set(4, 6, -1.0);
        assert_ne!(copy, tile);
        assert_eq!(tile.get(4, 6), 24.0);
        let memory = copy.as_slice().as_ptr();
        copy.clone_from(&tile);
        assert_eq!((&copy, copy.as_slice().as_ptr()), (&tile, memory), "in the memory that is there");
        copy.clone_from(&Tile::zeros(7, 5));
        assert_eq!(copy, Tile::zeros(7, 5));
    }

    #[test]
    fn a_tile_may_be_empty() {
        let tile = Tile::zeros(0, 4);
        assert!(tile.as_slice().is_empty());
        assert!(tile.column(3).is_empty());
    }
}
