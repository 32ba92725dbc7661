//! `sched plugin test`: examines the components of a plugin.
//!
//! The examination itself runs in a child process, which writes what it is about to do: if it hangs or dies, the last
//! call is what did it. Runs and simulations are child processes too.

mod child;
mod journal;
mod params;
mod report;
mod trees;

use crate::format::{FormatOptions, text_or_json};
use crate::plugins::PluginOptions;
use crate::values::{SeedOption, positive};
use miette::Diagnostic;
use params::Setting;
use report::{Document, Examined};
use sched_core::rig::conform::ROUNDS;
use sched_text::did_you_mean;
use sched_tree::plugin::{ComponentState, FileState, LoadError, LoadedPlugin, Registered, Registry};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Test the components of a plugin against their contract
///
/// Random sequences of every call, with random workers, children, parents and parameters, examine each component for
/// what every component has to do (no task is lost, a refusal hands back the same task, work that waits wakes a worker,
/// …) and for what it declares of itself. A finding comes with the shortest sequence of calls that shows it. Then
/// policies with the component run and are simulated, and are compared with a stock component in its place.
///
/// Everything happens in child processes, so that a component that hangs or crashes is a finding too (--patience says
/// how long a call may take). An author's own tests do the same by `sched_core::rig::conforms`.
///
/// The exit code is 0 if nothing was found, and 1 otherwise.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched plugin test target/release/libmy_queue.so
  sched plugin test libmine.so --component my-queue --seed 7 --sequences 5000
  sched plugin test libmine.so --component my-queue --param room=4 --param order=lifo
  sched plugin test libmine.so --json | jq '.components[].properties[] | select(.ok | not)'")]
pub(super) struct Args {
    /// The plugin: a shared library
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only this component of it [default: all]
    #[arg(long, value_name = "NAME")]
    component: Option<String>,

    /// Set a parameter of the components that have it; others are varied, apart from texts
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = Setting::parse)]
    params: Vec<Setting>,

    /// Number of sequences of calls for each component
    #[arg(long, value_name = "N", default_value_t = ROUNDS as usize, value_parser = positive)]
    sequences: usize,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    format: FormatOptions,

    /// Write what is done, line by line, instead of a report: for the parent process
    #[arg(long, hide = true, requires = "component")]
    journal: bool,
}

/// Why nothing was examined.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum TestError {
    #[error("a plugin is not loaded: {0}")]
    #[diagnostic(code(plugin::not_loaded))]
    NotLoaded(LoadError, #[help] &'static str),
    #[error("`{}` has no component `{name}`", file.display())]
    #[diagnostic(code(plugin::no_component))]
    NoComponent {
        file: PathBuf,
        name: String,
        #[help]
        help: String,
    },
    #[error("`{}` has no components: it is the device driver `{driver}`", file.display())]
    #[diagnostic(
        code(plugin::no_component),
        help("`sched topology --devices {driver}` opens it; runs and `sched bench device` use its devices")
    )]
    Driver { file: PathBuf, driver: String },
    #[error("{message}")]
    #[diagnostic(code(plugin::param))]
    Param {
        message: String,
        #[help]
        help: String,
    },
    #[error("{what}: {error}")]
    #[diagnostic(code(plugin::no_process), help("the examination needs child processes, and a temporary folder"))]
    NoProcess { what: &'static str, error: std::io::Error },
}

/// Examines, and writes the report to `out`.
///
/// # Errors
/// A file that is no plugin, or a component that it does not have.
pub(super) fn run(
    args: &Args,
    plugins: &PluginOptions,
    patience: Duration,
    out: &mut dyn Write,
) -> miette::Result<ExitCode> {
    let registry = Registry::of_file(&args.file).map_err(|error| {
        let fix = error.fix();
        TestError::NotLoaded(error, fix)
    })?;
    let plugin = loaded(&registry);
    if args.journal {
        let name = args.component.as_deref().unwrap_or_default();
        let component = registry.component(name).ok_or_else(|| no_component(args, plugin, name))?;
        let values = params::of(component.info(), &args.params)?;
        journal::examine(component, &values, args.seed.seed, args.sequences as u64, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = |name: &str| args.component.as_deref().is_none_or(|wanted| wanted == name);
    let listed: Vec<_> = plugin.components.iter().filter(|listed| wanted(&listed.info.name)).collect();
    if listed.is_empty() {
        return Err(no_component(args, plugin, args.component.as_deref().unwrap_or_default()).into());
    }
    params::known(&args.params, listed.iter().map(|listed| &listed.info))?;
    let place = trees::Place::new(&args.file, plugins, patience)?;
    let mut components = Vec::new();
    for listed in listed {
        let mut examined = Examined::new(&listed.info);
        match (&listed.state, registry.component(&listed.info.name)) {
            (ComponentState::Rejected(errors), _) => errors.iter().for_each(|error| examined.misdescribed(error)),
            (_, Some(component)) => {
                let values = params::of(component.info(), &args.params)?;
                examine(args, component, patience, &mut examined)?;
                examined.runs = place.compare(component, &values, args.seed.seed)?;
            }
            (_, None) => {}
        }
        components.push(examined);
    }
    let document = Document::new(&args.file, plugin, args.seed.seed, args.sequences, components);
    document.write(args.format.is_json(), out)?;
    Ok(if document.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The plugin of a registry of one file.
fn loaded(registry: &Registry) -> &LoadedPlugin {
    let states = registry.files().iter().map(|file| &file.state);
    let mut loaded = states.filter_map(|state| if let FileState::Loaded(plugin) = state { Some(plugin) } else { None });
    loaded.next().expect("a file that is not rejected is loaded: it was not seen before, and was asked for")
}

fn no_component(args: &Args, plugin: &LoadedPlugin, name: &str) -> TestError {
    if let (true, Some(driver)) = (plugin.components.is_empty(), &plugin.driver) {
        return TestError::Driver { file: args.file.clone(), driver: driver.name.clone() };
    }
    let known = plugin.components.iter().map(|listed| &*listed.info.name);
    let help = did_you_mean(name, known, "its components");
    TestError::NoComponent { file: args.file.clone(), name: name.to_owned(), help }
}

/// Examines a component in a child process.
fn examine(args: &Args, component: &Registered, patience: Duration, examined: &mut Examined) -> Result<(), TestError> {
    let words = [
        "plugin",
        "test",
        "--journal",
        "--component",
        &component.info().name,
        "--seed",
        &args.seed.seed.to_string(),
        "--sequences",
        &args.sequences.to_string(),
        // The parent is the one that waits.
        "--patience",
        "1e6",
    ];
    let mut command = child::sched(&words)?;
    command.args(args.params.iter().map(|setting| format!("--param={setting}")));
    command.arg("--").arg(absolute(&args.file));
    journal::follow(command, patience, examined)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
