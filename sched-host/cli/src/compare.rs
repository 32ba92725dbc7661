//! `sched compare`: several policies on the same graph and machine, simulated, in one table and on one page.

mod contender;
mod page;
mod references;
mod table;

use super::simulate::report::MOST_FOR_BOUNDS;
use super::simulate::setup::Setup;
use crate::json;
use contender::{Comparison, Contender, Lost};
use miette::{IntoDiagnostic, WrapErr, miette};
use sched_graph::TaskGraph;
use sched_policy::library;
use sched_sim::{Platform, SimError, Simulation};
use sched_tree::plugin::Registry;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Simulate a task graph with several policies, and show them side by side: a table here, and a page with their schedules
///
/// The page is one HTML file that needs nothing from elsewhere: the table, each makespan beside the lower bound, and the
/// schedule of each policy on the same axis of time. Beside the policies stand static schedules of the literature (HEFT,
/// CPOP, PEFT), which know the whole graph before they begin; their transfers do not get in each other's way.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = "Examples:
  sched compare cholesky --platform cpu9-gpu3 --policies tree-eager,tree-heft,mine.kdl
  sched compare lu --tiles 20 --policies all --html lu.html
  sched compare tasks.rec --starpu-sampling ~/.starpu/sampling --host mirage --policies all --json")]
pub struct Args {
    #[command(flatten)]
    setup: Setup,

    /// The policies, separated by commas: names that `sched policies` lists, paths of KDL files, or `all` for every
    /// shipped one
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', default_value = "all")]
    policies: Vec<String>,

    /// Where to write the page [default: comparison.html, or nowhere with --json]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// Policies that are not there, or are wrong.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{} of {given} policies cannot be used; nothing was simulated", causes.len())]
#[diagnostic(code(sched::policies))]
struct Unusable {
    given: usize,
    #[related]
    causes: Vec<SimError>,
}

/// Simulates the workload with each policy that `args` name, and writes a table to `out` and a page to a file.
///
/// # Errors
/// When graph, platform or a policy are wrong, no policy comes to an end, or the page cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (graph, platform) = args.setup.load()?;
    let policies = policies(&args.policies, &platform, &registry)?;
    let page = args.html.clone().or_else(|| (!args.json).then(|| PathBuf::from("comparison.html")));
    let page = page.map(|path| create(&path).map(|file| (path, file))).transpose()?;

    let (mut contenders, mut lost, mut cause) = (Vec::new(), Vec::new(), None);
    for policy in &policies {
        match Contender::simulate(&graph, &platform, policy, &registry, args.setup.seed) {
            Ok(contender) => contenders.push(contender),
            Err(error) => {
                lost.push(Lost { policy: policy.clone(), why: error.to_string() });
                cause.get_or_insert(error);
            }
        }
    }
    if let Some(cause) = cause.filter(|_| contenders.is_empty()) {
        return Err(without_any(cause, &lost));
    }
    contenders.extend(references::all(&graph, &platform));
    let small = graph.tasks.len() <= MOST_FOR_BOUNDS;
    let bounds = small.then(|| platform.bounds(&graph, &graph.dependencies()).ok()).flatten();
    let comparison = Comparison::new(&graph, &platform, args.setup.seed, bounds, contenders, lost);
    if args.json {
        json::write(out, &comparison)?;
    } else {
        out.write_all(table::text(&comparison).as_bytes()).into_diagnostic()?;
    }
    if let Some((path, mut file)) = page {
        let written = file.write_all(page::html(&comparison).as_bytes()).into_diagnostic();
        written.wrap_err_with(|| format!("`{}` cannot be written", path.display()))?;
        if !args.json {
            writeln!(out, "\nschedules: {}", path.display()).into_diagnostic()?;
        }
    }
    Ok(if comparison.lost.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Nothing came of any policy: for the same reason mostly, which is told once then.
fn without_any(cause: SimError, lost: &[Lost]) -> miette::Report {
    if lost.iter().all(|lost| lost.why == cause.to_string()) {
        return cause.into();
    }
    let reasons: Vec<String> = lost.iter().map(|Lost { policy, why }| format!("{policy}: {why}")).collect();
    miette!("no policy comes to an end\n{}", reasons.join("\n"))
}

fn create(path: &Path) -> miette::Result<File> {
    File::create(path).into_diagnostic().wrap_err_with(|| format!("`{}` cannot be written", path.display()))
}

/// The policies that were asked for, each once.
fn policies(given: &[String], platform: &Arc<Platform>, registry: &Arc<Registry>) -> miette::Result<Vec<String>> {
    let mut policies = Vec::new();
    for name in given.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        let named = match name {
            "all" => library().iter().map(|shipped| shipped.name.to_owned()).collect(),
            other => vec![other.to_owned()],
        };
        for name in named {
            if !policies.contains(&name) {
                policies.push(name);
            }
        }
    }
    let mut causes: Vec<SimError> =
        policies.iter().filter_map(|policy| unusable(policy, platform, registry).err()).collect();
    match (causes.len(), policies.len()) {
        (_, 0) => Err(miette!(help = "name some: --policies tree-eager,tree-heft", "there are no policies to compare")),
        (0, _) => Ok(policies),
        (1, 1) => Err(causes.remove(0).into()),
        (_, given) => Err(Unusable { given, causes }.into()),
    }
}

/// Whether a policy is there, sound, and fits the platform: nothing is simulated with it.
fn unusable(policy: &str, platform: &Arc<Platform>, registry: &Arc<Registry>) -> Result<(), SimError> {
    let nothing = Simulation::new(TaskGraph::default(), Arc::clone(platform));
    nothing.policy(policy).registry(Arc::clone(registry)).run().map(drop)
}
