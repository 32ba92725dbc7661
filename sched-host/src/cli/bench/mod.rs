//! `sched bench`: what scheduling costs on this machine.

mod cholesky;
mod decision;
mod overhead;
mod simulation;

use crate::plugin::Registry;
use clap::Subcommand;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure what scheduling costs on this machine, beside peers in the same run
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    Overhead(overhead::Args),
    Decision(decision::Args),
    Cholesky(cholesky::Args),
    Simulation(simulation::Args),
}

/// Measures and writes the figures to `out`.
///
/// # Errors
/// When a policy or a plugin does not let a runtime start, or `out` cannot be written to.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.what {
        What::Overhead(args) => overhead::run(args, &registry, out),
        What::Decision(args) => decision::run(args, &registry, out),
        What::Cholesky(args) => cholesky::run(args, &registry, out),
        What::Simulation(args) => simulation::run(args, &registry, out),
    }
}
