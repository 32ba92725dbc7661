//! A graph in a few numbers.

use super::priorities::bottom_levels;
use super::{Dependencies, Task, TaskGraph, TaskId};
use serde::Serialize;

/// Weight of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Its execution time in seconds where it is fastest. Requires that the graph gives one for every task.
    Seconds,
    /// Its floating-point operations. Requires that the graph gives them for every task.
    Flops,
    /// One, for every task.
    Tasks,
}

impl Weight {
    /// The most precise weight that `graph` allows. Tasks that do nothing weigh nothing.
    #[must_use]
    pub fn of(graph: &TaskGraph) -> Weight {
        let all = |known: fn(&Task) -> bool| graph.tasks.iter().all(|task| known(task) || !graph.kind_of(task).runs);
        if graph.tasks.is_empty() {
            Weight::Tasks
        } else if all(|task| !task.lengths.is_empty()) {
            Weight::Seconds
        } else if all(|task| task.flops > 0.0) {
            Weight::Flops
        } else {
            Weight::Tasks
        }
    }

    /// Weight of `task`.
    #[must_use]
    pub fn of_task(self, graph: &TaskGraph, task: &Task) -> f64 {
        if !graph.kind_of(task).runs {
            return 0.0;
        }
        match self {
            Weight::Seconds => {
                let lengths = task.lengths.archs().iter().filter_map(|arch| task.lengths.get(arch)).min();
                lengths.map_or(0.0, |length| length.as_secs_f64())
            }
            Weight::Flops => task.flops,
            Weight::Tasks => 1.0,
        }
    }
}

/// Number and weight of the tasks of a kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KindSummary {
    /// Name of the kind.
    pub name: String,
    /// Number of tasks.
    pub tasks: usize,
    /// Weight of all of them.
    pub weight: f64,
}

/// A graph in a few numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Name of the graph.
    pub name: String,
    /// Number of tasks.
    pub tasks: usize,
    /// Number of dependencies: pairs of a task and one that waits for it.
    pub dependencies: usize,
    /// Number of pieces of data.
    pub data: usize,
    /// Bytes of all data.
    pub bytes: u64,
    /// Floating-point operations of all tasks.
    pub flops: f64,
    /// Number of tasks that wait for nothing.
    pub entries: usize,
    /// Number of tasks that nothing waits for.
    pub exits: usize,
    /// Number of tasks on the longest chain.
    pub depth: usize,
    /// Largest number of tasks at the same depth. At least that number can run in parallel.
    pub width: usize,
    /// Unit of the next three.
    pub weight: Weight,
    /// Weight of all tasks.
    pub work: f64,
    /// Weight of the heaviest chain.
    pub critical_path: f64,
    /// Work divided by critical path. With more workers than that, some are idle at times.
    pub parallelism: f64,
    /// Kinds of tasks, in the order of their first occurrence.
    pub kinds: Vec<KindSummary>,
}

impl Summary {
    /// Summarises `graph`, with its `dependencies`.
    #[must_use]
    pub fn of(graph: &TaskGraph, dependencies: &Dependencies) -> Summary {
        let weight = Weight::of(graph);
        let of_task = |task: TaskId| weight.of_task(graph, graph.task(task));
        let levels = levels(dependencies);
        let mut widths = vec![0; levels.iter().max().map_or(0, |deepest| deepest + 1)];
        for level in &levels {
            widths[*level] += 1;
        }
        let mut kinds: Vec<KindSummary> =
            graph.kinds.iter().map(|kind| KindSummary { name: kind.name.clone(), tasks: 0, weight: 0.0 }).collect();
        for task in &graph.tasks {
            kinds[task.kind.index()].tasks += 1;
            kinds[task.kind.index()].weight += weight.of_task(graph, task);
        }
        kinds.retain(|kind| kind.tasks > 0);
        // The sum of nothing is -0.
        let work = graph.ids().map(of_task).sum::<f64>() + 0.0;
        let critical_path = bottom_levels(dependencies, of_task).into_iter().fold(0.0, f64::max);
        Summary {
            name: graph.name.clone(),
            tasks: graph.tasks.len(),
            dependencies: dependencies.n_edges(),
            data: graph.data.len(),
            bytes: graph.bytes(),
            flops: graph.flops(),
            entries: dependencies.entries().count(),
            exits: dependencies.exits().count(),
            depth: widths.len(),
            width: widths.into_iter().max().unwrap_or(0),
            weight,
            work,
            critical_path,
            parallelism: if critical_path > 0.0 { work / critical_path } else { 0.0 },
            kinds,
        }
    }
}

/// Depth of each task: the number of tasks on the longest chain before it.
pub(super) fn levels(dependencies: &Dependencies) -> Vec<usize> {
    let mut levels = vec![0; dependencies.n_tasks()];
    for task in (0..dependencies.n_tasks() as u32).map(TaskId) {
        let before = dependencies.predecessors(task).iter();
        levels[task.index()] = before.map(|before| levels[before.index()] + 1).max().unwrap_or(0);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use std::time::Duration;

    #[test]
    fn a_fork_join_has_the_width_of_its_fork() {
        let graph = generate::fork_join(6, 2, Duration::from_millis(10), 100);
        let summary = Summary::of(&graph, &graph.dependencies());
        assert_eq!((summary.tasks, summary.depth, summary.width), (16, 6, 6));
        assert_eq!((summary.entries, summary.exits), (1, 1));
        assert_eq!(summary.weight, Weight::Seconds);
        assert!((summary.work - 0.16).abs() < 1e-12 && (summary.critical_path - 0.06).abs() < 1e-12);
        assert!((summary.parallelism - 16.0 / 6.0).abs() < 1e-12);
        let kinds: Vec<_> = summary.kinds.iter().map(|kind| (kind.name.as_str(), kind.tasks)).collect();
        assert_eq!(kinds, [("fork", 2), ("work", 12), ("join", 2)]);
    }

    #[test]
    fn factorisations_are_weighed_by_their_operations() {
        let graph = generate::cholesky(4, 10);
        let summary = Summary::of(&graph, &graph.dependencies());
        assert_eq!((summary.weight, summary.work), (Weight::Flops, graph.flops()));
        let empty = TaskGraph::new("empty");
        let Summary { parallelism, work, flops, .. } = Summary::of(&empty, &empty.dependencies());
        assert_eq!(format!("{parallelism} {work} {flops}"), "0 0 0", "a sum of nothing has no sign");
    }
}
