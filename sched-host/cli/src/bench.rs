//! `sched bench`: what scheduling costs on this machine.

mod cholesky;
mod decision;
mod overhead;
mod simulation;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::IntoDiagnostic;
use sched_tree::plugin::Registry;
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

/// What `bench` finds, with a bar meanwhile that shows how much of it is done.
fn measured<T, E>(bench: impl FnOnce(&dyn Fn(f64)) -> Result<T, E>) -> miette::Result<T>
where
    miette::Report: From<E>,
{
    let style = ProgressStyle::with_template("measuring {bar:40} {percent}%").into_diagnostic()?;
    // indicatif draws on a terminal only.
    let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr()).with_style(style);
    let found = bench(&|done| bar.set_position((done * 100.0) as u64))?;
    bar.finish_and_clear();
    Ok(found)
}
