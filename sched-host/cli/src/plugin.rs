//! `sched plugin`: for authors of components.

mod new;

use clap::Subcommand;
use std::io::Write;
use std::process::ExitCode;

/// Begin a component of your own
///
/// A component is a Rust type in a crate of its own, compiled to a library that `sched` and other programs load: nothing of
/// this program is compiled again. `sched plugins` lists the components that there are.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "Examples:
  sched plugin new my-queue --family flow-control     a crate that builds at once, with a policy and a test")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    New(new::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// What the subcommand reports; or if `out` cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.what {
        What::New(args) => new::run(args, out),
    }
}
