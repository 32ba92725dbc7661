//! `sched plugin new`: the crate of a new component, or its sources in C.

mod name;

use crate::format::{FormatOptions, text_or_json};
use crate::json;
use clap::ValueEnum;
use miette::{Diagnostic, IntoDiagnostic};
use name::Name;
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write the crate of a new component, or its sources in C
///
/// The crate stands alone: it depends on sched-core only, builds at once, and has a component of the chosen family
/// whose methods say when they are called, a policy that uses it, a test in the rig, and a README with the commands.
/// With --c it is a C file with its header and a Makefile, which need a C compiler and nothing else.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched plugin new my-queue --family flow-control
  sched plugin new my-queue --family flow-control --c
  sched plugin new my-mapper --family resource-mapping --path ~/schedulers/my-mapper
  sched plugin new my-queue --family flow-control --sched-core ~/sched/sched-core")]
pub(super) struct Args {
    /// Name of the crate, and of the component in policies: lower-case words joined by `-`
    name: String,

    /// What the component does
    #[arg(long, value_enum)]
    family: Family,

    /// Write it in C
    #[arg(long, conflicts_with_all = ["sched_core", "git"])]
    c: bool,

    /// Folder of the crate, which must not exist yet [default: the name, in this folder]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// Folder of sched-core's source, or of the repository with it [default: the repository that this program was built
    /// in, or else the one on the web]
    #[arg(long, value_name = "DIR", conflicts_with = "git")]
    sched_core: Option<PathBuf>,

    /// Git repository with sched-core
    #[arg(long, value_name = "URL")]
    git: Option<String>,

    #[command(flatten)]
    format: FormatOptions,
}

/// The families, as `Family` of sched-core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Family {
    /// Holds tasks back and lets them go, like fifo
    FlowControl,
    /// Chooses among its children, like eager and mct
    ResourceMapping,
    /// Changes tasks on their way, like best-implementation
    SpecialPurpose,
    /// Hands tasks to a worker
    Worker,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Family::FlowControl => "flow-control",
            Family::ResourceMapping => "resource-mapping",
            Family::SpecialPurpose => "special-purpose",
            Family::Worker => "worker",
        }
    }

    fn texts(self) -> Texts {
        macro_rules! texts {
            ($name:literal) => {
                Texts {
                    rust: include_str!(concat!("../../templates/", $name, ".rs")),
                    c: include_str!(concat!("../../templates/c/", $name, ".c")),
                    policy: include_str!(concat!("../../templates/", $name, ".kdl")),
                }
            };
        }
        match self {
            Family::FlowControl => texts!("flow-control"),
            Family::ResourceMapping => texts!("resource-mapping"),
            Family::SpecialPurpose => texts!("special-purpose"),
            Family::Worker => texts!("worker"),
        }
    }
}

/// A component's sources, and the text of its policy.
struct Texts {
    rust: &'static str,
    c: &'static str,
    policy: &'static str,
}

/// Where the crate finds sched-core.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    Path(PathBuf),
    Git(String),
}

/// Why no crate was written.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum NewError {
    #[error("`{}` exists already; nothing was written", .0.display())]
    #[diagnostic(code(plugin::exists), help("choose another name, or another folder with --path"))]
    Exists(PathBuf),
    #[error("`{}` is not the folder of sched-core: {why}", folder.display())]
    #[diagnostic(
        code(plugin::sched_core),
        help(
            "--sched-core names the folder `sched-core` of the repository, or the repository; --git names it on the web"
        )
    )]
    NotCore { folder: PathBuf, why: String },
    #[error("`{}` has a name that no manifest can hold: it is not text, or has control characters", .0.display())]
    #[diagnostic(code(plugin::sched_core), help("move the repository, or name it by --git"))]
    Unwritable(PathBuf),
    #[error("`{}` cannot be written: {why}", path.display())]
    #[diagnostic(code(plugin::unwritten), help("--path names another folder"))]
    Unwritten { path: PathBuf, why: io::Error },
}

