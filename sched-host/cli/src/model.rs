//! `sched model`: performance models: expected durations and energy of tasks.

pub(crate) mod bus;
mod energy;
mod exchange;
mod list;
mod show;

use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::pictures::svg_file;
use crate::streams::Target;
use crate::values::machine_name;
use crate::variables::variable;
use clap::Subcommand;
use miette::IntoDiagnostic;
use sched_machine::topology::Topology;
use sched_model::{Fingerprint, ModelError, Quantity, Store, Stored, default_directory, plot};
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Look at performance models, and exchange them with StarPU
///
/// A model holds the expected durations of a codelet's tasks by architecture, implementation and size. It is learned
/// while tasks run (`sched run cholesky --calibrate`), stored for each kind of machine, and used by schedulers that
/// decide by expected durations (`--policy tree-heft`). It may hold energies too, which a program measures
/// (`Runtime::measure_energy`) where the machine has energy counters (`sched model energy`).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  sched model list                                  the models of this machine
  sched model show cholesky_gemm                    every size: samples, estimate, spread
  sched model plot cholesky_gemm > gemm.svg         a picture
  sched model energy                                which energy counters this machine has
  sched model reset cholesky_gemm                   delete it; it is measured again
  sched model import ~/.starpu/sampling             import StarPU's models of this machine
  sched model export /tmp/sampling --host node7     export models to StarPU
  sched model export /tmp/sampling --bus cpu9-gpu3  transfer costs of a described platform, for StarPU
  sched model bus                                   transfer times between this machine's memory nodes")]
pub struct Args {
    #[command(flatten)]
    selection: Selection,

    #[command(subcommand)]
    what: What,
}

/// Selection of models.
#[derive(Debug, clap::Args)]
struct Selection {
    /// Directory of the models [default: $SCHED_MODEL_DIR, or sched/models in the user's data directory]
    #[arg(long, value_name = "DIR", global = true)]
    models: Option<PathBuf>,

    /// Measured machine, as `sched model list` names it [default: this one]
    #[arg(long, value_name = "FINGERPRINT", global = true, value_parser = machine_name)]
    machine: Option<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    List(list::Args),
    Show(show::Args),
    Plot(PlotArgs),
    Energy(energy::Args),
    Reset(ResetArgs),
    Import(exchange::ImportArgs),
    Export(exchange::ExportArgs),
    Bus(bus::Args),
}

/// Draw a model: time or energy by size, both logarithmic, as SVG
///
/// One point for each size, filled if there are enough samples for an estimate, with a bar over the middle half of the
/// samples, and the regression curve if the model has one.
#[derive(Debug, clap::Args)]
struct PlotArgs {
    /// Name of the model
    name: String,

    /// Draw the energy instead of the time
    #[arg(long)]
    energy: bool,

    /// File of the picture; `-` is the standard output
    #[arg(long, short, value_name = "FILE.svg", default_value = "-", value_parser = svg_file)]
    output: Target,
}

/// Delete models, so that they are measured again
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
#[command(group = clap::ArgGroup::new("which").required(true).args(["names", "all"]))]
struct ResetArgs {
    /// Names of the models
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// All models of the machine
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Serialize)]
struct Forgotten {
    forgot: Vec<String>,
}

impl Selection {
    fn store(&self) -> miette::Result<Store> {
        store(self.models.clone(), self.machine.as_deref())
    }
}

/// Opens the models of a machine: by default of this machine, in the user's directory.
pub(super) fn store(directory: Option<PathBuf>, machine: Option<&str>) -> miette::Result<Store> {
    let directory = match directory {
        Some(directory) => directory,
        None => default_directory(variable)?,
    };
    let machine = match machine {
        Some(name) => Fingerprint::named(name),
        None => Fingerprint::of_this_machine(&Topology::this_machine()?),
    };
    Ok(Store::new(directory, machine))
}

/// Runs the subcommand in `args` and writes its output to `out`; problems of single models go to stderr.
///
/// # Errors
/// If models cannot be read or written, none has the name, or `out` cannot be written.
pub fn run(
    args: &Args,
    registry: impl FnOnce() -> miette::Result<Registry>,
    out: &mut dyn Write,
) -> miette::Result<ExitCode> {
    let store = || args.selection.store();
    match &args.what {
        What::List(args) => list::run(args, &store()?, out),
        What::Show(args) => show::run(args, &store()?, out),
        What::Plot(args) => draw(args, &store()?, out),
        What::Energy(args) => energy::run(args, out),
        What::Reset(args) => reset(args, &store()?, out),
        What::Import(args) => exchange::import(args, &store()?, out),
        What::Export(args) => exchange::export(args, &store()?, out),
        What::Bus(args) => bus::run(args, &store()?, registry, out),
    }
}

fn draw(args: &PlotArgs, store: &Store, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let stored = existing(store, &args.name)?;
    let quantity = if args.energy { Quantity::Energy } else { Quantity::Time };
    let Some(picture) = plot::svg(&stored, quantity, sched_model::MINIMUM_SAMPLES) else {
        return Err(miette::miette!(
            help = "`sched model show` lists what was",
            "no {} of `{}` was measured",
            quantity.name(),
            args.name
        ));
    };
    args.output.create()?.write(out, |out| out.write_all(picture.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

fn reset(args: &ResetArgs, store: &Store, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let names = if args.all { store.list()? } else { args.names.clone() };
    // Names are checked before anything changes.
    let known = store.list()?;
    for name in &names {
        if !known.contains(name) {
            return Err(unknown(store, name).into());
        }
    }
    let mut forgot = Vec::new();
    for name in names {
        if store.remove(&name)? {
            forgot.push(name);
        }
    }
    if args.format.is_json() {
        json::write(out, &Forgotten { forgot })?;
        return Ok(ExitCode::SUCCESS);
    }
    for name in &forgot {
        writeln!(out, "forgot {name}").into_diagnostic()?;
    }
    if forgot.is_empty() {
        writeln!(out, "there was nothing to delete").into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The stored model of a name.
fn existing(store: &Store, name: &str) -> Result<Stored, ModelError> {
    store.read(name)?.ok_or_else(|| unknown(store, name))
}

fn unknown(store: &Store, name: &str) -> ModelError {
    let known = store.list().unwrap_or_default();
    let likeness = |known: &String| strsim::jaro_winkler(known, name);
    let near = known.into_iter().filter(|known| likeness(known) > 0.8);
    let near = near.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    ModelError::Unknown { name: name.to_owned(), directory: store.directory().to_owned(), near }
}

#[cfg(test)]
mod tests;
