//! `sched bench decision`: cost of one decision of a component.

use super::{Document, RoundOption, measured};
use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::table::table;
use crate::values::positive;
use miette::IntoDiagnostic;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{DecisionBench, DecisionResult, decision_bench};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure one decision of a component, in nanoseconds, by the number of its children
///
/// Tasks are pushed into the component, which has one queue below for each worker. Workers are idle, and all tasks have
/// equal expected durations. The figure covers the whole push: entering the tree, the decision, and the queue that
/// stores the task. The minimum of all rounds is reported.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    /// Components, separated by commas; they must take several children and have no slots
    #[arg(long = "component", value_name = "NAME", value_delimiter = ',', default_value = "mct,heft,eager,random")]
    components: Vec<String>,

    /// Numbers of children, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2,4,8,16,32,64", value_parser = positive)]
    children: Vec<usize>,

    #[command(flatten)]
    rounds: RoundOption<50>,

    #[command(flatten)]
    format: FormatOptions,
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let wanted = DecisionBench {
        components: args.components.clone(),
        children: args.children.clone(),
        rounds: args.rounds.rounds,
    };
    let results = measured(|progress| decision_bench(&wanted, registry, progress))?;
    if args.format.is_json() {
        json::write(out, &Document { results: &results })?;
    } else {
        out.write_all(text(&results).as_bytes()).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(results: &[DecisionResult]) -> String {
    let row = |row: &DecisionResult| {
        [
            row.component.clone(),
            row.children.to_string(),
            format!("{:.0}", row.ns_per_decision),
            format!("{:.1}", row.ns_per_child),
        ]
    };
    format!("{}\n", table(["COMPONENT", "CHILDREN", "NS/DECISION", "NS/CHILD"], results.iter().map(row), 1..4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_component_and_number_of_children() {
        let row = |children: usize, ns_per_decision: f64| DecisionResult {
            component: "mct".to_owned(),
            children,
            ns_per_decision,
            ns_per_child: ns_per_decision / children as f64,
        };
        insta::assert_snapshot!(text(&[row(2, 250.4), row(64, 1_900.0)]), @r"
        COMPONENT  CHILDREN  NS/DECISION  NS/CHILD
        mct               2          250     125.2
        mct              64         1900      29.7
        ");
    }
}
