//! Who owns a piece of data: the memory node where every task that writes it is executed.

mod axis;
mod groups;
mod sides;
mod tiles;

use axis::Axis;
use groups::Groups;
use sched_core::{MemoryNode, Node, Submitted, SubmittedTask, WorkerId};
use tiles::Tiles;

/// A worker, and the lengths of all tasks on it.
#[derive(Clone, Copy, Debug)]
struct Hand {
    worker: WorkerId,
    memory: MemoryNode,
    /// Sum of expected lengths in nanoseconds.
    sum: f64,
    /// Number of tasks with a length.
    count: f64,
}

/// Smallest rate of an owner, as a share of that of the fastest.
const LEAST_RATE: f64 = 0.5;

/// Maximum number of places in the grid for one owner.
const MOST_PLACES: f64 = 4.0;

/// How many times the number of owners may be halved: fewer move less data, on slow links that is faster.
pub(crate) const MOST_HALVINGS: usize = 1;

/// A grid of owners, as square as their number allows.
#[derive(Clone, Copy, Default, Debug)]
struct Grid {
    count: usize,
    columns: usize,
}

impl Grid {
    fn of(count: usize) -> Grid {
        let rows =
            (1..=count).take_while(|rows| rows * rows <= count).filter(|rows| count.is_multiple_of(*rows)).last();
        Grid { count, columns: count / rows.unwrap_or(1) }
    }
}

/// See the [module](self). Learns from the tasks in the order of their submission.
#[derive(Default, Debug)]
pub(crate) struct Owners {
    /// One past the last task seen.
    seen: u64,
    /// Number of tasks seen.
    count: u64,
    tiles: Tiles,
    axis: Axis,
    groups: Groups,
    /// Number of tasks seen that write something, and of those that write more than one piece of data.
    writing: u64,
    joining: u64,
    hands: Vec<Hand>,
    /// Whether workers joined or left since tasks were seen.
    has_other_workers: bool,
    /// Number of tasks seen when the grid was made.
    grid_of: u64,
    /// The owners, row by row.
    owners: Vec<MemoryNode>,
    /// By how many times their number is halved: the grid of the first of them.
    grids: [Grid; 1 + MOST_HALVINGS],
}

impl Owners {
    /// Learns from the tasks submitted since the last call.
    pub(crate) fn learn(&mut self, node: Node<'_>, submitted: Submitted<'_>) {
        let range = submitted.range();
        if range.end <= self.seen && !self.has_other_workers {
            return;
        }
        if self.hands.is_empty() {
            let hand = |worker| Some(Hand { worker, memory: node.memory_node(worker)?, sum: 0.0, count: 0.0 });
            self.hands = node.each_worker_in_context().filter_map(hand).collect();
        }
        if std::mem::take(&mut self.has_other_workers) {
            // The places of tiles are known; the speed of these workers is that for the tasks that are left.
            (range.start..self.seen.min(range.end)).for_each(|sequence| self.measure(submitted, sequence));
        }
        for sequence in range.start.max(self.seen)..range.end {
            if let Some(task) = submitted.task(sequence).filter(|task| !task.passes) {
                self.add(submitted, sequence, task);
            }
        }
        self.seen = range.end;
        // The first tasks are not typical: those of a factorisation belong to its first column.
        if self.count >= 2 * self.grid_of {
            self.lay_grid();
        }
    }

    /// Forgets the workers, some of which may have gone.
    pub(crate) fn forget_workers(&mut self) {
        (self.hands, self.owners, self.grid_of) = (Vec::new(), Vec::new(), 0);
        self.has_other_workers = self.seen > 0;
    }

    fn add(&mut self, submitted: Submitted<'_>, sequence: u64, task: SubmittedTask) {
        self.count += 1;
        self.measure(submitted, sequence);
        let Some(written) = written(submitted, sequence, task) else { return };
        let accesses = || submitted.accesses(sequence, task);
        self.note_written(accesses().filter(|access| access.writes).map(|access| access.data));
        let read = accesses().filter(|access| access.reads && access.data != written);
        self.tiles.note(written, read.map(|access| access.data));
        self.axis.note(written, accesses().filter(|access| access.reads).map(|access| access.data));
    }

