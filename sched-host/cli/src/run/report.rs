//! Reports of runs, as text and JSON.

use super::comparison::Contender;
use super::contexts::Ran;
use super::problem::Problem;
use crate::devices::line_of;
use crate::hypervisor::HypervisorReport;
use crate::json;
use crate::log::{self, Said};
use crate::makespan::{self, MakespanReport};
use crate::progress::Progress;
use crate::streams;
use crate::table::table;
use miette::IntoDiagnostic;
use sched_machine::energy::Consumption;
use sched_model::ModelError;
use sched_runtime::{DeviceStats, Runtime, TransferStats};
use sched_text::amount::decimal_bytes as bytes;
use sched_trace::Trace;
use sched_tree::Fault;
use sched_workloads::workload::{Figures, WorkerShare};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;

/// All runs of one command, with checked results. Fields are JSON keys, equal for one run and for several.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) problem: Problem,
    /// Number of workers bound to a hardware thread.
    pub(super) workers_bound: usize,
    /// Tasks of one run.
    pub(super) tasks: u64,
    /// Runs with each policy.
    pub(super) repeat: usize,
    /// The largest of all runs.
    pub(super) residual: f64,
    /// Statistics for each policy, in the order of the command line.
    pub(super) policies: Vec<Contender>,
    /// In order of execution.
    pub(super) runs: Vec<Run>,
}

/// One run.
#[derive(Serialize)]
pub(super) struct Run {
    pub(super) policy: String,
    /// Name on the command line.
    pub(super) given: String,
    /// Index of the policy.
    pub(super) place: usize,
    /// From 1.
    pub(super) round: usize,
    #[serde(flatten)]
    pub(super) measured: Measured,
    /// What the makespan consists of; `null` unless it is explained.
    pub(super) makespan_explained: Option<MakespanReport>,
}

/// Result of a run.
#[derive(Serialize)]
pub(super) struct Measured {
    pub(super) tasks: u64,
    pub(super) makespan_s: f64,
    pub(super) gflops: f64,
    /// Energy of the processors, if measured.
    #[serde(flatten)]
    pub(super) energy: Energy,
    pub(super) residual: f64,
    /// Mean busy fraction of the workers, from 0 to 1.
    pub(super) busy_share: f64,
    pub(super) per_worker: Vec<WorkerShare>,
    #[serde(flatten)]
    pub(super) moves: Moves,
    /// Empty unless contexts or a swap were requested.
    pub(super) contexts: Vec<Ran>,
    /// What the hypervisor did; `null` without goals.
    pub(super) hypervisor: Option<HypervisorReport>,
    /// Faults of components.
    pub(super) faults: Vec<Fault>,
    /// What was logged.
    pub(super) log: Vec<Said>,
}

/// Transfers between memory nodes.
#[derive(Serialize)]
pub(super) struct Moves {
    /// A branch for each memory node that has workers.
    memory_nodes: usize,
    transfers: Vec<TransferStats>,
    devices: Vec<DeviceStats>,
}

impl Moves {
    /// That of a runtime.
    pub(super) fn of(runtime: &Runtime) -> Moves {
        let memory_nodes = runtime.memory_nodes().len().max(1);
        Moves { memory_nodes, transfers: runtime.transfers(), devices: runtime.devices() }
    }

    /// The lines of the report, if there are devices or several memory nodes.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let devices = self.devices.iter().map(|device| ("device", line_of(device)));
        devices.chain(self.memory()).collect()
    }

    fn memory(&self) -> Option<(&'static str, String)> {
        if self.memory_nodes <= 1 {
            return None;
        }
        let count: u64 = self.transfers.iter().map(|moved| moved.count).sum();
        let size: u64 = self.transfers.iter().map(|moved| moved.bytes).sum();
        let size = bytes(size as f64);
        Some(("memory", format!("{} nodes, {count} transfers of {size} in all", self.memory_nodes)))
    }
}

/// Energy of a run.
#[derive(Serialize, Clone, Copy, Default)]
pub(super) struct Energy {
    /// `null` unless it was measured.
    pub(super) energy_j: Option<f64>,
    /// Also `null` where the counters did not advance.
    pub(super) gflop_per_j: Option<f64>,
}

