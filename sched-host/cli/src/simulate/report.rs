//! What a simulation has to say, for people and for programs.

use super::Args;
use super::setup::CostsOption;
use crate::json;
use crate::table::table;
use miette::IntoDiagnostic;
use sched_graph::TaskGraph;
use sched_graph::bound::Bounds;
use sched_sim::{ContextStats, Outcome, Platform, WorkerStats};
use sched_text::ranges;
use sched_tree::Fault;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// Bounds take a while for graphs of more tasks than this.
pub(crate) const MOST_FOR_BOUNDS: usize = 100_000;

/// The fields are the keys of the JSON. Times are virtual, but for those of `wall`.
#[derive(Serialize)]
pub(super) struct Report {
    workload: String,
    platform: String,
    policy: String,
    costs: CostsOption,
    seed: u64,
    tasks: usize,
    makespan_s: f64,
    /// `null` where the graph does not say how many operations there are.
    gflops: Option<f64>,
    /// `null` where the platform does not say what its workers draw.
    energy_j: Option<f64>,
    critical_path_s: f64,
    /// `null` for very large graphs.
    bounds_s: Option<Bounds>,
    /// How many times as long as the largest bound the makespan is.
    ratio_to_bound: Option<f64>,
    transfers: u64,
    bytes_moved: u64,
    /// Where contexts or a swap were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contexts: Vec<Ran>,
    per_worker: Vec<Worker>,
    links: Vec<Link>,
    memories: Vec<Memory>,
    /// The same number means the same events at the same times.
    digest: String,
    events: u64,
    wall_s: f64,
    simulated_tasks_per_s: f64,
    faults: Vec<Fault>,
}

/// The workload in one context.
#[derive(Serialize)]
struct Ran {
    context: String,
    /// The policy at the start.
    policy: String,
    /// The policy that took its place, when, and after how many tasks.
    swap: Option<Swap>,
    workers: Vec<u32>,
    tasks: u64,
    makespan_s: f64,
}

#[derive(Serialize)]
struct Swap {
    policy: String,
    at_s: f64,
    after_tasks: u64,
}

impl Ran {
    fn of(context: &ContextStats) -> Ran {
        let swap = context.swaps.last().map(|swap| Swap {
            policy: swap.policy.clone(),
            at_s: swap.at.as_secs_f64(),
            after_tasks: swap.after_tasks,
        });
        let (name, policy, workers) = (context.name.clone(), context.policy.clone(), context.workers.clone());
        let makespan_s = context.makespan.as_secs_f64();
        Ran { context: name, policy, swap, workers, tasks: context.tasks, makespan_s }
    }
}

#[derive(Serialize)]
struct Worker {
    id: u32,
    class: String,
    tasks: u64,
    busy_s: f64,
    idle_s: f64,
}

#[derive(Serialize)]
struct Link {
    name: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Memory {
    name: String,
    peak_bytes: u64,
}

impl Report {
    pub(super) fn new(
        args: &Args,
        graph: &TaskGraph,
        platform: &Platform,
        outcome: Outcome,
        digest: u64,
        wall: Duration,
    ) -> Report {
        let small = outcome.tasks <= MOST_FOR_BOUNDS;
        let bounds = small.then(|| platform.bounds(graph, &graph.dependencies()).ok()).flatten();
        let makespan = outcome.makespan.as_secs_f64();
        let worker = |worker: &WorkerStats| Worker {
            id: worker.id,
            class: worker.class.clone(),
            tasks: worker.tasks,
            busy_s: worker.busy.as_secs_f64(),
            idle_s: worker.idle.as_secs_f64(),
        };
        Report {
            workload: graph.name.clone(),
            platform: platform.name.clone(),
            policy: args.policy.clone(),
            costs: args.setup.costs,
            seed: args.setup.seed,
            tasks: outcome.tasks,
            makespan_s: makespan,
            gflops: outcome.gflops(),
            energy_j: outcome.energy,
            critical_path_s: outcome.critical_path.as_secs_f64(),
            bounds_s: bounds,
            ratio_to_bound: bounds.map(|bounds| bounds.ratio(makespan)),
            transfers: outcome.transfers,
            bytes_moved: outcome.bytes,
            contexts: outcome
                .contexts
                .iter()
                .filter(|context| args.has_contexts() && context.tasks > 0)
                .map(Ran::of)
                .collect(),
            per_worker: outcome.workers.iter().map(worker).collect(),
            links: outcome.links.into_iter().map(|link| Link { name: link.name, bytes: link.bytes }).collect(),
            memories: outcome
                .memories
                .into_iter()
                .map(|memory| Memory { name: memory.name, peak_bytes: memory.peak })
                .collect(),
            digest: format!("{digest:016x}"),
            events: outcome.events,
            wall_s: wall.as_secs_f64(),
            simulated_tasks_per_s: outcome.tasks as f64 / wall.as_secs_f64().max(f64::MIN_POSITIVE),
            faults: outcome.faults,
        }
    }