/// JSON output.
#[derive(Serialize)]
struct Document<'a> {
    component: &'a str,
    family: &'static str,
    path: &'a Path,
    files: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sched_core: Option<&'a Source>,
    /// Commands to run next, in the folder.
    next: Vec<String>,
}

/// Writes the crate, and what to do next.
///
/// # Errors
/// A name that cannot be used, a folder that exists, or one that cannot be written.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let name = Name::new(&args.name)?;
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(name.component()));
    let source = if args.c { None } else { Some(source(args)?) };
    let files = match &source {
        Some(source) => files(&name, args.family, &dependency(source)?),
        None => files_in_c(&name, args.family),
    };
    write_all(&folder, &files)?;
    let next = if args.c { next_in_c(&name) } else { next(&name) };
    if args.format.is_json() {
        let document = Document {
            component: name.component(),
            family: args.family.name(),
            path: &folder,
            files: files.iter().map(|(name, _)| &**name).collect(),
            sched_core: source.as_ref(),
            next: next.iter().map(|(command, _)| command.clone()).collect(),
        };
        json::write(out, &document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = || {
        writeln!(
            out,
            "{}: the component `{}`, of the family {}",
            folder.display(),
            name.component(),
            args.family.name()
        )?;
        for (file, _) in &files {
            writeln!(out, "  {file}")?;
        }
        match &source {
            Some(Source::Path(path)) => writeln!(out, "It uses sched-core in {}.", path.display())?,
            Some(Source::Git(url)) => writeln!(out, "It uses sched-core of {url}.")?,
            None => writeln!(out, "It needs a C compiler.")?,
        }
        writeln!(out, "\nNext:\n  cd {}", quoted(&folder))?;
        let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        next.iter().try_for_each(|(command, what)| writeln!(out, "  {command:width$}  # {what}"))
    };
    shown().into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}

/// Commands for the new crate, each with what it does.
fn next(name: &Name) -> Vec<(String, &'static str)> {
    let (component, library) = (name.component(), name.library());
    vec![
        ("cargo test".to_owned(), "in the rig: with fake neighbours and a fake clock"),
        ("cargo build --release".to_owned(), "the plugin"),
        (format!("sched plugin test target/release/lib{library}.so"), "random calls, runs and simulations"),
        (format!("sched --plugin-dir target/release check {component}.kdl"), "is the policy sound?"),
        (format!("sched --plugin-dir target/release run cholesky --policy {component}.kdl"), "real work"),
    ]
}

/// Commands for the new sources in C, each with what it does.
fn next_in_c(name: &Name) -> Vec<(String, &'static str)> {
    let component = name.component();
    vec![
        ("make".to_owned(), "the plugin"),
        ("make check".to_owned(), "random calls, runs and simulations; is the policy sound?"),
        (format!("sched --plugin-dir . run cholesky --policy {component}.kdl"), "real work"),
    ]
}

/// The path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+~".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Where sched-core is: as asked for; or in the repository that this program was built in; or on the web.
fn source(args: &Args) -> Result<Source, NewError> {
    if let Some(url) = &args.git {
        return Ok(Source::Git(url.clone()));
    }
    if let Some(folder) = &args.sched_core {
        let inside = folder.join("sched-core");
        let found = core_in(folder).or_else(|why| core_in(&inside).map_err(|_| why));
        return found.map(Source::Path).map_err(|why| NewError::NotCore { folder: folder.clone(), why });
    }
    let program = std::env::current_exe().ok();
    // The program may lie anywhere: cargo's target folder is outside of the repository where `CARGO_TARGET_DIR` says
    // so.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let above = program.iter().flat_map(|program| program.ancestors()).chain(sources.ancestors());
    let found = above.filter_map(|folder| core_in(&folder.join("sched-core")).ok()).next();
    Ok(found.map_or_else(|| Source::Git(env!("CARGO_PKG_REPOSITORY").to_owned()), Source::Path))
}

/// The folder, if sched-core is there.
fn core_in(folder: &Path) -> Result<PathBuf, String> {
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("its Cargo.toml cannot be read: {error}"))?;
    match text.lines().any(|line| line.trim_end() == r#"name = "sched-core""#) {
        true => fs::canonicalize(folder).map_err(|error| error.to_string()),
        false => Err("its Cargo.toml is that of another package".to_owned()),
    }
}