    /// Takes note of what one task writes.
    fn note_written(&mut self, data: impl Iterator<Item = u64>) {
        self.writing += 1;
        self.joining += u64::from(self.groups.note(data) > 1);
    }

    /// Adds the length of a task on each worker.
    fn measure(&mut self, submitted: Submitted<'_>, sequence: u64) {
        for hand in &mut self.hands {
            if let Some(length) = submitted.expected_length(sequence, hand.worker).known() {
                (hand.sum, hand.count) = (hand.sum + length.as_nanos() as f64, hand.count + 1.0);
            }
        }
    }

    /// Places the memory nodes whose workers are fast in a grid, faster ones more than once, and data on its axis.
    fn lay_grid(&mut self) {
        self.grid_of = self.count;
        self.groups.renumber();
        self.axis.spread();
        let mut rates: Vec<(MemoryNode, f64)> = Vec::new();
        for hand in self.hands.iter().filter(|hand| hand.sum > 0.0) {
            let rate = hand.count / hand.sum;
            match rates.iter_mut().find(|(memory, _)| *memory == hand.memory) {
                Some((_, of_memory)) => *of_memory += rate,
                None => rates.push((hand.memory, rate)),
            }
        }
        let fastest = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        rates.retain(|(_, rate)| *rate >= LEAST_RATE * fastest);
        rates.sort_by_key(|(memory, _)| *memory);
        let slowest = rates.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min);
        let places = |rate: f64| (rate / slowest).round().clamp(1.0, MOST_PLACES) as usize;
        self.owners = rates.iter().flat_map(|(memory, rate)| std::iter::repeat_n(*memory, places(*rate))).collect();
        self.grids = std::array::from_fn(|halvings| Grid::of(self.owners.len().div_ceil(1 << halvings)));
    }

    /// Whether a memory node owns data.
    pub(crate) fn is_owner(&self, memory: MemoryNode) -> bool {
        self.owners.contains(&memory)
    }

    /// The memory node that owns what a task writes, where the number of owners is halved that many times; `None` if it
    /// writes nothing.
    pub(crate) fn of_task(&self, submitted: Submitted<'_>, sequence: u64, halvings: usize) -> Option<MemoryNode> {
        self.of_data(written(submitted, sequence, submitted.task(sequence)?)?, halvings)
    }

    /// Whether data that is written together belongs together: that is most of the data, and in enough groups.
    fn are_grouped(&self) -> bool {
        2 * self.joining > self.writing && self.groups.count() >= self.owners.len()
    }

    fn of_data(&self, data: u64, halvings: usize) -> Option<MemoryNode> {
        let Grid { count, columns } = self.grids[halvings];
        // Without any expected lengths nobody is known to be fast.
        let rows = count.checked_div(columns).filter(|rows| *rows > 0)?;
        let at = if self.are_grouped() {
            self.groups.number(data)? % count
        } else if let Some((row, column)) = self.tiles.place(data) {
            (row as usize % rows) * columns + column as usize % columns
        } else {
            (self.axis.place(data)? * count as f64) as usize
        };
        self.owners.get(at).copied()
    }
}

