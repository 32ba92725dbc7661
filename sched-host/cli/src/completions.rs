//! `sched completions`: completion scripts for shells.

use crate::hints;
use clap::Command;
use clap_complete::{Shell, generate};
use miette::IntoDiagnostic;
use std::io::Write;
use std::process::ExitCode;

/// Print the completion script of a shell for commands, options, and names of policies, platforms and graphs
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
/// If `out` cannot be written.
pub fn run(args: &Args, mut of: Command, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (name, mut script) = (of.get_name().to_owned(), Vec::new());
    generate(args.shell, &mut of, name, &mut script);
    let script = with_files(args.shell, String::from_utf8_lossy(&script).into_owned());
    out.write_all(script.as_bytes()).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}

/// The script, extended to complete files where [names](hints) are completed: fish and zsh would offer the names only;
/// bash falls back on files by itself.
fn with_files(shell: Shell, script: String) -> String {
    let replaced = |script: String, names: Vec<&'static str>| match shell {
        Shell::Fish => {
            let first = format!("a \"{}\\t", names[0]);
            script.replace(&format!("-f -{first}"), &format!("-F -{first}"))
        }
        Shell::Zsh => {
            let names = names.join(" ");
            script.replace(&format!(":({names})"), &format!(":{{compadd -- {names}; _files}}"))
        }
        _ => script,
    };
    hints::ALL.iter().fold(script, |script, hinted| replaced(script, hinted.names()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn script(shell: &str) -> String {
        let option = Arg::new("policy").long("policy").value_parser(hints::POLICY).hide_possible_values(true);
        let args = Args { shell: shell.parse().expect("a shell") };
        let mut out = Vec::new();
        run(&args, Command::new("sched").arg(option), &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("a script is text")
    }

    #[test]
    fn files_are_completed_beside_names() {
        let (fish, zsh) = (script("fish"), script("zsh"));
        assert!(fish.contains("-l policy -r -F -a \"tree-eager\\t"), "{fish}");
        assert!(zsh.contains(":{compadd -- tree-eager ") && zsh.contains("; _files}"), "{zsh}");
        assert!(script("bash").contains("-o bashdefault"), "bash falls back on files");
    }
}
