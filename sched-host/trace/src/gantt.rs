//! A schedule as a drawing: a row for each worker and each link, time from left to right. Workers side by side that had
//! nothing to do share a row.
//!
//! Tasks that are wide enough are drawn one by one, with a tooltip. Narrower ones are put together: a column of pixels
//! then has the colour of what took most of its time, the stronger the busier the worker was. So a drawing of a million
//! tasks is hardly larger than one of some thousands.

mod axis;
mod density;
mod palette;
mod rows;

pub(super) use palette::reason_colour;

use super::event::CodeletId;
use super::timeline::{Activity, Span, Timeline};
use super::track::Trace;
use axis::{Axis, PLOT};
use rows::{Row, rows};
use sched_core::TaskId;
use sched_text::amount::nanos;
use sched_text::count;
use sched_text::svg::{INK, KernelColours, LABEL, MUTED, Pen, Px, Swatch, WARNING, shortened};
use std::collections::HashMap;
use std::fmt::Write as _;

/// What to draw beside the schedule.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gantt {
    /// What it is of; the title of the trace if nothing is said.
    pub title: Option<String>,
    /// A bound of the makespan.
    pub bound: Option<Bound>,
    /// Where the axis ends, in seconds, if the schedule is not longer: for schedules side by side.
    pub until: Option<f64>,
}

/// A makespan to compare with, such as one that no schedule is shorter than.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// Seconds.
    pub seconds: f64,
    /// What it is called.
    pub name: String,
}

// All lengths are in pixels.
const LEFT: f64 = 118.0;
const RIGHT: f64 = 22.0;
const WIDTH: f64 = LEFT + PLOT + RIGHT;
const MARGIN: f64 = 16.0;
const LINE: f64 = 18.0;
const FONT: f64 = 11.0;
/// Between the texts of two vertical lines.
const MARK: f64 = 14.0;

/// Between two tasks: what the scheduler takes, or the system.
const BETWEEN: &str = "#ffffff";
const IDLE: &str = "#dfe3ea";
const FETCHING: &str = "#a3adba";
const BOUND: &str = "#b91c1c";
/// Keeps text readable where a line passes behind it.
const HALO: &str = "stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\"";

/// Draws the schedule of `trace` as an SVG, which needs no style sheet or font from elsewhere.
#[must_use]
pub fn gantt(trace: &Trace, options: &Gantt) -> String {
    let timeline = Timeline::of(trace);
    let colours = trace.kernel_colours();
    let bound = options.bound.as_ref().filter(|bound| bound.seconds.is_finite() && bound.seconds >= 0.0);
    let makespan = trace.end as f64;
    let longest = [bound.map(|bound| bound.seconds), options.until].into_iter().flatten();
    let axis = Axis::new(longest.map(|seconds| seconds * 1e9).fold(makespan, f64::max));
    let rows = rows(trace, &timeline, &colours);

    let mut pen = Pen::new(FONT);
    let title = options.title.as_deref().unwrap_or(&trace.title);
    let mut y = head(&mut pen, title, &summary(trace, &timeline, bound), trace.dropped);
    y = pen.legend(&legend(trace, &timeline, &colours), MARGIN, WIDTH - MARGIN, y) + LINE * 1.4;
    let marks = marks(makespan, bound);
    let top = y + MARK * marks.len() as f64 - 6.0;
    let mut chart = Pen::new(FONT);
    let bottom = draw_rows(&mut chart, &rows, &axis, makespan, top);
    axis.draw(&mut pen, LEFT, top, bottom);
    pen.append(chart);
    for (place, mark) in marks.iter().enumerate() {
        mark.draw_line(&mut pen, &axis, y + place as f64 * MARK, bottom);
    }
    for (place, mark) in marks.iter().enumerate() {
        mark.draw_label(&mut pen, &axis, y + place as f64 * MARK);
    }
    pen.finish(title, WIDTH, bottom + LINE + MARGIN)
}

/// The lines above the legend. Where they end.
fn head(pen: &mut Pen, title: &str, summary: &str, dropped: u64) -> f64 {
    let mut y = MARGIN + LINE / 2.0;
    pen.heading((MARGIN, y), WIDTH - 2.0 * MARGIN, title);
    y += LINE;
    pen.text((MARGIN, y), &format!("fill=\"{MUTED}\""), summary);
    y += LINE;
    if dropped > 0 {
        let note = format!("{} dropped, since there was no room for more: tasks are missing", count(dropped, "event"));
        pen.text((MARGIN, y), &format!("fill=\"{WARNING}\""), &note);
        y += LINE;
    }
    y
}

/// The rows from `y` down, with a heading for each group. Where they end.
fn draw_rows(pen: &mut Pen, rows: &[Row], axis: &Axis, makespan: f64, mut y: f64) -> f64 {
    let cell = (460.0 / rows.len().max(1) as f64).floor().clamp(2.0, 19.0);
    let height = if cell >= 5.0 { cell - 1.0 } else { cell };
    let detail = density::Detail::of(rows, axis);
    let mut group = "";
    for row in rows {
        if row.group != group {
            group = &row.group;
            y += LINE;
            let share = group_summary(rows, group, makespan);
            let look = format!("fill=\"{LABEL}\" font-weight=\"bold\" {HALO}");
            pen.text((MARGIN, y - 4.0), &look, &format!("{group}: {share}"));
        }
        if cell >= 10.0 {
            let look = format!("fill=\"{LABEL}\" font-size=\"10\" text-anchor=\"end\"");
            pen.text((LEFT - 6.0, y + height / 2.0 + 3.5), &look, &shortened(&row.name, 19));
        }
        pen.raw(format_args!("<g transform=\"translate({LEFT} {y:.0})\">"));
        pen.tooltip(&format!("{}: {}", row.subject, row.summary(makespan)));
        pen.rect((0.0, 0.0), (axis.x(makespan), height), &format!("fill=\"{}\"", row.ground));
        detail.draw(pen, row, axis, height);
        pen.raw(format_args!("</g>\n"));
        y += cell;
    }
    y + 4.0
}

