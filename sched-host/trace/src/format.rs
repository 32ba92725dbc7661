//! File formats of traces.

use super::track::Trace;
use super::{chrome, paje};
use std::io::{self, Write};
use std::path::Path;

/// File format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The Trace Event Format (JSON), which <https://ui.perfetto.dev>, `chrome://tracing` and speedscope open.
    Chrome,
    /// Paje, which ViTE, Pajé and pj_dump open.
    Paje,
}

/// The name of a file has no extension of a trace format.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, miette::Diagnostic)]
#[error(
    "`{file}` {}: .json is Chrome's and Perfetto's, .trace and .paje are Paje's",
    if is_bare(.file) {
        "is an extension without a name before it, such as `trace.json` has"
    } else {
        "does not say in which format the trace is to be"
    }
)]
pub struct UnknownFormat {
    /// The file.
    pub file: String,
}

/// Whether the name of the file is only the extension of a format, which to [`Path`] is a name without one.
fn is_bare(file: &str) -> bool {
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with('.') && Format::of(Path::new(&format!("trace{name}"))).is_ok()
}

impl Format {
    /// Format for the extension of the name of `file`.
    ///
    /// # Errors
    /// When the extension is missing or unknown.
    pub fn of(file: &Path) -> Result<Format, UnknownFormat> {
        let extension = file.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        match extension.as_deref() {
            Some("json") => Ok(Format::Chrome),
            Some("trace" | "paje") => Ok(Format::Paje),
            _ => Err(UnknownFormat { file: file.display().to_string() }),
        }
    }

    /// Writes `trace` to `out` in many small pieces; `out` should buffer.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write(self, trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Format::Chrome => chrome::write(trace, out),
            Format::Paje => paje::write(trace, out),
        }
    }
}
