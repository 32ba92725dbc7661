//! What components and the host say while they work.
//!
//! Components write to the host's log, which passes the lines on as events of `tracing`, and the host's own crates
//! report by such events what cannot be returned as an error. Here they become lines on the standard error. The same
//! line is written once, whichever run, round or context says it again; how often it was said follows [at the
//! end](finish). A node that has said [`FEW`] different lines is cut off, unless the user asked for a level. Each run
//! takes [its own lines](take) along, with counts, for its report.

mod events;
#[cfg(test)]
mod tests;

use clap::ValueEnum;
use indicatif::ProgressBar;
use parking_lot::Mutex;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::marker::PhantomData;
use std::sync::OnceLock;
use tracing::level_filters::LevelFilter;

/// Number of different lines of one node that are written, unless the user asks for a level.
const FEW: usize = 20;

/// Least severe lines that are shown.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    /// Nothing
    Off,
    /// What is wrong
    Error,
    /// What may be wrong, too
    Warn,
    /// What is worth knowing, too
    Info,
    /// Details, too
    Debug,
    /// Everything
    Trace,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> LevelFilter {
        match level {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        }
    }
}

/// A line, with where it comes from. Fields are JSON keys.
#[derive(Serialize, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Line {
    pub(super) level: &'static str,
    /// The node that said it; empty for the host itself, like component and plugin.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) node: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) component: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) plugin: String,
    pub(super) line: String,
}

/// A line of one run, and how often it was said.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct Said {
    #[serde(flatten)]
    line: Line,
    count: u64,
}

/// See the [module](self).
struct Log {
    json: bool,
    /// The user asked for a level.
    asked: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where progress is shown, around which lines are written.
    bar: Option<ProgressBar>,
    /// Lines that were written: the policy, unless there were several, and how often each was said.
    written: BTreeMap<Line, (String, u64)>,
    /// Warnings that were written as they are, and how often each was given.
    warned: BTreeMap<String, u64>,
    /// For each node, the numbers of different lines, and of lines that were not written.
    nodes: BTreeMap<String, (usize, u64)>,
    /// The run of the process, whichever thread says something.
    run: RunLog,
}

/// What is said in one run.
#[derive(Default)]
struct RunLog {
    policy: String,
    lines: BTreeMap<Line, u64>,
}

thread_local! {
    /// The run that this thread executes by itself.
    static OWN: RefCell<Option<RunLog>> = const { RefCell::new(None) };
}

static LOG: OnceLock<Log> = OnceLock::new();

/// From now on lines are written: of this level and above, or else warnings and errors; as JSON if `json`.
pub(super) fn begin(level: Option<Level>, json: bool) {
    let log = Log { json, asked: level.is_some(), state: Mutex::default() };
    if LOG.set(log).is_ok() {
        let level = level.map_or(LevelFilter::WARN, LevelFilter::from);
        // Only a program that embeds this one has another subscriber: then it gets the events.
        let _ = tracing::subscriber::set_global_default(events::Events::new(level));
    }
}

/// Lines belong to a run of this policy from now on.
pub(super) fn of_run(policy: &str) {
    if let Some(log) = LOG.get() {
        let mut state = log.state.lock();
        state.run = RunLog::of(policy);
    }
}

/// Lines that this thread says belong to a run of this policy by itself, until what is returned is dropped. Other threads
/// may have runs at the same time.
#[must_use]
pub(super) fn of_thread(policy: &str) -> OwnRun {
    OWN.replace(Some(RunLog::of(policy)));
    OwnRun(PhantomData)
}

/// See [`of_thread`].
pub(super) struct OwnRun(PhantomData<*const ()>);

impl Drop for OwnRun {
    fn drop(&mut self) {
        OWN.take();
    }
}

/// Passes the run of this thread, if it has one, to `act`.
fn in_run<R>(act: impl FnOnce(Option<&mut RunLog>) -> R) -> R {
    // A thread that ends has none any more.
    let mut own = OWN.try_with(RefCell::take).ok().flatten();
    let done = act(own.as_mut());
    if own.is_some() {
        let _ = OWN.try_with(|place| place.replace(own));
    }
    done
}

/// The lines of the run, each once.
pub(super) fn take() -> Vec<Said> {
    let Some(log) = LOG.get() else { return Vec::new() };
    let mut state = log.state.lock();
    let lines = in_run(|own| std::mem::take(&mut own.unwrap_or(&mut state.run).lines));
    lines.into_iter().map(|(line, count)| Said { line, count }).collect()
}

