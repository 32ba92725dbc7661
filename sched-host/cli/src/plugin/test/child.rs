//! Child processes of this program.

use super::TestError;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// This program with these arguments, without the environment variables that would change what it does.
pub(super) fn sched(words: &[&str]) -> Result<Command, TestError> {
    let program = std::env::current_exe()
        .map_err(|error| TestError::NoProcess { what: "the program does not know where it is", error })?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    for variable in ["SCHED_POLICY", "SCHED_LOG", "SCHED_PATIENCE"] {
        command.env_remove(variable);
    }
    Ok(command)
}

/// A child that is ended with its handle.
pub(super) struct Guarded(pub(super) Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a child wrote, and how it ended.
pub(super) struct Ended {
    pub(super) out: String,
    pub(super) err: String,
    /// `None` if it was given up.
    pub(super) status: Option<ExitStatus>,
}

/// Runs a command to its end, or for so long.
pub(super) fn run(mut command: Command, limit: Duration) -> Result<Ended, TestError> {
    let failed = |error| TestError::NoProcess { what: "a child process does not start", error };
    let mut child = Guarded(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?);
    let (out, err) = (reader(child.0.stdout.take()), reader(child.0.stderr.take()));
    let began = Instant::now();
    let status = loop {
        match child.0.try_wait().map_err(failed)? {
            Some(status) => break Some(status),
            None if began.elapsed() > limit => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    drop(child);
    let text = |reader: std::thread::JoinHandle<Vec<u8>>| {
        reader.join().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    Ok(Ended { out: text(out), err: text(err), status })
}

fn reader(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until an error is what there is.
        let _ = from.map(|mut from| from.read_to_end(&mut bytes));
        bytes
    })
}

/// How a process ended that should not have.
pub(super) fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("it ends the process by signal {signal}{}", signal_name(signal)),
        (None, Some(code)) => format!("it ends the process with exit code {code}"),
        (None, None) => "it ends the process".to_owned(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL: no instruction)",
        5 => " (SIGTRAP: a trap)",
        6 => " (SIGABRT: it gave up)",
        7 => " (SIGBUS: memory that is not there)",
        8 => " (SIGFPE: arithmetic)",
        9 => " (SIGKILL: somebody killed it, perhaps for memory)",
        11 => " (SIGSEGV: a wrong address, or a stack that is used up)",
        _ => "",
    }
}
