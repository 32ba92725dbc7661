//! `sched bench cholesky`: speed of the kernels under the runtime.

use super::{Document, RoundOption, measured};
use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::machine::WorkerOption;
use crate::policy::PolicyOptions;
use crate::size;
use crate::table::table;
use crate::values::positive;
use miette::IntoDiagnostic;
use sched_machine::topology::Topology;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{CholeskyBench, CholeskyReport, cholesky_bench};
use sched_workloads::linalg::Tiling;
use sched_workloads::workload::Cholesky;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure the Cholesky factorisation beside threads that run the same kernels without a runtime
///
/// Every round measures the floor, where one bound thread for each worker factorises a matrix of its own in a plain
/// loop, and then this runtime, where all workers together factorise one matrix of that order. The ratio of the two is
/// the cost of scheduling, dependencies and waiting at the end of the graph.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    #[command(flatten)]
    policies: PolicyOptions,

    #[command(flatten)]
    workers: WorkerOption,

    /// Tiles in a row of tiles
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16, value_parser = positive)]
    tiles: usize,

    /// Rows of a tile
    #[arg(long, short = 'b', value_name = "B", default_value_t = 256, value_parser = positive)]
    tile_size: usize,

    #[command(flatten)]
    rounds: RoundOption<7>,

    #[command(flatten)]
    format: FormatOptions,
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (tiles, tile_size, rounds) = (args.tiles, args.tile_size, args.rounds.rounds);
    let policies = args.policies.several()?;
    let workers = args.workers.count(&Topology::this_machine()?);
    size::check::<Cholesky>(Tiling::new(size::order(tiles, tile_size)?, tile_size), workers + 1)?;
    let mut reports = Vec::new();
    for policy in policies {
        let wanted = CholeskyBench { policy, workers, tiles, tile_size, rounds };
        reports.push(measured(|progress| cholesky_bench(&wanted, registry, progress))?);
    }
    if args.format.is_json() {
        json::write(out, &Document { results: &reports })?;
    } else {
        let texts: Vec<String> = reports.iter().map(text).collect();
        out.write_all(texts.join("\n").as_bytes()).into_diagnostic()?;
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
