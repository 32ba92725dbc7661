//! What a run has to say, for people and for programs.

use super::progress::Progress;
use crate::json;
use crate::pictures::PictureFiles;
use crate::table::table;
use miette::{IntoDiagnostic, miette};
use sched_graph::generate;
use sched_machine::energy::Consumption;
use sched_runtime::{Runtime, TransferStats};
use sched_text::amount::decimal_bytes as bytes;
use sched_trace::{Trace, measured_bound};
use sched_tree::Fault;
use sched_workloads::workload::{Figures, WorkerShare};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;

/// A run whose result was checked. The fields are the keys of the JSON.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) problem: Problem,
    pub(super) policy: String,
    /// Of the workers, those bound to a hardware thread.
    pub(super) workers_bound: usize,
    #[serde(flatten)]
    pub(super) measured: Measured,
}

/// What is computed, by how many.
#[derive(Serialize)]
pub(super) struct Problem {
    pub(super) workload: &'static str,
    /// The file that the matrix came from; made from the seed if there is none.
    pub(super) matrix: Option<String>,
    /// Rows of the matrix.
    pub(super) order: usize,
    /// Tiles in a row of tiles.
    pub(super) tiles: usize,
    /// Rows of a tile.
    pub(super) tile_size: usize,
    pub(super) seed: u64,
    /// The largest residual that passes.
    pub(super) residual_tolerance: f64,
    pub(super) workers: usize,
}

/// What came of a run.
#[derive(Serialize)]
pub(super) struct Measured {
    pub(super) tasks: u64,
    pub(super) makespan_s: f64,
    pub(super) gflops: f64,
    /// What the processors took, if that was measured.
    #[serde(flatten)]
    pub(super) energy: Option<Energy>,
    pub(super) residual: f64,
    pub(super) per_worker: Vec<WorkerShare>,
    /// Where there are several memory nodes.
    #[serde(flatten)]
    pub(super) moves: Option<Moves>,
    /// What components did wrong.
    pub(super) faults: Vec<Fault>,
}

/// What was copied between memory nodes.
#[derive(Serialize)]
pub(super) struct Moves {
    /// Memory nodes that have workers.
    memory_nodes: usize,
    transfers: Vec<TransferStats>,
}

impl Moves {
    /// That of a runtime with several memory nodes.
    pub(super) fn of(runtime: &Runtime) -> Option<Moves> {
        let memory_nodes = runtime.memory_nodes().len();
        (memory_nodes > 1).then(|| Moves { memory_nodes, transfers: runtime.transfers() })
    }

    /// For people.
    pub(super) fn line(&self) -> (&'static str, String) {
        let count: u64 = self.transfers.iter().map(|moved| moved.count).sum();
        let size: u64 = self.transfers.iter().map(|moved| moved.bytes).sum();
        let size = bytes(size as f64);
        ("memory", format!("{} nodes, {count} transfers of {size} in all", self.memory_nodes))
    }
}

/// What a run took in energy.
#[derive(Serialize, Clone, Copy)]
pub(super) struct Energy {
    pub(super) energy_j: f64,
    /// Unless the counters stood still.
    pub(super) gflop_per_j: Option<f64>,
}

impl Energy {
    fn new(joules: f64, gflop: f64) -> Energy {
        Energy { energy_j: joules, gflop_per_j: (joules > 0.0).then(|| gflop / joules) }
    }

    fn line(&self) -> (&'static str, String) {
        let efficiency = self.gflop_per_j.map(|efficiency| format!(", {efficiency:.3} GFlop/J")).unwrap_or_default();
        ("energy", format!("{:.1} J{efficiency} (all that the packages took)", self.energy_j))
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
            energy: consumption.map(|consumption| Energy::new(consumption.joules, gflop)),
            residual,
            per_worker: figures.per_worker,
            moves: Moves::of(runtime),
            faults: runtime.faults(),
        }
    }

    /// How much of the time a worker was busy, from 0 to 1: the mean over all of them.
    pub(super) fn busy_share(&self) -> f64 {
        let busy: f64 = self.per_worker.iter().map(|worker| worker.busy_s).sum();
        busy / (self.makespan_s * self.per_worker.len() as f64).max(f64::MIN_POSITIVE)
    }
}

impl Problem {
    /// The name of the workload, and what it works on.
    pub(super) fn line(&self) -> (&'static str, String) {
        let Problem { workload, matrix, order, tiles, tile_size, seed, .. } = self;
        let origin = matrix.as_ref().map_or_else(|| format!("seed {seed}"), |file| format!("from {file}"));
        (workload, format!("order {order}, {tiles} × {tiles} tiles of {tile_size}, {origin}"))
    }

