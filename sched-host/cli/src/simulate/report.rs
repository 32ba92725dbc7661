//! Reports of simulations, as text and JSON.

mod contexts;
mod nodes;

use super::case::Case;
use super::explain::{self, TaskReport};
use super::settings::Settings;
use crate::hypervisor::HypervisorReport;
use crate::json;
use crate::log::{self, Said};
use crate::makespan::{self, MakespanReport};
use crate::pictures::LOWER_BOUND;
use crate::table::table;
use contexts::Ran;
use miette::IntoDiagnostic;
use sched_graph::bound::Bounds;
use sched_sim::cluster::NodeStats;
use sched_sim::{ContextStats, SimOutcome, WorkerStats};
use sched_text::count;
use sched_trace::{Activity, Bound, Timeline, Trace};
use sched_tree::Fault;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// All simulations of one command. Fields are JSON keys; times are virtual, except those of `wall`.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) workload: String,
    pub(crate) platform: String,
    pub(crate) workers: usize,
    pub(crate) tasks: usize,
    #[serde(flatten)]
    pub(crate) settings: Settings,
    seed: u64,
    /// Of the lengths that schedulers expect; `null` for very large graphs.
    pub(crate) bounds_s: Option<Bounds>,
    /// Whether no schedule is shorter than `bounds_s`: not with noise, by which kernels may take less than expected.
    pub(crate) bounds_hold: bool,
    pub(crate) runs: Vec<Run>,
    /// Policies that did not complete.
    pub(crate) failed: Vec<Failed>,
}

/// A policy that did not complete.
#[derive(Serialize)]
pub(crate) struct Failed {
    pub(crate) policy: String,
    pub(crate) why: String,
}

/// Result of a policy or a static schedule.
#[derive(Serialize)]
pub(crate) struct Run {
    pub(crate) policy: String,
    /// Whether it is a static schedule, computed from the whole graph.
    pub(crate) planned: bool,
    pub(crate) makespan_s: f64,
    /// Ratio of the makespan to the largest lower bound; `null` for simulations with noise, and where the bound is 0.
    pub(crate) ratio_to_bound: Option<f64>,
    /// `null` where the graph has no numbers of operations.
    pub(crate) gflops: Option<f64>,
    /// `null` for static schedules, and where the platform has no power figures.
    pub(crate) energy_j: Option<f64>,
    /// `null` for static schedules, like all other figures of simulations only.
    critical_path_s: Option<f64>,
    /// Mean busy fraction of the workers, from 0 to 1.
    pub(crate) busy_share: f64,
    pub(crate) transfers: Option<u64>,
    pub(crate) bytes_moved: Option<u64>,
    /// Empty unless contexts or a swap were requested.
    contexts: Vec<Ran>,
    /// What the hypervisor did; `null` without goals.
    hypervisor: Option<HypervisorReport>,
    /// `null` except on a cluster.
    messages: Option<u64>,
    message_bytes: Option<u64>,
    /// Empty except on a cluster.
    per_node: Vec<Node>,
    per_worker: Vec<Worker>,
    links: Vec<Link>,
    memories: Vec<Memory>,
    /// Equal digests mean equal events at equal times.
    digest: Option<String>,
    events: Option<u64>,
    wall_s: Option<f64>,
    simulated_tasks_per_s: Option<f64>,
    /// Faults of components.
    pub(crate) faults: Vec<Fault>,
    /// What was logged.
    log: Vec<Said>,
    /// What happened to the tasks of `--explain`.
    pub(super) explained: Vec<TaskReport>,
    /// What the makespan consists of; `null` unless it is explained.
    pub(super) makespan_explained: Option<MakespanReport>,
}

#[derive(Serialize)]
struct Worker {
    id: u32,
    class: String,
    tasks: u64,
    busy_s: f64,
    idle_s: f64,
}

