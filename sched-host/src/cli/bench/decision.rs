//! `sched bench decision`: components that choose among their children.

use crate::bench::{DecisionBench, DecisionResult, decision_bench};
use crate::cli::values::positive;
use crate::plugin::Registry;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::IntoDiagnostic;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure one decision of a component by the number of its children
///
/// Tasks are pushed into the component, which stands above one queue for each of so many workers. No worker is at work, and
/// every task is expected to take equally long. The figure is the whole push: the way into the tree, the decision, and the
/// queue that takes the task. The least time of all rounds counts.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Components, separated by commas: such as stand above several children, without named slots
    #[arg(long = "component", value_name = "NAME", value_delimiter = ',', default_value = "mct,heft,eager,random")]
    components: Vec<String>,

    /// Numbers of children, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2,4,8,16,32,64", value_parser = positive)]
    children: Vec<usize>,

    /// Rounds of 512 tasks, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = positive)]
    rounds: usize,

    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let wanted =
        DecisionBench { components: args.components.clone(), children: args.children.clone(), rounds: args.rounds };
    let style = ProgressStyle::with_template("measuring {bar:40} {percent}%").into_diagnostic()?;
    // indicatif draws on a terminal only.
    let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr()).with_style(style);
    let results = decision_bench(&wanted, registry, |done| bar.set_position((done * 100.0) as u64))?;
    bar.finish_and_clear();
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &results).into_diagnostic()?;
        writeln!(out).into_diagnostic()?;
    } else {
        out.write_all(text(&results).as_bytes()).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(results: &[DecisionResult]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["COMPONENT", "CHILDREN", "NS/DECISION", "NS/CHILD"]);
    for row in results {
        table.add_row([
            row.component.clone(),
            row.children.to_string(),
            format!("{:.0}", row.ns_per_decision),
            format!("{:.1}", row.ns_per_child),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    format!("{}\n", table.trim_fmt())
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
