//! `sched model import` and `sched model export`: exchange of models with StarPU.

use crate::format::{FormatOptions, text_or_json};
use crate::hints::PLATFORM;
use crate::json;
use crate::reports;
use crate::values::{machine_name, up_to};
use crate::variables::variable;
use miette::{IntoDiagnostic, WrapErr};
use sched_model::starpu::{CodeletFile, Sampling, directories, host_name};
use sched_model::{Bus, Kind, ModelError, Quantity, Store, write_whole};
use sched_sim::platform;
use sched_text::closest;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum number of devices of a kind: a file has a model for each.
const MOST_DEVICES: usize = 4096;

/// Import models that StarPU measured
///
/// Reads codelets/45/NAME.HOST of the directory, and codelets/45/NAME where a NAME is given that has a dot: StarPU adds
/// no machine to such names. Tasks find them by model name and footprint, which is computed as in StarPU.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct ImportArgs {
    /// Directory of StarPU's measurements [default: StarPU's own, such as ~/.starpu/sampling]
    directory: Option<PathBuf>,

    /// Only these models [default: all of the machine]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Machine name in StarPU's file names [default: $STARPU_HOSTNAME, or this machine's]
    #[arg(long, value_name = "HOST", value_parser = machine_name)]
    host: Option<String>,

    /// Import energies, in joules, instead of durations
    #[arg(long)]
    energy: bool,

    /// Add the samples to existing models of the same name (only once: repeated imports count them twice)
    #[arg(long, conflicts_with = "replace")]
    merge: bool,

    /// Delete existing models of the same name first
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    format: FormatOptions,
}

/// Export models for StarPU
///
/// Writes codelets/45/NAME.HOST in the directory, or codelets/45/NAME where NAME has a dot, as in StarPU. StarPU
/// receives the robust mean of each size as the mean of its samples. With --bus, writes bus/HOST.bandwidth, .latency,
/// .config and .affinity of a described platform instead.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct ExportArgs {
    /// Directory of measurements for StarPU; created if missing
    directory: PathBuf,

    /// Only these models [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Export transfer costs of this platform instead of models: a shipped one, or a KDL file
    #[arg(long, value_name = "PLATFORM", conflicts_with_all = ["names", "energy", "devices"])]
    #[arg(value_parser = PLATFORM, hide_possible_values = true)]
    bus: Option<String>,

    /// Machine name in StarPU's file names [default: $STARPU_HOSTNAME, or this machine's]
    #[arg(long, value_name = "HOST", value_parser = machine_name)]
    host: Option<String>,

    /// Export energies instead of durations
    #[arg(long)]
    energy: bool,

    /// Number of devices of each kind (CUDA and so on), which StarPU numbers individually
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to(MOST_DEVICES))]
    devices: usize,

    /// Overwrite existing files
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    format: FormatOptions,
}

/// Result of an import. Fields are JSON keys.
#[derive(Serialize)]
struct Imported {
    /// Directory of the imported models.
    directory: String,
    models: Vec<ImportedModel>,
    /// Files that were left out or moved aside.
    problems: Vec<String>,
}

#[derive(Serialize)]
struct ImportedModel {
    name: String,
    kind: &'static str,
    samples: u64,
    /// Number of device combinations without a counterpart.
    skipped: usize,
}

/// Result of an export.
#[derive(Serialize)]
struct Exported {
    files: Vec<String>,
}

const fn quantity(energy: bool) -> Quantity {
    if energy { Quantity::Energy } else { Quantity::Time }
}

