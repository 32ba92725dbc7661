//! `sched bench overhead`: cost of empty tasks.

use super::{MOST_TASKS, RoundOption, measured};
use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::machine::MainWorkerOption;
use crate::policy::PolicyOptions;
use crate::start::start_all;
use crate::table::table;
use crate::values::{positive, up_to};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use miette::IntoDiagnostic;
use sched_runtime::Runtime;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{Overhead, OverheadReport, OverheadResult, PushPullResult, Shape, overhead};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure the cost of empty tasks: independent ones, a chain, and a graph shaped like a Cholesky factorisation
///
/// Every round measures each contender once: this runtime with its tree of plugins, including submission and data
/// dependencies; rayon's scope.spawn; and, as a floor, threads that share a deque behind a mutex. The last two know the
/// graph in advance. Figures are nanoseconds for each task, the minimum of all rounds. Compare figures of one run only:
/// the speed of a machine varies.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    #[command(flatten)]
    policies: PolicyOptions,

    /// Measure every policy that `sched policies` lists, as --policy all does
    #[arg(long, hide = true)]
    all_policies: bool,

    /// Task graphs, separated by commas; all of them by default
    #[arg(long = "shape", value_name = "SHAPE", value_delimiter = ',', value_parser = shapes())]
    shapes: Vec<Shape>,

    /// Numbers of workers, separated by commas
    #[arg(long, short, value_name = "N", value_delimiter = ',', default_value = "1,2", value_parser = positive)]
    workers: Vec<usize>,

    #[command(flatten)]
    main: MainWorkerOption,

    /// Tasks in the graphs other than the factorisations
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = up_to(MOST_TASKS))]
    tasks: usize,

    #[command(flatten)]
    rounds: RoundOption<20>,

    #[command(flatten)]
    format: FormatOptions,
}

/// Reads the name of a shape.
fn shapes() -> impl TypedValueParser<Value = Shape> {
    let values = Shape::ALL.map(|shape| PossibleValue::new(shape.name()).help(shape.description()));
    PossibleValuesParser::new(values).try_map(|name| {
        let shape = Shape::ALL.into_iter().find(|shape| shape.name() == name);
        shape.ok_or("the name of a shape is expected")
    })
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let policies = match args.all_policies {
        true => PolicyOptions::default().several_or("all")?,
        false => args.policies.several()?,
    };
    start_all(&policies, |policy| Runtime::builder().registry(Arc::clone(registry)).policy(policy).build())?;
    let wanted = Overhead {
        policies,
        shapes: if args.shapes.is_empty() { Shape::ALL.to_vec() } else { args.shapes.clone() },
        workers: args.workers.clone(),
        main_worker: args.main.main_worker,
        tasks: args.tasks,
        rounds: args.rounds.rounds,
    };
    let report = measured(|progress| overhead(&wanted, registry, progress))?;
    if args.format.is_json() {
        json::write(out, &report)?;
    } else {
        write!(out, "{}", text(&report)).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(report: &OverheadReport) -> String {
    let row = |row: &OverheadResult| {
        [
            row.shape.to_string(),
            row.workers.to_string(),
            row.policy.clone(),
            format!("{:.0}", row.ns_per_task),
            format!("{:.0}", row.peer_ns.rayon),
            format!("{:.0}", row.peer_ns.floor),
        ]
    };
    let header = ["GRAPH", "WORKERS", "POLICY", "NS/TASK", "RAYON", "FLOOR"];
    let tasks = table(header, report.results.iter().map(row), [1, 3, 4, 5]);
    let row = |pair: &PushPullResult| {
        [pair.policy.clone(), format!("{:.0}", pair.ns_per_pair), format!("{:.0}", pair.floor_ns)]
    };
    let pairs = table(["PUSH AND PULL", "NS", "FLOOR"], report.push_pull.iter().map(row), 1..3);
    format!("{tasks}\n\n{pairs}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_workloads::bench::PeerTimes;

    #[test]
    fn peers_stand_beside_each_policy() {
        let row = |shape, workers, ns_per_task| OverheadResult {
            policy: "tree-eager".to_owned(),
            shape,
            workers,
            tasks: 1000,
            ns_per_task,
            peer_ns: PeerTimes { rayon: 60.4, floor: 41.5 },
        };
        let pair = PushPullResult { policy: "tree-eager".to_owned(), ns_per_pair: 37.2, floor_ns: 22.9 };
        let results = vec![row(Shape::Independent, 1, 124.3), row(Shape::Cholesky, 12, 1304.0)];
        insta::assert_snapshot!(text(&OverheadReport { results, push_pull: vec![pair] }), @r"
        GRAPH        WORKERS  POLICY      NS/TASK  RAYON  FLOOR
        independent        1  tree-eager      124     60     42
        cholesky          12  tree-eager     1304     60     42

        PUSH AND PULL  NS  FLOOR
        tree-eager     37     23
        ");
    }
}
