//! Numbers by footprint, read without a lock.

use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// A number for each footprint. Reading takes no lock and allocates nothing; it may return an outdated number.
///
/// Cells are never moved: when the table is full, another piece of twice the size is added.
#[derive(Default)]
pub(crate) struct Table {
    first: OnceLock<Box<Piece>>,
    /// Held while a footprint gets its cell.
    growing: Mutex<()>,
}

struct Piece {
    cells: Box<[Cell]>,
    next: OnceLock<Box<Piece>>,
}

#[derive(Default)]
struct Cell {
    /// The footprint with bit 32 set; 0 while the cell is free.
    key: AtomicU64,
    /// The bits of the number.
    number: AtomicU64,
}

const SMALLEST: usize = 16;
/// Maximum distance of a footprint's cell from its hash position.
const REACH: usize = 8;

impl Piece {
    fn new(size: usize) -> Box<Piece> {
        Box::new(Piece { cells: (0..size).map(|_| Cell::default()).collect(), next: OnceLock::new() })
    }

    fn candidates(&self, footprint: u32) -> impl Iterator<Item = &Cell> {
        let mask = self.cells.len() - 1;
        // The low digits of sizes are often 0.
        let start = (footprint.wrapping_mul(0x9e37_79b9) >> 8) as usize;
        (0..REACH).map(move |step| &self.cells[(start + step) & mask])
    }
}

impl Table {
    /// The number of a footprint, if it has one.
    pub(crate) fn get(&self, footprint: u32) -> Option<f64> {
        self.cell(footprint).map(|cell| f64::from_bits(cell.number.load(Relaxed)))
    }

    fn cell(&self, footprint: u32) -> Option<&Cell> {
        let key = u64::from(footprint) | 1 << 32;
        let mut piece = self.first.get();
        while let Some(here) = piece {
            if let Some(cell) = here.candidates(footprint).find(|cell| cell.key.load(Acquire) == key) {
                return Some(cell);
            }
            piece = here.next.get();
        }
        None
    }

    /// Sets the number of a footprint.
    pub(crate) fn set(&self, footprint: u32, number: f64) {
        if let Some(cell) = self.cell(footprint) {
            cell.number.store(number.to_bits(), Relaxed);
            return;
        }
        let _growing = self.growing.lock();
        if let Some(cell) = self.cell(footprint) {
            cell.number.store(number.to_bits(), Relaxed);
            return;
        }
        let mut piece = self.first.get_or_init(|| Piece::new(SMALLEST));
        loop {
            if let Some(cell) = piece.candidates(footprint).find(|cell| cell.key.load(Relaxed) == 0) {
                cell.number.store(number.to_bits(), Relaxed);
                // The number is written before the footprint.
                cell.key.store(u64::from(footprint) | 1 << 32, Release);
                return;
            }
            piece = piece.next.get_or_init(|| Piece::new(piece.cells.len() * 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(changes in prop::collection::vec((0..400u32, -1e9..1e9f64), 0..1500), stride in 1..5000u32) {
            let (table, mut map) = (Table::default(), HashMap::new());
            for (key, number) in changes {
                let footprint = key.wrapping_mul(stride).wrapping_mul(0x1_0001);
                table.set(footprint, number);
                map.insert(footprint, number);
            }
            for (footprint, number) in &map {
                prop_assert_eq!(table.get(*footprint), Some(*number));
            }
            prop_assert_eq!(table.get(0xffff_fff1).is_some(), map.contains_key(&0xffff_fff1));
        }
    }

    #[test]
    fn readers_see_whole_numbers_while_it_grows() {
        let table = Table::default();
        std::thread::scope(|scope| {
            for part in 0..2u32 {
                let table = &table;
                scope.spawn(move || (0..2000).for_each(|key| table.set(key * 2 + part, f64::from(key * 2 + part))));
            }
            for key in (0..4000).cycle().take(20_000) {
                assert!(table.get(key).is_none_or(|number| number == f64::from(key)));
            }
        });
        assert!((0..4000).all(|key| table.get(key) == Some(f64::from(key))));
    }
}
