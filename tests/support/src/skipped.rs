//! Tests that could not run.

use std::io::Write;
use std::process::Command;
use std::thread;

/// Reports that the running test is skipped, and why, in a line that is seen for passing tests too: cargo's test
/// harness captures what is printed, but not what is written to the standard error itself. `.ci/run` counts these
/// lines.
pub fn skipped(why: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // A closed standard error is no reason for a test to fail.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Whether there is a C compiler. If not, the running test is reported as skipped.
#[must_use]
pub fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skipped("there is no C compiler");
    }
    found
}