    /// The largest lower bound of the makespan, in seconds, if there is one.
    pub(super) fn bound(&self) -> Option<f64> {
        self.bounds_s.map(|bounds| bounds.best())
    }

    pub(super) fn write(&self, json: bool, out: &mut dyn Write) -> miette::Result<()> {
        if json {
            return json::write(out, self);
        }
        out.write_all(self.text().as_bytes()).into_diagnostic()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<9} {value}");
        };
        line("workload", format_args!("{}", self.workload));
        line("platform", format_args!("{} ({} workers)", self.platform, self.per_worker.len()));
        // The table of contexts says the policies of each.
        if self.contexts.is_empty() {
            line("policy", format_args!("{}", self.policy));
        }
        line("tasks", format_args!("{}", self.tasks));
        line("makespan", format_args!("{:.6} s", self.makespan_s));
        if let Some(gflops) = self.gflops {
            line("speed", format_args!("{gflops:.1} GFlop/s"));
        }
        if let Some(joules) = self.energy_j {
            line("energy", format_args!("{joules:.3} J"));
        }
        if let (Some(bounds), Some(ratio)) = (&self.bounds_s, self.ratio_to_bound) {
            line(
                "bound",
                format_args!("{:.6} s: no schedule is shorter; this one is {ratio:.2} times as long", bounds.best()),
            );
            line("", format_args!("{bounds}"));
        }
        line("moved", format_args!("{:.3} GB in {} transfers", self.bytes_moved as f64 / 1e9, self.transfers));
        line("digest", format_args!("{} of {} events", self.digest, self.events));
        line("took", format_args!("{:.3} s, {:.0} tasks a second", self.wall_s, self.simulated_tasks_per_s));
        for fault in &self.faults {
            line("fault", format_args!("{fault}"));
        }
        let contexts = self.context_table().map_or(String::new(), |table| format!("\n{table}\n"));
        format!("{text}{contexts}\n{}\n", self.worker_table())
    }

    fn context_table(&self) -> Option<String> {
        let rows = self.contexts.iter().map(|ran| {
            let policy = match &ran.swap {
                Some(Swap { policy, at_s, after_tasks }) => {
                    format!("{} → {policy} at {at_s:.6} s, after {after_tasks} tasks", ran.policy)
                }
                None => ran.policy.clone(),
            };
            let workers = ranges(ran.workers.iter().copied());
            [ran.context.clone(), policy, workers, ran.tasks.to_string(), format!("{:.6}", ran.makespan_s)]
        });
        let header = ["CONTEXT", "POLICY", "WORKERS", "TASKS", "MAKESPAN (S)"];
        (!self.contexts.is_empty()).then(|| table(header, rows, 3..header.len()))
    }

    fn worker_table(&self) -> String {
        let rows = self.per_worker.iter().map(|worker| {
            [
                worker.id.to_string(),
                worker.class.clone(),
                worker.tasks.to_string(),
                format!("{:.6}", worker.busy_s),
                format!("{:.1}", 100.0 * worker.busy_s / self.makespan_s.max(f64::MIN_POSITIVE)),
            ]
        });
        table(["WORKER", "CLASS", "TASKS", "BUSY (S)", "BUSY (%)"], rows, 0..5)
    }
}
