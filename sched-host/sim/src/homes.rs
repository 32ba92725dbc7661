//! Checks that memories have room for what stays on them, before a simulation starts.

use super::error::SimError;
use super::platform::{Memory, Platform};
use sched_graph::{AccessMode, TaskGraph};

/// Checks that all data fits into the memory nodes on which it is at home.
pub(super) fn check(graph: &TaskGraph, platform: &Platform) -> Result<(), SimError> {
    let memories = platform.memories.len();
    let mut needed = vec![0u64; memories];
    for datum in &graph.data {
        match needed.get_mut(datum.home.index()) {
            Some(needed) => *needed = needed.saturating_add(datum.bytes),
            None => return Err(SimError::Home { node: datum.home.0, memories }),
        }
    }
    for (needed, memory) in needed.iter().zip(&platform.memories) {
        if let Some(capacity) = memory.capacity.filter(|capacity| needed > capacity) {
            return Err(SimError::Data { memory: memory.name.clone(), needed: *needed, capacity });
        }
    }
    match (&*platform.memories, &*needed) {
        ([memory], [at_home]) => check_scratch(graph, memory, *at_home),
        // With several, memory is given to each task before it runs.
        _ => Ok(()),
    }
}

/// Checks that the scratchpads of each task fit beside the data in the only memory.
fn check_scratch(graph: &TaskGraph, memory: &Memory, at_home: u64) -> Result<(), SimError> {
    let Some(capacity) = memory.capacity.map(|capacity| capacity - at_home) else { return Ok(()) };
    for (id, task) in graph.ids().zip(&graph.tasks) {
        let scratch = task.accesses.iter().filter(|access| access.mode == AccessMode::Scratch);
        let needed = scratch.map(|access| graph.data[access.data.index()].bytes).fold(0, u64::saturating_add);
        if needed > capacity {
            return Err(SimError::Task { task: id.0, memory: memory.name.clone(), needed, capacity });
        }
    }
    Ok(())
}
