//! How long the tasks that are being submitted take at least.

use super::outlook::Lane;
use crate::queue::nanos;
use sched_core::{Estimate, Submitted};

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Burst {
    /// One past the last task that was added.
    next: u64,
    /// Total length of the tasks in nanoseconds, each where it is fastest.
    work: f64,
    /// Length of the longest one.
    longest: f64,
}

impl Burst {
    /// Nanoseconds that the tasks submitted so far take at least: all of them on all lanes, or the longest alone.
    pub(super) fn least(&mut self, submitted: Submitted<'_>, lanes: &[Lane]) -> f64 {
        let range = submitted.range();
        for sequence in self.next.max(range.start)..range.end {
            let shortest = shortest(submitted, lanes, sequence);
            self.work += shortest;
            self.longest = self.longest.max(shortest);
        }
        self.next = range.end;
        self.longest.max(self.work / lanes.len().max(1) as f64)
    }
}

/// The shortest length of a task on the first lane of each class; 0 if none can execute it.
fn shortest(submitted: Submitted<'_>, lanes: &[Lane], sequence: u64) -> f64 {
    let mut next = 0;
    let is_first = |lane: &&Lane| {
        let is_first = lane.class == next;
        next += usize::from(is_first);
        is_first
    };
    let length = |lane: &Lane| match submitted.expected_length(sequence, lane.worker) {
        Estimate::Known(length) => Some(nanos(length)),
        _ => None,
    };
    lanes.iter().filter(is_first).filter_map(length).min().unwrap_or(0) as f64
}
