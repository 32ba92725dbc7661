//! How urgent tasks are: the longest path from each to the end of all that is submitted.

use crate::queue::nanos;
use sched_core::{Estimate, Submitted, SubmittedTask, WorkerId};

/// See the [module](self): of the tasks that had not ended at some moment, in the order of submission.
#[derive(Default, Debug)]
pub(super) struct Urgency {
    sequences: Vec<u64>,
    /// Nanoseconds from the start of each to the end of the last.
    paths: Vec<u64>,
    /// One past the last of them.
    pub(super) end: u64,
    /// How many there are, and of how many the length was not known.
    pub(super) count: usize,
    pub(super) unknown: usize,
    /// Nanoseconds that all of them take together, and on the longest path.
    pub(super) work: u64,
    pub(super) longest: u64,
}

/// Assumed length where none is known: then a path is as long as it has tasks.
const SOME_LENGTH: u64 = 1000;

impl Urgency {
    /// Looks at the first `window` tasks. Workers are equal: `worker` stands for all of them.
    pub(super) fn of(submitted: Submitted<'_>, worker: WorkerId, window: usize) -> Urgency {
        let mut urgency = Urgency::default();
        let tasks: Vec<(u64, SubmittedTask)> = submitted.tasks().take(window).collect();
        let mut lengths: Vec<Option<u64>> = Vec::with_capacity(tasks.len());
        for (sequence, task) in &tasks {
            urgency.sequences.push(*sequence);
            lengths.push(match submitted.expected_length(*sequence, worker) {
                _ if task.passes => Some(0),
                Estimate::Known(length) => Some(nanos(length)),
                _ => None,
            });
        }
        let known: Vec<u64> = lengths.iter().flatten().copied().filter(|length| *length > 0).collect();
        let sum = known.iter().copied().fold(0, u64::saturating_add);
        let usual = sum.checked_div(known.len() as u64).unwrap_or(SOME_LENGTH);
        urgency.paths = vec![0; tasks.len()];
        for (at, (sequence, task)) in tasks.iter().enumerate().rev() {
            let length = lengths[at].unwrap_or(usual);
            let next = submitted.successors(*sequence, *task).filter_map(|next| urgency.path(next)).max();
            urgency.paths[at] = length.saturating_add(next.unwrap_or(0));
            urgency.work = urgency.work.saturating_add(length);
        }
        urgency.count = tasks.len();
        urgency.longest = urgency.paths.iter().copied().max().unwrap_or(0);
        urgency.unknown = lengths.iter().filter(|length| length.is_none()).count();
        urgency.end = urgency.sequences.last().map_or(0, |last| last + 1);
        urgency
    }

    /// The path from a task; `None` if it was not among them.
    pub(super) fn path(&self, sequence: u64) -> Option<u64> {
        let first = self.sequences.first()?;
        // Its position if no task in between is missing.
        let near = usize::try_from(sequence.checked_sub(*first)?).ok()?;
        let at = match self.sequences.get(near) {
            Some(found) if *found == sequence => near,
            _ => self.sequences.binary_search(&sequence).ok()?,
        };
        Some(self.paths[at])
    }
}