/// The keys of the dependency on sched-core in a manifest.
fn dependency(source: &Source) -> Result<String, NewError> {
    let (key, value) = match source {
        Source::Path(path) => ("path", path.to_str().ok_or_else(|| NewError::Unwritable(path.clone()))?),
        Source::Git(url) => ("git", &**url),
    };
    if value.contains(char::is_control) {
        return Err(NewError::Unwritable(value.into()));
    }
    Ok(format!("{key} = \"{}\"", value.replace('\\', r"\\").replace('"', "\\\"")))
}

/// A template with the places for names filled in.
fn filled(text: &str, name: &Name, family: Family) -> String {
    let text = text.replace("__NAME__", name.component()).replace("__TYPE__", &name.of_type());
    let text = text.replace("__CRATE__", name.krate()).replace("__LIB__", &name.library());
    text.replace("__FAMILY__", family.name())
}

/// Names and contents of the files of a crate.
fn files(name: &Name, family: Family, dependency: &str) -> Vec<(String, String)> {
    let texts = family.texts();
    let filled = |text: &str| filled(text, name, family).replace("__DEPENDENCY__", dependency);
    vec![
        ("Cargo.toml".to_owned(), filled(include_str!("../../templates/Cargo.toml.in"))),
        ("src/lib.rs".to_owned(), filled(texts.rust)),
        (format!("{}.kdl", name.component()), filled(texts.policy)),
        ("README.md".to_owned(), filled(include_str!("../../templates/README.md.in"))),
        (".gitignore".to_owned(), "/target\n".to_owned()),
    ]
}

/// Names and contents of the files of a component in C.
fn files_in_c(name: &Name, family: Family) -> Vec<(String, String)> {
    let texts = family.texts();
    let filled = |text: &str| filled(text, name, family);
    vec![
        (format!("{}.c", name.component()), filled(texts.c)),
        ("msched.h".to_owned(), sched_core::abi::c::HEADER.to_owned()),
        ("Makefile".to_owned(), filled(include_str!("../../templates/c/Makefile.in"))),
        (format!("{}.kdl", name.component()), filled(texts.policy)),
        ("README.md".to_owned(), filled(include_str!("../../templates/c/README.md.in"))),
        (".gitignore".to_owned(), "/*.so\n".to_owned()),
    ]
}

/// Writes all files into a folder beside, which then becomes the wanted one: there is never half a crate.
fn write_all(folder: &Path, files: &[(String, String)]) -> Result<(), NewError> {
    let unwritten = |path: &Path| {
        let path = path.to_owned();
        move |why| NewError::Unwritten { path, why }
    };
    if folder.symlink_metadata().is_ok() {
        return Err(NewError::Exists(folder.to_owned()));
    }
    let mut draft = folder.as_os_str().to_owned();
    draft.push(format!(".{}.draft", std::process::id()));
    let draft = PathBuf::from(draft);
    let written = (|| {
        fs::create_dir_all(&draft).map_err(unwritten(folder))?;
        for (name, text) in files {
            if let Some((inner, _)) = name.rsplit_once('/') {
                fs::create_dir_all(draft.join(inner)).map_err(unwritten(folder))?;
            }
            fs::write(draft.join(name), text).map_err(unwritten(&folder.join(name)))?;
        }
        fs::rename(&draft, folder).map_err(unwritten(folder))
    })();
    if written.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    written
}

#[cfg(test)]
mod tests;
