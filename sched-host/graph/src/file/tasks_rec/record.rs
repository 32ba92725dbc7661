//! The records of a `tasks.rec`: lines of `Field: value`, up to a blank line.

use super::super::MOST_FLOPS;
use super::super::problems::{Problems, quote};
use super::mode;
use crate::AccessMode;
use std::collections::{HashMap, HashSet};
use std::str::FromStr;

/// A task or a hint, with the fields that are used.
#[derive(Default)]
pub(super) struct Record<'t> {
    /// First line.
    start: &'t str,
    pub(super) job_id: &'t str,
    /// Number of the line of its job, from 1.
    job_line: usize,
    /// `WontUse`, if it is no task.
    pub(super) control: Option<&'t str>,
    pub(super) name: Option<&'t str>,
    pub(super) model: Option<&'t str>,
    pub(super) submit_order: Option<u64>,
    pub(super) priority: Option<i32>,
    pub(super) depends_on: Vec<&'t str>,
    /// Whether a worker ran it, that is, whether it has a codelet.
    pub(super) worker: bool,
    pub(super) footprint: Option<u32>,
    pub(super) flops: f64,
    pub(super) handles: Vec<&'t str>,
    pub(super) modes: Vec<AccessMode>,
    pub(super) sizes: Vec<u64>,
    /// Numbers of values that must equal the number of handles.
    n_modes: Option<(usize, &'t str)>,
    n_sizes: Option<(usize, &'t str)>,
    /// Fields that were found.
    seen: HashSet<&'t str>,
}

/// All fields that StarPU writes; unused ones are ignored.
const FIELDS: [&str; 33] = [
    "Control",
    "Name",
    "Model",
    "File",
    "Line",
    "JobId",
    "SubmitOrder",
    "Priority",
    "DependsOn",
    "DepLabels",
    "Tag",
    "WorkerId",
    "MemoryNode",
    "SubmitTime",
    "ReadyTime",
    "StartTime",
    "EndTime",
    "Footprint",
    "GFlop",
    "Iteration",
    "Parameters",
    "Handles",
    "Modes",
    "Sizes",
    "NumaNodes",
    "MPIRank",
    "RecursiveTask",
    "Level",
    "ParentRecursiveTask",
    "EndDependencies",
    "SpecificWorker",
    "Workers",
    "Prefetch",
];

/// Whether `line` has the shape of a field.
pub(in super::super) fn is_field(line: &str) -> bool {
    split(line).is_some()
}

fn split(line: &str) -> Option<(&str, &str)> {
    let (field, value) = line.split_once(':')?;
    let name = field.trim_end();
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    fits.then(|| (name, value.trim()))
}

/// The records of `text`; reports their problems. Records after a problem are not kept, since nobody will use them.
pub(super) fn records<'t>(text: &'t str, problems: &mut Problems<'t>) -> Vec<Record<'t>> {
    let mut records: Vec<Record<'t>> = Vec::new();
    // The line of each job.
    let mut jobs: HashMap<&'t str, usize> = HashMap::new();
    let mut open: Option<Record<'t>> = None;
    for (number, line) in (1..).zip(text.lines().chain([""])) {
        if line.trim().is_empty() {
            if let Some(record) = open.take() {
                record.check(problems);
                if !record.job_id.is_empty()
                    && let Some(line) = jobs.insert(record.job_id, record.job_line)
                {
                    let message = format!("job {} is there already, at line {line}", quote(record.job_id));
                    problems.report(record.job_id, message);
                }
                match problems.is_empty() {
                    true => records.push(record),
                    false => records = Vec::new(),
                }
            }
        } else if !line.starts_with('#') {
            let record = open.get_or_insert_with(|| Record { start: line, ..Record::default() });
            record.line(line, problems);
            if record.job_line == 0 && !record.job_id.is_empty() {
                record.job_line = number;
            }
        }
    }
    records
}

impl<'t> Record<'t> {
    fn line(&mut self, line: &'t str, problems: &mut Problems<'t>) {
        let Some((field, value)) = split(line) else {
            let message = format!("{} is no field: `Name: value` is expected", quote(line.trim()));
            problems.report_with(line.trim(), message, "records are parted by a blank line");
            return;
        };
        if !self.seen.insert(field) {
            problems.report_with(
                field,
                format!("the record has a second `{field}`"),
                "records are parted by a blank line; is it missing?",
            );
            return;
        }
        self.set(field, value, problems);
    }

    /// Records the value of a field.
    fn set(&mut self, field: &'t str, value: &'t str, problems: &mut Problems<'t>) {
        match field {
            "Control" => {
                if value != "WontUse" {
                    problems.report(value_or(value, field), format!("{} is no control: `WontUse` is", quote(value)));
                }
                self.control = Some(value);
            }
            "Name" => self.name = Some(value),
            "Model" => self.model = Some(value).filter(|value| !value.is_empty()),
            "JobId" => self.job_id = job(value, field, problems).unwrap_or(""),
            "SubmitOrder" => self.submit_order = parsed(value, field, "a whole number", problems),
            "Priority" => self.priority = parsed(value, field, "a whole number of 32 bits", problems),
            "DependsOn" => {
                self.depends_on = value.split_whitespace().filter_map(|word| job(word, field, problems)).collect();
            }
            "WorkerId" => self.worker = parsed::<i64>(value, field, "the number of a worker", problems).is_some(),
            "Footprint" => self.footprint = footprint(value, field, problems),
            "GFlop" => self.flops = flops(value, field, problems),
            "Handles" => self.handles = value.split_whitespace().collect(),
            "Modes" => {
                self.n_modes = Some((value.split_whitespace().count(), field));
                self.modes = modes(value, problems);
            }
            "Sizes" => {
                self.n_sizes = Some((value.split_whitespace().count(), field));
                let sizes = value.split_whitespace();
                self.sizes = sizes.filter_map(|word| parsed(word, word, "a size in bytes", problems)).collect();
            }
            "SubmitTime" | "ReadyTime" | "StartTime" | "EndTime" => {
                let _: Option<f64> = parsed(value, field, "a time in milliseconds", problems);
            }
            _ if FIELDS.contains(&field) => {}
            _ => unknown(field, problems),
        }
    }

    /// Whether it is a task that a worker must have run: it has a performance model or accesses data.
    fn needs_worker(&self) -> bool {
        self.control.is_none() && (self.model.is_some() || !self.handles.is_empty())
    }

    /// Reports problems of the record as a whole.
    fn check(&self, problems: &mut Problems<'t>) {
        if !self.seen.contains("JobId") {
            problems.report_with(self.start, "the record has no `JobId`", "records are parted by a blank line");
        }
        if self.control.is_some() {
            if self.handles.len() != 1 {
                problems.report(
                    self.start,
                    format!("a hint is about one handle, and this one names {}", self.handles.len()),
                );
            }
            return;
        }
        if self.needs_worker() && !self.seen.contains("WorkerId") {
            problems.report_with(
                self.start,
                "the record has a codelet and no `WorkerId`: nobody ran it",
                "take the trace of a run that has ended; a task without a worker would take no time",
            );
        }
        for (field, count) in [("Modes", self.n_modes), ("Sizes", self.n_sizes)] {
            match count {
                Some((count, at)) if count != self.handles.len() => {
                    let message = format!("there are {count} {field} for {} handles", self.handles.len());
                    problems.report(at, message);
                }
                None if !self.handles.is_empty() => {
                    problems.report(self.start, format!("the record has `Handles` and no `{field}`"));
                }
                _ => {}
            }
        }
    }
}

/// Reports numbers between others that are missing in the order of submission, or there twice, in the trace of one
/// process. Returns the first record and its number if earlier ones are missing: StarPU counts from 1, but may begin to
/// record later.
pub(super) fn report_gaps<'t>(records: &[Record<'t>], problems: &mut Problems<'t>) -> Option<(&'t str, u64)> {
    if records.iter().any(|record| record.job_id.contains('_')) {
        return None;
    }
    let first = records.iter().find_map(|record| Some((record.start, record.submit_order?)));
    let mut last: Option<(u64, usize)> = None;
    for record in records {
        let Some(order) = record.submit_order else { continue };
        let before = last.map_or(order, |(last, _)| last);
        match (order - before, last) {
            (0, Some((_, line))) => problems.report_with(
                record.start,
                format!("the `SubmitOrder` {order} is there already, in the record of the job at line {line}"),
                "take the trace as StarPU wrote it: no two tasks have the same number",
            ),
            (0 | 1, _) => {}
            (step, _) => {
                let first = before + 1;
                let missing = if step == 2 { format!("{first}") } else { format!("{first} to {}", order - 1) };
                problems.report_with(
                    record.start,
                    format!("the trace has a gap: no record has the `SubmitOrder` {missing}"),
                    "take the whole trace; without these tasks others would begin too early",
                );
            }
        }
        last = Some((order, record.job_line));
    }
    first.filter(|(_, order)| *order > 1)
}

