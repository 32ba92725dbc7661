//! The `sched` program, built once with the plugins that it finds beside itself.

use crate::fixtures;
use serde_json::Value;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Result of a program run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error, without the next.
    pub err: String,
    /// Lines of its standard error that warn of the machine: tests may run where there are few cores, or not all may
    /// be used.
    pub of_machine: String,
}

/// How warnings of the machine begin. They stand on lines of their own.
const OF_MACHINE: [&str; 3] = ["oversubscribed: ", "quota: ", "restricted: "];

/// Whether a line of the program's standard error warns of the machine.
#[must_use]
pub fn is_of_machine(line: &str) -> bool {
    let warning = line.strip_prefix("warning: ").or_else(|| line.strip_prefix("{\"warning\":\""));
    warning.is_some_and(|text| OF_MACHINE.iter().any(|begins| text.starts_with(begins)))
}

/// Parts a standard error into what is not of the machine and what is.
fn part(err: &str) -> (String, String) {
    err.split_inclusive('\n').fold(Default::default(), |(mut others, mut of_machine), line| {
        if is_of_machine(line) { &mut of_machine } else { &mut others }.push_str(line);
        (others, of_machine)
    })
}

impl Ran {
    /// Runs `command` to its end.
    ///
    /// # Panics
    /// If it does not start, or a signal ends it.
    #[must_use]
    pub fn of(command: &mut Command) -> Ran {
        Ran::reading(command, Stdio::null())
    }

    fn reading(command: &mut Command, input: Stdio) -> Ran {
        command.stdin(input);
        let output = loop {
            match command.output() {
                // A program that was just copied is open for writing in whatever another thread has started meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                other => break other.unwrap_or_else(|error| panic!("{command:?}: {error}")),
            }
        };
        Ran::ended(&output)
    }

    /// A program that has ended.
    ///
    /// # Panics
    /// If a signal has ended it.
    #[must_use]
    pub fn ended(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, (err, of_machine)) = (text(&output.stdout), part(&text(&output.stderr)));
        let code = output.status.code().unwrap_or_else(|| panic!("{}\n{err}", output.status));
        Ran { code, out, err, of_machine }
    }

    /// What its standard error says, in one line and without frames: where lines of errors break depends on the lengths
    /// of the paths in them.
    #[must_use]
    pub fn said(&self) -> String {
        in_one_line(&self.err)
    }

    /// Whether its standard error says this, wherever lines break.
    #[must_use]
    pub fn says(&self, words: &str) -> bool {
        self.said().contains(&in_one_line(words))
    }

    /// Its standard output as JSON.
    ///
    /// # Panics
    /// If it failed, or printed something else.
    #[must_use]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().filter(|word| !matches!(*word, "│" | "×")).collect::<Vec<&str>>().join(" ")
}

/// Runs `sched` with these arguments. Components come only from the plugins beside it, so that every test also covers
/// loading them.
///
/// # Panics
/// If it cannot be built or started, or a signal ends it.
#[must_use]
pub fn sched(words: &[&str]) -> Ran {
    Ran::of(&mut command(words))
}

/// Runs `sched` with these arguments and `input` on its standard input.
///
/// # Panics
/// As [`sched`].
#[must_use]
pub fn sched_reading(input: &str, words: &[&str]) -> Ran {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("the file can be written");
    Ran::reading(&mut command(words), file.into())
}

/// A command for `sched` with these arguments, components of plugins only, and no environment variables that affect it.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn command(words: &[&str]) -> Command {
    let mut command = command_of(&program());
    command.arg("--no-builtin").args(words);
    command
}

/// A command for this program without environment variables that affect it.
#[must_use]
pub fn command_of(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["SCHED_POLICY", "SCHED_PLUGIN_PATH", "SCHED_POWERCAP", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC"] {
        command.env_remove(variable);
    }
    // Earlier measurements on this machine, and kernels that were compiled here, must not affect tests.
    command.env("SCHED_MODEL_DIR", std::env::temp_dir().join("no-models-for-sched-tests"));
    command.env("SCHED_KERNEL_CACHE", "none");
    // Concurrent programs of other tests must not be reported as neighbours.
    command.env("XDG_RUNTIME_DIR", "/nonexistent");
    command
}

/// The program `sched`, with the stock plugins beside it.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn program() -> PathBuf {
    fixtures::program()
}
