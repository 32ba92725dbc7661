//! The comparison as text.

use crate::simulate::report::{Failed, Report, Run};
use crate::table::table;
use sched_text::count;
use std::fmt::Write as _;

/// Column titles.
pub(super) fn header(comparison: &Report) -> Vec<&'static str> {
    let mut header = vec!["POLICY", "MAKESPAN (S)", "TIMES BOUND", "GFLOP/S", "BUSY (%)", "TRANSFERS", "MOVED (GB)"];
    header.extend(comparison.knows_energy().then_some("ENERGY (J)"));
    header
}

/// The cells for one policy.
pub(super) fn cells(comparison: &Report, contender: &Run) -> Vec<String> {
    let or_none = |shown: Option<String>| shown.unwrap_or_else(|| "-".to_owned());
    let mut cells = vec![
        contender.policy.clone(),
        format!("{:.6}", contender.makespan_s),
        or_none(contender.ratio_to_bound.map(|ratio| format!("{ratio:.3}"))),
        or_none(contender.gflops.map(|gflops| format!("{gflops:.1}"))),
        format!("{:.1}", 100.0 * contender.busy_share),
        or_none(contender.transfers.map(|transfers| transfers.to_string())),
        or_none(contender.bytes_moved.map(|bytes| format!("{:.3}", bytes as f64 / 1e9))),
    ];
    let joules = || or_none(contender.energy_j.map(|joules| format!("{joules:.3}")));
    cells.extend(comparison.knows_energy().then(joules));
    cells
}

/// What static schedules leave out.
pub(super) fn left_out(comparison: &Report) -> String {
    let rest = match comparison.bounds_hold {
        true => "and overheads; no run can be expected to reach it",
        false => "overheads, and noise",
    };
    format!(
        "(static): planned from the whole graph, without the initial loading of data, transfers that wait for each \
         other, sizes of memories, {rest}"
    )
}

/// The comparison as text.
pub(super) fn text(comparison: &Report) -> String {
    let Report { workload, platform, workers, tasks, bounds_s, .. } = comparison;
    let mut shown = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(shown, "workload  {workload}, {}", count(*tasks as u64, "task"));
    let _ = writeln!(shown, "platform  {platform} ({})", count(*workers as u64, "worker"));
    if let Some(options) = comparison.settings.options() {
        let _ = writeln!(shown, "options   {options}");
    }
    if let Some(bounds) = bounds_s {
        let _ = writeln!(shown, "bound     {:.6} s{}", bounds.best(), comparison.bound_says());
        let _ = writeln!(shown, "          {bounds}");
    }
    let header = header(comparison);
    let (columns, rows) = (header.len(), comparison.runs.iter().map(|contender| cells(comparison, contender)));
    let _ = writeln!(shown, "\n{}", table(header, rows, 1..columns));
    if comparison.runs.iter().any(|contender| contender.planned) {
        let _ = writeln!(shown, "\n{}", left_out(comparison));
    }
    for contender in &comparison.runs {
        for fault in &contender.faults {
            let _ = writeln!(shown, "{}: fault: {fault}", contender.policy);
        }
    }
    for Failed { policy, why } in &comparison.failed {
        let _ = writeln!(shown, "{policy} did not complete: {why}");
    }
    shown
}