pub(super) fn import(args: &ImportArgs, store: &Store, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let host = args.host.clone().unwrap_or_else(|| host_name(variable));
    let default = || directories(variable).into_iter().find(|directory| directory.exists());
    let Some(directory) = args.directory.clone().or_else(default) else {
        return Err(miette::miette!(
            help = "name the directory with `codelets` and `bus` in it",
            "StarPU has no directory of measurements"
        ));
    };
    let mut sampling = Sampling::load_named(&directory, &host, &args.names)?;
    refuse_damaged(&args.names, &directory, &host, &mut sampling)?;
    let mut missing = Vec::new();
    for name in args.names.iter().filter(|name| !sampling.codelets.contains_key(*name)) {
        missing.push(format!("`{name}`"));
    }
    if !missing.is_empty() {
        let known = sampling.codelets.keys().map(String::as_str);
        let meant = args.names.iter().filter(|name| !sampling.codelets.contains_key(*name));
        let meant: Vec<String> = meant
            .filter_map(|name| closest(name, known.clone()))
            .map(|name| format!("did you mean `{name}`?\n"))
            .collect();
        let (missing, directory) = (missing.join(", "), directory.display());
        return Err(miette::miette!(
            help = format!("{}without names, all models of the machine are taken over", meant.concat()),
            "{directory}: machine `{host}` has no model {missing}"
        ));
    }
    sampling.codelets.retain(|name, _| args.names.is_empty() || args.names.contains(name));
    // StarPU's names may be any text.
    sampling.problems.extend(sampling.codelets.keys().filter_map(|name| store.path(name).err()));
    sampling.codelets.retain(|name, _| store.path(name).is_ok());
    let mut problems: Vec<String> =
        sampling.problems.iter().map(|problem| format!("left out: {}", problem.in_full())).collect();
    let left_out = !problems.is_empty();
    if !args.merge && !args.replace {
        refuse_known(store, sampling.codelets.keys())?;
    }
    let mut models = Vec::new();
    for (name, file) in &sampling.codelets {
        let imported = file.import(quantity(args.energy));
        if args.replace {
            store.remove(name)?;
        }
        // What a program has declared counts before what StarPU's file shows.
        let declared = store.read(name).ok().flatten().map(|stored| stored.kind);
        let kind = declared.filter(|kind| *kind != Kind::History).unwrap_or(imported.kind);
        let (_, moved) = store.add(name, &kind, &imported.measurements)?;
        problems.extend(moved.map(|moved| moved.to_string()));
        let (kind, samples, skipped) = (kind.name(), imported.measurements.samples(), imported.skipped);
        models.push(ImportedModel { name: name.clone(), kind, samples, skipped });
    }
    let imported = Imported { directory: store.directory().display().to_string(), models, problems };
    match args.format.is_json() {
        true => json::write(out, &imported)?,
        false => imported.text(out).into_diagnostic()?,
    }
    match (left_out, args.format.is_json()) {
        (false, _) => Ok(ExitCode::SUCCESS),
        // The text says so in its first lines.
        (true, false) => Ok(ExitCode::FAILURE),
        (true, true) => Err(miette::miette!(
            help = "the others are imported; repair or remove these files",
            "{}",
            sampling.problems.iter().map(ModelError::in_full).collect::<Vec<_>>().join("\n")
        )),
    }
}

/// Models that are asked for by name have to be sound.
fn refuse_damaged(names: &[String], directory: &Path, host: &str, sampling: &mut Sampling) -> miette::Result<()> {
    let paths: Vec<PathBuf> = names.iter().map(|name| Sampling::codelet_path(directory, name, host)).collect();
    let is_named = |problem: &ModelError| problem.path().is_some_and(|path| paths.iter().any(|named| named == path));
    let (mut damaged, others) = sampling.problems.drain(..).partition::<Vec<_>, _>(is_named);
    sampling.problems = others;
    match damaged.len() {
        0 => Ok(()),
        1 => Err(damaged.remove(0).into()),
        _ => Err(miette::miette!(
            help = "nothing was imported; repair or remove these files, or name other models",
            "{}",
            damaged.iter().map(ModelError::in_full).collect::<Vec<_>>().join("\n")
        )),
    }
}

