//! Priorities from the shape of a graph.

use super::{Dependencies, Flows, TaskGraph, TaskId};

/// How the tasks of a graph come by their priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priorities {
    /// As the graph gives them.
    #[default]
    AsGiven,
    /// By the longest chain that begins with the task, with the mean length of each task over the workers and the mean
    /// duration of each transfer: HEFT's upward rank.
    UpwardRank,
    /// By the longest chain that begins with the task, with each task where it is fastest, and transfers that take no time.
    CriticalPath,
}

/// What lengths the tasks of a graph have, for [`prioritise`].
pub trait Costs {
    /// The mean length of `task` over the workers that can run it, in any unit of time.
    fn mean(&self, task: TaskId) -> f64;
    /// The shortest length of `task` on any worker.
    fn shortest(&self, task: TaskId) -> f64;
    /// The mean duration of a transfer of so many bytes between two workers.
    fn transfer(&self, bytes: u64) -> f64;
}

/// Gives the tasks of `graph` the priorities that `by` asks for: whole numbers from 0, larger for what is more urgent, and
/// the same for tasks that are equally urgent.
pub fn prioritise(graph: &mut TaskGraph, dependencies: &Dependencies, by: Priorities, costs: &impl Costs) {
    let urgency = match by {
        Priorities::AsGiven => return,
        Priorities::UpwardRank => {
            let flows = Flows::of(graph);
            upward_ranks(dependencies, &flows, |task| costs.mean(task), |bytes| costs.transfer(bytes))
        }
        Priorities::CriticalPath => bottom_levels(dependencies, |task| costs.shortest(task)),
    };
    for (task, rank) in graph.tasks.iter_mut().zip(ranks(&urgency)) {
        task.priority = rank;
    }
}

/// For each task the length of the longest chain of tasks that begins with it, where `length` says how long a task is.
#[must_use]
pub fn bottom_levels(dependencies: &Dependencies, length: impl Fn(TaskId) -> f64) -> Vec<f64> {
    let mut levels = vec![0.0f64; dependencies.n_tasks()];
    for task in (0..dependencies.n_tasks() as u32).rev().map(TaskId) {
        let behind = dependencies.successors(task).iter().map(|next| levels[next.index()]).fold(0.0, f64::max);
        levels[task.index()] = length(task) + behind;
    }
    levels
}

/// HEFT's upward rank of each task: like [`bottom_levels`], with the duration of the transfer between a task and the next,
/// which `transfer` gives for a number of bytes.
#[must_use]
pub fn upward_ranks(
    dependencies: &Dependencies,
    flows: &Flows,
    length: impl Fn(TaskId) -> f64,
    transfer: impl Fn(u64) -> f64,
) -> Vec<f64> {
    // The longest chain behind each task, transfers included, as far as it is known.
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

/// Whole numbers from 1 in the order of `urgency`, the same for the same one.
#[must_use]
pub fn ranks(urgency: &[f64]) -> Vec<i32> {
    let mut order: Vec<usize> = (0..urgency.len()).collect();
    order.sort_by(|a, b| urgency[*a].total_cmp(&urgency[*b]));
    let mut ranks = vec![0; urgency.len()];
    let (mut rank, mut last) = (0, None);
    for task in order {
        if last != Some(urgency[task]) {
            rank += 1;
            last = Some(urgency[task]);
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
    fn the_same_urgency_is_the_same_priority() {
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