    /// How many workers there are, and of them how many are bound.
    pub(super) fn workers_line(&self, bound: usize) -> (&'static str, String) {
        let line = match (self.workers, bound) {
            (workers, 0) => format!("{workers}, not bound"),
            (1, 1) => "1, bound to a hardware thread".to_owned(),
            (workers, bound) if bound == workers => format!("{workers}, each bound to a hardware thread"),
            (workers, bound) => format!("{workers}, of which {bound} bound to a hardware thread"),
        };
        ("workers", line)
    }

    /// The residual, and whether it is small enough.
    pub(super) fn residual_line(&self, residual: f64) -> (&'static str, String) {
        let verdict = if self.is_right(residual) { "ok, at most" } else { "TOO LARGE, more than" };
        ("residual", format!("{residual:.1e} ({verdict} {:.1e})", self.residual_tolerance))
    }

    /// Whether a result is right. A residual that is no number is not.
    fn is_right(&self, residual: f64) -> bool {
        residual <= self.residual_tolerance
    }

    /// Draws the run, with a bound by what its tasks took.
    pub(super) fn draw(&self, trace: &Trace, files: PictureFiles) -> miette::Result<()> {
        let graph = match self.workload {
            "cholesky" => Some(generate::cholesky(self.tiles, self.tile_size)),
            "lu" => Some(generate::lu(self.tiles, self.tile_size)),
            "qr" => Some(generate::qr(self.tiles, self.tile_size)),
            _ => None,
        };
        let bound = graph.and_then(|graph| measured_bound(trace, &graph));
        files.write(trace, &format!("{}: {}", self.workload, self.line().1), bound)
    }

    /// # Errors
    /// When the result is wrong; `caveat` tells whether that is to be expected of the matrix.
    pub(super) fn check(&self, residual: f64, caveat: impl FnOnce() -> Option<String>) -> miette::Result<()> {
        if self.is_right(residual) {
            return Ok(());
        }
        let help = caveat().unwrap_or_else(|| {
            "a kernel, or the order in which the runtime let them run, is wrong: please report this".to_owned()
        });
        let (workload, tolerance) = (self.workload, self.residual_tolerance);
        Err(miette!(
            help = help,
            "the result of {workload} is wrong: the residual is {residual:.1e}, and should be at most {tolerance:.1e}"
        ))
    }
}

impl Report {
    /// Writes the report to `out`, and then, for people, what components did wrong to stderr.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub(super) fn write(&self, json: bool, progress: &Progress, out: &mut dyn Write) -> miette::Result<()> {
        write(json, self, &self.text(), progress, out)?;
        if !json {
            tell_faults(&self.measured.faults, progress);
        }
        Ok(())
    }

    /// The report for people.
    fn text(&self) -> String {
        let Report { problem, policy, workers_bound, measured } = self;
        let mut lines = vec![problem.line(), ("policy", policy.clone()), problem.workers_line(*workers_bound)];
        lines.extend(measured.moves.as_ref().map(Moves::line));
        lines.extend([
            ("tasks", measured.tasks.to_string()),
            ("time", format!("{:.4} s", measured.makespan_s)),
            ("speed", format!("{:.1} GFlop/s", measured.gflops)),
        ]);
        lines.extend(measured.energy.iter().map(Energy::line));
        lines.push(problem.residual_line(measured.residual));
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

/// Writes `report` for programs, or `text` for people, to `out`.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn write(
    json: bool,
    report: &impl Serialize,
    text: &str,
    progress: &Progress,
    out: &mut dyn Write,
) -> miette::Result<()> {
    progress.clear();
    if json {
        json::write(out, report)?;
    } else {
        out.write_all(text.as_bytes()).into_diagnostic()?;
    }
    out.flush().into_diagnostic()
}

/// Lines that begin with a name each.
pub(super) fn block(lines: &[(&str, String)]) -> String {
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<9} {value}");
        text
    })
}

/// Stores what was measured, if that is asked for, and tells on stderr what could not be read or stored. Whether everything
/// that should be is stored.
pub(super) fn store_models(runtime: &Runtime, progress: &Progress) -> bool {
    let Some(models) = runtime.models() else { return true };
    let stored = models.save();
    for problem in models.take_problems() {
        progress.say(&format!("performance model: {problem}"));
    }
    match stored {
        Ok(moved) => {
            moved.iter().for_each(|moved| progress.say(&format!("performance model: {moved}")));
            true
        }
        Err(errors) => {
            errors.iter().for_each(|error| progress.say(&format!("what was measured is not stored: {error}")));
            false
        }
    }
}

