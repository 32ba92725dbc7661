//! Where the tiles of a matrix are, as far as it follows from the tasks that compute them.

use super::sides::Sides;
use std::collections::HashMap;

/// What is known of the place of a tile in its matrix.
#[derive(Clone, Default, Debug)]
struct Tile {
    /// Its number on the diagonal.
    diagonal: Option<u32>,
    /// The diagonal tile that it is computed from, in whose row or column it is.
    before: Option<u32>,
    /// The diagonal tile that is computed from it.
    after: Option<u32>,
    /// Its number among the tiles with a [side](Sides).
    side: Option<usize>,
    /// While its place is unknown: the tiles that it was computed from.
    fed_by: Vec<u64>,
}

/// The tiles of a matrix, by the data that they are.
#[derive(Default, Debug)]
pub(super) struct Tiles {
    tiles: HashMap<u64, Tile>,
    diagonals: u32,
    sides: Sides,
}

impl Tiles {
    /// Takes note that a task computes the tile `written` from itself and from the tiles `read`. Tasks come in the
    /// order of their submission.
    pub(super) fn note(&mut self, written: u64, read: impl Iterator<Item = u64>) {
        let mut tile = self.tiles.remove(&written).unwrap_or_default();
        if tile.diagonal.is_none() && tile.before.is_none() {
            let from = tile.fed_by.len();
            tile.fed_by.extend(read);
            match &tile.fed_by[from..] {
                [] => self.note_diagonal(&mut tile),
                read => {
                    tile.before = read.iter().find_map(|data| self.tiles.get(data)?.diagonal);
                    match (tile.before, read) {
                        (Some(before), _) => self.note_side(&mut tile, before),
                        (None, [one, other]) => self.note_product(*one, *other),
                        _ => {}
                    }
                }
            }
        }
        self.tiles.insert(written, tile);
    }

    fn note_diagonal(&mut self, tile: &mut Tile) {
        tile.diagonal = Some(self.diagonals);
        for fed in std::mem::take(&mut tile.fed_by) {
            self.tiles.entry(fed).or_default().after.get_or_insert(self.diagonals);
        }
        self.diagonals += 1;
    }

    /// Two tiles that were computed from one diagonal tile, and whose product goes into another tile, are in the column
    /// below it and in the row beside it; in a symmetric matrix both are in the column.
    fn note_product(&mut self, one: u64, other: u64) {
        let of = |data: u64| self.tiles.get(&data).and_then(|tile| Some((tile.before?, tile.side?)));
        if let (Some((before, one)), Some((other_before, other))) = (of(one), of(other))
            && before == other_before
        {
            self.sides.note(one, other, true);
        }
    }

    /// A tile that is computed from the diagonal tile `before` is opposite to the one from which both this tile and
    /// that diagonal tile were computed, and on the side of the other one.
    fn note_side(&mut self, tile: &mut Tile, before: u32) {
        let side = self.sides.add();
        tile.side = Some(side);
        for fed in std::mem::take(&mut tile.fed_by).into_iter().take(2) {
            if let Some(Tile { after: Some(after), side: Some(other), .. }) = self.tiles.get(&fed) {
                self.sides.note(*other, side, *after == before);
            }
        }
    }

    /// The row and the column of a tile, by numbers on the diagonal.
    pub(super) fn place(&self, data: u64) -> Option<(u32, u32)> {
        // Data that is written from nothing everywhere has no diagonal.
        if u64::from(self.diagonals).pow(2) > 4 * self.tiles.len() as u64 + 16 {
            return None;
        }
        match self.tiles.get(&data)? {
            Tile { diagonal: Some(number), .. } => Some((*number, *number)),
            Tile { before: Some(before), after, side, .. } => {
                let after = after.unwrap_or(self.diagonals);
                let is_above = side.is_some_and(|side| self.sides.is_opposite(side));
                Some(if is_above { (*before, after) } else { (after, *before) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(row: u64, column: u64) -> u64 {
        row * 100 + column
    }

    /// The tiles of LU, whose rows and columns are submitted in turn, or the other way round.
    fn lu(tiles: u64, row_first: bool) -> Tiles {
        let mut of = Tiles::default();
        for k in 0..tiles {
            of.note(at(k, k), std::iter::empty());
            for i in k + 1..tiles {
                let (first, second) = if row_first { (at(k, i), at(i, k)) } else { (at(i, k), at(k, i)) };
                of.note(first, [at(k, k)].into_iter());
                of.note(second, [at(k, k)].into_iter());
            }
            for (i, j) in (k + 1..tiles).flat_map(|i| (k + 1..tiles).map(move |j| (i, j))) {
                of.note(at(i, j), [at(i, k), at(k, j)].into_iter());
            }
        }
        of
    }

    #[test]
    fn tiles_of_lu_have_rows_and_columns() {
        let tiles = 6;
        for row_first in [false, true] {
            let of = lu(tiles, row_first);
            for (row, column) in (0..tiles).flat_map(|row| (0..tiles).map(move |column| (row, column))) {
                // Which is which cannot be known: the first tile beside the diagonal counts as one below it.
                let expected = if row_first { (column, row) } else { (row, column) };
                let place = of.place(at(row, column)).map(|(row, column)| (row.into(), column.into()));
                assert_eq!(place, Some(expected), "{row}, {column}");
            }
        }
    }

    #[test]
    fn tiles_of_cholesky_are_below_the_diagonal() {
        let (tiles, mut of) = (6, Tiles::default());
        for k in 0..tiles {
            of.note(at(k, k), std::iter::empty());
            for i in k + 1..tiles {
                of.note(at(i, k), [at(k, k)].into_iter());
            }
            for i in k + 1..tiles {
                of.note(at(i, i), [at(i, k)].into_iter());
                for j in i + 1..tiles {
                    of.note(at(j, i), [at(j, k), at(i, k)].into_iter());
                }
            }
        }
        for (row, column) in (0..tiles).flat_map(|row| (0..=row).map(move |column| (row, column))) {
            assert_eq!(of.place(at(row, column)), Some((row as u32, column as u32)), "{row}, {column}");
        }
    }

    #[test]
    fn data_that_is_written_from_nothing_has_no_place() {
        let mut of = Tiles::default();
        (0..100).for_each(|data| of.note(data, std::iter::empty()));
        assert_eq!(of.place(3), None);
    }
}
