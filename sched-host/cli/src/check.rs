//! `sched check`: validation of policies.

mod started;

use super::format::{Format, FormatOptions, text_json_or_dot};
use super::hints::POLICY;
use super::machine::MachineOptions;
use super::policy::PolicyOptions;
use crate::json;
use miette::{Diagnostic, IntoDiagnostic};
use sched_policy::{Area, Catalogue, Fold, Machine, NodeIndex, Parsed, Policy, Source, TreePlan, check, expand, read};
use sched_text::{Finding, Findings};
use sched_tree::context::build_parts;
use sched_tree::plugin::Registry;
use serde::Serialize;
use started::Started;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Check policies and report all problems
///
/// For a valid policy, prints its scheduling areas, which lie between the components that store tasks (reservoirs),
/// with the components that move tasks across each (pumps); its tree on the machine (this one by default); and `ok`.
/// For an invalid one, prints all problems, each with its place, the broken rule, the reason for the rule, and the fix.
///
/// The rules: V1 the root never refuses a task; V2 only components that choose, or with slots, have several children;
/// V3 every scheduling area has a pump for each direction of flow; V4 every leaf is one worker's, every worker
/// has a leaf, and nothing is unused; V5 components that need performance models stand below a slot `perfmodel`; V6
/// nothing is below itself, below more than 127 components, or on more than 65 536 paths; V7 names exist, and values
/// are of the right type and in range. A runtime checks these rules before it starts. The components of valid policies
/// are built, since only they know which values go together.
///
/// With --run, each valid policy is started for a moment on this machine, with small tasks and a worker that leaves and
/// joins again, and what third-party components declare is compared with what they do.
///
/// The exit code is 0 if all policies are valid, and every component does as it declares; and 1 otherwise.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_json_or_dot))]
#[command(after_long_help = "Examples:
  sched check mine.kdl                           every policy of a file
  sched check mine.kdl#second tree-eager         one policy of a file, and one that comes with the program
  sched check mine.kdl --workers 64              as with 64 workers on this machine
  sched check mine.kdl --synthetic \"node:2 l3:4 core:8 pu:1\"   as on another machine; --xml for a saved one
  sched check mine.kdl --platform cpu9-gpu3      on a machine with GPUs
  sched check mine.kdl --run                     and for real, for a moment
  sched check mine.kdl --json                    for programs: `.files[].problems[] | {id, file, line, message}`
  sched check mine.kdl --format dot | dot -Tsvg > areas.svg")]
pub struct Args {
    /// Policies, as for --policy; of a file that holds several, all are checked
    #[arg(value_name = "POLICY", value_parser = POLICY, hide_possible_values = true)]
    named: Vec<String>,

    #[command(flatten)]
    policies: PolicyOptions,

    /// Start each valid policy for a moment, and compare what components declare with what they do
    #[arg(long, conflicts_with_all = ["platform", "synthetic", "xml", "starpu_sampling"])]
    run: bool,

    #[command(flatten)]
    machine: MachineOptions,

    #[command(flatten)]
    format: FormatOptions,
}

impl Args {
    /// Whether policies are to be started.
    pub(super) fn is_run(&self) -> bool {
        self.run
    }
}

/// Findings of one file.
struct Checked {
    file: String,
    problems: Vec<Finding>,
    /// The policies that fit the machine, each with what became of it if it was started.
    plans: Vec<(TreePlan, Option<Started>)>,
}

/// Checks the policies with the components of a registry, and writes the results of valid ones to `out`.
///
/// # Errors
/// All problems of the policies; or if `out` cannot be written.
pub fn run(args: &Args, registry: &Registry, out: &mut dyn Write) -> miette::Result<ExitCode> {
    check_all(args, registry, &|_, _| None, out)
}

/// Checks the policies, starts the valid ones with the components of a registry, and writes the results to `out`.
///
/// # Errors
/// All problems of the policies; or if `out` cannot be written.
pub fn run_and_start(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let start = |policy: &Policy, workers| Some(Started::new(policy, Arc::clone(&registry), workers));
    check_all(args, &registry, &start, out)
}

/// Starts a policy with this number of workers.
type Start<'a> = dyn Fn(&Policy, usize) -> Option<Started> + 'a;

