//! Static schedules for comparison with the policies.

use crate::simulate::report::Run;
use sched_core::WorkerId;
use sched_graph::reference::{Links, Problem, Processor, Schedule, cpop, heft, peft};
use sched_graph::{Flows, TaskGraph};
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
    let Some(problem) = problem(graph, platform) else { return Vec::new() };
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

/// The platform in the model of the literature: a length for each task and worker, and uniform links.
fn problem(graph: &TaskGraph, platform: &Platform) -> Option<Problem> {
    let mut table = Vec::with_capacity(graph.tasks.len() * platform.workers.len());
    for task in &graph.tasks {
        let runs = graph.kind_of(task).runs;
        let by_class: Vec<f64> = (0..platform.classes.len())
            .map(|class| match runs {
                true => platform.length(graph, task, class).map_or(f64::INFINITY, |length| length.as_secs_f64()),
                false => 0.0,
            })
            .collect();
        let first = table.len();
        let allowed = |worker: u32, class: usize| task.is_allowed_on(WorkerId(worker), platform.classes[class].arch);
        table.extend((0..).zip(&platform.workers).map(|(number, worker)| {
            match !runs || allowed(number, worker.class) {
                true => by_class[worker.class],
                false => f64::INFINITY,
            }
        }));
        if table[first..].iter().all(|seconds| seconds.is_infinite()) {
            return None;
        }
    }
    let (dependencies, flows) = (graph.dependencies(), Flows::of(graph));
    let mut edges = Vec::new();
    for task in graph.ids() {
        edges.extend(flows.to(task).iter().map(|(from, bytes)| (*from, task, *bytes as f64)));
        edges.extend(dependencies.predecessors(task).iter().map(|from| (*from, task, 0.0)));
    }
    let processor = |worker: &sched_sim::platform::Worker| Processor {
        arch: platform.classes[worker.class].arch,
        place: worker.memory.0,
    };
    let processors: Vec<Processor> = platform.workers.iter().map(processor).collect();
    Some(Problem::new(processors, table, &edges, mean_links(platform)))
}

/// The mean over all routes between two memories.
fn mean_links(platform: &Platform) -> Links {
    let nodes = || platform.memory_nodes();
    let pairs = nodes().flat_map(|from| nodes().map(move |to| (from, to))).filter(|(from, to)| from != to);
    let routes = pairs.map(|(from, to)| platform.route(from, to)).filter(|route| !route.links.is_empty());
    let (mut latency, mut per_byte, mut count) = (0.0, 0.0, 0.0);
    for route in routes {
        latency += route.latency as f64 * 1e-9;
        let slowest = route.links.iter().map(|link| platform.links[*link].bandwidth).fold(f64::INFINITY, f64::min);
        per_byte += 1e-9 / slowest;
        count += 1.0;
    }
    if count == 0.0 || platform.overheads.free_transfers {
        return Links::FREE;
    }
    Links { latency: latency / count, per_byte: per_byte / count }
}
