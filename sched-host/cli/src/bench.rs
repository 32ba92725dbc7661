//! `sched bench`: the cost of scheduling on this machine.

mod cholesky;
mod decision;
mod device;
mod granularity;
mod overhead;
mod simulation;

use crate::progress::Progress;
use crate::values::positive;
use clap::Subcommand;
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure the cost of scheduling on this machine, beside other runtimes in the same run
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    Overhead(overhead::Args),
    Granularity(granularity::Args),
    Decision(decision::Args),
    Cholesky(cholesky::Args),
    Device(device::Args),
    Simulation(simulation::Args),
}

/// Measures and writes the figures to `out`.
///
/// # Errors
/// If no runtime starts with a policy or plugin, or `out` cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.what {
        What::Overhead(args) => overhead::run(args, &registry, out),
        What::Granularity(args) => granularity::run(args, &registry, out),
        What::Decision(args) => decision::run(args, &registry, out),
        What::Cholesky(args) => cholesky::run(args, &registry, out),
        What::Device(args) => device::run(args, &registry, out),
        What::Simulation(args) => simulation::run(args, &registry, out),
    }
}

/// Maximum number of tasks in a graph: their records take some 4 GB.
const MOST_TASKS: usize = 10_000_000;

/// Repetitions.
#[derive(clap::Args, Clone, Copy, Debug)]
struct RoundOption<const DEFAULT: usize> {
    /// Rounds
    #[arg(long, short, alias = "repeat", value_name = "N", default_value_t = DEFAULT, value_parser = positive)]
    rounds: usize,
}

/// The figures of `bench`, with a progress bar meanwhile.
fn measured<T, E>(bench: impl FnOnce(&dyn Fn(f64)) -> Result<T, E>) -> miette::Result<T>
where
    miette::Report: From<E>,
{
    Ok(Progress::new(false, false).share("measuring", bench)?)
}

/// JSON of benchmarks with one list of results.
#[derive(Serialize)]
struct Document<'a, T> {
    results: &'a [T],
}