/// Lays a valid policy over the machine, builds its components, and starts it if that is asked for.
type Lay<'a> = dyn Fn(&Policy) -> Result<(TreePlan, Option<Started>), Findings> + 'a;

fn check_all(args: &Args, registry: &Registry, start: &Start<'_>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let machine = args.machine.machine()?;
    let policies = args.policies.with(&args.named).several()?;
    let catalogue = registry.catalogue();
    machine.with(|machine| {
        let lay = |policy: &Policy| {
            let plan = expand(policy, &catalogue, machine)?;
            // Whether components accept their parameters together is known only to their constructors.
            build_parts(&plan, registry)?;
            let started = start(policy, machine.workers());
            Ok((plan, started))
        };
        let checked: Vec<Checked> = policies.iter().map(|name| find(name, &catalogue, &lay)).collect();
        write_all(&checked, args.format.get(), machine, out)
    })
}

fn write_all(
    checked: &[Checked],
    format: Format,
    machine: &dyn Machine,
    out: &mut dyn Write,
) -> miette::Result<ExitCode> {
    let wrong = checked.iter().flat_map(|checked| &checked.problems).any(Finding::is_error);
    let started = || checked.iter().flat_map(|checked| &checked.plans).filter_map(|(_, started)| started.as_ref());
    let code = if wrong || !started().all(Started::is_ok) { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if format == Format::Json {
        json::write(out, &Document { valid: !wrong, files: checked.iter().map(Row::new).collect() })?;
        return Ok(code);
    }
    for (plan, started) in checked.iter().flat_map(|checked| &checked.plans) {
        match format {
            Format::Dot => out.write_all(plan.to_dot_with_areas().as_bytes()),
            _ => write_text(plan, machine, out)
                .and_then(|()| started.as_ref().map_or(Ok(()), |started| started.write(out))),
        }
        .into_diagnostic()?;
    }
    let files: Vec<&str> =
        checked.iter().filter(|found| !found.problems.is_empty()).map(|found| &*found.file).collect();
    let files = files.join(", ");
    let problems: Vec<Finding> = checked.iter().flat_map(|checked| checked.problems.iter().cloned()).collect();
    if wrong {
        return Err(Findings::new(files, problems).into());
    }
    // As a comment, because Graphviz reads the output.
    if format == Format::Text {
        for problem in problems {
            writeln!(out, "{:?}", miette::Report::new(problem)).into_diagnostic()?;
        }
    }
    Ok(code)
}

fn find(name: &str, catalogue: &Catalogue, lay: &Lay<'_>) -> Checked {
    let source = match Source::find(name) {
        Ok(source) => source,
        Err(errors) => {
            return Checked { file: name.to_owned(), problems: errors.findings().to_vec(), plans: Vec::new() };
        }
    };
    let Parsed { policies, findings: mut problems } = read(&source.name, &source.text);
    let mut checked = Checked { file: source.name.clone(), problems: Vec::new(), plans: Vec::new() };
    let broken = problems.iter().any(Finding::is_error);
    let wanted = |policy: &Policy| source.wanted.as_ref().is_none_or(|wanted| policy.name == *wanted);
    let is_alone = policies.len() == 1;
    let mut chosen: Vec<Policy> = policies.into_iter().filter(wanted).collect();
    if chosen.is_empty() && !broken {
        // It says which policies the file holds.
        problems.extend(source.policy().err().iter().flat_map(|errors| errors.findings().to_vec()));
    }
    for policy in &mut chosen {
        // The only policy of a file needs no name.
        problems.extend(unnameable(policy).filter(|_| !is_alone));
        let adjusted = policy.clone().adjusted(&source.adjustments);
        let misses = adjusted.is_err();
        match adjusted {
            Ok(adjusted) => *policy = adjusted,
            Err(errors) => problems.extend(errors.findings().to_vec()),
        }
        let found = check(policy, catalogue);
        let wrong = misses || found.iter().any(Finding::is_error);
        problems.extend(found);
        if wrong || broken {
            continue;
        }
        match lay(policy) {
            Ok(plan) => checked.plans.push(plan),
            Err(errors) => problems.extend(errors.findings().to_vec()),
        }
    }
    checked.problems = problems;
    checked
}

/// A warning of a name that no `--policy FILE#NAME` can give.
fn unnameable(policy: &Policy) -> Option<Finding> {
    let name = &policy.name;
    let sets = name.split_once('+').is_some_and(|(_, rest)| rest.contains('='));
    if !name.contains([',', '#']) && !sets && name.trim() == name {
        return None;
    }
    let finding = Finding::warning(format!("`--policy FILE#NAME` cannot name the policy `{name}`"))
        .at(policy.span, "this name")
        .help("give it a name without commas, `#`, `+` before `=`, and blanks at its ends");
    Some(finding.code("policy::name").in_source(policy.source.as_ref()))
}

fn write_text(plan: &TreePlan, machine: &dyn Machine, out: &mut dyn Write) -> std::io::Result<()> {
    let plural = if machine.workers() == 1 { "" } else { "s" };
    writeln!(out, "policy {}, on {} worker{plural}\n", plan.policy, machine.workers())?;
    writeln!(out, "{}\n{}\nok", plan.areas_to_text(), plan.to_text(Fold::Runs))
}

/// JSON output.
#[derive(Serialize)]
struct Document<'a> {
    valid: bool,
    files: Vec<Row<'a>>,
}

