//! Lower bound of the makespan of a measured run.

use super::timeline::{Activity, Timeline};
use super::track::Trace;
use sched_graph::priorities::bottom_levels;
use sched_graph::{TaskGraph, TaskId};

/// Lower bound in seconds of the makespan of the run in `trace`, whose tasks are those of `graph` in the same order, on
/// identical workers: with the measured execution times no schedule is shorter than their longest chain, nor than their
/// sum divided by the number of workers. `None` if a task is missing or of another kind.
#[must_use]
pub fn measured_bound(trace: &Trace, graph: &TaskGraph) -> Option<f64> {
    let mut lengths: Vec<Option<f64>> = vec![None; graph.tasks.len()];
    for span in Timeline::of(trace).workers.iter().flatten() {
        let Activity::Task { task, codelet } = span.activity else { continue };
        let place = TaskId::of_submitted(task)?.index();
        let kind = graph.kind_of(graph.tasks.get(place)?);
        if kind.name != trace.codelet(codelet) {
            return None;
        }
        lengths[place] = Some((span.end - span.begin) as f64 * 1e-9);
    }
    let lengths: Vec<f64> = lengths.into_iter().collect::<Option<_>>()?;
    let chains = bottom_levels(&graph.dependencies(), |task: TaskId| lengths[task.index()]);
    let longest = chains.into_iter().fold(0.0, f64::max);
    let shared = lengths.iter().sum::<f64>() / trace.workers.len().max(1) as f64;
    Some(longest.max(shared))
}