/// The first piece of data that a task writes.
fn written(submitted: Submitted<'_>, sequence: u64, task: SubmittedTask) -> Option<u64> {
    submitted.accesses(sequence, task).find(|access| access.writes).map(|access| access.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(row: u64, column: u64) -> u64 {
        row * 100 + column
    }

    fn on(devices: u32) -> Owners {
        let hand = |memory| Hand { worker: WorkerId(memory), memory: MemoryNode(memory), sum: 10.0, count: 1.0 };
        let mut owners = Owners { hands: (0..devices).map(hand).collect(), ..Owners::default() };
        owners.lay_grid();
        owners
    }

    #[test]
    fn the_tiles_of_a_factorisation_are_dealt_by_row_and_column() {
        let (tiles, mut owners) = (6, on(4));
        for k in 0..tiles {
            owners.tiles.note(at(k, k), std::iter::empty());
            for i in k + 1..tiles {
                owners.tiles.note(at(i, k), [at(k, k)].into_iter());
            }
            for i in k + 1..tiles {
                owners.tiles.note(at(i, i), [at(i, k)].into_iter());
                for j in i + 1..tiles {
                    owners.tiles.note(at(j, i), [at(j, k), at(i, k)].into_iter());
                }
            }
        }
        for (row, column) in (0..tiles).flat_map(|row| (0..=row).map(move |column| (row, column))) {
            let expected = MemoryNode((row % 2 * 2 + column % 2) as u32);
            assert_eq!(owners.of_data(at(row, column), 0), Some(expected), "{row}, {column}");
        }
    }

    #[test]
    fn tiles_that_are_written_together_have_one_owner() {
        // QR: a task writes two tiles of a column.
        let (tiles, mut owners) = (7, on(3));
        for k in 0..tiles {
            owners.note_written([at(k, k)].into_iter());
            (k + 1..tiles).for_each(|j| owners.note_written([at(k, j)].into_iter()));
            for i in k + 1..tiles {
                (k..tiles).for_each(|j| owners.note_written([at(k, j), at(i, j)].into_iter()));
            }
        }
        owners.lay_grid();
        for (row, column) in (0..tiles).flat_map(|row| (0..tiles).map(move |column| (row, column))) {
            assert_eq!(owners.of_data(at(row, column), 0), Some(MemoryNode(column as u32 % 3)), "{row}, {column}");
        }
        // Of too few groups not every owner would get one.
        let (mut few, data) = (on(3), || [5, 6].into_iter());
        few.note_written(data());
        data().for_each(|data| few.axis.note(data, std::iter::empty()));
        few.lay_grid();
        assert_eq!([5, 6].map(|data| few.of_data(data, 0)), [0, 2].map(|memory| Some(MemoryNode(memory))));
    }

    /// Owners of 100 pieces of data that are computed from nothing.
    fn of_a_hundred(devices: u32) -> Owners {
        let mut owners = on(devices);
        for data in 0..100 {
            owners.tiles.note(data, std::iter::empty());
            owners.axis.note(data, std::iter::empty());
        }
        owners.lay_grid();
        owners
    }

    #[test]
    fn data_without_a_diagonal_is_dealt_in_blocks_and_fast_memories_own_more() {
        let mut owners = of_a_hundred(4);
        let of = |owners: &Owners, halvings| {
            [0, 24, 25, 49, 50, 99].map(|data| owners.of_data(data, halvings).map(|memory| memory.0))
        };
        assert_eq!(of(&owners, 0), [0, 0, 1, 1, 2, 3].map(Some));
        assert_eq!(of(&owners, 1), [0, 0, 0, 0, 1, 1].map(Some), "half as many owners");
        assert_eq!(owners.of_data(100, 0), None, "no task computes it");
        let hand = |memory, sum| Hand { worker: WorkerId(memory), memory: MemoryNode(memory), sum, count: 1.0 };
        owners.hands = vec![hand(0, 100.0), hand(1, 10.0), hand(2, 20.0)];
        owners.lay_grid();
        assert_eq!(owners.owners, [1, 1, 2].map(MemoryNode));
        assert!(!owners.is_owner(MemoryNode(0)), "its workers are slow");
    }

    #[test]
    fn half_the_owners_stand_in_a_grid_of_their_own() {
        let grids = [1, 4, 6, 7].map(|devices| on(devices).grids.map(|Grid { count, columns }| (count, columns)));
        assert_eq!(grids, [[(1, 1), (1, 1)], [(4, 2), (2, 2)], [(6, 3), (3, 3)], [(7, 7), (4, 2)]]);
    }

    #[test]
    fn without_expected_lengths_nobody_owns_data() {
        let mut owners = on(2);
        (0..10).for_each(|data| owners.tiles.note(data, std::iter::empty()));
        owners.hands.iter_mut().for_each(|hand| hand.sum = 0.0);
        owners.lay_grid();
        assert_eq!(owners.of_data(3, 0), None);
    }
}
