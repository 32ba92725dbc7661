//! Dependencies between the tasks of a graph.

use super::{Access, AccessMode, AccessOrder, TaskGraph, TaskId};

/// Dependencies between the tasks of a graph: those that follow from accesses to the same data by the rule of
/// [`AccessOrder`], and those that tasks name in [`after`](super::Task::after). Only the nearest such tasks are named:
/// a task that waits for two of which one waits for the other through the same data waits for the later one.
///
/// Commuting tasks may run in any order, one at a time, which dependencies cannot express: the executor must ensure it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependencies {
    predecessors: Lists,
    successors: Lists,
}

impl Dependencies {
    pub(super) fn of(graph: &TaskGraph) -> Dependencies {
        let mut predecessors = Lists::with_capacity(graph.tasks.len());
        Dependencies::each(graph, |before| {
            predecessors.push(before);
            true
        });
        let successors = predecessors.turned_round();
        Dependencies { predecessors, successors }
    }

    /// Number of the dependencies of `graph`; `None` if there are more than `most`. Each of many tasks that read a
    /// value waits for each of the many that have added to it in any order, so that the number may be far larger than
    /// the graph.
    ///
    /// ```
    /// use sched_graph::{AccessMode, Datum, Dependencies, Task, TaskGraph};
    ///
    /// let mut graph = TaskGraph::new("sum");
    /// let (kind, data) = (graph.add_kind("k"), graph.add_data(Datum::new(8)));
    /// for mode in [AccessMode::Commute, AccessMode::Read] {
    ///     (0..1000).for_each(|_| _ = graph.add_task(Task::new(kind).access(data, mode)));
    /// }
    /// assert_eq!(Dependencies::count(&graph, 2_000_000), Some(1_000_000));
    /// assert_eq!(Dependencies::count(&graph, 500_000), None);
    /// ```
    #[must_use]
    pub fn count(graph: &TaskGraph, most: usize) -> Option<usize> {
        let mut count = 0;
        Dependencies::each(graph, |before| {
            count += before.len();
            count <= most
        });
        (count <= most).then_some(count)
    }

    /// Passes on what each task waits for, in the order of the tasks, while `goes_on`.
    fn each(graph: &TaskGraph, mut goes_on: impl FnMut(&[TaskId]) -> bool) {
        let mut data = vec![AccessOrder::default(); graph.data.len()];
        let mut found: Vec<TaskId> = Vec::new();
        for (id, task) in graph.ids().zip(&graph.tasks) {
            found.extend_from_slice(&task.after);
            for Access { data: accessed, mode } in &task.accesses {
                data[accessed.index()].access(id, *mode, |before| found.push(before), |_| false);
            }
            found.sort_unstable();
            found.dedup();
            // A task that accesses the same data twice does not wait for itself.
            found.retain(|before| *before != id);
            if !goes_on(&found) {
                return;
            }
            found.clear();
        }
    }

    /// The dependencies of `graph` that hold wherever its tasks run, even if each has copies of its own of what others
    /// overwrite: on those that make what a task reads, and those that it names. So two tasks that write data without
    /// reading it are not in order, nor is a task that overwrites what another has read, nor one that adds to what
    /// another has written.
    ///
    /// ```
    /// use sched_graph::{AccessMode, Datum, Dependencies, Task, TaskGraph, TaskId};
    /// let mut graph = TaskGraph::new("write, read, write");
    /// let (kind, data) = (graph.add_kind("k"), graph.add_data(Datum::new(8)));
    /// for mode in [AccessMode::Write, AccessMode::Read, AccessMode::Write] {
    ///     graph.add_task(Task::new(kind).access(data, mode));
    /// }
    /// let flows = Dependencies::of_flows(&graph);
    /// assert_eq!(flows.predecessors(TaskId(1)), [TaskId(0)]);
    /// assert_eq!((flows.predecessors(TaskId(2)), graph.dependencies().predecessors(TaskId(2))), (&[][..], &[TaskId(1)][..]));
    /// ```
    #[must_use]
    pub fn of_flows(graph: &TaskGraph) -> Dependencies {
        let mut made = vec![Made::default(); graph.data.len()];
        let mut predecessors = Lists::with_capacity(graph.tasks.len());
        let mut found: Vec<TaskId> = Vec::new();
        for (id, task) in graph.ids().zip(&graph.tasks) {
            found.extend_from_slice(&task.after);
            for Access { data, mode } in &task.accesses {
                made[data.index()].access(id, *mode, &mut found);
            }
            found.sort_unstable();
            found.dedup();
            found.retain(|before| *before != id);
            predecessors.push(&found);
            found.clear();
        }
        let successors = predecessors.turned_round();
        Dependencies { predecessors, successors }
    }