/// A node of a cluster.
#[derive(Serialize)]
pub(super) struct Node {
    pub(super) node: usize,
    platform: String,
    first_worker: u32,
    workers: u32,
    pub(super) tasks: u64,
    /// Mean busy fraction of its workers, from 0 to 1.
    pub(super) busy_share: f64,
    pub(super) makespan_s: f64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    received: u64,
    pub(super) received_bytes: u64,
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

impl Run {
    /// Result of a simulation.
    pub(super) fn simulated(policy: &str, outcome: SimOutcome, has_contexts: bool, digest: u64, wall: Duration) -> Run {
        let worker = |worker: &WorkerStats| Worker {
            id: worker.id.0,
            class: worker.class.clone(),
            tasks: worker.tasks,
            busy_s: worker.busy.as_secs_f64(),
            idle_s: worker.idle.as_secs_f64(),
        };
        let shown = |context: &&ContextStats| has_contexts && context.tasks > 0;
        let per_worker: Vec<Worker> = outcome.workers.iter().map(worker).collect();
        let makespan_s = outcome.makespan.as_secs_f64();
        Run {
            policy: policy.to_owned(),
            planned: false,
            makespan_s,
            ratio_to_bound: None,
            gflops: outcome.gflops(),
            energy_j: outcome.energy,
            critical_path_s: Some(outcome.critical_path.as_secs_f64()),
            busy_share: busy_share(&per_worker, makespan_s),
            transfers: Some(outcome.transfers),
            bytes_moved: Some(outcome.bytes),
            contexts: outcome.contexts.iter().filter(shown).map(Ran::of).collect(),
            hypervisor: outcome.governance.map(HypervisorReport::of),
            messages: None,
            message_bytes: None,
            per_node: Vec::new(),
            per_worker,
            links: outcome.links.into_iter().map(|link| Link { name: link.name, bytes: link.bytes }).collect(),
            memories: outcome
                .memories
                .into_iter()
                .map(|memory| Memory { name: memory.name, peak_bytes: memory.peak })
                .collect(),
            digest: Some(format!("{digest:016x}")),
            events: Some(outcome.events),
            wall_s: Some(wall.as_secs_f64()),
            simulated_tasks_per_s: Some(outcome.tasks as f64 / wall.as_secs_f64().max(f64::MIN_POSITIVE)),
            faults: outcome.faults,
            log: log::take(),
            explained: Vec::new(),
            makespan_explained: None,
        }
    }

    /// Adds what the nodes of a cluster did.
    pub(super) fn on_nodes(&mut self, nodes: &[NodeStats], messages: u64, bytes: u64) {
        let busy = |node: &NodeStats| {
            let first = node.first_worker as usize;
            busy_share(&self.per_worker[first..first + node.workers as usize], self.makespan_s)
        };
        let node = |(number, node): (usize, &NodeStats)| Node {
            node: number,
            platform: node.platform.clone(),
            first_worker: node.first_worker,
            workers: node.workers,
            tasks: node.tasks,
            busy_share: busy(node),
            makespan_s: node.makespan.as_secs_f64(),
            sent: node.sent,
            sent_bytes: node.sent_bytes,
            received: node.received,
            received_bytes: node.received_bytes,
        };
        self.per_node = nodes.iter().enumerate().map(node).collect();
        (self.messages, self.message_bytes) = (Some(messages), Some(bytes));
    }

    /// Result of a static schedule from its trace.
    pub(crate) fn planned(trace: &Trace, classes: &[String], makespan_s: f64, gflops: Option<f64>) -> Run {
        let spans = Timeline::of(trace).workers;
        let per_worker: Vec<Worker> = (0..)
            .zip(spans.iter().zip(classes))
            .map(|(id, (spans, class))| {
                let tasks = || spans.iter().filter(|span| matches!(span.activity, Activity::Task { .. }));
                let busy_s = tasks().map(|span| span.end - span.begin).sum::<u64>() as f64 * 1e-9;
                let idle_s = (makespan_s - busy_s).max(0.0);
                Worker { id, class: class.clone(), tasks: tasks().count() as u64, busy_s, idle_s }
            })
            .collect();
        Run {
            policy: trace.title.clone(),
            planned: true,
            makespan_s,
            ratio_to_bound: None,
            gflops,
            energy_j: None,
            critical_path_s: None,
            busy_share: busy_share(&per_worker, makespan_s),
            transfers: None,
            bytes_moved: None,
            contexts: Vec::new(),
            hypervisor: None,
            messages: None,
            message_bytes: None,
            per_node: Vec::new(),
            per_worker,
            links: Vec::new(),
            memories: Vec::new(),
            digest: None,
            events: None,
            wall_s: None,
            simulated_tasks_per_s: None,
            faults: Vec::new(),
            log: Vec::new(),
            explained: Vec::new(),
            makespan_explained: None,
        }
    }
}

fn busy_share(workers: &[Worker], makespan_s: f64) -> f64 {
    let busy: f64 = workers.iter().map(|worker| worker.busy_s).sum();
    busy / (makespan_s * workers.len() as f64).max(f64::MIN_POSITIVE)
}

impl Report {
    pub(crate) fn new(case: &Case, settings: Settings, mut runs: Vec<Run>, failed: Vec<Failed>) -> Report {
        let (graph, platform) = (&case.graph, &case.platform);
        let (bounds_s, bounds_hold) = (case.bounds(), case.chance.noise.is_none());
        // Static schedules are planned with the lengths of which the bounds are.
        for run in runs.iter_mut().filter(|run| bounds_hold || run.planned) {
            run.ratio_to_bound =
                bounds_s.filter(|bounds| bounds.best() > 0.0).map(|bounds| bounds.ratio(run.makespan_s));
        }
        Report {
            workload: graph.name.clone(),
            platform: platform.name.clone(),
            workers: platform.workers.len(),
            tasks: graph.tasks.len(),
            settings,
            seed: case.chance.seed,
            bounds_s,
            bounds_hold,
            runs,
            failed,
        }
    }