/// Reports a field that resembles one of those that StarPU writes, as a misspelling. Other fields may be of newer
/// versions.
fn unknown<'t>(field: &'t str, problems: &mut Problems<'t>) {
    let near = FIELDS.into_iter().find(|known| sched_text::distance(known, field) <= 2 && field.len() > 4);
    if let Some(near) = near {
        problems.report_with(field, format!("there is no field {}", quote(field)), format!("did you mean `{near}`?"));
    }
}

fn footprint<'t>(value: &'t str, field: &'t str, problems: &mut Problems<'t>) -> Option<u32> {
    let footprint = u32::from_str_radix(value, 16).ok();
    if footprint.is_none() {
        let message = format!("{} is no footprint: up to eight hexadecimal digits are expected", quote(value));
        problems.report(value_or(value, field), message);
    }
    footprint
}

/// Number of operations, from billions.
fn flops<'t>(value: &'t str, field: &'t str, problems: &mut Problems<'t>) -> f64 {
    let gflop: f64 = parsed(value, field, "a number", problems).unwrap_or(0.0);
    if !(0.0..=MOST_FLOPS / 1e9).contains(&gflop) {
        let most = MOST_FLOPS / 1e9;
        problems
            .report(value, format!("{value} billion operations cannot be: a number from 0 to {most:e} is expected"));
    }
    gflop * 1e9
}

