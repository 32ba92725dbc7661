//! `sched man`: manual pages.

use super::streams::Target;
use clap::Command;
use clap_mangen::Man;
use miette::{IntoDiagnostic, WrapErr};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the manual page of this program, or write those of all its commands to a folder
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  sched man | man -l -                                      read it
  sched man --dir ~/.local/share/man/man1                   for `man sched`, `man sched-run-cholesky`")]
pub struct Args {
    /// Folder for a page for each command; created if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Writes the page of the command line `of` to `out`, or the pages of all its commands to the folder that `args` name.
///
/// # Errors
/// If they cannot be written.
pub fn run(args: &Args, of: Command, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let mut of = of.disable_help_subcommand(true);
    of.build();
    match &args.dir {
        None => out.write_all(page(&of).1.as_bytes()).into_diagnostic()?,
        Some(dir) => {
            let made = fs::create_dir_all(dir).into_diagnostic();
            made.wrap_err_with(|| format!("`{}` cannot be written", dir.display()))?;
            write_all(&of, dir, out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of those below it. Each replaces an old one when it is complete.
fn write_all(command: &Command, dir: &Path, out: &mut dyn Write) -> miette::Result<()> {
    let (file, text) = page(command);
    Target::File(dir.join(file)).create()?.write(out, |page| page.write_all(text.as_bytes()))?;
    command.get_subcommands().try_for_each(|below| write_all(below, dir, out))
}

/// The name of a command's page, and its text.
fn page(command: &Command) -> (String, String) {
    let man = Man::new(command.clone()).source(concat!("sched ", env!("CARGO_PKG_VERSION"))).manual("sched");
    let mut text = Vec::new();
    man.render(&mut text).expect("writing to memory never fails");
    // Below the options, a help has examples and tables, whose line breaks are kept.
    let text = String::from_utf8_lossy(&text)
        .replace(".SH EXTRA\n", ".SH NOTES\n.nf\n")
        .replace(".SH VERSION\n", ".fi\n.SH VERSION\n");
    (man.get_filename(), text)
}
