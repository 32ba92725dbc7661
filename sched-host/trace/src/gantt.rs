//! A schedule as a drawing: a row for each worker and each link, time from left to right.
//!
//! Tasks that are wide enough are drawn one by one, with a tooltip. Narrower ones are put together: a column of pixels
//! then has the colour of what took most of its time, the stronger the busier the worker was. So a drawing of a million
//! tasks is hardly larger than one of some thousands.

mod axis;
mod density;
mod palette;
mod rows;
mod words;

pub use palette::colour;
pub(super) use palette::reason_colour;
use sched_text::amount::nanos as span;
use sched_text::count;
pub use sched_text::xml::escaped;

use super::event::CodeletId;
use super::timeline::{Activity, Span, Timeline};
use super::track::Trace;
use axis::{Axis, PLOT};
use rows::{Row, rows};
use sched_core::TaskId;
use std::collections::HashMap;
use std::fmt::Write as _;
use words::text;

/// What to draw beside the schedule.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gantt {
    /// What it is of; the title of the trace if nothing is said.
    pub title: Option<String>,
    /// A lower bound of the makespan.
    pub bound: Option<Bound>,
    /// Where the axis ends, in seconds, if the schedule is not longer: for schedules side by side.
    pub until: Option<f64>,
}

/// A makespan that no schedule is shorter than.
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
const MARGIN: f64 = 16.0;
const LINE: f64 = 18.0;
/// An average character of the 11-pixel font.
const CHAR: f64 = 6.3;
/// The same of the bold 16-pixel font.
const HEAD_CHAR: f64 = 9.5;

/// Between two tasks: what the scheduler takes, or the system.
const BETWEEN: &str = "#ffffff";
const IDLE: &str = "#dfe3ea";
const FETCHING: &str = "#a3adba";
const BOUND: &str = "#b91c1c";
/// Keeps text readable where a line passes behind it.
const HALO: &str = "stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\"";
const MAKESPAN: &str = "#0f172a";

/// Draws the schedule of `trace` as an SVG, which needs no style sheet or font from elsewhere.
#[must_use]
pub fn gantt(trace: &Trace, options: &Gantt) -> String {
    let timeline = Timeline::of(trace);
    let bound = options.bound.as_ref().filter(|bound| bound.seconds.is_finite() && bound.seconds >= 0.0);
    let makespan = trace.end as f64;
    let longest = [bound.map(|bound| bound.seconds), options.until].into_iter().flatten();
    let axis = Axis::new(longest.map(|seconds| seconds * 1e9).fold(makespan, f64::max));
    let rows = rows(trace, &timeline);
    let width = LEFT + PLOT + RIGHT;

    let mut out = String::new();
    let mut y = MARGIN + LINE / 2.0;
    let title = options.title.as_deref().unwrap_or(&trace.title);
    let fits = ((width - 2.0 * MARGIN) / HEAD_CHAR) as usize;
    let head = "font-size=\"16\" font-weight=\"bold\" fill=\"#0f172a\"";
    text(&mut out, MARGIN, y, head, &words::shortened(title, fits));
    y += LINE;
    text(&mut out, MARGIN, y, "fill=\"#475569\"", &summary(trace, &timeline, bound));
    y += LINE;
    if trace.dropped > 0 {
        let note =
            format!("{} events were dropped, since there was no room for them: tasks are missing", trace.dropped);
        text(&mut out, MARGIN, y, "fill=\"#b45309\"", &note);
        y += LINE;
    }
    y = legend(&mut out, trace, &timeline, width, y) + LINE * 1.4;

    let lines = marks(makespan, bound);
    let mut labels = String::new();
    for (place, (at, told, colour)) in lines.iter().enumerate() {
        let x = LEFT + axis.x(*at);
        let (anchor, x) = if axis.x(*at) > PLOT / 2.0 { ("end", x + 2.0) } else { ("start", x - 2.0) };
        let look = format!("fill=\"{colour}\" font-weight=\"bold\" text-anchor=\"{anchor}\" {HALO}");
        text(&mut labels, x, y + place as f64 * 14.0, &look, told);
    }
    let label_foot = y;
    y += 14.0 * lines.len() as f64 - 6.0;
    let top = y;
    let mut chart = String::new();
    y = draw_rows(&mut chart, &rows, &axis, makespan, top);
    axis.draw(&mut out, LEFT, top, y);
    out.push_str(&chart);
    for (place, (at, _, colour)) in lines.iter().enumerate() {
        let (x, from) = (LEFT + axis.x(*at), label_foot + place as f64 * 14.0 + 3.0);
        let dashes = if *colour == BOUND { " stroke-dasharray=\"6 3\"" } else { "" };
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {from:.1}V{y:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\" fill=\"none\"{dashes}/>"
        );
    }
    out.push_str(&labels);
    let height = y + LINE + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"11\">\n\
         <title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{out}</svg>\n",
        escaped(title)
    )
}

