//! JSON output.

use miette::IntoDiagnostic;
use serde::Serialize;
use std::io::Write;

/// Writes `value` and a newline.
pub(super) fn write(out: &mut dyn Write, value: &impl Serialize) -> miette::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value).into_diagnostic()?;
    writeln!(out).into_diagnostic()
}
