//! `sched tree`: drawing of a policy on a machine.

use super::format::{Format, FormatOptions};
use super::hints::POLICY;
use super::json;
use super::machine::MachineOptions;
use super::policy::PolicyOptions;
use miette::{IntoDiagnostic, miette};
use sched_policy::{Catalogue, Fold, PlanNode, Source, TreePlan, expand};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

/// Draw the component tree of a policy on a machine
///
/// Prints every component that will exist, with the parameters that differ from their defaults: `each "worker"` is
/// expanded for each worker. A component with several parents is drawn below the first, and named below the others. For
/// an invalid policy, prints its errors instead.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  sched tree tree-eager                          a shipped policy
  sched tree modular-eager                       the shipped policy, by StarPU's name
  sched tree --policy tree-eager                 the option of other commands
  sched tree mine.kdl --workers 64               a policy file, with 64 workers on this machine
  sched tree tree-heft --platform cpu9-gpu3      on a machine with GPUs
  sched tree mine.kdl --synthetic \"node:2 l3:4 core:8 pu:1\"   as on another machine; --xml for a saved one
  sched tree several.kdl#second                  one policy of a file that holds several
  sched tree tree-heft --format svg > tree.svg   a picture; --format dot for graphviz
  sched policies --simple 'eager decide-workers fifo-above' | sched tree -")]
pub struct Args {
    /// Policies, as for --policy
    #[arg(value_name = "POLICY", value_parser = POLICY, hide_possible_values = true)]
    named: Vec<String>,

    #[command(flatten)]
    policies: PolicyOptions,

    #[command(flatten)]
    machine: MachineOptions,

    #[command(flatten)]
    format: FormatOptions,

    /// Draw every component instead of folding similar ones to `× 64 (workers 0-63)`
    #[arg(long)]
    unfold: bool,
}

/// Draws the policy to `out`.
///
/// # Errors
/// If the policy is unknown or invalid for the components of `catalogue`, or `out` cannot be written.
pub fn run(args: &Args, catalogue: &Catalogue, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let policies = args.policies.with(&args.named).several()?;
    let format = args.format.get();
    if policies.len() > 1 && matches!(format, Format::Dot | Format::Svg) {
        return Err(miette!(
            help = "draw one after the other; --format text and --format json take several",
            "a picture is of one policy, and {} are named",
            policies.len()
        ));
    }
    let machine = args.machine.machine()?;
    let mut plans = Vec::new();
    for name in &policies {
        let policy = Source::find(name)?.policy()?;
        plans.push(machine.with(|machine| expand(&policy, catalogue, machine))?);
    }
    if format == Format::Json {
        json::write(out, &Document { policies: plans.iter().map(PolicyRow::new).collect() })?;
        return Ok(ExitCode::SUCCESS);
    }
    for (number, plan) in plans.iter().enumerate() {
        let (gap, title) = match plans.len() {
            1 => ("", String::new()),
            _ => (if number == 0 { "" } else { "\n" }, format!("policy {}\n\n", plan.policy)),
        };
        let fold = if args.unfold { Fold::Nothing } else { Fold::Runs };
        let picture = match format {
            Format::Dot => plan.to_dot(fold),
            Format::Svg => plan.to_svg(fold),
            Format::Text | Format::Json => plan.to_text(fold),
        };
        write!(out, "{gap}{title}{picture}").into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// JSON output.
#[derive(Serialize)]
struct Document<'a> {
    policies: Vec<PolicyRow<'a>>,
}

#[derive(Serialize)]
struct PolicyRow<'a> {
    name: &'a str,
    /// Parents before children; the root is the first.
    nodes: Vec<NodeRow<'a>>,
}

#[derive(Serialize)]
struct NodeRow<'a> {
    id: usize,
    component: &'a str,
    plugin: &'a str,
    path: &'a str,
    /// Part of the machine that it belongs to.
    place: &'a str,
    /// All parameters, including defaults.
    params: BTreeMap<&'a str, String>,
    children: Vec<ChildRow<'a>>,
    /// The worker that a leaf hands tasks to.
    worker: Option<u32>,
}

#[derive(Serialize)]
struct ChildRow<'a> {
    id: usize,
    slot: Option<&'a str>,
}

impl<'a> PolicyRow<'a> {
    fn new(plan: &'a TreePlan) -> PolicyRow<'a> {
        let node = |node: &'a PlanNode| NodeRow {
            id: node.id.0,
            component: &node.info.name,
            plugin: &node.plugin,
            path: &node.path,
            place: &node.place,
            params: node.params.iter().map(|(name, value)| (name, value.to_string())).collect(),
            children: node
                .children
                .iter()
                .map(|child| ChildRow { id: child.node.0, slot: child.slot.as_deref() })
                .collect(),
            worker: node.leaf_worker.map(|worker| worker.0),
        };
        PolicyRow { name: &plan.policy, nodes: plan.nodes.iter().map(node).collect() }
    }
}
