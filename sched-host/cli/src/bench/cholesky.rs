//! `sched bench cholesky`: how much of the kernels' speed is left under the runtime.

use super::measured;
use crate::json;
use crate::size;
use crate::table::table;
use crate::values::positive;
use miette::IntoDiagnostic;
use sched_machine::topology::{BindingPlan, Topology};
use sched_tree::plugin::Registry;
use sched_workloads::bench::{CholeskyBench, CholeskyReport, cholesky_bench};
use sched_workloads::linalg::Tiling;
use sched_workloads::workload::Cholesky;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure the Cholesky factorisation beside threads that run the same kernels without any runtime
///
/// Every round measures the floor, where as many bound threads as there are workers each factorise a matrix of their own in
/// a plain loop, and then this runtime, where all workers together factorise one matrix of that order. The ratio of the
/// two says what scheduling, dependencies and waiting at the end of the graph cost.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Name of a shipped policy, or path of a policy file
    #[arg(long, short, value_name = "POLICY", default_value = "tree-eager", env = "SCHED_POLICY")]
    policy: String,

    /// Number of workers [default: one for each hardware thread that may be used]
    #[arg(long, short, value_name = "N", value_parser = positive)]
    workers: Option<usize>,

    /// Tiles in a row of tiles
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16, value_parser = positive)]
    tiles: usize,

    /// Rows of a tile
    #[arg(long, short = 'b', value_name = "B", default_value_t = 256, value_parser = positive)]
    tile_size: usize,

    /// Rounds
    #[arg(long, short, value_name = "R", default_value_t = 7, value_parser = positive)]
    repeat: usize,

    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let Args { policy, workers, tiles, tile_size, repeat, json } = args.clone();
    let topology = Topology::this_machine()?;
    let workers = workers.unwrap_or_else(|| BindingPlan::default_workers(&topology));
    size::check::<Cholesky>(Tiling::new(size::order(tiles, tile_size)?, tile_size), workers + 1)?;
    let wanted = CholeskyBench { policy, workers, tiles, tile_size, rounds: repeat };
    let report = measured(|progress| cholesky_bench(&wanted, registry, progress))?;
    if json {
        json::write(out, &report)?;
    } else {
        out.write_all(text(&report).as_bytes()).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(report: &CholeskyReport) -> String {
    let CholeskyReport { policy, workers, order, tiles, tile_size, tasks, rounds, median, best, .. } = report;
    let row = |name: &str, median: f64, best: f64, digits: usize| {
        [name.to_owned(), format!("{median:.digits$}"), format!("{best:.digits$}")]
    };
    let rows = [
        row("runtime", median.gflops, best.gflops, 1),
        row("floor", median.floor_gflops, best.floor_gflops, 1),
        row("ratio", report.ratio, report.ratio_of_best, 3),
    ];
    format!(
        "cholesky of order {order}, {tiles} × {tiles} tiles of {tile_size}, {tasks} tasks\n\
         policy {policy}, workers: {workers}, rounds: {}\n\n{}\n",
        rounds.len(),
        table(["GFLOP/S", "MEDIAN", "BEST"], rows, 1..3)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_workloads::bench::CholeskyRound;

    #[test]
    fn the_figures_stand_side_by_side() {
        let round = CholeskyRound { gflops: 190.0, floor_gflops: 200.0 };
        let report = CholeskyReport {
            policy: "tree-eager".to_owned(),
            workers: 2,
            workers_bound: 2,
            order: 4096,
            tiles: 16,
            tile_size: 256,
            tasks: 816,
            rounds: vec![round; 3],
            median: round,
            best: CholeskyRound { gflops: 199.5, ..round },
            ratio: 0.95,
            ratio_of_best: 0.9975,
        };
        insta::assert_snapshot!(text(&report), @r"
        cholesky of order 4096, 16 × 16 tiles of 256, 816 tasks
        policy tree-eager, workers: 2, rounds: 3

        GFLOP/S  MEDIAN   BEST
        runtime   190.0  199.5
        floor     200.0  200.0
        ratio     0.950  0.998
        ");
    }
}