fn modes<'t>(value: &'t str, problems: &mut Problems<'t>) -> Vec<AccessMode> {
    let mut modes = Vec::new();
    for word in value.split_whitespace() {
        match mode(word) {
            Some(mode) => modes.push(mode),
            None => {
                let known = "R, W, RW, RWC (commutes), X (reduces) or S (scratch) is";
                problems.report(word, format!("{} is no mode: {known}", quote(word)));
            }
        }
    }
    modes
}

/// The number of a job, with the number of its MPI process before it in traces of several.
fn job<'t>(word: &'t str, field: &'t str, problems: &mut Problems<'t>) -> Option<&'t str> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = match word.split_once('_') {
        Some((process, job)) => digits(process) && digits(job),
        None => digits(word),
    };
    if !fits {
        problems.report(value_or(word, field), format!("{} is no job: a number is expected", quote(word)));
    }
    fits.then_some(word)
}

fn parsed<'t, T: FromStr>(value: &'t str, field: &'t str, what: &str, problems: &mut Problems<'t>) -> Option<T> {
    let parsed = value.parse().ok();
    if parsed.is_none() {
        problems.report(value_or(value, field), format!("{} is not {what}", quote(value)));
    }
    parsed
}

/// The value, or its field if the value is empty.
fn value_or<'t>(value: &'t str, field: &'t str) -> &'t str {
    if value.is_empty() { field } else { value }
}
