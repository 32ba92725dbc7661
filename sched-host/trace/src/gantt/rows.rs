//! Rows of a Gantt chart.

use super::palette::reason_colour;
use super::{BETWEEN, FETCHING, IDLE};
use crate::{Activity, LinkSpan, Span, Timeline, Trace};
use sched_core::MemoryNode;
use sched_text::count;
use sched_text::svg::KernelColours;

/// A row: a worker or a link, or neighbouring workers that had nothing to do.
pub(super) struct Row<'a> {
    pub(super) name: String,
    /// Whom the tooltip is about.
    pub(super) subject: String,
    /// Number of workers or links.
    pub(super) members: u64,
    pub(super) group: String,
    /// Noun for one row of its group.
    pub(super) what: &'static str,
    /// Background colour.
    pub(super) ground: &'static str,
    /// Boxes in order of time, without overlap.
    pub(super) boxes: Vec<Box<'a>>,
    /// Nanoseconds with a task or a transfer.
    pub(super) busy: u64,
    tasks: u64,
}

/// A box of a row: an activity from one time to another.
pub(super) struct Box<'a> {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) fill: &'static str,
    pub(super) what: What<'a>,
}

/// Subject of a tooltip.
pub(super) enum What<'a> {
    Work(&'a Trace, Activity),
    Move(&'a Trace, LinkSpan),
}

impl What<'_> {
    pub(super) fn label(&self) -> String {
        match self {
            What::Work(trace, Activity::Task { task, codelet }) => match trace.names.get(task) {
                Some(name) => format!("{name} ({}, {task})", trace.codelet(*codelet)),
                None => format!("{}, {task}", trace.codelet(*codelet)),
            },
            What::Work(trace, Activity::Fetching { task }) => format!("waits for data of {}", trace.task_name(*task)),
            What::Work(_, Activity::Idle) => "idle".to_owned(),
            What::Move(trace, span) => {
                let moved = span.transfer;
                format!("{} ({} bytes, {})", trace.data_name(moved.data), moved.bytes, moved.why.name())
            }
        }
    }
}

impl Row<'_> {
    /// Whether it is a worker that had nothing to do.
    fn is_idle(&self) -> bool {
        self.boxes.iter().all(|of| matches!(of.what, What::Work(_, Activity::Idle)))
    }

    /// Text of the tooltip.
    pub(super) fn summary(&self, makespan: f64) -> String {
        let thing = if self.what == "link" { "transfer" } else { "task" };
        let share = 100.0 * self.busy as f64 / makespan.max(1.0);
        format!("{}, busy {share:.1} % of the time", count(self.tasks, thing))
    }
}

/// Rows of the workers, grouped, then those of the links.
pub(super) fn rows<'a>(trace: &'a Trace, timeline: &Timeline, colours: &KernelColours) -> Vec<Row<'a>> {
    let fills: Vec<&'static str> = trace.codelets.iter().map(|codelet| colours.get(codelet)).collect();
    let mut groups: Vec<&str> = Vec::new();
    for worker in &trace.workers {
        if !groups.contains(&worker.group.as_str()) {
            groups.push(&worker.group);
        }
    }
    let mut rows = Vec::new();
    for group in groups {
        let of_group = trace.workers.iter().zip(&timeline.workers).filter(|(worker, _)| worker.group == group);
        let of_group = of_group.map(|(worker, spans)| of_worker(trace, &worker.name, group, spans, &fills));
        rows.extend(folded(of_group.collect()));
    }
    rows.extend(timeline.links.iter().map(|((from, to), spans)| of_link(trace, *from, *to, spans)));
    rows
}

/// Fewest neighbours without a task that share a row.
const FOLDED: usize = 4;

/// The rows of a group, where neighbours that had nothing to do share one: on a large machine they would hide the
/// others.
fn folded(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let mut left = rows.into_iter().peekable();
    let mut folded = Vec::new();
    while let Some(first) = left.next() {
        let mut run = vec![first];
        while run[0].is_idle()
            && let Some(next) = left.next_if(Row::is_idle)
        {
            run.push(next);
        }
        if run.len() < FOLDED {
            folded.append(&mut run);
            continue;
        }
        let members = run.len() as u64;
        let subject = format!("{} to {}", run[0].name, run[run.len() - 1].name);
        folded.extend(run.into_iter().next().map(|row| Row {
            name: format!("{members} idle"),
            subject,
            members,
            ..row
        }));
    }
    folded
}

fn of_worker<'a>(trace: &'a Trace, name: &str, group: &str, spans: &[Span], fills: &[&'static str]) -> Row<'a> {
    let (mut busy, mut tasks, mut boxes) = (0, 0, Vec::with_capacity(spans.len()));
    for Span { begin, end, activity } in spans {
        let fill = match activity {
            Activity::Task { codelet, .. } => {
                busy += end - begin;
                tasks += 1;
                fills.get(codelet.index()).copied().unwrap_or(FETCHING)
            }
            Activity::Fetching { .. } => FETCHING,
            Activity::Idle => IDLE,
        };
        boxes.push(Box { begin: *begin, end: *end, fill, what: What::Work(trace, *activity) });
    }
    Row {
        name: name.to_owned(),
        subject: name.to_owned(),
        members: 1,
        group: group.to_owned(),
        what: "worker",
        ground: BETWEEN,
        boxes,
        busy,
        tasks,
    }
}

fn of_link<'a>(trace: &'a Trace, from: MemoryNode, to: MemoryNode, spans: &[LinkSpan]) -> Row<'a> {
    let within = spans.iter().filter(|span| span.begin <= trace.end);
    let boxes: Vec<Box<'_>> = within
        .map(|span| Box {
            begin: span.begin,
            end: span.end.min(trace.end),
            fill: reason_colour(span.transfer.why),
            what: What::Move(trace, *span),
        })
        .collect();
    let name = trace.link_name(from, to);
    Row {
        subject: name.clone(),
        name,
        members: 1,
        group: "links".to_owned(),
        what: "link",
        ground: "#f3f5f8",
        busy: boxes.iter().map(|of| of.end - of.begin).sum(),
        tasks: spans.len() as u64,
        boxes,
    }
}
