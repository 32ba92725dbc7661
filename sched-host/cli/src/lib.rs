//! The `sched` command: one file for each subcommand. The only crate that prints.

pub mod bench;
mod beside;
pub mod check;
pub mod compare;
pub mod completions;
mod contexts;
mod devices;
mod early_end;
mod energy;
mod format;
pub mod graph;
mod graph_source;
mod hints;
mod hypervisor;
mod jobs;
mod json;
mod log;
mod machine;
mod makespan;
pub mod man;
mod memory;
pub mod model;
mod output;
mod pictures;
pub mod platform;
pub mod plugin;
pub mod plugins;
pub mod policies;
mod policy;
mod progress;
mod ranks;
mod reports;
pub mod run;
pub mod simulate;
mod size;
mod start;
mod streams;
mod table;
mod task_options;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod tree;
mod values;
mod variables;
mod watchdog;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use miette::IntoDiagnostic;
use output::Output;
use plugins::PluginOptions;
use sched_sync::prepare_fences;
use sched_tree::exit_guard;
use sched_tree::plugin::set_trial_patience;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use values::seconds;

/// Run task graphs with schedulers made of components
///
/// The scheduler is a tree of components that come from plugins; a policy is a text file that lists the components and
/// how they are linked. `sched policies` lists the policies that are shipped, `sched plugins` the components, `sched
/// tree POLICY` draws a policy over this machine, `sched check POLICY` proves that tasks will move in it, and `sched
/// run cholesky --policy POLICY` runs real work with it; `sched simulate` runs task graphs on described machines, in
/// virtual time.
///
/// Options have the same name and meaning in every command: --policy (repeated, or with commas) names policies,
/// --platform, --synthetic, --xml and --starpu-sampling name the machine, --workers its CPU workers, --seed the random
/// numbers, and --format or --json the format of the output. `-` in the place of a file is the standard input or
/// output; where a picture or a trace takes the standard output, the report goes to the standard error.
///
/// With --json, the output is one object on the standard output. Its lists have one element for each run, policy or
/// file, even if there is only one. An error is a line {"error": {"message": …}} on the standard error, a warning a
/// line {"warning": …}, a note a line {"note": …}, and what is logged (--log) a line {"log": …}.
///
/// Exit codes: 0 success; 1 the command failed (the message says why); 2 invalid command line.
#[derive(Parser, Debug)]
#[command(name = "sched", version, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    plugins: PluginOptions,

    /// Give up, and say which component it is, when a call of a component has not come back for this time; built-in
    /// components are not watched. Of a driver's call there is a warning
    #[arg(long, value_name = "SECONDS", env = "SCHED_PATIENCE", default_value = watchdog::PATIENCE_S, value_parser = seconds)]
    #[arg(global = true, help_heading = "Plugins")]
    patience: Duration,

    /// Show what components and the program log, from this level up, on the standard error [default: warnings and
    /// errors]
    #[arg(long = "log", value_name = "LEVEL", env = "SCHED_LOG", global = true, help_heading = "Log")]
    log_level: Option<log::Level>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::Args),
    Simulate(simulate::Args),
    Compare(compare::Args),
    Plugins(plugins::Args),
    Plugin(plugin::Args),
    Policies(policies::Args),
    Tree(tree::Args),
    Check(check::Args),
    Topology(topology::Args),
    Platform(platform::Args),
    Graph(graph::Args),
    Model(model::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the command line of this process and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let json = reports::json_is_wanted(&words);
    let cli = match understood(&words) {
        Ok(cli) => cli,
        Err(error) => return reports::not_understood(&error, json),
    };
    // Before there is a second thread.
    prepare_fences();
    reports::set_up();
    log::begin(cli.log_level, json);
    watchdog::begin(cli.patience, json);
    set_trial_patience(cli.patience);
    early_end::begin(json);
    let mut out = Output::new(std::io::BufWriter::new(std::io::stdout()));
    let done = early_end::or_mistake(|| run(&cli, &mut out));
    let done = done.and_then(|code| out.flush().into_diagnostic().map(|()| code));
    if done.is_err() {
        // Earlier findings come first.
        let _ = out.flush();
    }
    log::finish();
    exit_guard::expect_end();
    done.unwrap_or_else(|report| reports::failed(&report, json))
}

/// The parsed command line.
fn understood(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = variables::without_empty(Cli::command());
    let matches = command.try_get_matches_from_mut(words);
    let matches = matches.map_err(|error| variables::named_in(error, &command, words))?;
    streams::check(&matches).map_err(|problem| command.error(ErrorKind::ArgumentConflict, problem))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn run(cli: &Cli, out: &mut (dyn Write + Send)) -> miette::Result<ExitCode> {
    let registry = || cli.plugins.registry_for_use();
    match &cli.command {
        Command::Run(args) => run::run(args, Arc::new(registry()?), out),
        Command::Simulate(args) => simulate::run(args, Arc::new(registry()?), out),
        Command::Compare(args) => compare::run(args, Arc::new(registry()?), out),
        Command::Plugins(args) => plugins::run(args, &cli.plugins.registry()?, out),
        Command::Plugin(args) => plugin::run(args, &cli.plugins, cli.patience, out),
        Command::Policies(args) => policies::run(args, &registry()?.catalogue(), out),
        Command::Tree(args) => tree::run(args, &registry()?.catalogue(), out),
        Command::Check(args) if args.is_run() => check::run_and_start(args, Arc::new(registry()?), out),
        Command::Check(args) => check::run(args, &registry()?, out),
        Command::Topology(args) => topology::run(args, &registry()?, out),
        Command::Platform(args) => platform::run(args, Arc::new(registry()?), out),
        Command::Graph(args) => graph::run(args, out),
        Command::Model(args) => model::run(args, registry, out),
        Command::Bench(args) => bench::run(args, Arc::new(registry()?), out),
        Command::Completions(args) => completions::run(args, Cli::command(), out),
        Command::Man(args) => man::run(args, Cli::command(), out),
    }
}
