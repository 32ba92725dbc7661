//! `sched bench simulation`: cost of the simulator.

use super::{Document, RoundOption, measured};
use crate::format::{FormatOptions, text_or_json};
use crate::graph_source::Sizes;
use crate::hints::GRAPH;
use crate::json;
use crate::policy::PolicyOptions;
use crate::table::table;
use crate::values::{SeedOption, up_to};
use miette::IntoDiagnostic;
use sched_sim::platform::MAX_WORKERS;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{SimulationBench, SimulationResult, simulation_bench};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure the cost of a simulated task by the number of workers
///
/// The graph is simulated on flat machines: identical workers with one memory. GROWTH is the ratio of the cost of a
/// task to that with the fewest workers, MORE WORKERS the ratio of the numbers of workers: a policy whose decisions
/// examine each worker once grows at most proportionally, one that examines few workers does not grow. The figures
/// cover the whole simulation, from reading the policy to the last event; the minimum of all rounds is reported.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched bench simulation
  sched bench simulation cholesky --tiles 60 --workers 12
  sched bench simulation layered --width 2000 --steps 50 --density 0.001 --policy tree-ws")]
pub(super) struct Args {
    /// Graph: a generator, as for `sched simulate`, or a file
    #[arg(value_name = "GRAPH|FILE", default_value = "independent", value_parser = GRAPH, hide_possible_values = true)]
    graph: String,

    #[command(flatten)]
    sizes: Sizes,

    #[command(flatten)]
    policies: PolicyOptions,

    /// Numbers of workers, separated by commas
    #[arg(long, short, value_name = "N", value_delimiter = ',', default_value = "12,64,256,1024", value_parser = up_to(MAX_WORKERS))]
    workers: Vec<usize>,

    #[command(flatten)]
    rounds: RoundOption<3>,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    format: FormatOptions,
}

/// Enough tasks to make the start-up cost negligible.
const TASKS: usize = 100_000;

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let sizes = match args.graph.as_str() {
        "independent" => args.sizes.clone().or_tasks(TASKS),
        _ => args.sizes.clone(),
    };
    let wanted = SimulationBench {
        graph: Arc::new(sizes.graph(&args.graph, args.seed.seed)?),
        policies: args.policies.several_or("tree-eager,tree-ws,tree-heft")?,
        workers: args.workers.clone(),
        rounds: args.rounds.rounds,
    };
    let results = measured(|progress| simulation_bench(&wanted, registry, progress))?;
    if args.format.is_json() {
        json::write(out, &Document { results: &results })?;
    } else {
        writeln!(out, "{}, {} tasks\n", wanted.graph.name, wanted.graph.tasks.len()).into_diagnostic()?;
        out.write_all(text(&results).as_bytes()).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(results: &[SimulationResult]) -> String {
    let row = |row: &SimulationResult| {
        [
            row.policy.clone(),
            row.workers.to_string(),
            format!("{:.0}", row.tasks_per_second),
            format!("{:.0}", row.ns_per_task),
            format!("{:.2}", row.growth),
            format!("{:.2}", row.more_workers),
        ]
    };
    let header = ["POLICY", "WORKERS", "TASKS/S", "NS/TASK", "GROWTH", "MORE WORKERS"];
    format!("{}\n", table(header, results.iter().map(row), 1..6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growth_stands_beside_that_of_the_workers() {
        let row = |workers: usize, ns_per_task: f64| SimulationResult {
            policy: "tree-ws".to_owned(),
            workers,
            tasks: 1000,
            tasks_per_second: 1e9 / ns_per_task,
            ns_per_task,
            growth: ns_per_task / 640.0,
            more_workers: workers as f64 / 64.0,
        };
        insta::assert_snapshot!(text(&[row(64, 640.0), row(1024, 704.0)]), @r"
        POLICY   WORKERS  TASKS/S  NS/TASK  GROWTH  MORE WORKERS
        tree-ws       64  1562500      640    1.00          1.00
        tree-ws     1024  1420455      704    1.10         16.00
        ");
    }
}
