//! `sched tree`: a policy laid over a machine, as a picture.

use super::machine::MachineOptions;
use miette::IntoDiagnostic;
use sched_policy::{BoundMachine, Catalogue, Fold, Source, expand};
use std::io::Write;
use std::process::ExitCode;

/// Draw the tree of components that a policy becomes on a machine
///
/// Shows every component that will exist, with the parameters that differ from their defaults. What a policy says of
/// `each "worker"` stands here once for each worker. A component with several parents is drawn at the first, and named
/// at the others. A policy that is not valid is not drawn: its errors are shown instead.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  sched tree tree-eager                          a policy that comes with the program
  sched tree modular-eager                       the same, by the name that StarPU has for it
  sched tree mine.kdl --workers 64               a file of your own, as with 64 workers on this machine
  sched tree mine.kdl --synthetic \"node:2 l3:4 core:8 pu:1\"   as on another machine; --xml for a saved one
  sched tree several.kdl#second                  one policy of a file that holds several
  sched tree tree-heft --format svg > tree.svg   a picture; --format dot for graphviz")]
pub struct Args {
    /// Name of a shipped policy (see `sched policies`), or path of a file, with `#name` if it holds several
    policy: String,

    #[command(flatten)]
    machine: MachineOptions,

    /// Language of the picture
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Draw every component, rather than rows of like ones as `× 64 (workers 0-63)` (pictures always do)
    #[arg(long)]
    unfold: bool,
}

/// What a picture is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Format {
    /// An indented tree, for reading
    Text,
    /// Graphviz, for `dot -Tsvg`
    Dot,
    /// Boxes, for a browser or a paper
    Svg,
}

/// Draws the policy to `out`.
///
/// # Errors
/// When the policy is not found or not valid for the components of `catalogue`, or `out` cannot be written.
pub fn run(args: &Args, catalogue: &Catalogue, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let policy = Source::find(&args.policy)?.policy()?;
    let (topology, binding) = args.machine.plan()?;
    let plan = expand(&policy, catalogue, &BoundMachine::new(&topology, &binding))?;
    let picture = match args.format {
        Format::Text => plan.to_text(if args.unfold { Fold::Nothing } else { Fold::Runs }),
        Format::Dot => plan.to_dot(),
        Format::Svg => plan.to_svg(),
    };
    out.write_all(picture.as_bytes()).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