    /// Tasks that `task` waits for, in the order of submission.
    ///
    /// # Panics
    /// If there is no such task; so does [`successors`](Self::successors).
    #[inline]
    #[must_use]
    pub fn predecessors(&self, task: TaskId) -> &[TaskId] {
        self.predecessors.get(task)
    }

    /// Tasks that wait for `task`, in the order of submission.
    #[inline]
    #[must_use]
    pub fn successors(&self, task: TaskId) -> &[TaskId] {
        self.successors.get(task)
    }

    /// Number of tasks.
    #[inline]
    #[must_use]
    pub fn n_tasks(&self) -> usize {
        self.predecessors.len()
    }

    /// Number of dependencies: pairs of a task and one that waits for it.
    #[inline]
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.predecessors.items.len()
    }

    /// Tasks that wait for nothing, in the order of submission.
    #[inline]
    pub fn entries(&self) -> impl Iterator<Item = TaskId> {
        (0..self.n_tasks() as u32).map(TaskId).filter(|task| self.predecessors(*task).is_empty())
    }

    /// Tasks that nothing waits for, in the order of submission.
    #[inline]
    pub fn exits(&self) -> impl Iterator<Item = TaskId> {
        (0..self.n_tasks() as u32).map(TaskId).filter(|task| self.successors(*task).is_empty())
    }
}

/// The tasks that have made the value of a datum.
#[derive(Clone, Default)]
struct Made {
    /// The last that wrote it alone.
    alone: Option<TaskId>,
    /// Those that have added to it in any order since.
    together: Vec<TaskId>,
}

impl Made {
    /// Notes an access, and adds those that have made what it reads.
    fn access(&mut self, task: TaskId, mode: AccessMode, makers: &mut Vec<TaskId>) {
        match mode {
            AccessMode::Scratch => {}
            AccessMode::Commute => {
                makers.extend(self.alone);
                self.together.push(task);
            }
            // It adds to a part of its own, which meets the value when somebody reads that.
            AccessMode::Redux => self.together.push(task),
            AccessMode::Read | AccessMode::Write | AccessMode::ReadWrite => {
                if mode.reads() {
                    makers.extend(self.alone);
                    makers.extend_from_slice(&self.together);
                }
                if mode.writes() {
                    *self = Made { alone: Some(task), together: Vec::new() };
                }
            }
        }
    }
}

/// A list for each task, stored one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Lists {
    /// Start of each list, and the end of the last one.
    starts: Vec<u32>,
    items: Vec<TaskId>,
}

impl Lists {
    fn with_capacity(tasks: usize) -> Lists {
        let mut starts = Vec::with_capacity(tasks + 1);
        starts.push(0);
        Lists { starts, items: Vec::with_capacity(tasks) }
    }

