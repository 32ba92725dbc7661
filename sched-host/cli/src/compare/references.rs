//! Static schedules for comparison with the policies.

use crate::simulate::report::Run;
use sched_graph::TaskGraph;
use sched_graph::reference::{Schedule, cpop, heft, peft};
use sched_sim::Platform;
use sched_trace::{Trace, planned};

/// Maximum of tasks times the square of processors, which bounds the computing time of static schedulers.
const MOST: usize = 20_000_000;

/// The static schedules of `graph` on `platform`; none if they would take too long, or if a task fits no worker.
pub(super) fn all(graph: &TaskGraph, platform: &Platform) -> Vec<(Run, Trace)> {
    let workers = platform.workers.len();
    if graph.tasks.len().saturating_mul(workers.saturating_mul(workers)) > MOST {
        return Vec::new();
    }
    let Some(problem) = platform.problem(graph) else { return Vec::new() };
    let classes: Vec<String> =
        platform.workers.iter().map(|worker| platform.classes[worker.class].name.clone()).collect();
    let contender = |name: &str, schedule: Schedule| {
        let (makespan, flops) = (schedule.makespan(), graph.flops());
        let gflops = (flops > 0.0 && makespan > 0.0).then(|| flops / makespan / 1e9);
        let trace = planned(graph, &schedule, platform.empty_trace(graph, name));
        (Run::planned(&trace, &classes, makespan, gflops), trace)
    };
    vec![
        contender("HEFT (static)", heft(&problem)),
        contender("CPOP (static)", cpop(&problem)),
        contender("PEFT (static)", peft(&problem)),
    ]
}
