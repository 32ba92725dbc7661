//! Numbers for reading: `0–3, 7`.

use sched_core::WorkerSet;

/// Ascending numbers with runs drawn together.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => runs.push((number, number)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .map(|(start, end)| if start == end { start.to_string() } else { format!("{start}–{end}") })
        .collect();
    runs.join(", ")
}

/// `worker 3` or `workers 0–3, 7`.
pub(super) fn workers(set: &WorkerSet) -> String {
    let plural = if set.len() == 1 { "" } else { "s" };
    format!("worker{plural} {}", ranges(set.iter().map(|worker| worker.0)))
}
