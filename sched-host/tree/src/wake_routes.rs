//! Routes from sleeping workers to the children above them, so that a wake on a machine with many workers need not look
//! at all of them.

use super::ledger::NodeId;
use super::place::Place;
use sched_core::WorkerSet;
use sched_core::abi::wire::RawPlace;
use std::ops::Range;

/// Words of worker sets that have workers of the context below a place.
pub(super) fn words(place: &RawPlace<'_>) -> Range<usize> {
    let words = &*place.workers_in_context;
    let first = words.iter().position(|word| *word != 0).unwrap_or(0);
    let last = words.iter().rposition(|word| *word != 0).map_or(first, |last| last + 1);
    first..last
}

/// Child above each worker, if children are in the order of their workers and share none: then the first sleeper is
/// below the first child that has one.
pub(super) struct WakeRoutes {
    /// First worker of the first child.
    start: usize,
    /// For each worker from there on, the number of its child; [`NOBODY`] for workers below no child.
    children: Box<[u32]>,
}

const NOBODY: u32 = u32::MAX;

impl WakeRoutes {
    /// `None` if children share workers or are in another order, or if there are fewer than two.
    pub(super) fn new(children: &[NodeId], places: &[Place]) -> Option<WakeRoutes> {
        if children.len() < 2 {
            return None;
        }
        let mut start = None;
        let mut below = Vec::new();
        for (number, child) in children.iter().enumerate() {
            for worker in WorkerSet::from_words(&places[child.index()].raw().workers_in_context).iter() {
                let start = *start.get_or_insert(worker.index());
                let at = worker.index().checked_sub(start).filter(|at| *at >= below.len())?;
                below.resize(at, NOBODY);
                below.push(number as u32);
            }
        }
        Some(WakeRoutes { start: start?, children: below.into() })
    }

    /// Visits the children above sleepers, in order of their numbers, until `visit` returns true. `asleep` yields the
    /// words with sleepers, ascending and lazily.
    #[inline]
    pub(super) fn to_sleepers(&self, asleep: impl Iterator<Item = (usize, u64)>, mut visit: impl FnMut(u32) -> bool) {
        let mut last = NOBODY;
        for (word, mut left) in asleep {
            while left != 0 {
                let sleeper = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let child = sleeper.checked_sub(self.start).and_then(|at| self.children.get(at)).copied();
                let Some(child) = child.filter(|child| *child != last && *child != NOBODY) else { continue };
                last = child;
                if visit(child) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(workers: &[&[u32]]) -> Vec<Place> {
        let words = |workers: &[u32]| -> WorkerSet { workers.iter().copied().map(sched_core::WorkerId).collect() };
        workers
            .iter()
            .map(|workers| Place::new("", "", "", (words(workers).words(), words(workers).words()), |_| {}))
            .collect()
    }

    fn to_sleepers(routes: &WakeRoutes, words: Range<usize>, asleep: &[u64]) -> Vec<u32> {
        let mut visited = Vec::new();
        routes.to_sleepers(words.map(|word| (word, asleep[word])), |child| {
            visited.push(child);
            false
        });
        visited
    }

    #[test]
    fn sleepers_lead_to_each_child_once_and_in_order() {
        let places = places(&[&[2, 3], &[5], &[70, 71], &[130]]);
        let routes = WakeRoutes::new(&[0, 1, 2, 3].map(NodeId), &places).expect("they stand in order");
        assert_eq!(to_sleepers(&routes, 0..3, &[0b10_1110, 1 << 6 | 1 << 7, 1 << 2]), [0, 1, 2, 3]);
        assert_eq!(to_sleepers(&routes, 0..3, &[0, 1 << 7, 0]), [2]);
        assert_eq!(to_sleepers(&routes, 0..3, &[0b1_0011, 0, 0b1001]), [] as [u32; 0], "they are below no child");
        let mut visited = 0;
        routes.to_sleepers((0..3).map(|word| (word, u64::MAX)), |_| {
            visited += 1;
            visited == 2
        });
        assert_eq!(visited, 2, "that was enough");
        assert_eq!(to_sleepers(&routes, 1..2, &[u64::MAX, 1 << 6, u64::MAX]), [2]);
    }

    #[test]
    fn children_in_another_order_have_no_routes() {
        assert!(WakeRoutes::new(&[1, 0].map(NodeId), &places(&[&[0], &[1]])).is_none());
        assert!(WakeRoutes::new(&[0, 1].map(NodeId), &places(&[&[0, 2], &[1]])).is_none());
        assert!(WakeRoutes::new(&[0, 1].map(NodeId), &places(&[&[0, 1], &[1]])).is_none());
        assert!(WakeRoutes::new(&[0, 1].map(NodeId), &places(&[&[], &[]])).is_none());
        assert!(WakeRoutes::new(&[0].map(NodeId), &places(&[&[0]])).is_none());
    }

    #[test]
    fn words_are_those_with_workers() {
        let places = places(&[&[130, 140], &[], &[3, 70]]);
        let all: Vec<Range<usize>> = places.iter().map(|place| words(place.raw())).collect();
        assert_eq!(all, [2..3, 0..0, 0..2]);
    }
}
