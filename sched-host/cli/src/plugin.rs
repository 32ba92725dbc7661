//! `sched plugin`: for authors of components.

mod new;
mod test;

use crate::plugins::PluginOptions;
use clap::Subcommand;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Begin a component of your own, and test the components of a plugin
///
/// A component is a Rust type in a crate of its own, or a table of C functions, compiled to a library that `sched` and
/// other programs load: nothing of this program is compiled again. `sched plugins` lists the components that there are.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "Examples:
  sched plugin new my-queue --family flow-control     a crate that builds at once, with a policy and a test
  sched plugin test target/release/libmy_queue.so     random calls, runs and simulations")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    New(new::Args),
    Test(test::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// What the subcommand reports; or if `out` cannot be written.
pub fn run(args: &Args, plugins: &PluginOptions, patience: Duration, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.what {
        What::New(args) => new::run(args, out),
        What::Test(args) => test::run(args, plugins, patience, out),
    }
}