impl Energy {
    fn new(joules: f64, gflop: f64) -> Energy {
        Energy { energy_j: Some(joules), gflop_per_j: (joules > 0.0).then(|| gflop / joules) }
    }

    fn line(&self) -> Option<(&'static str, String)> {
        let joules = self.energy_j?;
        let efficiency = self.gflop_per_j.map(|efficiency| format!(", {efficiency:.3} GFlop/J")).unwrap_or_default();
        Some(("energy", format!("{joules:.1} J{efficiency} (processor packages)")))
    }
}

impl Measured {
    pub(super) fn new(
        figures: Figures,
        consumption: Option<Consumption>,
        residual: f64,
        runtime: &Runtime,
    ) -> Measured {
        let gflop = figures.gflops() * figures.makespan.as_secs_f64();
        Measured {
            tasks: figures.tasks,
            makespan_s: figures.makespan.as_secs_f64(),
            gflops: figures.gflops(),
            energy: consumption.map(|consumption| Energy::new(consumption.joules, gflop)).unwrap_or_default(),
            residual,
            busy_share: figures.busy_share(),
            per_worker: figures.per_worker,
            moves: Moves::of(runtime),
            contexts: Vec::new(),
            hypervisor: None,
            faults: runtime.faults(),
            log: log::take(),
        }
    }
}

impl Report {
    /// Writes the report to `out`, or to the standard error where something else `takes` the standard output; as text,
    /// faults of components follow on the standard error.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(super) fn write(
        &self,
        json: bool,
        takes: bool,
        progress: &Progress,
        out: &mut dyn Write,
    ) -> miette::Result<()> {
        progress.clear();
        streams::report(takes, out, |out| {
            if json {
                json::write(out, self)?;
            } else {
                out.write_all(self.text().as_bytes()).into_diagnostic()?;
            }
            out.flush().into_diagnostic()
        })?;
        if !json {
            self.runs.iter().for_each(|run| warn_of_faults(&run.measured.faults, progress));
        }
        Ok(())
    }

    /// Explains the makespan of the only run, which has this trace.
    pub(super) fn explain(&mut self, trace: Option<&mut Trace>) {
        let (Some(trace), [run]) = (trace, &mut self.runs[..]) else { return };
        if let Some(graph) = self.problem.graph() {
            trace.name_tasks(&graph);
        }
        run.makespan_explained = makespan::report(trace);
    }

    /// The report as text.
    fn text(&self) -> String {
        match &*self.runs {
            [run] if !run.measured.contexts.is_empty() => self.table_of_contexts(&run.measured),
            [run] => {
                let explained = run.makespan_explained.as_ref().map(|report| format!("\n{}", makespan::text(report)));
                self.one(run) + &explained.unwrap_or_default()
            }
            _ => self.comparison(),
        }
    }

    fn one(&self, run: &Run) -> String {
        let Run { policy, measured, .. } = run;
        let mut lines =
            vec![self.problem.line(), ("policy", policy.clone()), self.problem.workers_line(self.workers_bound)];
        lines.extend(measured.moves.lines());
        lines.extend([
            ("tasks", measured.tasks.to_string()),
            ("time", format!("{:.4} s", measured.makespan_s)),
            ("speed", format!("{:.1} GFlop/s", measured.gflops)),
        ]);
        lines.extend(measured.energy.line());
        lines.push(self.problem.residual_line(measured.residual));
        let block = block(&lines);
        let rows = measured.per_worker.iter().map(|worker| {
            [
                worker.id.to_string(),
                worker.tasks.to_string(),
                format!("{:.4}", worker.busy_s),
                format!("{:.1}", 100.0 * worker.busy_s / measured.makespan_s.max(f64::MIN_POSITIVE)),
                worker.wakes.to_string(),
                worker.wakes_in_vain.to_string(),
            ]
        });
        format!("{block}\n{}\n", table(["WORKER", "TASKS", "BUSY (S)", "BUSY (%)", "WAKES", "IN VAIN"], rows, 0..6))
    }
}

/// Lines of name and value.
pub(super) fn block(lines: &[(&str, String)]) -> String {
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<9} {value}");
        text
    })
}

