//! The comparison as a page: one self-contained HTML file.

use super::table::{cells, header, left_out};
use crate::pictures::LOWER_BOUND;
use crate::simulate::report::{Failed, Report};
use sched_text::count;
use sched_text::xml::escaped;
use sched_trace::{Bound, Gantt, Trace, gantt};
use std::fmt::Write as _;

const STYLE: &str = "
:root { color-scheme: light; background: white }
body { font: 14px/1.45 Helvetica, Arial, 'DejaVu Sans', sans-serif; color: #0f172a; margin: 24px auto; max-width: 1220px; padding: 0 16px }
h1 { font-size: 22px; margin: 0 0 4px }
p { color: #475569; margin: 4px 0 16px }
table { border-collapse: collapse; margin: 0 0 24px; width: 100% }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid #e2e8f0; font-variant-numeric: tabular-nums }
th { font-size: 11px; color: #475569; letter-spacing: .04em }
th:first-child, td:first-child { text-align: left }
.bars td { border: 0; padding: 3px 10px }
.bars td:first-child { width: 210px }
.bars td:last-child { width: 190px; text-align: left; white-space: nowrap }
.track { position: relative; height: 16px; background: #f1f5f9 }
.bar { height: 16px; background: #0072b2 }
.planned .bar { background: #94a3b8 }
.line { position: absolute; top: -3px; bottom: -3px; width: 0; border-left: 2px dashed #b91c1c }
a { color: inherit }
summary { cursor: pointer; font-weight: bold; margin: 12px 0 6px }
svg { max-width: 100%; height: auto; border: 1px solid #e2e8f0 }
.lost { color: #b45309 }
";

/// The page, with the traces of the runs.
pub(super) fn html(comparison: &Report, traces: &[Trace]) -> String {
    let (workload, platform) = (escaped(&comparison.workload), escaped(&comparison.platform));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{workload} on {platform}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{workload}</h1>\n"
    );
    let _ = write!(
        page,
        "<p>{} on {platform} ({}), simulated",
        count(comparison.tasks as u64, "task"),
        count(comparison.workers as u64, "worker")
    );
    if let Some(Bound { seconds, name }) = comparison.bound() {
        let _ = match comparison.bounds_hold {
            true => write!(page, "; no schedule is shorter than {seconds:.6} s"),
            false => write!(page, " with noise; the {name} is {seconds:.6} s, and schedules may be shorter"),
        };
    }
    page.push_str(".</p>\n");
    if let Some(options) = comparison.settings.options() {
        let _ = writeln!(page, "<p>Options: <code>{}</code></p>", escaped(&options));
    }
    table(&mut page, comparison);
    for contender in &comparison.runs {
        for fault in &contender.faults {
            let _ = writeln!(
                page,
                "<p class=\"lost\">{}: fault: {}</p>",
                escaped(&contender.policy),
                escaped(&fault.to_string())
            );
        }
    }
    for Failed { policy, why } in &comparison.failed {
        let (policy, why) = (escaped(policy), escaped(why));
        let _ = writeln!(page, "<p class=\"lost\">{policy} did not complete: {why}</p>");
    }
    bars(&mut page, comparison);
    schedules(&mut page, comparison, traces);
    page.push_str("</body>\n</html>\n");
    page
}

fn table(page: &mut String, comparison: &Report) {
    page.push_str("<table>\n<tr>");
    for head in header(comparison) {
        let _ = write!(page, "<th>{head}</th>");
    }
    page.push_str("</tr>\n");
    for (number, contender) in comparison.runs.iter().enumerate() {
        page.push_str("<tr>");
        for (column, cell) in cells(comparison, contender).iter().enumerate() {
            let cell = escaped(cell);
            let _ = match column {
                0 => write!(page, "<td><a href=\"#s{number}\">{cell}</a></td>"),
                _ => write!(page, "<td>{cell}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
    if comparison.runs.iter().any(|contender| contender.planned) {
        let _ = writeln!(page, "<p>{}</p>", left_out(comparison));
    }
}

/// A bar for each makespan, with the bound as a line across them.
fn bars(page: &mut String, comparison: &Report) {
    let makespans = comparison.runs.iter().map(|contender| contender.makespan_s);
    let bound = comparison.bound();
    let longest = makespans.chain(bound.iter().map(|bound| bound.seconds)).fold(f64::MIN_POSITIVE, f64::max);
    let name = bound.as_ref().map_or(LOWER_BOUND, |bound| &bound.name);
    let _ = write!(page, "<h2>Makespan against the {name} (dashed)</h2>\n<table class=\"bars\">\n");
    for contender in &comparison.runs {
        let (name, width) = (escaped(&contender.policy), 100.0 * contender.makespan_s / longest);
        let class = if contender.planned { " class=\"planned\"" } else { "" };
        let _ = write!(page, "<tr{class}><td>{name}</td><td><div class=\"track\">");
        let _ = write!(page, "<div class=\"bar\" style=\"width:{width:.2}%\"></div>");
        if let Some(Bound { seconds, .. }) = bound {
            let _ = write!(page, "<div class=\"line\" style=\"left:{:.2}%\"></div>", 100.0 * seconds / longest);
        }
        let ratio = contender.ratio_to_bound.map_or_else(String::new, |ratio| format!(", {ratio:.2} × bound"));
        let _ = writeln!(page, "</div></td><td>{:.4} s{ratio}</td></tr>", contender.makespan_s);
    }
    page.push_str("</table>\n");
}

/// The schedules on one time axis.
fn schedules(page: &mut String, comparison: &Report, traces: &[Trace]) {
    let until = comparison.longest();
    let bound = comparison.bound();
    page.push_str("<h2>Schedules</h2>\n");
    for (number, (contender, trace)) in comparison.runs.iter().zip(traces).enumerate() {
        let options = Gantt { title: Some(contender.policy.clone()), bound: bound.clone(), until };
        let drawing = gantt(trace, &options);
        let name = escaped(&contender.policy);
        let _ = writeln!(page, "<details open id=\"s{number}\"><summary>{name}</summary>\n{drawing}</details>");
    }
}