/// How much of the time rows of a group were busy.
fn group_summary(rows: &[Row], group: &str, makespan: f64) -> String {
    let of: Vec<&Row> = rows.iter().filter(|row| row.group == group).collect();
    let busy: f64 = of.iter().map(|row| row.busy as f64).sum();
    let members: u64 = of.iter().map(|row| row.members).sum();
    let share = 100.0 * busy / (makespan * members as f64).max(f64::MIN_POSITIVE);
    format!("{} busy {share:.1} % of the time", count(members, of[0].what))
}

/// A vertical line.
struct Mark {
    nanos: f64,
    words: String,
    colour: &'static str,
    dashes: &'static str,
}

impl Mark {
    fn draw_line(&self, pen: &mut Pen, axis: &Axis, y: f64, bottom: f64) {
        let Mark { colour, dashes, .. } = self;
        let path = format!("M{} {}V{}", Px(LEFT + axis.x(self.nanos)), Px(y + 3.0), Px(bottom));
        pen.path(&path, &format!("stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}"), None);
    }

    fn draw_label(&self, pen: &mut Pen, axis: &Axis, y: f64) {
        let x = axis.x(self.nanos);
        let (anchor, x) = if x > PLOT / 2.0 { ("end", LEFT + x + 2.0) } else { ("start", LEFT + x - 2.0) };
        let look = format!("fill=\"{}\" font-weight=\"bold\" text-anchor=\"{anchor}\" {HALO}", self.colour);
        pen.text((x, y), &look, &self.words);
    }
}

/// The bound and the makespan.
fn marks(makespan: f64, bound: Option<&Bound>) -> Vec<Mark> {
    let bound = bound.map(|bound| Mark {
        nanos: bound.seconds * 1e9,
        words: format!("{} {}", bound.name, nanos(bound.seconds * 1e9)),
        colour: BOUND,
        dashes: " stroke-dasharray=\"6 3\"",
    });
    let end = Mark { nanos: makespan, words: format!("makespan {}", nanos(makespan)), colour: INK, dashes: "" };
    bound.into_iter().chain([end]).collect()
}

fn summary(trace: &Trace, timeline: &Timeline, bound: Option<&Bound>) -> String {
    let tasks = tasks(timeline).len() as u64;
    let workers = trace.workers.len() as u64;
    let mut text =
        format!("{} on {}, makespan {}", count(tasks, "task"), count(workers, "worker"), nanos(trace.end as f64));
    if let Some(bound) = bound.filter(|bound| bound.seconds > 0.0) {
        let _ = write!(text, ": {:.2} times the {}", trace.end as f64 * 1e-9 / bound.seconds, bound.name);
    }
    text
}

/// The tasks that were executed, with their codelets: each once, however many workers executed it together.
fn tasks(timeline: &Timeline) -> HashMap<TaskId, CodeletId> {
    let task = |span: &Span| match span.activity {
        Activity::Task { task, codelet } => Some((task, codelet)),
        Activity::Fetching { .. } | Activity::Idle => None,
    };
    timeline.workers.iter().flatten().filter_map(task).collect()
}

/// How much of the time workers are neither idle nor have a task, from 0 to 1.
fn share_between(trace: &Trace, timeline: &Timeline) -> f64 {
    let covered: f64 = timeline.workers.iter().flatten().map(|span| (span.end - span.begin) as f64).sum();
    let all = trace.end as f64 * trace.workers.len() as f64;
    if all > 0.0 { 1.0 - covered / all } else { 0.0 }
}

/// The colours that occur.
fn legend(trace: &Trace, timeline: &Timeline, colours: &KernelColours) -> Vec<Swatch> {
    let mut counts = vec![0u64; trace.codelets.len()];
    for codelet in tasks(timeline).into_values() {
        if let Some(count) = counts.get_mut(codelet.index()) {
            *count += 1;
        }
    }
    let executed = trace.codelets.iter().zip(counts).filter(|(_, count)| *count > 0);
    let mut swatches: Vec<Swatch> =
        executed.map(|(codelet, count)| Swatch::filled(colours.get(codelet), format!("{codelet} ({count})"))).collect();
    swatches.push(Swatch::filled(IDLE, "idle"));
    if share_between(trace, timeline) > 0.001 {
        swatches.push(Swatch::filled(BETWEEN, "between tasks"));
    }
    let fetching = |span: &Span| matches!(span.activity, Activity::Fetching { .. });
    if timeline.workers.iter().flatten().any(fetching) {
        swatches.push(Swatch::filled(FETCHING, "waits for data"));
    }
    for reason in palette::REASONS {
        let mut transfers = timeline.links.values().flatten();
        if transfers.any(|span| span.transfer.why == reason) {
            swatches.push(Swatch::filled(reason_colour(reason), format!("transfer: {}", reason.name())));
        }
    }
    swatches
}
