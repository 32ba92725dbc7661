//! Bytes that tasks hand to each other.

use super::{DataId, TaskGraph, TaskId};

/// Bytes that each task receives from the tasks that last wrote what it reads.
///
/// Data that no task wrote before comes from none. Of tasks that commute, the last one submitted counts as the writer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flows {
    /// Start of the flows into each task, and the end of the last ones.
    starts: Vec<u32>,
    flows: Vec<(TaskId, u64)>,
}

impl Flows {
    /// The flows of `graph`.
    #[must_use]
    pub fn of(graph: &TaskGraph) -> Flows {
        let mut writer: Vec<Option<TaskId>> = vec![None; graph.data.len()];
        let mut starts = Vec::with_capacity(graph.tasks.len() + 1);
        starts.push(0);
        let mut flows: Vec<(TaskId, u64)> = Vec::new();
        let mut received: Vec<(TaskId, DataId)> = Vec::new();
        for (id, task) in graph.ids().zip(&graph.tasks) {
            let first = flows.len();
            let read = task.accesses.iter().filter(|access| access.mode.reads());
            received.extend(read.filter_map(|access| Some((writer[access.data.index()]?, access.data))));
            received.sort_unstable();
            // A task may name data twice, which it receives once.
            received.dedup();
            flows.extend(received.drain(..).map(|(from, data)| (from, graph.data[data.index()].bytes)));
            for access in task.accesses.iter().filter(|access| access.mode.writes()) {
                writer[access.data.index()] = Some(id);
            }
            // Flows from the same task are added up.
            let mut kept = first;
            for at in first..flows.len() {
                if at > first && flows[kept - 1].0 == flows[at].0 {
                    flows[kept - 1].1 = flows[kept - 1].1.saturating_add(flows[at].1);
                } else {
                    flows[kept] = flows[at];
                    kept += 1;
                }
            }
            flows.truncate(kept);
            starts.push(u32::try_from(flows.len()).expect("2³² flows do not fit into memory"));
        }
        Flows { starts, flows }
    }

    /// Tasks from which `task` receives data, and the number of bytes, in the order of submission.
    ///
    /// # Panics
    /// If there is no such task.
    #[must_use]
    pub fn to(&self, task: TaskId) -> &[(TaskId, u64)] {
        &self.flows[self.starts[task.index()] as usize..self.starts[task.index() + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessMode, Datum, Task};

    #[test]
    fn data_comes_from_who_wrote_it_last() {
        let mut graph = TaskGraph::new("flows");
        let kind = graph.add_kind("k");
        let [a, b, c] = [10, 20, 40].map(|bytes| graph.add_data(Datum::new(bytes)));
        let task = || Task::new(kind);
        graph.add_task(task().access(a, AccessMode::Write).access(b, AccessMode::Write));
        graph.add_task(task().access(a, AccessMode::ReadWrite).access(c, AccessMode::Read));
        graph.add_task(task().access(b, AccessMode::Read).access(a, AccessMode::Read).access(c, AccessMode::Scratch));
        graph.add_task(task().access(a, AccessMode::Write).access(b, AccessMode::ReadWrite));
        let flows = Flows::of(&graph);
        let into = |task| flows.to(TaskId(task)).iter().map(|(from, bytes)| (from.0, *bytes)).collect::<Vec<_>>();
        assert_eq!(into(0), []);
        assert_eq!(into(1), [(0, 10)]);
        assert_eq!(into(2), [(0, 20), (1, 10)]);
        assert_eq!(into(3), [(0, 20)]);
    }

    #[test]
    fn all_that_comes_from_one_task_is_one_flow() {
        let mut graph = TaskGraph::new("flows");
        let kind = graph.add_kind("k");
        let [a, b] = [10, 20].map(|bytes| graph.add_data(Datum::new(bytes)));
        graph.add_task(Task::new(kind).access(a, AccessMode::Write).access(b, AccessMode::Write));
        graph.add_task(Task::new(kind).access(a, AccessMode::Read).access(b, AccessMode::Read));
        assert_eq!(Flows::of(&graph).to(TaskId(1)), [(TaskId(0), 30)]);
    }

    #[test]
    fn data_that_a_task_names_twice_comes_once() {
        let mut graph = TaskGraph::new("flows");
        let kind = graph.add_kind("k");
        let [a, b] = [10, 10].map(|bytes| graph.add_data(Datum::new(bytes)));
        graph.add_task(Task::new(kind).access(a, AccessMode::Write).access(b, AccessMode::Write));
        let task = Task::new(kind).access(a, AccessMode::Read).access(b, AccessMode::Read);
        graph.add_task(task.access(a, AccessMode::ReadWrite));
        assert_eq!(Flows::of(&graph).to(TaskId(1)), [(TaskId(0), 20)]);
    }
}