    /// The largest lower bound of the makespan, if there is one.
    pub(crate) fn bound(&self) -> Option<Bound> {
        let name = if self.bounds_hold { LOWER_BOUND } else { "bound without noise" };
        self.bounds_s.map(|bounds| Bound { seconds: bounds.best(), name: name.to_owned() })
    }

    /// What the largest lower bound says of schedules, behind its value.
    pub(crate) fn bound_says(&self) -> &'static str {
        if self.bounds_hold { ": no schedule is shorter" } else { " without noise, by which schedules may be shorter" }
    }

    /// The longest makespan, in seconds.
    pub(crate) fn longest(&self) -> Option<f64> {
        self.runs.iter().map(|run| run.makespan_s).reduce(f64::max)
    }

    /// Whether any schedule has an energy.
    pub(crate) fn knows_energy(&self) -> bool {
        self.runs.iter().any(|run| run.energy_j.is_some())
    }

    /// Writes each run in full.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(super) fn write(&self, json: bool, out: &mut dyn Write) -> miette::Result<()> {
        if json {
            return json::write(out, self);
        }
        let runs: Vec<String> = self.runs.iter().map(|run| self.text(run)).collect();
        out.write_all(runs.join("\n").as_bytes()).into_diagnostic()?;
        for Failed { policy, why } in &self.failed {
            writeln!(out, "\n{policy} did not complete: {why}").into_diagnostic()?;
        }
        Ok(())
    }

    fn text(&self, run: &Run) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<9} {value}");
        };
        line("workload", format_args!("{}", self.workload));
        line("platform", format_args!("{} ({})", self.platform, count(self.workers as u64, "worker")));
        if let Some(options) = self.settings.options() {
            line("options", format_args!("{options}"));
        }
        // The table of contexts lists their policies.
        if run.contexts.is_empty() {
            line("policy", format_args!("{}", run.policy));
        }
        line("tasks", format_args!("{}", self.tasks));
        line("makespan", format_args!("{:.6} s", run.makespan_s));
        if let Some(gflops) = run.gflops {
            line("speed", format_args!("{gflops:.1} GFlop/s"));
        }
        if let Some(joules) = run.energy_j {
            line("energy", format_args!("{joules:.3} J"));
        }
        if let Some(bounds) = &self.bounds_s {
            let ratio = run.ratio_to_bound.map_or(String::new(), |ratio| format!("; ratio {ratio:.2}"));
            line("bound", format_args!("{:.6} s{}{ratio}", bounds.best(), self.bound_says()));
            line("", format_args!("{bounds}"));
        }
        if let (Some(bytes), Some(transfers)) = (run.bytes_moved, run.transfers) {
            line("moved", format_args!("{:.3} GB in {}", bytes as f64 / 1e9, count(transfers, "transfer")));
        }
        if let (Some(bytes), Some(messages)) = (run.message_bytes, run.messages) {
            line("sent", format_args!("{:.3} GB in {messages} messages between nodes", bytes as f64 / 1e9));
        }
        if let (Some(digest), Some(events)) = (&run.digest, run.events) {
            line("digest", format_args!("{digest} of {events} events"));
        }
        if let (Some(wall), Some(speed)) = (run.wall_s, run.simulated_tasks_per_s) {
            line("took", format_args!("{wall:.3} s, {speed:.0} tasks a second"));
        }
        for fault in &run.faults {
            line("fault", format_args!("{fault}"));
        }
        let contexts = run.context_table().map_or(String::new(), |table| format!("\n{table}\n"));
        let goals = run.hypervisor.as_ref().map_or(String::new(), |report| format!("\n{}\n", report.text()));
        let table = if run.per_node.is_empty() { run.worker_table() } else { nodes::table(&run.per_node) };
        let explained: String = run.explained.iter().map(|task| format!("\n{}", explain::text(task))).collect();
        let makespan =
            run.makespan_explained.as_ref().map_or(String::new(), |report| format!("\n{}", makespan::text(report)));
        format!("{text}{contexts}{goals}\n{table}\n{explained}{makespan}")
    }
}

impl Run {
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
