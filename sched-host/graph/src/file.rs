//! Task graphs from files: the format of this program, StarPU's `tasks.rec`, the WfFormat of WfCommons, and the
//! Standard Task Graph format.

mod error;
mod json;
mod native;
mod order;
mod problems;
mod stg;
mod tasks_rec;
mod wf_format;

#[cfg(test)]
mod tests;

pub use error::{GraphFileError, GraphFileProblem};
pub use native::to_json;

use super::TaskGraph;
use problems::Found;
use sched_text::{self as text, Unread};
use std::path::Path;

/// Largest number of floating-point operations of a task in a file: sums over all tasks are still numbers.
const MOST_FLOPS: f64 = 1e30;

/// Extension of files in JSON.
const JSON: &str = "json";

/// The known formats, for messages.
const KNOWN: &str = "known are this program's format (*.json, with `\"format\": \"sched-task-graph\"`, as \
    `sched graph --json` writes it), StarPU's tasks.rec (*.rec), WfFormat (*.json, with a member `workflow`) and the \
    Standard Task Graph format (*.stg)";

/// A format in which task graphs are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileFormat {
    /// The format of this program, in JSON: everything that a [`TaskGraph`] holds. [`to_json`] writes it and describes
    /// it.
    Native,
    /// Records of `Field: value` lines, written by StarPU's `starpu_fxt_tool` and read by its replay.
    ///
    /// Tasks are submitted in their `SubmitOrder`, those without one first; they wait for each other as their handles
    /// and modes ask, and as `DependsOn` says. The kind of a task is its `Model`. Records without a `WorkerId` had no
    /// codelet: they become tasks without work. A gap between the numbers of two of them, which StarPU's replay fills
    /// with empty tasks, is an error: without the missing tasks others would begin too early. So is a number that is
    /// there twice. In traces of several processes neither is looked for. There is a [warning](read_with_warnings) where
    /// numbers do not begin at 1, and where a handle has another size later: the first one counts.
    TasksRec,
    /// Workflows in JSON, schemas 1.5 and 1.6, from WfCommons and others. Of an unknown one, what these have too is
    /// read, with a [warning](read_with_warnings).
    ///
    /// Files become data, which tasks read and write beside waiting for their `parents`. The kind of a task is the
    /// program that it ran, or its `name` if the file has a whole script there, or nothing; its length on a CPU is its
    /// `runtimeInSeconds`, if the workflow was executed.
    WfFormat,
    /// Graphs of the Standard Task Graph Set: a line with the number, processing time and predecessors of each task.
    ///
    /// A unit of time is taken as a millisecond on a CPU. The dummy tasks at both ends do nothing; files without them
    /// are read too.
    Stg,
}

impl FileFormat {
    /// The format of a file of this name with this content, if it looks like one.
    #[must_use]
    pub fn guess(name: &str, text: &str) -> Option<FileFormat> {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("rec") => return Some(FileFormat::TasksRec),
            Some(JSON) => return FileFormat::of_json(text),
            Some("stg" | "std") => return Some(FileFormat::Stg),
            _ => {}
        }
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
        match line.chars().next()? {
            '{' => FileFormat::of_json(text),
            '0'..='9' => Some(FileFormat::Stg),
            _ if tasks_rec::is_field(line) => Some(FileFormat::TasksRec),
            _ => None,
        }
    }

    fn of_json(text: &str) -> Option<FileFormat> {
        match native::is_named(text) {
            true => Some(FileFormat::Native),
            false => wf_format::is_named(text).then_some(FileFormat::WfFormat),
        }
    }

    /// Name of a graph in this format in messages.
    const fn what(self) -> &'static str {
        match self {
            FileFormat::Native => "a task graph",
            FileFormat::TasksRec => "StarPU tasks",
            FileFormat::WfFormat => "a WfFormat workflow",
            FileFormat::Stg => "a standard task graph",
        }
    }
}

/// Reads the task graph in the file `path` (`-` is the standard input); its name and content say in which format.
///
/// # Errors
/// [`GraphFileError`] with all problems: the file cannot be read, is in no format that is known, or is
/// malformed.
pub fn read(path: &Path) -> Result<TaskGraph, GraphFileError> {
    read_with_warnings(path).map(|(graph, _)| graph)
}

/// Reads the task graph in the file `path` as [`read`] does, with a warning for each part that may mean something else
/// than is understood here, such as an unknown version of a schema.
///
/// # Errors
/// As [`read`].
pub fn read_with_warnings(path: &Path) -> Result<(TaskGraph, Vec<String>), GraphFileError> {
    guessed(&text::file_name(path), text::read(path))
}

/// Reads the task graph in `bytes`, the content of what messages call `name`; name and content say in which format.
///
/// # Errors
/// As [`read`].
pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<TaskGraph, GraphFileError> {
    guessed(name, text::decode(bytes)).map(|(graph, _)| graph)
}

fn guessed(name: &str, text: Result<String, Unread>) -> Result<(TaskGraph, Vec<String>), GraphFileError> {
    match text {
        Ok(text) => parsed(name, text, None),
        Err(error) => Err(Found::only(error.to_string(), error.help()).into_error(name, "a task graph", String::new())),
    }
}

/// Reads a task graph from `text`, the content of a file that messages call `name`; in `format`, or in the one that
/// name and content suggest.
///
/// ```
/// use sched_graph::{FileFormat, TaskId, parse};
///
/// let graph = parse("fork", "2\n0 0 0\n1 10 1 0\n2 20 1 0\n3 0 2 1 2\n".into(), Some(FileFormat::Stg))?;
/// assert_eq!(graph.tasks.len(), 4);
/// assert_eq!(graph.dependencies().predecessors(TaskId(3)), [TaskId(1), TaskId(2)]);
/// # Ok::<(), sched_graph::GraphFileError>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn parse(name: &str, text: String, format: Option<FileFormat>) -> Result<TaskGraph, GraphFileError> {
    parsed(name, text, format).map(|(graph, _)| graph)
}

/// The problem of a text that looks like no format.
fn unknown(name: &str, text: &str) -> Found {
    let extension = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case(JSON));
    let start = text.trim_start();
    if start.is_empty() {
        Found::only("there is nothing in it", Some(KNOWN))
    } else if extension || start.starts_with('{') {
        json::unknown(text, KNOWN)
    } else {
        Found::only("it is in no known format", Some(KNOWN))
    }
}

fn parsed(name: &str, text: String, format: Option<FileFormat>) -> Result<(TaskGraph, Vec<String>), GraphFileError> {
    let Some(format) = format.or_else(|| FileFormat::guess(name, &text)) else {
        return Err(unknown(name, &text).into_error(name, "a task graph", text));
    };
    let read = match format {
        FileFormat::Native => native::parse(&text).map(|graph| (graph, Vec::new())),
        FileFormat::TasksRec => tasks_rec::parse(name, &text),
        FileFormat::WfFormat => wf_format::parse(name, &text),
        FileFormat::Stg => stg::parse(&text).map(|graph| (graph, Vec::new())),
    };
    match read {
        Ok((mut graph, warnings)) => {
            if graph.name.is_empty() {
                let stem = Path::new(name).file_name().and_then(|name| name.to_str());
                stem.unwrap_or(name).clone_into(&mut graph.name);
            }
            // Names are shown on terminals.
            let plain = |name: &mut String| *name = name.replace(char::is_control, " ");
            plain(&mut graph.name);
            graph.kinds.iter_mut().for_each(|kind| plain(&mut kind.name));
            Ok((graph, warnings))
        }
        Err(found) => Err(found.into_error(name, format.what(), text)),
    }
}