/// JSON of a file.
#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    /// Whether every requested policy of it is valid.
    valid: bool,
    problems: Vec<ProblemRow<'a>>,
    /// The valid policies.
    policies: Vec<PolicyRow<'a>>,
}

#[derive(Serialize)]
struct ProblemRow<'a> {
    /// The rule, from V1 to V7; empty for findings outside a policy's text.
    id: &'a str,
    rule: &'a str,
    severity: &'static str,
    message: &'a str,
    /// The reason for the rule, and the fix.
    help: String,
    #[serde(flatten)]
    position: Option<Position<'a>>,
}

#[derive(Serialize)]
struct Position<'a> {
    file: &'a str,
    /// From 1, as the column.
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct PolicyRow<'a> {
    name: &'a str,
    areas: Vec<AreaRow<'a>>,
    tree: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a Started>,
}

#[derive(Serialize)]
struct AreaRow<'a> {
    /// None where the application pushes.
    reservoir_above: Option<Reservoir<'a>>,
    through: Vec<&'a str>,
    reservoirs_below: Vec<Reservoir<'a>>,
    /// Path of a component, or `application`.
    pump_down: Option<&'a str>,
    pumps_up: Vec<&'a str>,
}

#[derive(Serialize)]
struct Reservoir<'a> {
    path: &'a str,
    bounded: bool,
}

impl<'a> Row<'a> {
    fn new(checked: &'a Checked) -> Row<'a> {
        Row {
            file: &checked.file,
            valid: !checked.problems.iter().any(Finding::is_error),
            problems: checked.problems.iter().map(ProblemRow::new).collect(),
            policies: checked.plans.iter().map(|(plan, started)| PolicyRow::new(plan, started.as_ref())).collect(),
        }
    }
}

impl<'a> ProblemRow<'a> {
    fn new(problem: &'a Finding) -> ProblemRow<'a> {
        ProblemRow {
            id: problem.id(),
            rule: problem.rule(),
            severity: if problem.is_error() { "error" } else { "warning" },
            message: problem.message(),
            help: problem.help().map_or_else(String::new, |help| help.to_string()),
            position: problem.position().map(|(file, line, column)| Position { file, line, column }),
        }
    }
}

impl<'a> PolicyRow<'a> {
    fn new(plan: &'a TreePlan, run: Option<&'a Started>) -> PolicyRow<'a> {
        let areas = plan.areas().iter().map(|area| AreaRow::new(plan, area)).collect();
        PolicyRow { name: &plan.policy, areas, tree: plan.to_text(Fold::Runs), run }
    }
}

impl<'a> AreaRow<'a> {
    fn new(plan: &'a TreePlan, area: &Area) -> AreaRow<'a> {
        let path = |node: &NodeIndex| plan[*node].path.as_str();
        let reservoir =
            |node: &NodeIndex| Reservoir { path: path(node), bounded: plan[*node].bounds().next().is_some() };
        let above = area.above.as_ref();
        AreaRow {
            reservoir_above: above.map(reservoir),
            through: area.through.iter().map(path).collect(),
            reservoirs_below: area.below.iter().map(reservoir).collect(),
            pump_down: area.is_pumped_down(plan).then(|| above.map_or("application", path)),
            pumps_up: area.workers.iter().map(path).collect(),
        }
    }
}
