//! `sched policies`: the shipped policies.

use super::format::{FormatOptions, text_or_json};
use super::hints::POLICY;
use crate::json;
use crate::values::policy_name;
use comfy_table::{ContentArrangement, Table, presets};
use miette::IntoDiagnostic;
use sched_policy::{Catalogue, DEFAULT_POLICY, POLICY_VARIABLE, Policy, SimpleFlags, Source, check, library};
use sched_text::{Finding, Findings};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// List the shipped policies, or print one
///
/// Each is a text file that `--show` prints, with comments on its behaviour and on every parameter: a starting point
/// for your own. `--simple` prints the policy of a simple scheduler, built from a component that decides and flags.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched policies                                 the list
  sched policies --show tree-eager               what it says
  sched policies --show tree-eager > mine.kdl    a starting point; try it with `sched tree mine.kdl`
  sched policies --simple 'mct beta=2.0 decide-workers perfmodel fifo-above fifos-below ready exp impl' > mine.kdl
  sched policies --simple 'eager decide-workers fifo-above; heft decide-memory-nodes perfmodel fifos-below fifo-above'
                                                 two, among which the application chooses for each task

Flags of the simple scheduler, after the component that decides and its parameters:
  decide-workers, decide-memory-nodes, decide-archs
                          among what it decides: one of these is needed
  perfmodel               only tasks with a calibrated performance model reach the decision
  fifo-above, fifo-above-prio
                          a queue above, in order of arrival or by priority
  fifos-below, fifos-below-prio
                          a short queue in each branch below the decision
    ready, ready-first    from which the task whose data is near leaves first: of equal priorities, or of all
    exp                   which is bounded by expected length too
    no-limit              which is not bounded at all
    ntasks-threshold=30, exp-len-threshold=1e6
                          which holds at most this many tasks, or µs of them
  ws-below                a branch's workers steal from each other
  impl                    the best implementation is chosen for each worker
  combined-workers        the decision is among combined workers too
  decide-always           makes no difference: it always decides")]
pub struct Args {
    /// Print the text of this policy: a name of the list, or a path
    #[arg(long, value_name = "POLICY", value_parser = POLICY, hide_possible_values = true)]
    show: Option<String>,

    /// Print the policy of a simple scheduler: the component that decides, and flags
    #[arg(long, value_name = "FLAGS", conflicts_with = "show")]
    simple: Option<String>,

    /// Name of the policy of a simple scheduler
    #[arg(long, value_name = "NAME", requires = "simple", default_value = "simple", value_parser = policy_name)]
    name: String,

    #[command(flatten)]
    format: FormatOptions,
}

/// JSON output: all policies, or the requested one.
#[derive(Serialize)]
struct Document {
    policies: Vec<Row>,
}

/// JSON of a policy.
#[derive(Serialize)]
struct Row {
    name: String,
    summary: String,
    doc: String,
    /// Whether it is used where none is named.
    default: bool,
    /// Whether the loaded plugins provide all its components.
    usable: bool,
    /// The reason if not.
    problems: Vec<String>,
    /// Its text, with `--show` and `--simple`.
    text: Option<String>,
}

impl Row {
    fn new(policy: &Policy, catalogue: &Catalogue, text: Option<String>) -> Row {
        let problems = check(policy, catalogue);
        let errors = problems.iter().filter(|problem| problem.is_error());
        let mut problems: Vec<String> = errors.map(Finding::to_string).collect();
        problems.dedup();
        let (name, summary, doc) = (policy.name.clone(), policy.summary(), policy.doc.clone());
        Row { default: name == DEFAULT_POLICY, name, summary, doc, usable: problems.is_empty(), problems, text }
    }
}

/// Prints the list or the requested policy to `out`.
///
/// # Errors
/// If the requested policy is not found, flags are invalid, or `out` cannot be written.
pub fn run(args: &Args, catalogue: &Catalogue, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match (&args.show, &args.simple) {
        (Some(name), _) => {
            let source = Source::find(name)?;
            if args.format.is_json() {
                let row = Row::new(&source.policy()?, catalogue, Some(source.text.into_owned()));
                json::write(out, &Document { policies: vec![row] })?;
            } else {
                out.write_all(source.text.as_bytes()).into_diagnostic()?;
            }
        }
        (None, Some(flags)) => {
            let policy = simple(flags, &args.name, catalogue)?;
            let text = policy.to_kdl();
            if args.format.is_json() {
                json::write(out, &Document { policies: vec![Row::new(&policy, catalogue, Some(text))] })?;
            } else {
                out.write_all(text.as_bytes()).into_diagnostic()?;
            }
        }
        (None, None) => {
            let rows: Vec<Row> = library().iter().map(|shipped| Row::new(&shipped.policy(), catalogue, None)).collect();
            if args.format.is_json() {
                json::write(out, &Document { policies: rows })?;
            } else {
                write_table(out, &rows)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn simple(flags: &str, name: &str, catalogue: &Catalogue) -> Result<Policy, Findings> {
    let policy = SimpleFlags::user_choice(name, &SimpleFlags::parse(flags)?, catalogue)?;
    let problems = check(&policy, catalogue);
    match problems.iter().any(Finding::is_error) {
        true => Err(Findings::new(format!("simple scheduler `{flags}`"), problems)),
        false => Ok(policy),
    }
}

fn write_table(out: &mut dyn Write, rows: &[Row]) -> miette::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["POLICY", "WHAT IT DOES"]);
    for row in rows {
        let mut summary = row.summary.clone();
        for problem in &row.problems {
            summary += &format!("\nnot usable here: {problem}");
        }
        table.add_row([row.name.clone(), summary]);
    }
    writeln!(out, "{}", table.trim_fmt()).into_diagnostic()?;
    writeln!(out, "\nPrint one with `sched policies --show NAME`, draw one with `sched tree NAME`.")
        .into_diagnostic()?;
    writeln!(out, "Where none is named, {POLICY_VARIABLE} names it, or else it is {DEFAULT_POLICY}.").into_diagnostic()
}
