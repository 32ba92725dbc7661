//! The `sched` command: one file for each subcommand. The only place that prints.

pub mod bench;
pub mod check;
pub mod compare;
pub mod completions;
mod contexts;
mod energy;
pub mod graph;
mod graph_source;
mod json;
mod machine;
pub mod man;
pub mod model;
mod output;
mod pictures;
pub mod plugins;
pub mod policies;
mod reports;
pub mod run;
pub mod simulate;
mod size;
mod start;
mod table;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod tree;
mod values;

use clap::{CommandFactory, Parser, Subcommand};
use miette::IntoDiagnostic;
use output::Output;
use plugins::PluginOptions;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Run task graphs with schedulers made of components
///
/// The scheduler is a tree of components that come from plugins; a policy is a text file that says which components, and
/// how they are linked. `sched policies` lists the policies that are shipped, `sched plugins` the components, `sched tree
/// POLICY` draws a policy over this machine, `sched check POLICY` proves that tasks will move in it, and `sched run cholesky --policy POLICY` runs real work with it.
///
/// Exit codes: 0 all went well; 1 what was asked for failed (the message says why); 2 the command line was not understood.
#[derive(Parser, Debug)]
#[command(name = "sched", version, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    plugins: PluginOptions,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::Args),
    Simulate(simulate::Args),
    Compare(compare::Args),
    Plugins(plugins::Args),
    Policies(policies::Args),
    Tree(tree::Args),
    Check(check::Args),
    Topology(topology::Args),
    Graph(graph::Args),
    Model(model::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the command line of this process. The exit code says how it went.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    reports::set_up();
    let mut out = Output::new(std::io::BufWriter::new(std::io::stdout().lock()));
    let done = run(&cli, &mut out).and_then(|code| out.flush().into_diagnostic().map(|()| code));
    match done {
        Ok(code) => code,
        Err(report) => {
            // What was found before comes first.
            let _ = out.flush();
            let _ = writeln!(std::io::stderr(), "{report:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let registry = || cli.plugins.registry();
    match &cli.command {
        Command::Run(args) => run::run(args, Arc::new(registry()?), out),
        Command::Simulate(args) => simulate::run(args, Arc::new(registry()?), out),
        Command::Compare(args) => compare::run(args, Arc::new(registry()?), out),
        Command::Plugins(args) => plugins::run(args, &registry()?, out),
        Command::Policies(args) => policies::run(args, &registry()?.catalogue(), out),
        Command::Tree(args) => tree::run(args, &registry()?.catalogue(), out),
        Command::Check(args) => check::run(args, &registry()?.catalogue(), out),
        Command::Topology(args) => topology::run(args, out),
        Command::Graph(args) => graph::run(args, out),
        Command::Model(args) => model::run(args, out),
        Command::Bench(args) => bench::run(args, Arc::new(registry()?), out),
        Command::Completions(args) => completions::run(args, Cli::command(), out),
        Command::Man(args) => man::run(args, Cli::command(), out),
    }
}
