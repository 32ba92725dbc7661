//! Data with parts in a task graph.

use super::{AccessMode, DataId, Datum, Region, Task, TaskGraph};

/// An array or a matrix of a graph whose tasks access parts that may overlap.
///
/// Graphs have data, not parts. So the whole is divided into pieces that no part divides further, each a [`Datum`], and
/// a task that names a part accesses all pieces of it. What follows from accesses is right without more: the order of
/// tasks, transfers (a task on the whole gathers the pieces), and bounds. A file has the pieces, as data.
///
/// ```
/// use sched_graph::{AccessMode, DividedData, Region, Task, TaskGraph};
///
/// let mut graph = TaskGraph::new("a stencil, and a sum");
/// let (step, sum) = (graph.add_kind("step"), graph.add_kind("sum"));
/// let range = |rows| Region { rows, columns: 0..1 };
/// let (halves, wider) = ([range(0..50), range(50..100)], [range(0..51), range(49..100)]);
/// let [old, new] = [(); 2].map(|()| DividedData::add(&mut graph, range(0..100), 8, halves.iter().chain(&wider)));
/// let steps = [0, 1].map(|half| {
///     let task = old.access(Task::new(step), &wider[half], AccessMode::Read);
///     graph.add_task(new.access(task, &halves[half], AccessMode::Write))
/// });
/// let sum = graph.add_task(new.access(Task::new(sum), &range(0..100), AccessMode::Read));
/// assert_eq!(graph.dependencies().predecessors(sum), steps);
/// assert_eq!(graph.bytes_of(graph.task(steps[0])), 8 * (51 + 50));
/// ```
#[derive(Clone, Debug)]
pub struct DividedData {
    pieces: Vec<(Region, DataId)>,
}

impl DividedData {
    /// Adds data whose elements have this size in bytes, in main memory, for tasks that access the whole or these
    /// parts.
    pub fn add<'r>(
        graph: &mut TaskGraph,
        whole: Region,
        element: u64,
        parts: impl IntoIterator<Item = &'r Region>,
    ) -> DividedData {
        let mut pieces = vec![whole];
        for part in parts {
            let is_across = |piece: &Region| piece.overlaps(part) && !part.contains(piece);
            let across: Vec<Region> = pieces.extract_if(.., |piece| is_across(piece)).collect();
            for piece in across {
                pieces.extend(piece.minus(part).chain([piece.intersection(part)]));
            }
        }
        pieces.sort_by_key(|piece| (piece.rows.start, piece.columns.start));
        let mut add = |piece: Region| {
            let id = graph.add_data(Datum::new(piece.len() as u64 * element));
            (piece, id)
        };
        DividedData { pieces: pieces.into_iter().map(&mut add).collect() }
    }

    /// The pieces of a part, as data of the graph.
    pub fn pieces(&self, part: &Region) -> impl Iterator<Item = DataId> {
        self.pieces.iter().filter(|(piece, _)| piece.overlaps(part)).map(|(_, data)| *data)
    }

    /// Adds an access to a part.
    #[must_use]
    pub fn access(&self, task: Task, part: &Region, mode: AccessMode) -> Task {
        self.pieces(part).fold(task, |task, data| task.access(data, mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PartId, RegionOrder, TaskId};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::ops::Range;

    const SIDE: usize = 8;

    fn range() -> impl Strategy<Value = Range<usize>> {
        (0..SIDE, 1..=SIDE).prop_map(|(start, length)| start..(start + length).min(SIDE))
    }

    proptest! {
        /// The order of tasks is that of the runtime.
        #[test]
        fn pieces_order_tasks_as_parts_do(
            parts in prop::collection::vec((range(), range()), 1..8),
            tasks in prop::collection::vec((any::<prop::sample::Index>(), 0..3usize), 1..40),
        ) {
            let whole = Region { rows: 0..SIDE, columns: 0..SIDE };
            let parts: Vec<Region> =
                parts.into_iter().map(|(rows, columns)| Region { rows, columns }).chain([whole.clone()]).collect();
            let mut graph = TaskGraph::new("random");
            let kind = graph.add_kind("any");
            let divided = DividedData::add(&mut graph, whole.clone(), 4, &parts);
            let mut order = RegionOrder::new(whole);
            let ids = order.add(PartId::WHOLE, &parts);
            let mut expected: Vec<BTreeSet<TaskId>> = Vec::new();
            for (number, (part, mode)) in tasks.into_iter().enumerate() {
                let (part, mode) = (part.index(parts.len()), [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite][mode]);
                let id = graph.add_task(divided.access(Task::new(kind), &parts[part], mode));
                prop_assert_eq!(id, TaskId(number as u32));
                prop_assert_eq!(graph.bytes_of(graph.task(id)), 4 * parts[part].len() as u64);
                let mut before = BTreeSet::new();
                let wait_for = |task| {
                    before.insert(task);
                    true
                };
                order.access(id, ids[part], mode, wait_for, |_| false);
                let further: BTreeSet<TaskId> = before.iter().flat_map(|task| expected[task.index()].clone()).collect();
                expected.push(before.into_iter().chain(further).collect());
            }
            let dependencies = graph.dependencies();
            let mut found: Vec<BTreeSet<TaskId>> = Vec::new();
            for task in graph.ids() {
                let before = dependencies.predecessors(task);
                let further = before.iter().flat_map(|task| found[task.index()].clone());
                found.push(before.iter().copied().chain(further).collect());
            }
            prop_assert_eq!(found, expected);
        }
    }
}
