//! Explanations as text.

use super::{Child, StepReport, TaskReport, What};
use crate::table::table;
use sched_text::amount::bytes;
use sched_text::count;
use std::fmt::Write as _;

/// A line for each step, and a table for each choice.
pub(in crate::simulate) fn text(report: &TaskReport) -> String {
    let number = format!("task {}", report.task);
    let mut text = match &report.name {
        name if *name == number => format!("{number} ({})\n", report.kind),
        name if name.starts_with(&report.kind) => format!("{name} ({number})\n"),
        name => format!("{name} ({number}, {})\n", report.kind),
    };
    let submitted = report.steps.first().map(|step| step.at_s);
    let mut steps = &report.steps[..];
    let mut last_choice = None;
    while let Some((step, rest)) = steps.split_first() {
        steps = rest;
        let mut table = String::new();
        let said = match &step.what {
            What::Submitted => "submitted".to_owned(),
            What::Ready { after: Some(task), by: Some(worker) } => format!("ready: {task} has ended on {worker}"),
            What::Ready { .. } if Some(step.at_s) == submitted => "ready: it waits for nothing".to_owned(),
            What::Ready { .. } => "ready".to_owned(),
            What::Chosen { component, node, child, children } => {
                let attempts = Attempts::of(step, rest);
                steps = attempts.rest;
                if last_choice.replace((node, child)) == Some((node, child)) {
                    format!("{component} pushes it to {child} again{attempts}")
                } else {
                    table = choices(children);
                    format!("{component} pushes it to {child}{attempts}")
                }
            }
            What::Stored { node } => format!("stored by {node}"),
            What::Refused { node, why } => {
                steps = after_refusals(step, rest);
                format!("refused by {node}: {why}")
            }
            What::Pulled { by } => format!("pulled by {}", by.names),
            What::Arrived { data, bytes: size, from, to, began_s } => {
                format!("{data} ({}) has arrived in {to}; it left {from} at {began_s:.6} s", bytes(*size))
            }
            What::Started { by } => format!("starts on {}", by.names),
            What::Ended { by, length_s, expected_s } => {
                let expected = expected_s.map(|expected| format!("; {expected:.6} s were expected"));
                format!("ends on {}, after {length_s:.6} s{}", by.names, expected.unwrap_or_default())
            }
            What::Passed => "ends at once: it has no work".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:.6} s  {said}", step.at_s);
        text.push_str(&table);
    }
    text
}

/// The steps behind refusals at the same moment: components above refuse a task for the reason for which those below
/// do.
fn after_refusals<'a>(first: &StepReport, rest: &'a [StepReport]) -> &'a [StepReport] {
    let same = |step: &&StepReport| step.at_s == first.at_s && matches!(step.what, What::Refused { .. });
    &rest[rest.iter().take_while(same).count()..]
}

/// Attempts to push a task to the same child, one after the other, each of which was refused for the same reason.
struct Attempts<'a> {
    count: usize,
    why: Option<&'a str>,
    /// Time of the last one.
    until: f64,
    /// The steps behind them.
    rest: &'a [StepReport],
}

impl<'a> Attempts<'a> {
    /// Those from a choice on.
    fn of(choice: &StepReport, rest: &'a [StepReport]) -> Attempts<'a> {
        let mut all = Attempts { count: 0, why: None, until: choice.at_s, rest };
        let chosen = |step: &StepReport| match &step.what {
            What::Chosen { node, child, .. } => Some((node.clone(), child.clone())),
            _ => None,
        };
        let (first, mut attempt) = (chosen(choice), (choice.at_s, rest));
        while let Some((refusal, behind)) = attempt.1.split_first() {
            let What::Refused { why, .. } = &refusal.what else { break };
            if all.why.is_some_and(|before| before != *why) {
                break;
            }
            (all.count, all.why, all.until) = (all.count + 1, Some(why.as_str()), attempt.0);
            all.rest = after_refusals(refusal, behind);
            match all.rest.split_first() {
                Some((next, behind)) if chosen(next) == first => attempt = (next.at_s, behind),
                _ => break,
            }
        }
        all
    }
}

impl std::fmt::Display for Attempts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(why) = self.why else { return Ok(()) };
        match self.count {
            1 => write!(f, ", which refuses: {why}"),
            more => write!(f, ", which refuses {} until {:.6} s: {why}", count(more as u64, "time"), self.until),
        }
    }
}

/// A row for each child; one for neighbours that would take equally long.
fn choices(children: &[Child]) -> String {
    let costs = |child: &Child| (child.able, child.transfer_s.to_bits(), child.length_s.map(f64::to_bits));
    let equal = |one: &Child, other: &Child| {
        !one.chosen && !other.chosen && costs(one) == costs(other) && one.workers.len() == other.workers.len()
    };
    let knows_energy = children.iter().any(|child| child.energy_j.is_some());
    let rows = children.chunk_by(equal).map(|run| row(run, knows_energy));
    let mut header = vec!["", "CHILD", "WORKERS", "FREE (S)", "TRANSFER (S)", "LENGTH (S)", "END (S)"];
    header.extend(knows_energy.then_some("ENERGY (J)"));
    let columns = header.len();
    let text = table(header, rows, 3..columns);
    text.lines().map(|line| format!("              {line}\n")).collect()
}

/// Children in sequence with equal costs: the first to be free.
fn row(run: &[Child], knows_energy: bool) -> Vec<String> {
    let (first, last) = (&run[0], &run[run.len() - 1]);
    let name = match run {
        [only] => only.child.clone(),
        _ => format!("{} … {}", first.child, last.child),
    };
    let workers = sched_text::ranges(run.iter().flat_map(|child| &child.workers).copied());
    let known = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.6}"));
    let least = |of: fn(&Child) -> Option<f64>| run.iter().filter_map(of).reduce(f64::min);
    let figures = match first.able {
        true => [
            known(least(|child| Some(child.free_at_s))),
            known(Some(first.transfer_s)),
            known(first.length_s),
            known(least(|child| child.end_s)),
        ],
        false => ["-", "-", "cannot", "-"].map(str::to_owned),
    };
    let mut row = vec![if first.chosen { "→" } else { "" }.to_owned(), name, workers];
    row.extend(figures);
    row.extend(knows_energy.then(|| first.energy_j.map_or_else(|| "-".to_owned(), |joules| format!("{joules:.3}"))));
    row
}
