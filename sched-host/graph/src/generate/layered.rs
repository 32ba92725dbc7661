//! Random graphs in layers.

use super::prioritise_by_depth;
use crate::{AccessMode, DataId, Datum, Lengths, Task, TaskGraph};
use sched_core::Arch;
use sched_text::hash::{SplitMix64, unit};
use std::time::Duration;

/// What a random layered graph is made from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Layered {
    /// Layers, one behind the other.
    pub layers: usize,
    /// Tasks in each layer.
    pub width: usize,
    /// The probability, from 0 to 1, that a task waits for a given one of the layer before. It waits for one at least.
    pub density: f64,
    /// The mean length of a task. Lengths are uniform from half of it to one and a half.
    pub length: Duration,
    /// Bytes that a task hands to those that wait for it.
    pub bytes: u64,
    /// The same seed gives the same graph, on every machine.
    pub seed: u64,
}

/// A random graph in layers: each task waits for random ones of the layer before. All tasks are of kind work.
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
