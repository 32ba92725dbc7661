//! Data along an axis: what is computed from each other lies close together.
//!
//! Pieces of data that are not the tiles of a matrix mostly are the parts of something with one dimension, such as the
//! columns of a stencil, and a task reads the neighbours of what it writes. Each piece has a level: 0 if it was there
//! before all tasks or is computed from nothing, or else one more than what its first writer reads. The pieces of a level
//! are spread evenly over the axis, in the order of the medians of what they are computed from; what is at one place, in
//! the order of submission.

use std::cmp::Ordering;
use std::collections::HashMap;

/// Maximum number of pieces of data that the place of another one is computed from.
const MOST_READ: usize = 64;

/// Share of the axis between pieces that are computed from nothing, until they are spread: the golden section, by which
/// any number of them lie nearly evenly.
const APART: f64 = 0.618_033_988_749_895;

/// A piece of data.
#[derive(Debug)]
struct Piece {
    level: usize,
    /// What its first writer reads.
    computed_from: Vec<u64>,
    /// Between 0 and 1.
    place: f64,
}

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Axis {
    pieces: HashMap<u64, Piece>,
    /// The pieces of each level, in the order of submission.
    levels: Vec<Vec<u64>>,
}

impl Axis {
    /// Takes note that a task computes the piece `written` from those `read`, which include it unless it is overwritten.
    /// Tasks come in the order of their submission.
    pub(super) fn note(&mut self, written: u64, read: impl Iterator<Item = u64>) {
        let mut computed_from: Vec<u64> = read.take(MOST_READ).collect();
        for data in &computed_from {
            if !self.pieces.contains_key(data) {
                self.add(*data, 0, Vec::new());
            }
        }
        if !self.pieces.contains_key(&written) {
            let level = computed_from.iter().map(|data| self.pieces[data].level + 1).max().unwrap_or(0);
            computed_from.shrink_to_fit();
            self.add(written, level, computed_from);
        }
    }

    fn add(&mut self, data: u64, level: usize, computed_from: Vec<u64>) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        // It lies with what it is computed from, until all of its level is spread.
        let place = match computed_from.is_empty() {
            true => (APART * self.levels[level].len() as f64).fract(),
            false => self.median(&computed_from),
        };
        self.levels[level].push(data);
        self.pieces.insert(data, Piece { level, computed_from, place });
    }

    /// The median of the places of some pieces; the lower one of two.
    fn median(&self, of: &[u64]) -> f64 {
        let mut places: Vec<f64> = of.iter().map(|data| self.pieces[data].place).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.get(places.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
    }

    /// Spreads the pieces of each level evenly.
    pub(super) fn spread(&mut self) {
        for level in 0..self.levels.len() {
            let pieces = std::mem::take(&mut self.levels[level]);
            let mut order: Vec<(f64, u64)> =
                pieces.iter().map(|data| (self.median(&self.pieces[data].computed_from), *data)).collect();
            // Stable: what is at one place stays in its order.
            order.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
            for (number, (_, data)) in order.iter().enumerate() {
                if let Some(piece) = self.pieces.get_mut(data) {
                    piece.place = (number as f64 + 0.5) / order.len() as f64;
                }
            }
            self.levels[level] = pieces;
        }
    }

    /// Where a piece of data lies, between 0 and 1.
    pub(super) fn place(&self, data: u64) -> Option<f64> {
        Some(self.pieces.get(&data)?.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The places of some pieces, in thousandths.
    fn places(axis: &Axis, of: impl IntoIterator<Item = u64>) -> Vec<Option<u32>> {
        of.into_iter().map(|data| Some((1000.0 * axis.place(data)?).round() as u32)).collect()
    }

    #[test]
    fn the_columns_of_a_stencil_lie_side_by_side_in_both_of_its_rows() {
        let (columns, mut axis) = (5_u64, Axis::default());
        for step in 0..4_u64 {
            let at = |step: u64, column: u64| step % 2 * 100 + column;
            for column in 0..columns {
                let around = column.saturating_sub(1)..columns.min(column + 2);
                let read = around.filter(|_| step > 0).map(|column| at(step + 1, column));
                axis.note(at(step, column), read);
            }
        }
        axis.spread();
        for row in [0, 100] {
            let row = (0..columns).map(|column| row + column);
            assert_eq!(places(&axis, row), [100, 300, 500, 700, 900].map(Some));
        }
    }

    #[test]
    fn what_was_there_before_lies_in_the_order_in_which_it_is_first_read() {
        let mut axis = Axis::default();
        for step in 0..6 {
            let column = step % 3;
            axis.note(column, [column, (column + 1) % 3].into_iter());
        }
        axis.spread();
        assert_eq!(places(&axis, 0..4), [Some(167), Some(500), Some(833), None]);
    }

    #[test]
    fn the_branches_of_a_tree_spread_in_the_order_of_their_parents() {
        let mut axis = Axis::default();
        axis.note(0, std::iter::empty());
        axis.note(1, [0].into_iter());
        axis.note(2, [0].into_iter());
        axis.spread();
        // The branches of the second one are submitted first.
        [(5, 2), (6, 2), (3, 1), (4, 1)].into_iter().for_each(|(child, parent)| axis.note(child, [parent].into_iter()));
        assert_eq!(places(&axis, 3..7), [250, 250, 750, 750].map(Some), "with their parents at first");
        axis.spread();
        assert_eq!(places(&axis, 0..7), [500, 250, 750, 125, 375, 625, 875].map(Some));
    }

    #[test]
    fn what_is_computed_from_nothing_lies_evenly_before_it_is_spread() {
        let mut axis = Axis::default();
        (0..8).for_each(|data| axis.note(data, std::iter::empty()));
        axis.spread();
        // Each quarter gets its part of those that come later.
        (8..40).for_each(|data| axis.note(data, std::iter::empty()));
        let mut quarters = [0; 4];
        (8..40).filter_map(|data| axis.place(data)).for_each(|place| quarters[(4.0 * place) as usize] += 1);
        assert!(quarters.iter().all(|count| (7..=9).contains(count)), "{quarters:?}");
    }

    proptest! {
        #[test]
        fn each_level_is_spread_evenly(
            tasks in prop::collection::vec((0..30_u64, prop::collection::vec(0..30_u64, 0..80)), 1..60),
        ) {
            let mut axis = Axis::default();
            tasks.iter().for_each(|(written, read)| axis.note(*written, read.iter().copied()));
            axis.spread();
            for level in &axis.levels {
                let mut places: Vec<f64> = level.iter().filter_map(|data| axis.place(*data)).collect();
                places.sort_unstable_by(f64::total_cmp);
                let even = (0..level.len()).map(|number| (number as f64 + 0.5) / level.len() as f64);
                prop_assert_eq!(places, even.collect::<Vec<_>>());
            }
        }
    }
}
