//! The platform in the model of static schedulers.

use super::{Platform, Worker};
use sched_core::WorkerId;
use sched_graph::reference::{Links, Problem, Processor};
use sched_graph::{Flows, TaskGraph};

impl Platform {
    /// The problem of executing `graph` here in the model of the literature: a length for each task and worker, and
    /// uniform links, the mean of all routes. `None` if a task fits no worker.
    #[must_use]
    pub fn problem(&self, graph: &TaskGraph) -> Option<Problem> {
        let mut table = Vec::with_capacity(graph.tasks.len() * self.workers.len());
        let workers_by_class = self.workers_by_class();
        for task in &graph.tasks {
            let runs = graph.kind_of(task).runs;
            let by_class: Vec<f64> = (0..self.classes.len())
                .map(|class| match runs {
                    true => self.length(graph, task, class).map_or(f64::INFINITY, |length| length.as_secs_f64()),
                    false => 0.0,
                })
                .collect();
            let first = table.len();
            let able = self.able(graph, task, &workers_by_class);
            let allowed = |worker: u32, class: usize| {
                let arch = self.classes[class].arch;
                able.contains(arch) && task.is_allowed_on(WorkerId(worker), arch)
            };
            table.extend((0..).zip(&self.workers).map(|(number, worker)| {
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
        let processor = |worker: &Worker| Processor { arch: self.classes[worker.class].arch, place: worker.memory.0 };
        let processors: Vec<Processor> = self.workers.iter().map(processor).collect();
        Some(Problem::new(processors, table, &edges, mean_links(self)))
    }
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
