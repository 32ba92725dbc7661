//! Priorities from the shape of a graph.

use super::{Dependencies, Flows, TaskGraph, TaskId};

/// Source of the priorities of the tasks of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priorities {
    /// The graph.
    #[default]
    AsGiven,
    /// HEFT's upward rank: the longest chain that begins with the task, with the mean execution time of each task over
    /// the workers and the mean duration of each transfer.
    UpwardRank,
    /// The longest chain that begins with the task, with each task where it is fastest and without transfers.
    CriticalPath,
}

/// Execution and transfer times of a graph, for [`prioritise`].
pub trait Costs {
    /// Mean execution time of `task` over the workers that can run it, in any unit of time.
    fn mean(&self, task: TaskId) -> f64;
    /// Shortest execution time of `task` on any worker.
    fn shortest(&self, task: TaskId) -> f64;
    /// Mean duration of a transfer of `bytes` bytes between two workers.
    fn transfer(&self, bytes: u64) -> f64;
}

/// Sets the priorities of the tasks of `graph` from the source `by`: whole numbers from 1, larger for more urgent tasks
/// and equal for equally urgent ones.
pub fn prioritise(graph: &mut TaskGraph, dependencies: &Dependencies, by: Priorities, costs: &impl Costs) {
    let levels = match by {
        Priorities::AsGiven => return,
        Priorities::UpwardRank => {
            let flows = Flows::of(graph);
            upward_ranks(dependencies, &flows, |task| costs.mean(task), |bytes| costs.transfer(bytes))
        }
        Priorities::CriticalPath => bottom_levels(dependencies, |task| costs.shortest(task)),
    };
    for (task, rank) in graph.tasks.iter_mut().zip(ranks(&levels)) {
        task.priority = rank;
    }
}

/// Length of the longest chain that begins with each task, where `length` gives the length of a task.
#[must_use]
pub fn bottom_levels(dependencies: &Dependencies, length: impl Fn(TaskId) -> f64) -> Vec<f64> {
    let mut levels = vec![0.0f64; dependencies.n_tasks()];
    for task in (0..dependencies.n_tasks() as u32).rev().map(TaskId) {
        let behind = dependencies.successors(task).iter().map(|next| levels[next.index()]).fold(0.0, f64::max);
        levels[task.index()] = length(task) + behind;
    }
    levels
}

/// HEFT's upward rank of each task: [`bottom_levels`] with transfers between a task and the next, whose duration
/// `transfer` gives for a number of bytes.
#[must_use]
pub fn upward_ranks(
    dependencies: &Dependencies,
    flows: &Flows,
    length: impl Fn(TaskId) -> f64,
    transfer: impl Fn(u64) -> f64,
) -> Vec<f64> {
    // The longest chain behind each task so far, transfers included.
    let mut behind = vec![0.0f64; dependencies.n_tasks()];
    let mut ranks = vec![0.0f64; dependencies.n_tasks()];
    for task in (0..dependencies.n_tasks() as u32).rev().map(TaskId) {
        let rank = length(task) + behind[task.index()];
        ranks[task.index()] = rank;
        for before in dependencies.predecessors(task) {
            behind[before.index()] = behind[before.index()].max(rank);
        }
        for (producer, bytes) in flows.to(task) {
            behind[producer.index()] = behind[producer.index()].max(rank + transfer(*bytes));
        }
    }
    ranks
}

/// Whole numbers from 1 in the order of `levels`; equal levels give equal numbers.
#[must_use]
pub fn ranks(levels: &[f64]) -> Vec<i32> {
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by(|a, b| levels[*a].total_cmp(&levels[*b]));
    let mut ranks = vec![0; levels.len()];
    let (mut rank, mut last) = (0, None);
    for task in order {
        if last != Some(levels[task]) {
            rank += 1;
            last = Some(levels[task]);
        }
        ranks[task] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessMode, Datum, Task};

    /// A task that two others wait for, the first of which gets data; the second takes long.
    fn fork() -> TaskGraph {
        let mut graph = TaskGraph::new("fork");
        let kind = graph.add_kind("k");
        let data = graph.add_data(Datum::new(100));
        let first = graph.add_task(Task::new(kind).access(data, AccessMode::Write));
        graph.add_task(Task::new(kind).access(data, AccessMode::Read));
        graph.add_task(Task::new(kind).after(first));
        graph
    }

    struct Fixed;

    impl Costs for Fixed {
        fn mean(&self, task: TaskId) -> f64 {
            [1.0, 2.0, 5.0][task.index()]
        }
        fn shortest(&self, task: TaskId) -> f64 {
            [1.0, 2.0, 2.0][task.index()]
        }
        fn transfer(&self, bytes: u64) -> f64 {
            bytes as f64
        }
    }

    #[test]
    fn upward_ranks_count_transfers_and_critical_paths_do_not() {
        let graph = fork();
        let dependencies = graph.dependencies();
        let flows = Flows::of(&graph);
        let upward = upward_ranks(&dependencies, &flows, |task| Fixed.mean(task), |bytes| bytes as f64);
        assert_eq!(upward, [103.0, 2.0, 5.0]);
        assert_eq!(bottom_levels(&dependencies, |task| Fixed.shortest(task)), [3.0, 2.0, 2.0]);
    }

    #[test]
    fn equal_levels_give_equal_priorities() {
        let priorities = |by| {
            let mut graph = fork();
            graph.tasks[1].priority = 7;
            let dependencies = graph.dependencies();
            prioritise(&mut graph, &dependencies, by, &Fixed);
            graph.tasks.iter().map(|task| task.priority).collect::<Vec<_>>()
        };
        assert_eq!(priorities(Priorities::CriticalPath), [2, 1, 1]);
        assert_eq!(priorities(Priorities::UpwardRank), [3, 1, 2]);
        assert_eq!(priorities(Priorities::AsGiven), [0, 7, 0]);
    }
}
