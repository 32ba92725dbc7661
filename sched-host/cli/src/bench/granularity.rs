//! `sched bench granularity`: the smallest tasks that are worth their overhead.

use super::{Document, MOST_TASKS, RoundOption, measured};
use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::machine::MainWorkerOption;
use crate::policy::PolicyOptions;
use crate::start::start_all;
use crate::table::table;
use crate::values::{positive, up_to};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use miette::{IntoDiagnostic, miette};
use sched_runtime::Runtime;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{Granularity, GranularityResult, Pattern, granularity};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure the smallest tasks that keep the workers busy: METG(50 %), as Task Bench defines it
///
/// A grid of tasks, some in each step, wait for tasks of the step before; their kernel is Task Bench's compute-bound
/// one. METG(50 %) is the workers' time for a task, overhead included, when half of it goes into iterations of the
/// kernel: with finer tasks, overhead prevails. DATA: the tasks name the data that they access; EXPLICIT: they name the
/// tasks that they wait for; REPLAYED: they were recorded beforehand, with data that only the recording uses. Beside
/// them, in the same run, rayon's scope.spawn and, as a floor, threads with columns of their own that spin until their
/// neighbours are ready; both know the graph in advance. All of a row are measured in turn, so that what disturbs the
/// machine disturbs all of them, and what a length of the kernel took at least counts. Figures are microseconds; those
/// in parentheses are multiples of the floor. Compare figures of one row, on a machine without other load.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched bench granularity
  sched bench granularity --pattern stencil,fft --policy tree-eager,tree-ws --workers 2
  sched bench granularity --json | jq '.results[] | {pattern, ratio: (.data_ns / .peer_ns.floor)}'")]
pub(super) struct Args {
    #[command(flatten)]
    policies: PolicyOptions,

    /// Patterns of dependencies, separated by commas; all of them by default
    #[arg(long = "pattern", value_name = "PATTERN", value_delimiter = ',', value_parser = patterns())]
    patterns: Vec<Pattern>,

    /// Numbers of workers, separated by commas
    #[arg(long, short, value_name = "N", value_delimiter = ',', default_value = "2", value_parser = positive)]
    workers: Vec<usize>,

    #[command(flatten)]
    main: MainWorkerOption,

    /// Tasks in a step
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = up_to(MOST_TASKS))]
    width: usize,

    /// Steps
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = up_to(MOST_TASKS))]
    steps: usize,

    #[command(flatten)]
    rounds: RoundOption<10>,

    #[command(flatten)]
    format: FormatOptions,
}

/// Reads the name of a pattern.
fn patterns() -> impl TypedValueParser<Value = Pattern> {
    let values = Pattern::ALL.map(|pattern| PossibleValue::new(pattern.name()).help(pattern.description()));
    PossibleValuesParser::new(values).try_map(|name| {
        let pattern = Pattern::ALL.into_iter().find(|pattern| pattern.name() == name);
        pattern.ok_or("the name of a pattern is expected")
    })
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if args.width.saturating_mul(args.steps) > MOST_TASKS {
        let (width, steps) = (args.width, args.steps);
        return Err(miette!(
            help = "take fewer steps, or fewer tasks in each",
            "{steps} steps of {width} tasks are more than {MOST_TASKS} tasks, the maximum"
        ));
    }
    let policies = args.policies.several()?;
    start_all(&policies, |policy| Runtime::builder().registry(Arc::clone(registry)).policy(policy).build())?;
    let wanted = Granularity {
        policies,
        patterns: if args.patterns.is_empty() { Pattern::ALL.to_vec() } else { args.patterns.clone() },
        workers: args.workers.clone(),
        main_worker: args.main.main_worker,
        width: args.width,
        steps: args.steps,
        rounds: args.rounds.rounds,
    };
    let results = measured(|progress| granularity(&wanted, registry, progress))?;
    if args.format.is_json() {
        json::write(out, &Document { results: &results })?;
    } else {
        write!(out, "{}", text(&results)).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(results: &[GranularityResult]) -> String {
    let microseconds = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns / 1e3));
    let row = |row: &GranularityResult| {
        let beside = |ns: Option<f64>| match ns.zip(row.peer_ns.floor) {
            Some((ns, floor)) => format!("{} ({:.1})", microseconds(Some(ns)), ns / floor),
            None => microseconds(ns),
        };
        [
            row.pattern.to_string(),
            row.workers.to_string(),
            row.policy.clone(),
            beside(row.data_ns),
            beside(row.explicit_ns),
            beside(row.replayed_ns),
            beside(row.peer_ns.rayon),
            microseconds(row.peer_ns.floor),
        ]
    };
    let header = ["PATTERN", "WORKERS", "POLICY", "DATA", "EXPLICIT", "REPLAYED", "RAYON", "FLOOR"];
    let figures = table(header, results.iter().map(row), [1, 3, 4, 5, 6, 7]);
    format!("METG(50 %) in µs, and as a multiple of the floor\n\n{figures}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_workloads::bench::GranularityPeers;

    #[test]
    fn figures_stand_beside_the_floor() {
        let row = |pattern, data_ns, rayon| GranularityResult {
            pattern,
            workers: 2,
            policy: "tree-eager".to_owned(),
            data_ns,
            explicit_ns: Some(640.0),
            replayed_ns: Some(320.0),
            peer_ns: GranularityPeers { rayon, floor: Some(160.0) },
        };
        let results =
            [row(Pattern::Stencil, Some(1_200.0), Some(480.0)), row(Pattern::StencilFresh, None, Some(2_000.0))];
        insta::assert_snapshot!(text(&results), @r#"
        METG(50 %) in µs, and as a multiple of the floor

        PATTERN        WORKERS  POLICY            DATA    EXPLICIT    REPLAYED        RAYON  FLOOR
        stencil              2  tree-eager  1.20 (7.5)  0.64 (4.0)  0.32 (2.0)   0.48 (3.0)   0.16
        stencil-fresh        2  tree-eager           -  0.64 (4.0)  0.32 (2.0)  2.00 (12.5)   0.16
        "#);
    }
}
