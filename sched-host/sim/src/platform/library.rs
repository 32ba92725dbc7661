//! Shipped platforms, and the search for a platform by name or file.

use super::Platform;
use sched_text as text;
use sched_text::{Finding, Findings, closest};
use std::path::Path;

/// The file of a shipped platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShippedPlatform {
    /// Its name.
    pub name: &'static str,
    /// Its text, with comments that explain it.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        &[$(ShippedPlatform { name: $name, text: include_str!(concat!("../../platforms/", $name, ".kdl")) }),+]
    };
}

/// The shipped platforms.
#[must_use]
pub fn library() -> &'static [ShippedPlatform] {
    shipped!["numa-2x12", "cpu9-gpu3", "fat-1024"]
}

/// Whether a name, which is no shipped platform, is that of a file, at this path.
pub(crate) fn is_path(name: &str, path: &str) -> bool {
    name.contains('/') || name.ends_with(".kdl") || name != text::STANDARD_INPUT && Path::new(path).is_file()
}

/// Finds a platform: a shipped one by its name, or that of a file by its path; `-` is the standard input.
///
/// # Errors
/// If there is none of this name; else all problems of the file.
pub fn find(name_or_path: &str) -> Result<Platform, Findings> {
    if let Some(shipped) = library().iter().find(|shipped| shipped.name == name_or_path) {
        return Platform::parse(&format!("{name_or_path}.kdl"), shipped.text);
    }
    let lone = |problem| Findings::new(name_or_path, vec![problem]);
    if name_or_path == text::STANDARD_INPUT || is_path(name_or_path, name_or_path) {
        let name = text::file_name(Path::new(name_or_path));
        let text = text::read(Path::new(name_or_path)).map_err(|error| {
            let problem = Finding::error(format!("the platform `{name}` cannot be read: {error}"));
            lone(match error.help() {
                Some(help) => problem.help(help),
                None => problem,
            })
        })?;
        return Platform::parse(&name, &text);
    }
    let names = library().iter().map(|shipped| shipped.name);
    let help = match closest(name_or_path, names.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("platforms: {}; or the path of a KDL file", names.collect::<Vec<_>>().join(", ")),
    };
    Err(lone(Finding::error(format!("there is no platform `{name_or_path}`")).help(help)))
}
