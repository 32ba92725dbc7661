//! `sched run --watch-plugins`: plugins that are rebuilt while the tasks run are taken into use.

use crate::progress::Progress;
use miette::Diagnostic;
use sched_runtime::{Runtime, StartError};
use sched_tree::plugin::{PluginChange, Registry, SearchPath};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

/// Time between two looks at the folders.
const INTERVAL: Duration = Duration::from_millis(200);

/// Time and size of each file in the folders.
type Files = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Starts the runtime of a later run, with the plugins that have changed since the one before: that may have been too
/// short to notice. If it cannot be started with them, it goes on as it was.
///
/// # Errors
/// It cannot be started with the components of the run before either.
pub(super) fn start_with_changes(
    used: &RefCell<Arc<Registry>>,
    policy: &str,
    progress: &Progress,
    start: impl Fn(&Arc<Registry>) -> Result<Runtime, StartError>,
) -> Result<Runtime, StartError> {
    let before = Arc::clone(&used.borrow());
    let now = Arc::new(before.rescan());
    let changes = PluginChange::between(&before, &now);
    if changes.is_empty() {
        return start(&before);
    }
    for change in &changes {
        progress.warn_once(&format!("plugins: {change}"));
    }
    match start(&now) {
        Ok(runtime) => {
            *used.borrow_mut() = now;
            Ok(runtime)
        }
        Err(error) => {
            progress.warn_once(&format!("plugins: `{policy}` goes on as it was: {}", in_words(&error)));
            start(&before)
        }
    }
}

/// Until `end` is closed, looks at the folders of the registry time and again. When files have changed, and have not
/// changed since the look before, as those that a compiler is still writing do, the runtime takes them into use.
pub(super) fn watch(runtime: &Runtime, registry: &Registry, progress: &Progress, end: &Receiver<()>) {
    let folders: Vec<PathBuf> = registry.folders().iter().map(|report| report.folder.path.clone()).collect();
    let (mut used, mut last) = (files(&folders), Files::new());
    while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(INTERVAL) {
        let now = files(&folders);
        if now != used && now == last {
            take_into_use(runtime, progress);
            used.clone_from(&now);
        }
        last = now;
    }
}

fn files(folders: &[PathBuf]) -> Files {
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let plugins = entries.filter(|entry| SearchPath::is_library(&entry.path()));
    let state = |entry: std::fs::DirEntry| {
        let metadata = std::fs::metadata(entry.path()).ok()?;
        Some((entry.path(), (metadata.modified().ok(), metadata.len())))
    };
    plugins.filter_map(state).collect()
}

fn take_into_use(runtime: &Runtime, progress: &Progress) {
    let changes = runtime.rescan();
    if changes.is_empty() {
        return;
    }
    for change in &changes {
        progress.warn(&format!("plugins: {change}"));
    }
    for context in runtime.contexts() {
        match context.rebuild() {
            Ok(()) => progress.warn(&format!("plugins: context `{}` uses them", context.name())),
            Err(error) => progress.warn(&format!("plugins: {}", not_rebuilt(context.name(), &error))),
        }
    }
}

/// Why a context could not be rebuilt. Some errors say what becomes of it.
fn not_rebuilt(context: &str, error: &dyn Diagnostic) -> String {
    let (state, why) = (format!("context `{context}` goes on as it was: "), in_words(error));
    if why.starts_with(&state) { why } else { state + &why }
}

/// An error with its parts, in one line.
fn in_words(error: &dyn Diagnostic) -> String {
    let help = error.help().map(|help| format!(" ({help})")).unwrap_or_default();
    let parts: Vec<String> = error.related().into_iter().flatten().map(in_words).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) };
    let text = format!("{error}{help}{parts}");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let (first, others) =
        lines.split_first().map_or(("", String::new()), |(first, others)| (*first, others.join("; ")));
    if others.is_empty() { first.to_owned() } else { format!("{}: {others}", first.trim_end_matches(':')) }
}

#[cfg(test)]
mod tests {
    use super::not_rebuilt;
    use miette::miette;

    #[test]
    fn a_context_that_goes_on_is_said_once_to_do_so() {
        let said = |text: &str| not_rebuilt("a", miette!("{text}").as_ref());
        let expected =
            "context `a` goes on as it was: the new tree failed: component `x`: panicked; component `y`: panicked";
        let lines = "the new tree failed\n  component `x`: panicked\n  component `y`: panicked";
        assert_eq!(said(&format!("context `a` goes on as it was: {lines}")), expected);
        assert_eq!(said(lines), expected);
    }
}
