//! The comparison on a terminal.

use super::contender::{Comparison, Contender};
use crate::cli::table::table;
use std::fmt::Write as _;

/// The heads of the columns.
pub(super) const HEADER: [&str; 7] =
    ["POLICY", "MAKESPAN (S)", "TIMES BOUND", "GFLOP/S", "BUSY (%)", "TRANSFERS", "MOVED (GB)"];

/// What stands in the columns for one policy.
pub(super) fn cells(contender: &Contender) -> [String; 7] {
    let or_none = |told: Option<String>| told.unwrap_or_else(|| "-".to_owned());
    [
        contender.name.clone(),
        format!("{:.6}", contender.makespan_s),
        or_none(contender.ratio_to_bound.map(|ratio| format!("{ratio:.3}"))),
        or_none(contender.gflops.map(|gflops| format!("{gflops:.1}"))),
        format!("{:.1}", 100.0 * contender.busy_share),
        or_none(contender.transfers.map(|transfers| transfers.to_string())),
        or_none(contender.bytes_moved.map(|bytes| format!("{:.3}", bytes as f64 / 1e9))),
    ]
}

/// The comparison for people.
pub(super) fn text(comparison: &Comparison) -> String {
    let Comparison { workload, platform, workers, tasks, bounds_s, .. } = comparison;
    let mut told = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(told, "workload  {workload}, {tasks} tasks");
    let _ = writeln!(told, "platform  {platform} ({workers} workers)");
    if let Some(bounds) = bounds_s {
        let _ = writeln!(told, "bound     {:.6} s: no schedule is shorter", bounds.best());
        let _ = writeln!(told, "          {bounds}");
    }
    let _ = writeln!(told, "\n{}", table(HEADER, comparison.contenders.iter().map(cells), 1..HEADER.len()));
    for lost in &comparison.lost {
        let _ = writeln!(told, "{} did not come to an end: {}", lost.policy, lost.why);
    }
    told
}