/// What components did wrong, on stderr.
pub(super) fn tell_faults(faults: &[Fault], progress: &Progress) {
    for fault in faults {
        progress.say(&format!("fault: {fault}"));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn problem() -> Problem {
        Problem {
            workload: "cholesky",
            matrix: None,
            order: 4096,
            tiles: 16,
            tile_size: 256,
            seed: 42,
            residual_tolerance: 1.4e-11,
            workers: 2,
        }
    }

    pub(in super::super) fn measured(makespan_s: f64, residual: f64) -> Measured {
        Measured {
            tasks: 816,
            makespan_s,
            gflops: 23.0 / makespan_s,
            energy: None,
            residual,
            per_worker: vec![
                WorkerShare { id: 0, tasks: 500, busy_s: makespan_s, wakes: 0, wakes_in_vain: 0 },
                WorkerShare { id: 1, tasks: 316, busy_s: makespan_s / 4.0, wakes: 12, wakes_in_vain: 3 },
            ],
            moves: None,
            faults: Vec::new(),
        }
    }

    #[test]
    fn a_good_run_on_one_screen() {
        let policy = "tree-eager".to_owned();
        let report = Report { problem: problem(), policy, workers_bound: 2, measured: measured(2.0, 2.5e-16) };
        insta::assert_snapshot!(report.text(), @r"
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
    fn several_memory_nodes_are_told_with_what_was_copied() {
        let moved = |from, to, count| TransferStats { from, to, count, bytes: count * 524_288 };
        let moves = Moves { memory_nodes: 2, transfers: vec![moved(0, 1, 30), moved(1, 0, 10)] };
        assert_eq!(moves.line().1, "2 nodes, 40 transfers of 21.0 MB in all");
        let (with, without) = (Measured { moves: Some(moves), ..measured(1.0, 0.0) }, measured(1.0, 0.0));
        let [with, without] = [with, without].map(|run| serde_json::to_value(run).expect("it is JSON"));
        assert_eq!(with["transfers"][1], serde_json::json!({"from": 1, "to": 0, "count": 10, "bytes": 5_242_880}));
        assert_eq!((without.get("transfers"), without.get("memory_nodes")), (None, None));
    }

    #[test]
    fn energy_is_told_where_it_was_measured() {
        let policy = "tree-eager".to_owned();
        let of = |joules| {
            let measured = Measured { energy: Some(Energy::new(joules, 23.0)), ..measured(2.0, 2.5e-16) };
            Report { problem: problem(), policy: policy.clone(), workers_bound: 2, measured }
        };
        let line = "\nspeed     11.5 GFlop/s\nenergy    92.0 J, 0.250 GFlop/J (all that the packages took)\nresidual  ";
        assert!(of(92.0).text().contains(line), "{}", of(92.0).text());
        let json = |joules| serde_json::to_value(of(joules)).expect("it has text for keys");
        assert_eq!((&json(92.0)["energy_j"], &json(92.0)["gflop_per_j"]), (&92.0.into(), &0.25.into()));
        assert!(json(0.0)["gflop_per_j"].is_null() && of(0.0).text().contains("\nenergy    0.0 J (all"));
    }

    #[test]
    fn a_wrong_result_is_plain_to_see_and_the_matrix_may_be_why() {
        for residual in [1e-3, f64::NAN, f64::INFINITY] {
            let (_, told) = problem().residual_line(residual);
            assert!(told.contains("TOO LARGE"), "{told}");
        }
        let help = |caveat: Option<String>| {
            let error = problem().check(f64::NAN, || caveat).expect_err("it is wrong");
            error.help().expect("what to do").to_string()
        };
        assert!(help(None).contains("please report this"));
        assert_eq!(help(Some("look at the matrix".to_owned())), "look at the matrix");
        assert!(problem().check(1e-16, || None).is_ok());
    }

    #[test]
    fn workers_that_are_not_bound_are_told() {
        let text = |workers, bound| Problem { workers, ..problem() }.workers_line(bound).1;
        assert_eq!(text(2, 0), "2, not bound");
        assert_eq!(text(2, 1), "2, of which 1 bound to a hardware thread");
        assert_eq!(text(1, 1), "1, bound to a hardware thread");
    }
}
