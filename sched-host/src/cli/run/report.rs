//! What a run has to say, for people and for programs.

use super::progress::Progress;
use crate::runtime::Runtime;
use crate::tree::Fault;
use crate::workload::{Figures, WorkerShare};
use comfy_table::{CellAlignment, Table, presets};
use miette::{IntoDiagnostic, miette};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;

/// A run whose result was checked. The fields are the keys of the JSON.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) problem: Problem,
    policy: String,
    workers: usize,
    /// Of these, those bound to a hardware thread.
    workers_bound: usize,
    tasks: u64,
    makespan_s: f64,
    gflops: f64,
    residual: f64,
    /// The largest residual that passes.
    residual_tolerance: f64,
    per_worker: Vec<WorkerShare>,
    /// What components did wrong.
    faults: Vec<Fault>,
}

/// What was computed.
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
}

impl Report {
    pub(super) fn new(problem: Problem, runtime: &Runtime, figures: Figures, residual: f64, tolerance: f64) -> Report {
        Report {
            problem,
            policy: runtime.policy().to_owned(),
            workers: runtime.workers(),
            workers_bound: runtime.bound_workers(),
            tasks: figures.tasks,
            makespan_s: figures.makespan.as_secs_f64(),
            gflops: figures.gflops(),
            residual,
            residual_tolerance: tolerance,
            per_worker: figures.per_worker,
            faults: runtime.faults(),
        }
    }

    /// Writes the report to `out`, and then, for people, what components did wrong to stderr.
    ///
    /// # Errors
    /// When `out` cannot be written; when the result is wrong, which the report says too.
    pub(super) fn write(&self, json: bool, progress: &Progress, out: &mut dyn Write) -> miette::Result<()> {
        progress.clear();
        if json {
            serde_json::to_writer_pretty(&mut *out, self).into_diagnostic()?;
            writeln!(out).into_diagnostic()?;
        } else {
            out.write_all(self.text().as_bytes()).into_diagnostic()?;
        }
        out.flush().into_diagnostic()?;
        if !json {
            tell_faults(&self.faults, progress);
        }
        if self.is_right() {
            return Ok(());
        }
        let (workload, residual, tolerance) = (self.problem.workload, self.residual, self.residual_tolerance);
        Err(miette!(
            help = "a kernel, or the order in which the runtime let them run, is wrong: please report this",
            "the result of {workload} is wrong: the residual is {residual:.1e}, and should be at most {tolerance:.1e}"
        ))
    }

    /// Whether the result is right. A residual that is no number is not.
    pub(super) fn is_right(&self) -> bool {
        self.residual <= self.residual_tolerance
    }

    /// The report for people.
    pub(super) fn text(&self) -> String {
        let Problem { workload, matrix, order, tiles, tile_size, seed } = &self.problem;
        let origin = matrix.as_ref().map_or_else(|| format!("seed {seed}"), |file| format!("from {file}"));
        let verdict = if self.is_right() { "ok, at most" } else { "TOO LARGE, more than" };
        let mut text = String::new();
        let mut line = |name: &str, value: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<9} {value}");
        };
        line(workload, format_args!("order {order}, {tiles} × {tiles} tiles of {tile_size}, {origin}"));
        line("policy", format_args!("{}", self.policy));
        line("workers", format_args!("{}", self.workers_text()));
        line("tasks", format_args!("{}", self.tasks));
        line("time", format_args!("{:.4} s", self.makespan_s));
        line("speed", format_args!("{:.1} GFlop/s", self.gflops));
        line("residual", format_args!("{:.1e} ({verdict} {:.1e})", self.residual, self.residual_tolerance));
        format!("{text}\n{}\n", self.worker_table())
    }

    fn workers_text(&self) -> String {
        match (self.workers, self.workers_bound) {
            (workers, 0) => format!("{workers}, not bound"),
            (1, 1) => "1, bound to a hardware thread".to_owned(),
            (workers, bound) if bound == workers => format!("{workers}, each bound to a hardware thread"),
            (workers, bound) => format!("{workers}, of which {bound} bound to a hardware thread"),
        }
    }

    fn worker_table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["WORKER", "TASKS", "BUSY (S)", "BUSY (%)"]);
        for worker in &self.per_worker {
            table.add_row([
                worker.id.to_string(),
                worker.tasks.to_string(),
                format!("{:.4}", worker.busy_s),
                format!("{:.1}", 100.0 * worker.busy_s / self.makespan_s.max(f64::MIN_POSITIVE)),
            ]);
        }
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if let Some(first) = table.column_mut(0) {
            first.set_padding((0, 1));
        }
        table.trim_fmt()
    }
}

/// What components did wrong, on stderr.
pub(super) fn tell_faults(faults: &[Fault], progress: &Progress) {
    for fault in faults {
        progress.say(&format!("fault: {fault}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            problem: Problem { workload: "cholesky", matrix: None, order: 4096, tiles: 16, tile_size: 256, seed: 42 },
            policy: "tree-eager".to_owned(),
            workers: 2,
            workers_bound: 2,
            tasks: 816,
            makespan_s: 2.0,
            gflops: 11.5,
            residual: 2.5e-16,
            residual_tolerance: 1.4e-11,
            per_worker: vec![
                WorkerShare { id: 0, tasks: 500, busy_s: 2.0 },
                WorkerShare { id: 1, tasks: 316, busy_s: 0.5 },
            ],
            faults: Vec::new(),
        }
    }

    #[test]
    fn a_good_run_on_one_screen() {
        insta::assert_snapshot!(report().text(), @r"
        cholesky  order 4096, 16 × 16 tiles of 256, seed 42
        policy    tree-eager
        workers   2, each bound to a hardware thread
        tasks     816
        time      2.0000 s
        speed     11.5 GFlop/s
        residual  2.5e-16 (ok, at most 1.4e-11)

        WORKER  TASKS  BUSY (S)  BUSY (%)
             0    500    2.0000     100.0
             1    316    0.5000      25.0
        ");
    }

    #[test]
    fn a_wrong_result_is_plain_to_see() {
        for residual in [1e-3, f64::NAN, f64::INFINITY] {
            let wrong = Report { residual, ..report() };
            assert!(!wrong.is_right() && wrong.text().contains("TOO LARGE"), "{}", wrong.text());
        }
    }

    #[test]
    fn workers_that_are_not_bound_are_told() {
        let text = |workers, workers_bound| Report { workers, workers_bound, ..report() }.workers_text();
        assert_eq!(text(2, 0), "2, not bound");
        assert_eq!(text(2, 1), "2, of which 1 bound to a hardware thread");
        assert_eq!(text(1, 1), "1, bound to a hardware thread");
    }
}
