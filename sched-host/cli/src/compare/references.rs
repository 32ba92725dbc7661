//! Static schedules for comparison with the policies.

use super::STATIC;
use crate::simulate::report::Run;
use sched_graph::TaskGraph;
use sched_graph::reference::{Schedule, cpop, heft, peft};
use sched_sim::Platform;
use sched_trace::{Trace, planned};

/// Maximum of tasks times the square of processors, which bounds the computing time of static schedulers.
const MOST: usize = 20_000_000;

/// A static schedule of the literature.
pub(super) struct Reference {
    /// What it takes in its own model.
    pub(super) run: Run,
    pub(super) trace: Trace,
    /// Name of the replay.
    pub(super) replay: &'static str,
    /// The graph with each task pinned to its worker, for the replay.
    pub(super) pinned: TaskGraph,
}

/// The static schedules of `graph` on `platform`; none if they would take too long, or if a task fits no worker.
pub(super) fn all(graph: &TaskGraph, platform: &Platform) -> Vec<Reference> {
    let workers = platform.workers.len();
    if graph.tasks.len().saturating_mul(workers.saturating_mul(workers)) > MOST {
        return Vec::new();
    }
    let Some(problem) = platform.problem(graph) else { return Vec::new() };
    let classes: Vec<String> =
        platform.workers.iter().map(|worker| platform.classes[worker.class].name.clone()).collect();
    let contender = |[name, replay]: [&'static str; 2], schedule: Schedule| {
        let (makespan, flops) = (schedule.makespan(), graph.flops());
        let gflops = (flops > 0.0 && makespan > 0.0).then(|| flops / makespan / 1e9);
        let trace = planned(graph, &schedule, platform.empty_trace(graph, name));
        let run = Run::planned(&trace, &classes, makespan, gflops);
        Reference { run, trace, replay, pinned: schedule.pinned(graph) }
    };
    vec![
        contender(STATIC[0], heft(&problem)),
        contender(STATIC[1], cpop(&problem)),
        contender(STATIC[2], peft(&problem)),
    ]
}
