//! The records of a `tasks.rec`: lines of `Field: value`, up to a blank line.

use super::super::findings::{Findings, quote};
use super::mode;
use crate::Mode;
use std::collections::HashMap;
use std::str::FromStr;

/// A task or a hint, with what is used of it.
#[derive(Default)]
pub(super) struct Record<'t> {
    /// First line.
    start: &'t str,
    pub(super) job_id: &'t str,
    /// `WontUse`, if it is no task.
    pub(super) control: Option<&'t str>,
    pub(super) name: Option<&'t str>,
    pub(super) model: Option<&'t str>,
    pub(super) submit_order: Option<u64>,
    pub(super) priority: Option<i32>,
    pub(super) depends_on: Vec<&'t str>,
    /// Whether a worker ran it: whether it has a codelet.
    pub(super) worker: bool,
    pub(super) footprint: Option<u32>,
    pub(super) flops: f64,
    pub(super) handles: Vec<&'t str>,
    pub(super) modes: Vec<Mode>,
    pub(super) sizes: Vec<u64>,
    /// Values that must be as many as the handles.
    n_modes: Option<(usize, &'t str)>,
    n_sizes: Option<(usize, &'t str)>,
    /// Fields that were there.
    seen: Vec<&'t str>,
}

/// All fields that StarPU writes; those that mean nothing here are passed over.
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

/// The records of `text`; what is wrong with them is told to `findings`.
pub(super) fn records<'t>(text: &'t str, findings: &mut Findings<'t>) -> Vec<Record<'t>> {
    let mut records: Vec<Record<'t>> = Vec::new();
    let mut jobs: HashMap<&'t str, &'t str> = HashMap::new();
    let mut open: Option<Record<'t>> = None;
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            if let Some(record) = open.take() {
                record.check(findings);
                if !record.job_id.is_empty()
                    && let Some(first) = jobs.insert(record.job_id, record.job_id)
                {
                    let (line, _) = findings.line_and_column(first);
                    let message = format!("job {} is there already, at line {line}", quote(record.job_id));
                    findings.report(record.job_id, message);
                }
                records.push(record);
            }
        } else if !line.starts_with('#') {
            let record = open.get_or_insert_with(|| Record { start: line, ..Record::default() });
            record.line(line, findings);
        }
    }
    records
}

impl<'t> Record<'t> {
    fn line(&mut self, line: &'t str, findings: &mut Findings<'t>) {
        let Some((field, value)) = split(line) else {
            let message = format!("{} is no field: `Name: value` is expected", quote(line.trim()));
            findings.report_with(line.trim(), message, "records are parted by a blank line");
            return;
        };
        if self.seen.contains(&field) {
            findings.report_with(
                field,
                format!("the record has a second `{field}`"),
                "records are parted by a blank line; is it missing?",
            );
            return;
        }
        self.seen.push(field);
        match field {
            "Control" => {
                if value != "WontUse" {
                    findings.report(value_or(value, field), format!("{} is no control: `WontUse` is", quote(value)));
                }
                self.control = Some(value);
            }
            "Name" => self.name = Some(value),
            "Model" => self.model = Some(value).filter(|value| !value.is_empty()),
            "JobId" => self.job_id = job(value, field, findings).unwrap_or(""),
            "SubmitOrder" => self.submit_order = parsed(value, field, "a whole number", findings),
            "Priority" => self.priority = parsed(value, field, "a whole number of 32 bits", findings),
            "DependsOn" => {
                self.depends_on = value.split_whitespace().filter_map(|word| job(word, field, findings)).collect();
            }
            "WorkerId" => self.worker = parsed::<i64>(value, field, "the number of a worker", findings).is_some(),
            "Footprint" => {
                self.footprint = u32::from_str_radix(value, 16).ok();
                if self.footprint.is_none() {
                    let message =
                        format!("{} is no footprint: up to eight hexadecimal digits are expected", quote(value));
                    findings.report(value_or(value, field), message);
                }
            }
            "GFlop" => {
                let gflop: f64 = parsed(value, field, "a number", findings).unwrap_or(0.0);
                if !gflop.is_finite() || gflop < 0.0 {
                    findings
                        .report(value, format!("{value} billion operations cannot be: a number from 0 is expected"));
                }
                self.flops = gflop * 1e9;
            }
            "Handles" => self.handles = value.split_whitespace().collect(),
            "Modes" => {
                self.n_modes = Some((value.split_whitespace().count(), field));
                for word in value.split_whitespace() {
                    match mode(word) {
                        Some(mode) => self.modes.push(mode),
                        None => findings.report(
                            word,
                            format!(
                                "{} is no mode: R, W, RW, RWC (commutes), X (reduces) or S (scratch) is",
                                quote(word)
                            ),
                        ),
                    }
                }
            }
            "Sizes" => {
                self.n_sizes = Some((value.split_whitespace().count(), field));
                let sizes = value.split_whitespace();
                self.sizes = sizes.filter_map(|word| parsed(word, word, "a size in bytes", findings)).collect();
            }
            "SubmitTime" | "ReadyTime" | "StartTime" | "EndTime" => {
                let _: Option<f64> = parsed(value, field, "a time in milliseconds", findings);
            }
            _ if FIELDS.contains(&field) => {}
            // Newer versions have more fields; a name that is nearly one of these is a slip.
            _ => {
                let near =
                    FIELDS.into_iter().find(|known| strsim::damerau_levenshtein(known, field) <= 2 && field.len() > 4);
                if let Some(near) = near {
                    findings.report_with(
                        field,
                        format!("there is no field `{field}`"),
                        format!("did you mean `{near}`?"),
                    );
                }
            }
        }
    }

    /// What can be wrong with a record as a whole.
    fn check(&self, findings: &mut Findings<'t>) {
        if !self.seen.contains(&"JobId") {
            findings.report_with(self.start, "the record has no `JobId`", "records are parted by a blank line");
        }
        if self.control.is_some() {
            if self.handles.len() != 1 {
                findings.report(
                    self.start,
                    format!("a hint is about one handle, and this one names {}", self.handles.len()),
                );
            }
            return;
        }
        for (field, count) in [("Modes", self.n_modes), ("Sizes", self.n_sizes)] {
            match count {
                Some((count, at)) if count != self.handles.len() => {
                    let message = format!("there are {count} {field} for {} handles", self.handles.len());
                    findings.report(at, message);
                }
                None if !self.handles.is_empty() => {
                    findings.report(self.start, format!("the record has `Handles` and no `{field}`"));
                }
                _ => {}
            }
        }
    }
}

/// The number of a job, with the number of its MPI process before it in traces of several.
fn job<'t>(word: &'t str, field: &'t str, findings: &mut Findings<'t>) -> Option<&'t str> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = match word.split_once('_') {
        Some((process, job)) => digits(process) && digits(job),
        None => digits(word),
    };
    if !fits {
        findings.report(value_or(word, field), format!("{} is no job: a number is expected", quote(word)));
    }
    fits.then_some(word)
}

fn parsed<'t, T: FromStr>(value: &'t str, field: &'t str, what: &str, findings: &mut Findings<'t>) -> Option<T> {
    let parsed = value.parse().ok();
    if parsed.is_none() {
        findings.report(value_or(value, field), format!("{} is not {what}", quote(value)));
    }
    parsed
}

/// The value, or its field where there is none to point at.
fn value_or<'t>(value: &'t str, field: &'t str) -> &'t str {
    if value.is_empty() { field } else { value }
}
