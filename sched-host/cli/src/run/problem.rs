//! The problem of a run: matrix, tiles and workers.

use crate::pictures::{Beside, LOWER_BOUND, PictureFiles};
use crate::streams::Sink;
use miette::miette;
use sched_graph::{TaskGraph, generate, to_json};
use sched_trace::{Bound, Trace, measured_bound};
use sched_workloads::linalg::Precision;
use serde::Serialize;
use std::io::Write;

/// The matrix and its tiles, and the workers.
#[derive(Serialize)]
pub(super) struct Problem {
    pub(super) workload: &'static str,
    /// File of the matrix; `None` if it is made from the seed.
    pub(super) matrix: Option<String>,
    /// Rows of the matrix.
    pub(super) order: usize,
    /// Tiles in a row of tiles.
    pub(super) tiles: usize,
    /// Rows of a tile.
    pub(super) tile_size: usize,
    pub(super) seed: u64,
    /// Precision of the kernels.
    pub(super) precision: Precision,
    /// Maximum residual of a correct result.
    pub(super) residual_tolerance: f64,
    pub(super) workers: usize,
}

impl Problem {
    /// The name of the workload, and what it works on.
    pub(super) fn line(&self) -> (&'static str, String) {
        let Problem { workload, matrix, order, tiles, tile_size, seed, precision, .. } = self;
        let origin = matrix.as_ref().map_or_else(|| format!("seed {seed}"), |file| format!("from {file}"));
        let numbers = if *precision == Precision::Single { ", single precision" } else { "" };
        (workload, format!("order {order}, {tiles} × {tiles} tiles of {tile_size}, {origin}{numbers}"))
    }

    /// Numbers of workers and bound workers.
    pub(super) fn workers_line(&self, bound: usize) -> (&'static str, String) {
        let line = match (self.workers, bound) {
            (workers, 0) => format!("{workers}, not bound"),
            (1, 1) => "1, bound to a hardware thread".to_owned(),
            (workers, bound) if bound == workers => format!("{workers}, each bound to a hardware thread"),
            (workers, bound) => format!("{workers}, of which {bound} bound to a hardware thread"),
        };
        ("workers", line)
    }

    /// The residual with its verdict.
    pub(super) fn residual_line(&self, residual: f64) -> (&'static str, String) {
        let verdict = if self.is_right(residual) { "ok, at most" } else { "TOO LARGE, more than" };
        ("residual", format!("{residual:.1e} ({verdict} {:.1e})", self.residual_tolerance))
    }

    /// Whether a result is right; a NaN residual is not.
    fn is_right(&self, residual: f64) -> bool {
        residual <= self.residual_tolerance
    }

    /// The graph of its tasks.
    pub(super) fn graph(&self) -> Option<TaskGraph> {
        graph_of(self.workload, self.tiles, self.tile_size)
    }

    /// Draws the run, with a lower bound from the durations of its tasks.
    pub(super) fn draw(&self, trace: &Trace, files: PictureFiles, out: &mut dyn Write) -> miette::Result<()> {
        let seconds = self.graph().and_then(|graph| measured_bound(trace, &graph));
        let bound = seconds.map(|seconds| Bound { seconds, name: LOWER_BOUND.to_owned() });
        let workload = format!("{}: {}", self.workload, self.line().1);
        files.write(trace, Beside { workload: &workload, bound: bound.as_ref(), until: None }, out)
    }

    /// Writes the graph of the run. What the generator of such graphs knows beside what was submitted is added: the
    /// names of tasks, and their operations, by which platforms know how long they take on other processors.
    pub(super) fn record(&self, mut graph: TaskGraph, sink: Sink, out: &mut dyn Write) -> miette::Result<()> {
        graph.name = format!("{}: {}", self.workload, self.line().1);
        let generated = self.graph();
        let kinds = |graph: &TaskGraph| -> Vec<String> {
            graph.tasks.iter().map(|task| graph.kind_of(task).name.clone()).collect()
        };
        if let Some(generated) = generated.filter(|generated| kinds(generated) == kinds(&graph)) {
            for (task, known) in graph.tasks.iter_mut().zip(generated.tasks) {
                task.flops = known.flops;
                task.name = task.name.take().or(known.name);
            }
        }
        let text = to_json(&graph, &graph.dependencies());
        sink.write(out, |out| out.write_all(text.as_bytes()))
    }

    /// # Errors
    /// If the result is wrong; `caveat` explains whether the matrix makes that likely.
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

/// The task graph of a workload.
pub(super) fn graph_of(workload: &str, tiles: usize, tile_size: usize) -> Option<TaskGraph> {
    match workload {
        "cholesky" => Some(generate::cholesky(tiles, tile_size)),
        "lu" => Some(generate::lu(tiles, tile_size)),
        "qr" => Some(generate::qr(tiles, tile_size)),
        _ => None,
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
            precision: Precision::Double,
            residual_tolerance: 1.4e-11,
            workers: 2,
        }
    }

    #[test]
    fn a_wrong_result_is_plain_to_see_and_the_matrix_may_be_why() {
        for residual in [1e-3, f64::NAN, f64::INFINITY] {
            let (_, shown) = problem().residual_line(residual);
            assert!(shown.contains("TOO LARGE"), "{shown}");
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
    fn workers_that_are_not_bound_are_reported() {
        let text = |workers, bound| Problem { workers, ..problem() }.workers_line(bound).1;
        assert_eq!(text(2, 0), "2, not bound");
        assert_eq!(text(2, 1), "2, of which 1 bound to a hardware thread");
        assert_eq!(text(1, 1), "1, bound to a hardware thread");
    }
}