/// The rows from `y` down, with a heading for each group. Where they end.
fn draw_rows(out: &mut String, rows: &[Row], axis: &Axis, makespan: f64, mut y: f64) -> f64 {
    let cell = (460.0 / rows.len().max(1) as f64).floor().clamp(2.0, 19.0);
    let height = if cell >= 5.0 { cell - 1.0 } else { cell };
    let detail = density::Detail::of(rows, axis);
    let mut group = "";
    for row in rows {
        if row.group != group {
            group = &row.group;
            y += LINE;
            let share = group_summary(rows, group, makespan);
            let look = format!("fill=\"#334155\" font-weight=\"bold\" {HALO}");
            text(out, MARGIN, y - 4.0, &look, &format!("{group}: {share}"));
        }
        if cell >= 10.0 {
            let look = "fill=\"#334155\" font-size=\"10\" text-anchor=\"end\"";
            text(out, LEFT - 6.0, y + height / 2.0 + 3.5, look, &words::shortened(&row.name, 19));
        }
        let _ = write!(out, "<g transform=\"translate({LEFT} {y:.0})\"><title>");
        let told = format!("{}: {}", row.name, row.summary(makespan));
        let _ = writeln!(out, "{}</title>", escaped(&told));
        let (wide, ground) = (axis.x(makespan), row.ground);
        let _ = writeln!(out, "<rect width=\"{wide:.1}\" height=\"{height}\" fill=\"{ground}\"/>");
        detail.draw(out, row, axis, height);
        out.push_str("</g>\n");
        y += cell;
    }
    y + 4.0
}

/// How much of the time rows of a group were busy.
fn group_summary(rows: &[Row], group: &str, makespan: f64) -> String {
    let of: Vec<&Row> = rows.iter().filter(|row| row.group == group).collect();
    let busy: f64 = of.iter().map(|row| row.busy as f64).sum();
    let share = 100.0 * busy / (makespan * of.len() as f64).max(f64::MIN_POSITIVE);
    format!("{} busy {share:.1} % of the time", count(of.len() as u64, of[0].what))
}

/// The vertical lines: where, what they are, and their colour.
fn marks(makespan: f64, bound: Option<&Bound>) -> Vec<(f64, String, &'static str)> {
    let mut marks = Vec::new();
    if let Some(bound) = bound {
        marks.push((bound.seconds * 1e9, format!("{} {}", bound.name, span(bound.seconds * 1e9)), BOUND));
    }
    marks.push((makespan, format!("makespan {}", span(makespan)), MAKESPAN));
    marks
}

fn summary(trace: &Trace, timeline: &Timeline, bound: Option<&Bound>) -> String {
    let tasks = tasks(timeline).len() as u64;
    let workers = trace.workers.len() as u64;
    let mut told =
        format!("{} on {}, makespan {}", count(tasks, "task"), count(workers, "worker"), span(trace.end as f64));
    if let Some(bound) = bound.filter(|bound| bound.seconds > 0.0) {
        let _ = write!(told, ": {:.2} times the lower bound", trace.end as f64 * 1e-9 / bound.seconds);
    }
    told
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

/// The colours that occur. Where it ends.
fn legend(out: &mut String, trace: &Trace, timeline: &Timeline, width: f64, mut y: f64) -> f64 {
    let mut counts = vec![0u64; trace.codelets.len()];
    for codelet in tasks(timeline).into_values() {
        if let Some(count) = counts.get_mut(codelet.index()) {
            *count += 1;
        }
    }
    let fetching = |span: &Span| matches!(span.activity, Activity::Fetching { .. });
    let mut entries: Vec<(&str, String)> = Vec::new();
    for (number, (codelet, count)) in trace.codelets.iter().zip(counts).enumerate() {
        if count > 0 {
            entries.push((colour(number), format!("{codelet} ({count})")));
        }
    }
    entries.push((IDLE, "idle".to_owned()));
    if share_between(trace, timeline) > 0.001 {
        entries.push((BETWEEN, "between tasks".to_owned()));
    }
    if timeline.workers.iter().flatten().any(fetching) {
        entries.push((FETCHING, "waits for data".to_owned()));
    }
    for reason in palette::REASONS {
        let mut transfers = timeline.links.values().flatten();
        if transfers.any(|span| span.transfer.why == reason) {
            entries.push((reason_colour(reason), format!("transfer: {}", reason.name())));
        }
    }
    let mut x = MARGIN;
    for (fill, told) in entries {
        let room = 20.0 + told.chars().count() as f64 * CHAR + 12.0;
        if x + room > width - MARGIN && x > MARGIN {
            x = MARGIN;
            y += LINE;
        }
        let top = y - 9.0;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"{top:.0}\" width=\"14\" height=\"11\" rx=\"2\" fill=\"{fill}\" stroke=\"#cbd2dc\"/>"
        );
        text(out, x + 19.0, y, "fill=\"#334155\"", &told);
        x += room;
    }
    y
}
