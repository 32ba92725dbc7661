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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Simulation;
    use sched_graph::{AccessMode, Datum, Task};
    use sched_tree::plugin::Registry;
    use std::sync::Arc;
    use std::time::Duration;

    /// Two cores, and two devices that are ten times as fast.
    fn cores_and_devices() -> Platform {
        let text = r#"platform "p" {
            memory "ram"
            workers "cpu" count=2 memory="ram"
            workers "gpu" count=2 arch="cuda" memory="ram"
            kernel "k" { on "cpu" time="10 ms"; on "gpu" time="1 ms" }
        }"#;
        Platform::parse("p.kdl", text).expect("it is sound")
    }

    #[test]
    fn priorities_count_tasks_where_they_may_run() {
        let platform = cores_and_devices();
        let mut graph = TaskGraph::new("two chains");
        let (kind, [one, other]) =
            (graph.add_kind("k"), [graph.add_data(Datum::new(8)), graph.add_data(Datum::new(8))]);
        // One after the other on a core, and two on a device.
        for (data, tasks, only) in [(one, 1, Some("cpu")), (other, 2, None)] {
            for _ in 0..tasks {
                let only = only.map(|only| Box::new(only.parse().expect("it names places")));
                graph.add_task(Task { only, ..Task::new(kind).access(data, AccessMode::ReadWrite) });
            }
        }
        for by in [Priorities::CriticalPath, Priorities::UpwardRank] {
            prioritise(&mut graph, &platform, by).expect("it can run");
            let priorities: Vec<i32> = graph.tasks.iter().map(|task| task.priority).collect();
            match by {
                Priorities::CriticalPath => assert!(priorities[0] > priorities[1], "{priorities:?}"),
                // Half of the workers that may execute the second chain are cores.
                _ => assert!(priorities[1] > priorities[0] && priorities[0] > priorities[2], "{priorities:?}"),
            }
        }
        let graph = Arc::new(graph);
        let registry = Arc::new(Registry::compiled_in());
        let outcome = Simulation::new(Arc::clone(&graph), platform).registry(registry).run().expect("it runs");
        assert_eq!(outcome.critical_path, Duration::from_millis(10));
    }
}
