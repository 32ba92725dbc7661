//! `sched completions`: what a shell needs to complete the words of this program.

use clap::Command;
use clap_complete::{Shell, generate};
use miette::IntoDiagnostic;
use std::io::Write;
use std::process::ExitCode;

/// Print a script with which a shell completes commands and options
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  sched completions bash > ~/.local/share/bash-completion/completions/sched
  sched completions zsh > ~/.zfunc/_sched                   with fpath+=~/.zfunc in ~/.zshrc
  sched completions fish > ~/.config/fish/completions/sched.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Writes the script for the command line `of` to `out`.
///
/// # Errors
/// When `out` cannot be written.
pub fn run(args: &Args, mut of: Command, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (name, mut script) = (of.get_name().to_owned(), Vec::new());
    generate(args.shell, &mut of, name, &mut script);
    out.write_all(&script).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