/// Stores the measurements if requested, and reports on stderr what could not be read. Returns what was not stored.
pub(super) fn store_models(runtime: &Runtime, progress: &Progress) -> Vec<ModelError> {
    let Some(models) = runtime.models() else { return Vec::new() };
    let stored = models.save();
    for problem in models.take_problems() {
        progress.warn_once(&format!("performance model: {problem}"));
    }
    match stored {
        Ok(moved) => {
            moved.iter().for_each(|moved| progress.warn_once(&format!("performance model: {moved}")));
            Vec::new()
        }
        Err(errors) => errors,
    }
}

/// Writes faults of components to stderr.
pub(super) fn warn_of_faults(faults: &[Fault], progress: &Progress) {
    for fault in faults {
        progress.warn_once(&format!("fault: {fault}"));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::problem::tests::problem;
    use super::*;

    pub(in super::super) fn measured(makespan_s: f64, residual: f64) -> Measured {
        Measured {
            tasks: 816,
            makespan_s,
            gflops: 23.0 / makespan_s,
            energy: Energy::default(),
            residual,
            busy_share: 0.625,
            per_worker: vec![
                WorkerShare { id: 0, tasks: 500, busy_s: makespan_s, wakes: 0, wakes_in_vain: 0 },
                WorkerShare { id: 1, tasks: 316, busy_s: makespan_s / 4.0, wakes: 12, wakes_in_vain: 3 },
            ],
            moves: Moves { memory_nodes: 1, transfers: Vec::new(), devices: Vec::new() },
            contexts: Vec::new(),
            hypervisor: None,
            faults: Vec::new(),
            log: Vec::new(),
        }
    }

    fn report(measured: Measured) -> Report {
        let policy = "tree-eager".to_owned();
        let mut runs = super::super::comparison::Runs::new(1);
        runs.note(0, &policy, &policy, measured);
        let report = runs.report(problem());
        Report { workers_bound: 2, ..report }
    }

    #[test]
    fn a_good_run_on_one_screen() {
        insta::assert_snapshot!(report(measured(2.0, 2.5e-16)).text(), @r"
        cholesky  order 4096, 16 × 16 tiles of 256, seed 42
        policy    tree-eager
        workers   2, each bound to a hardware thread
        tasks     816
        time      2.0000 s
        speed     11.5 GFlop/s
        residual  2.5e-16 (ok, at most 1.4e-11)

        WORKER  TASKS  BUSY (S)  BUSY (%)  WAKES  IN VAIN
             0    500    2.0000     100.0      0        0
             1    316    0.5000      25.0     12        3
        ");
    }

    #[test]
    fn several_memory_nodes_are_reported_with_what_was_copied() {
        let moved = |from, to, count| TransferStats { from, to, count, bytes: count * 524_288 };
        let (transfers, devices) = (vec![moved(0, 1, 30), moved(1, 0, 10)], Vec::new());
        let moves = Moves { memory_nodes: 2, transfers, devices };
        assert_eq!(moves.lines()[0].1, "2 nodes, 40 transfers of 21.0 MB in all");
        let (with, without) = (Measured { moves, ..measured(1.0, 0.0) }, measured(1.0, 0.0));
        assert!(without.moves.lines().is_empty());
        let [with, without] = [with, without].map(|run| serde_json::to_value(run).expect("it is JSON"));
        assert_eq!(with["transfers"][1], serde_json::json!({"from": 1, "to": 0, "count": 10, "bytes": 5_242_880}));
        assert_eq!((&without["transfers"], &without["memory_nodes"]), (&serde_json::json!([]), &1.into()));
    }

    #[test]
    fn energy_is_reported_where_it_was_measured() {
        let of = |joules| report(Measured { energy: Energy::new(joules, 23.0), ..measured(2.0, 2.5e-16) });
        let line = "\nspeed     11.5 GFlop/s\nenergy    92.0 J, 0.250 GFlop/J (processor packages)\nresidual  ";
        assert!(of(92.0).text().contains(line), "{}", of(92.0).text());
        let json = |joules| serde_json::to_value(of(joules)).expect("it has text for keys")["runs"][0].take();
        assert_eq!((&json(92.0)["energy_j"], &json(92.0)["gflop_per_j"]), (&92.0.into(), &0.25.into()));
        assert!(json(0.0)["gflop_per_j"].is_null() && of(0.0).text().contains("\nenergy    0.0 J (processor"));
    }
}
