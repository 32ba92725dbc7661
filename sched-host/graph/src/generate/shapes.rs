//! Regular graphs of equal tasks on CPUs.

use super::prioritise_by_depth;
use crate::{AccessMode, DataId, Datum, Lengths, Task, TaskGraph};
use sched_core::Arch;
use std::time::Duration;

/// A stencil on `width` blocks in a row, `steps` times: each step of a block reads the block and its neighbours from
/// the previous step and writes the block anew. All tasks are of kind stencil and take `length`; blocks have `bytes`
/// bytes.
#[must_use]
pub fn stencil(width: usize, steps: usize, length: Duration, bytes: u64) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("stencil of {steps} steps on {width} blocks"));
    let kind = graph.add_kind("stencil");
    // Blocks have two places, which take turns.
    let places: [Vec<DataId>; 2] = ["even", "odd"].map(|turn| {
        (0..width).map(|block| graph.add_data(Datum::new(bytes).named(format!("{turn}({block})")))).collect()
    });
    for step in 0..steps {
        let (from, to) = (&places[step % 2], &places[(step + 1) % 2]);
        for (block, written) in to.iter().enumerate() {
            let mut task = Task::new(kind).named(format!("stencil({step},{block})"));
            task.lengths = Lengths::default().with(Arch::CPU, length);
            for read in &from[block.saturating_sub(1)..(block + 2).min(width)] {
                task = task.access(*read, AccessMode::Read);
            }
            graph.add_task(task.access(*written, AccessMode::Write));
        }
    }
    prioritise_by_depth(&mut graph);
    graph
}

/// `phases` times a fork, then `width` parallel tasks, then a join. Each task takes `length`, and hands `bytes` bytes
/// to each task that waits for it. Kinds are fork, work and join.
#[must_use]
pub fn fork_join(width: usize, phases: usize, length: Duration, bytes: u64) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("fork-join ({phases} × {width} tasks)"));
    let [fork, work, join] = ["fork", "work", "join"].map(|kind| graph.add_kind(kind));
    let start = graph.add_data(Datum::new(bytes).named("start"));
    let parts: Vec<DataId> =
        (0..width).map(|part| graph.add_data(Datum::new(bytes).named(format!("part({part})")))).collect();
    let lengths = Lengths::default().with(Arch::CPU, length);
    for phase in 0..phases {
        let named = |kind, name: String| {
            let mut task = Task::new(kind).named(name);
            task.lengths = lengths.clone();
            task
        };
        graph.add_task(named(fork, format!("fork({phase})")).access(start, AccessMode::ReadWrite));
        for (number, part) in parts.iter().enumerate() {
            let task = named(work, format!("work({phase},{number})"));
            graph.add_task(task.access(start, AccessMode::Read).access(*part, AccessMode::Write));
        }
        let mut task = named(join, format!("join({phase})"));
        for part in &parts {
            task = task.access(*part, AccessMode::Read);
        }
        graph.add_task(task.access(start, AccessMode::ReadWrite));
    }
    prioritise_by_depth(&mut graph);
    graph
}

/// `tasks` independent tasks of kind work that take `length` each.
#[must_use]
pub fn independent(tasks: usize, length: Duration) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("{tasks} independent tasks"));
    let kind = graph.add_kind("work");
    for _ in 0..tasks {
        let mut task = Task::new(kind);
        task.lengths = Lengths::default().with(Arch::CPU, length);
        graph.add_task(task);
    }
    graph
}
