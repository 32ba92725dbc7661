//! The `sched` program, built once with the plugins that it finds beside itself.

use crate::fixtures;
use serde_json::Value;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a program did.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl Ran {
    /// Runs `command` to its end.
    ///
    /// # Panics
    /// When it does not start, or a signal ends it.
    #[must_use]
    pub fn of(command: &mut Command) -> Ran {
        Ran::reading(command, Stdio::null())
    }

    fn reading(command: &mut Command, input: Stdio) -> Ran {
        let output = command.stdin(input).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let code = output.status.code().unwrap_or_else(|| panic!("{command:?}: {}\n{err}", output.status));
        Ran { code, out, err }
    }

    /// What it wrote to standard output, as JSON.
    ///
    /// # Panics
    /// When it failed, or wrote something else.
    #[must_use]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs `sched` with these words after it. Components come from the plugins beside it alone, so that loading them is tested with
/// whatever is tested.
///
/// # Panics
/// When it cannot be built or started, or a signal ends it.
#[must_use]
pub fn sched(words: &[&str]) -> Ran {
    Ran::of(&mut command(words))
}

/// Runs `sched` with these words after it, and `input` on its standard input.
///
/// # Panics
/// As [`sched`].
#[must_use]
pub fn sched_reading(input: &str, words: &[&str]) -> Ran {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("the file can be written");
    Ran::reading(&mut command(words), file.into())
}

/// `sched` with these words after it, no components but those of plugins, and nothing of the tests' environment that it would
/// heed.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn command(words: &[&str]) -> Command {
    let mut command = command_of(&program());
    command.arg("--no-builtin").args(words);
    command
}

/// This program, with nothing of the tests' environment that it would heed.
#[must_use]
pub fn command_of(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["SCHED_POLICY", "SCHED_PLUGIN_PATH", "SCHED_POWERCAP", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC"] {
        command.env_remove(variable);
    }
    // What was measured on this machine before does not decide what tests do.
    command.env("SCHED_MODEL_DIR", std::env::temp_dir().join("no-models-for-sched-tests"));
    // Programs of other tests, which run at the same time, are no neighbours.
    command.env("XDG_RUNTIME_DIR", "/nonexistent");
    command
}

/// The program `sched`, with the stock plugins beside it.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn program() -> PathBuf {
    fixtures::program()
}
