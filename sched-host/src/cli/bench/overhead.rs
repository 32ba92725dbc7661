//! `sched bench overhead`: empty tasks.

use crate::bench::{Overhead, OverheadReport, Shape, overhead};
use crate::cli::start::start_all;
use crate::cli::values::positive;
use crate::plugin::Registry;
use crate::policy::library;
use crate::runtime::Runtime;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::IntoDiagnostic;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure the cost of empty tasks: independent ones, a chain, and a graph shaped like a Cholesky factorisation
///
/// Every round measures each contender once, one after the other: this runtime with its tree of plugins, submission and data dependencies
/// included; rayon's scope.spawn; and a floor of threads that share a deque behind a mutex. The last two know the graph
/// beforehand. The least time of all rounds counts. Compare figures of one run only: the speed of a machine wanders.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Name of a shipped policy or path of a policy file; may be given several times
    #[arg(long = "policy", value_name = "POLICY", default_value = "tree-eager", env = "SCHED_POLICY")]
    policies: Vec<String>,

    /// Measure every policy that `sched policies` lists, whatever --policy says
    #[arg(long)]
    all_policies: bool,

    /// Task graphs, separated by commas; all of them by default
    #[arg(long = "shape", value_name = "SHAPE", value_delimiter = ',')]
    shapes: Vec<Shape>,

    /// Numbers of workers, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2", value_parser = positive)]
    workers: Vec<usize>,

    /// Tasks in the independent and the chain graph
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = positive)]
    tasks: usize,

    /// Rounds, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive)]
    rounds: usize,

    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let policies = match args.all_policies {
        true => library().iter().map(|shipped| shipped.policy().name).collect(),
        false => args.policies.clone(),
    };
    start_all(&policies, |policy| Runtime::builder().registry(Arc::clone(registry)).policy(policy).build())?;
    let wanted = Overhead {
        policies,
        shapes: if args.shapes.is_empty() { Shape::ALL.to_vec() } else { args.shapes.clone() },
        workers: args.workers.clone(),
        tasks: args.tasks,
        rounds: args.rounds,
    };
    let style = ProgressStyle::with_template("measuring {bar:40} {percent}%").into_diagnostic()?;
    // indicatif draws on a terminal only.
    let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr()).with_style(style);
    let report = overhead(&wanted, registry, |done| bar.set_position((done * 100.0) as u64))?;
    bar.finish_and_clear();
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &report).into_diagnostic()?;
        writeln!(out).into_diagnostic()?;
    } else {
        write!(out, "{}", text(&report)).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(report: &OverheadReport) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["GRAPH", "WORKERS", "POLICY", "NS/TASK", "RAYON", "FLOOR"]);
    for row in &report.results {
        table.add_row([
            row.shape.to_string(),
            row.workers.to_string(),
            row.policy.clone(),
            format!("{:.0}", row.ns_per_task),
            format!("{:.0}", row.peer_ns.rayon),
            format!("{:.0}", row.peer_ns.floor),
        ]);
    }
    for column in [1, 3, 4, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut pairs = Table::new();
    pairs.load_style(presets::NOTHING).set_header(["PUSH AND PULL", "NS", "FLOOR"]);
    for pair in &report.push_pull {
        pairs.add_row([pair.policy.clone(), format!("{:.0}", pair.ns_per_pair), format!("{:.0}", pair.floor_ns)]);
    }
    for column in pairs.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for table in [&mut table, &mut pairs] {
        if let Some(first) = table.column_mut(0) {
            first.set_padding((0, 1));
        }
    }
    format!("{}\n\n{}\n", table.trim_fmt(), pairs.trim_fmt())
}
