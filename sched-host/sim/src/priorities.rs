//! Priorities of tasks, from their costs on a platform.

use super::SimError;
use super::allowed::Allowed;
use super::lengths::{Lengths, NEVER};
use super::platform::Platform;
use sched_core::MemoryNode;
use sched_graph::priorities::{self, Costs, Priorities};
use sched_graph::{TaskGraph, TaskId};

/// Sets the priorities of the tasks of `graph` as `by` says, with costs on `platform`, where one worker executes each
/// task.
///
/// # Errors
/// If the platform cannot run some tasks.
pub fn prioritise(graph: &mut TaskGraph, platform: &Platform, by: Priorities) -> Result<(), SimError> {
    let lengths = Lengths::new(graph, platform, &[])?;
    let dependencies = graph.dependencies();
    let costs = PlatformCosts { each: of_each(graph, platform, &lengths), platform };
    priorities::prioritise(graph, &dependencies, by, &costs);
    Ok(())
}

/// Costs in nanoseconds.
struct PlatformCosts<'a> {
    each: Vec<TaskCosts>,
    platform: &'a Platform,
}

/// Those of one task, on the workers that may execute it.
struct TaskCosts {
    mean: f64,
    shortest: f64,
}

fn of_each(graph: &TaskGraph, platform: &Platform, lengths: &Lengths) -> Vec<TaskCosts> {
    let allowed = Allowed::new(platform);
    let of_task = |(id, task)| {
        let (row, workers) = (lengths.row(id), allowed.by_class(task));
        let (mut sum, mut count) = (0.0, 0.0);
        for (class, workers) in workers.iter().enumerate() {
            let nanos = lengths.nanos(row, class);
            if nanos != NEVER {
                sum += nanos as f64 * f64::from(*workers);
                count += f64::from(*workers);
            }
        }
        let mean = if count > 0.0 { sum / count } else { 0.0 };
        TaskCosts { mean, shortest: lengths.shortest_on(row, &workers) as f64 }
    };
    graph.ids().zip(&graph.tasks).map(of_task).collect()
}

impl Costs for PlatformCosts<'_> {
    fn mean(&self, task: TaskId) -> f64 {
        self.each[task.index()].mean
    }

    fn shortest(&self, task: TaskId) -> f64 {
        self.each[task.index()].shortest
    }

    fn transfer(&self, bytes: u64) -> f64 {
        let workers = &self.platform.workers;
        let mut by_memory = vec![0.0; self.platform.memories.len()];
        for worker in workers {
            by_memory[worker.memory.index()] += 1.0;
        }
        let mut sum = 0.0;
        let nodes = || (0..).map(MemoryNode).zip(&by_memory);
        for (from, here) in nodes() {
            for (to, there) in nodes().filter(|(to, _)| *to != from) {
                sum += here * there * self.platform.expected_transfer(from, to, bytes) as f64;
            }
        }
        sum / (workers.len() as f64).powi(2)
    }
}
