//! `sched run`: real work, scheduled by a policy, with its result checked.

mod cholesky;
mod options;
mod progress;
mod report;

use crate::plugin::Registry;
use clap::Subcommand;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Run real work with a policy, check its result, and say how fast it was
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    Cholesky(cholesky::Args),
}

/// Runs the workload that `args` name and writes its figures to `out`; what components did wrong goes to stderr.
///
/// # Errors
/// When the runtime does not start, the run does not end, there is no result or it is wrong, or `out` cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.what {
        What::Cholesky(args) => cholesky::run(args, registry, out),
    }
}