    fn push(&mut self, list: &[TaskId]) {
        self.items.extend_from_slice(list);
        self.starts.push(u32::try_from(self.items.len()).expect("2³² dependencies do not fit into memory"));
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    fn get(&self, task: TaskId) -> &[TaskId] {
        &self.items[self.starts[task.index()] as usize..self.starts[task.index() + 1] as usize]
    }

    /// The inverse: for each task, the tasks whose lists contain it.
    fn turned_round(&self) -> Lists {
        let mut starts = vec![0u32; self.starts.len()];
        for item in &self.items {
            starts[item.index() + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut items = vec![TaskId(0); self.items.len()];
        for list in 0..self.len() as u32 {
            for item in self.get(TaskId(list)) {
                let place = &mut next[item.index()];
                items[*place as usize] = TaskId(list);
                *place += 1;
            }
        }
        Lists { starts, items }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AccessMode, DataId, Datum, Task};
    use super::*;
    use proptest::prelude::*;

    /// Tasks that access data as `text` says: `r0 w1` is one that reads data 0 and writes data 1; `|` separates tasks.
    fn graph(text: &str) -> TaskGraph {
        let mut graph = TaskGraph::new(text);
        let kind = graph.add_kind("k");
        for _ in 0..10 {
            graph.add_data(Datum::new(8));
        }
        for words in text.split('|') {
            let mut task = Task::new(kind);
            for word in words.split_whitespace() {
                let (mode, number) = word.split_at(1);
                let number: u32 = number.parse().expect("tests write numbers");
                task = match mode {
                    "r" => task.access(DataId(number), AccessMode::Read),
                    "w" => task.access(DataId(number), AccessMode::Write),
                    "x" => task.access(DataId(number), AccessMode::ReadWrite),
                    "c" => task.access(DataId(number), AccessMode::Commute),
                    "s" => task.access(DataId(number), AccessMode::Scratch),
                    _ => task.after(TaskId(number)),
                };
            }
            graph.add_task(task);
        }
        graph
    }

    fn waits(text: &str) -> String {
        let dependencies = graph(text).dependencies();
        let numbers = |tasks: &[TaskId]| tasks.iter().map(|task| task.0.to_string()).collect::<Vec<_>>().join(",");
        let lists = (0..dependencies.n_tasks() as u32).map(|task| numbers(dependencies.predecessors(TaskId(task))));
        lists.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn accesses_to_the_same_data_keep_their_order_and_readers_may_run_together() {
        assert_eq!(waits("w0|r0|r0|x0|r0"), "|0|0|1,2|3");
        assert_eq!(waits("r0|r0|w0"), "||0,1");
        assert_eq!(waits("w0|w1|r0 r1|w0|w1"), "||0,1|2|2");
    }

    #[test]
    fn commuting_tasks_wait_for_what_was_before_all_of_them() {
        assert_eq!(waits("w0|c0|c0|r0|c0|c0|w0"), "|0|0|1,2|3|3|4,5");
    }

    #[test]
    fn scratch_orders_nothing_and_after_does() {
        assert_eq!(waits("s0|s0|w1 s0|a0 r1"), "|||0,2");
    }

    #[test]
    fn data_named_twice_makes_no_task_wait_for_itself() {
        assert_eq!(waits("w0|r0 x0|r0 a1"), "|0|1");
    }

    #[test]
    fn entries_wait_for_nothing_and_nothing_waits_for_exits() {
        let dependencies = graph("w0|w1|r0 r1 w2|r2|w9").dependencies();
        assert_eq!(dependencies.entries().collect::<Vec<_>>(), [0, 1, 4].map(TaskId));
        assert_eq!(dependencies.exits().collect::<Vec<_>>(), [3, 4].map(TaskId));
        assert_eq!(dependencies.n_edges(), 3);
    }

    proptest! {
        /// Whether a path leads from one task to the other is what the definition says, for all pairs.
        #[test]
        fn conflicting_accesses_are_ordered_and_no_others(
            tasks in prop::collection::vec(prop::collection::vec((0u32..3, 0usize..5), 0..3), 1..14),
        ) {
            const MODES: [(&str, AccessMode); 5] = [("r", AccessMode::Read), ("w", AccessMode::Write), ("x", AccessMode::ReadWrite), ("c", AccessMode::Commute), ("s", AccessMode::Scratch)];
            // One access to each data: two that conflict within a task mean nothing.
            let tasks: Vec<Vec<(u32, usize)>> = tasks.into_iter().map(|mut accesses| {
                accesses.sort_unstable();
                accesses.dedup_by_key(|access| access.0);
                accesses
            }).collect();
            let text: Vec<String> = tasks.iter().map(|accesses| {
                accesses.iter().map(|(data, mode)| format!("{}{data}", MODES[*mode].0)).collect::<Vec<_>>().join(" ")
            }).collect();
            let dependencies = graph(&text.join("|")).dependencies();
            let conflict = |a: &[(u32, usize)], b: &[(u32, usize)]| a.iter().any(|(x, m)| b.iter().any(|(y, n)| {
                let (m, n) = (MODES[*m].1, MODES[*n].1);
                x == y && (m.writes() || n.writes()) && m != AccessMode::Scratch && n != AccessMode::Scratch && (m, n) != (AccessMode::Commute, AccessMode::Commute)
            }));
            let closed = |edge: &dyn Fn(usize, usize) -> bool| {
                let mut reaches = vec![vec![false; tasks.len()]; tasks.len()];
                for (from, to) in (0..tasks.len()).flat_map(|to| (0..to).rev().map(move |from| (from, to))) {
                    reaches[from][to] = edge(from, to) || (from + 1..to).any(|by| edge(from, by) && reaches[by][to]);
                }
                reaches
            };
            let expected = closed(&|from, to| conflict(&tasks[from], &tasks[to]));
            let got = closed(&|from, to| dependencies.predecessors(TaskId(to as u32)).contains(&TaskId(from as u32)));
            prop_assert_eq!(expected, got);
            for from in 0..tasks.len() as u32 {
                for to in dependencies.successors(TaskId(from)) {
                    prop_assert!(dependencies.predecessors(*to).contains(&TaskId(from)));
                }
            }
        }
    }
}
