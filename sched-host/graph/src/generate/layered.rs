//! Random graphs in layers.

use super::prioritise_by_depth;
use crate::{AccessMode, DataId, Datum, Lengths, Task, TaskGraph};
use sched_core::Arch;
use sched_text::hash::{SplitMix64, unit};
use std::time::Duration;

/// Parameters of a random layered graph.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Layered {
    /// Number of layers.
    pub layers: usize,
    /// Number of tasks in each layer.
    pub width: usize,
    /// Probability that a task waits for a given one of the previous layer. It waits for at least one.
    pub density: f64,
    /// Mean execution time of a task. Times are uniform from half of it to one and a half.
    pub length: Duration,
    /// Bytes that a task hands to each that waits for it.
    pub bytes: u64,
    /// Seed: equal seeds give equal graphs on every machine.
    pub seed: u64,
}

/// A random graph in layers: each task waits for random tasks of the previous layer. All tasks are of kind work.
#[must_use]
pub fn layered(from: Layered) -> TaskGraph {
    let Layered { layers, width, density, length, bytes, seed } = from;
    let mut graph = TaskGraph::new(format!("{layers} random layers of {width} tasks (seed {seed})"));
    let kind = graph.add_kind("work");
    let mut random = Random(SplitMix64(seed));
    let mut before: Vec<DataId> = Vec::new();
    for layer in 0..layers {
        let mut results = Vec::with_capacity(width);
        for number in 0..width {
            let mut task = Task::new(kind).named(format!("work({layer},{number})"));
            task.lengths = Lengths::default().with(Arch::CPU, length.mul_f64(0.5 + random.unit()));
            let waits_for: Vec<DataId> = before.iter().copied().filter(|_| random.unit() < density).collect();
            let at_least = if waits_for.is_empty() { random.pick(&before) } else { None };
            for data in waits_for.into_iter().chain(at_least) {
                task = task.access(data, AccessMode::Read);
            }
            let result = graph.add_data(Datum::new(bytes).named(format!("result({layer},{number})")));
            results.push(result);
            graph.add_task(task.access(result, AccessMode::Write));
        }
        before = results;
    }
    prioritise_by_depth(&mut graph);
    graph
}

/// Random choices.
struct Random(SplitMix64);

impl Random {
    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        unit(self.0.next())
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let place = (self.unit() * from.len() as f64) as usize;
        from.get(place).copied()
    }
}