impl Imported {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for problem in &self.problems {
            writeln!(out, "{problem}")?;
        }
        for ImportedModel { name, kind, samples, skipped } in &self.models {
            let left = match skipped {
                0 => String::new(),
                1 => ", without a combination of devices that has no counterpart".to_owned(),
                count => format!(", without {count} combinations of devices that have no counterpart"),
            };
            writeln!(out, "{name}: {kind}, {samples} samples{left}")?;
        }
        let count = self.models.len();
        let are = if count == 1 { "model is" } else { "models are" };
        writeln!(out, "{count} {are} in {} now", self.directory)
    }
}

impl Exported {
    fn write(paths: &[PathBuf], json: bool, out: &mut dyn Write) -> miette::Result<()> {
        let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        if json {
            return json::write(out, &Exported { files });
        }
        files.iter().try_for_each(|file| writeln!(out, "{file}")).into_diagnostic()
    }
}

/// Local measurements are mixed with imported ones only on request.
fn refuse_known<'a>(store: &Store, names: impl Iterator<Item = &'a String>) -> miette::Result<()> {
    let known = store.list()?;
    let both: Vec<&str> = names.filter(|name| known.contains(name)).map(String::as_str).collect();
    if both.is_empty() {
        return Ok(());
    }
    Err(miette::miette!(
        help = "`--replace` forgets them first; `--merge` adds the samples to them; or name the models to import",
        "there are models of these names: {}",
        both.join(", ")
    ))
}

pub(super) fn export(args: &ExportArgs, store: &Store, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let host = args.host.clone().unwrap_or_else(|| host_name(variable));
    if let Some(name) = &args.bus {
        return export_bus(args, name, &host, out);
    }
    let names = if args.names.is_empty() { store.list()? } else { args.names.clone() };
    let mut files = Vec::new();
    for name in &names {
        let stored = match super::existing(store, name) {
            // Nobody asked for this one by name.
            Err(problem @ (ModelError::Damaged(_) | ModelError::Newer { .. })) if args.names.is_empty() => {
                reports::warn(&format!("left out: {}", problem.in_full()));
                continue;
            }
            stored => stored?,
        };
        let file = CodeletFile::export(&stored.kind, &stored.measurements, quantity(args.energy), args.devices as u32);
        let path = Sampling::codelet_path(&args.directory, name, &host);
        refuse_existing(args, &path)?;
        // Models of the other quantity only are skipped.
        if !file.combs.is_empty() {
            files.push((path, file));
        }
    }
    for (path, file) in &files {
        if let Some(parent) = path.parent() {
            make(parent)?;
        }
        write_whole(path, file.to_text().as_bytes())?;
    }
    if files.is_empty() {
        let (what, directory) = (quantity(args.energy).name(), store.directory().display());
        return Err(match names.is_empty() {
            true => miette::miette!(
                help = "`sched run cholesky --calibrate` measures some, and `sched model import` takes over StarPU's",
                "there are no models in {directory}"
            ),
            false => miette::miette!(
                help = "`sched model list` shows what was measured",
                "no {what} of these models was measured: {}",
                names.join(", ")
            ),
        });
    }
    let paths: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
    Exported::write(&paths, args.format.is_json(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn export_bus(args: &ExportArgs, platform: &str, host: &str, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let bus = platform::find(platform)?.starpu_bus();
    let directory = args.directory.join("bus");
    let paths = Bus::paths(&directory, host);
    paths.iter().try_for_each(|path| refuse_existing(args, path))?;
    make(&directory)?;
    bus.write(&directory, host)?;
    Exported::write(&paths, args.format.is_json(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn refuse_existing(args: &ExportArgs, path: &Path) -> miette::Result<()> {
    if path.exists() && !args.force {
        return Err(miette::miette!(
            help = "`--force` writes over it",
            "{}: the file exists, and nothing was written",
            path.display()
        ));
    }
    Ok(())
}

fn make(directory: &Path) -> miette::Result<()> {
    let made = std::fs::create_dir_all(directory).into_diagnostic();
    made.wrap_err_with(|| format!("{}: it cannot be made", directory.display()))
}