/// Writes lines around this bar from now on.
pub(super) fn around(bar: &ProgressBar) {
    if let Some(log) = LOG.get() {
        log.state.lock().bar = Some(bar.clone());
    }
}

/// Whether a warning is given for the first time; if not, it is counted.
pub(super) fn is_new_warning(text: &str) -> bool {
    let Some(log) = LOG.get() else { return true };
    let mut state = log.state.lock();
    let count = state.warned.entry(text.to_owned()).or_insert(0);
    *count += 1;
    *count == 1
}

/// Takes a line.
fn say(line: Line) {
    let Some(log) = LOG.get() else { return };
    let mut state = log.state.lock();
    if let Some(text) = in_run(|own| state.say(own, line, log.asked, log.json)) {
        write(&text, state.bar.as_ref());
    }
}

/// Writes how often lines were said, and that some were not written.
pub(super) fn finish() {
    if let Some(log) = LOG.get() {
        let mut state = log.state.lock();
        for text in state.rest(log.json) {
            write(&text, state.bar.as_ref());
        }
        *state = State::default();
    }
}

fn write(text: &str, bar: Option<&ProgressBar>) {
    // A failure to write to stderr cannot be reported anywhere.
    let write = || _ = writeln!(stderr(), "{text}");
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

impl RunLog {
    fn of(policy: &str) -> RunLog {
        RunLog { policy: policy.to_owned(), ..RunLog::default() }
    }
}

impl State {
    /// Counts a line of a thread's own run, or else of that of the process; what is to be written, if it is new.
    fn say(&mut self, own: Option<&mut RunLog>, line: Line, asked: bool, json: bool) -> Option<String> {
        let run = own.unwrap_or(&mut self.run);
        if let Some(count) = run.lines.get_mut(&line) {
            *count += 1;
        }
        if let Some((policy, count)) = self.written.get_mut(&line) {
            *count += 1;
            if *policy != run.policy {
                policy.clear();
            }
            run.lines.entry(line).or_insert(1);
            return None;
        }
        let (lines, left_out) = self.nodes.entry(line.node.clone()).or_default();
        if *lines >= FEW && !asked {
            *left_out += 1;
            return None;
        }
        *lines += 1;
        let text = text(&line, &run.policy, None, json);
        run.lines.insert(line.clone(), 1);
        self.written.insert(line, (run.policy.clone(), 1));
        Some(text)
    }

    /// What is written at the end.
    fn rest(&self, json: bool) -> Vec<String> {
        let again = self.written.iter().filter(|(_, (_, count))| *count > 1);
        let mut rest: Vec<String> =
            again.map(|(line, (policy, count))| text(line, policy, Some(count - 1), json)).collect();
        for (warning, count) in self.warned.iter().filter(|(_, count)| **count > 1) {
            rest.push(crate::reports::warning(&format!("{warning} ({} more)", times(count - 1)), json));
        }
        for (node, (_, left_out)) in self.nodes.iter().filter(|(_, (_, left_out))| *left_out > 0) {
            let who = if node.is_empty() { "the host".to_owned() } else { format!("node `{node}`") };
            let lines = if *left_out == 1 { "line" } else { "lines" };
            let why = format!("{who} wrote {left_out} more {lines} to the log; --log LEVEL shows all");
            rest.push(crate::reports::warning(&why, json));
        }
        rest
    }
}

/// A line as it is written, where it was said that often `more`.
fn text(line: &Line, policy: &str, more: Option<u64>, json: bool) -> String {
    if json {
        #[derive(Serialize)]
        struct Shown<'a> {
            #[serde(skip_serializing_if = "str::is_empty")]
            policy: &'a str,
            #[serde(flatten)]
            line: &'a Line,
            #[serde(skip_serializing_if = "Option::is_none")]
            more: Option<u64>,
        }
        return serde_json::json!({ "log": Shown { policy, line, more } }).to_string();
    }
    let Line { level, node, component, plugin, line } = line;
    let of = if policy.is_empty() { String::new() } else { format!("{policy}: ") };
    let who = if node.is_empty() { String::new() } else { format!("node `{node}` ({component} of {plugin}): ") };
    let more = more.map(|more| format!(" ({} more)", times(more))).unwrap_or_default();
    format!("{level}: {of}{who}{line}{more}")
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
