//! What is known of all submitted tasks.

use super::urgency::Urgency;
use crate::resource_mapping::plan::agenda::Limits;
use std::ops::Range;

/// A task is urgent if so many times the path from it to the end takes as long as all workers take for all that is
/// left.
const AMPLE: u64 = 2;

/// Share of the tasks that is new or of unknown length, from which on what is urgent is found out again.
const NEWS: f64 = 0.125;

/// Number of tasks that are looked at whatever that takes; and nanoseconds that a look at one takes, about, as records
/// are in other caches.
const FEW: usize = 64;
const COST: f64 = 500.0;

/// What has been executed since it was last reported.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Done {
    pub(super) tasks: usize,
    /// Nanoseconds.
    pub(super) took: u64,
}

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Ahead {
    urgency: Urgency,
    /// Since then.
    done: Done,
    /// The threshold at which the lines were last searched for urgent tasks.
    searched: u64,
    /// One past the last submitted task that was seen, and when it was.
    submitted: u64,
    grew: u64,
    /// The first task that was seen, what has been executed since, and number of tasks looked at.
    first: Option<u64>,
    all: Done,
    looked: usize,
}

impl Done {
    pub(super) fn add(&mut self, other: Done) {
        self.tasks += other.tasks;
        self.took = self.took.saturating_add(other.took);
    }
}

impl Ahead {
    /// Takes account of what has been executed.
    pub(super) fn note(&mut self, done: Done) {
        self.done.add(done);
        self.all.add(done);
    }

    /// Whether it is worth asking for the submitted tasks: of those that are known by now, or more, it may be time to
    /// find out how urgent they are.
    pub(super) fn may_be_due(&self, limits: Limits) -> bool {
        !self.is_large() || self.is_in_time(self.rest(limits), limits)
    }

    /// Whether to find out how urgent tasks are: `range` is that of the submitted ones. It takes no more than its share
    /// of the time that kernels have taken; where there are few, it takes whatever it takes.
    pub(super) fn is_due(&mut self, range: Range<u64>, now: u64, limits: Limits) -> bool {
        if range.end > self.submitted {
            (self.submitted, self.grew) = (range.end, now);
        }
        self.first.get_or_insert(range.start);
        let (left, new) = (self.left(), self.new_ones());
        let is_settled = self.grew.saturating_add(limits.lead) <= now;
        let has_grown = (new > 0 && is_settled) || new as f64 > NEWS * left as f64;
        // Half of them have ended, or a quarter where that may have shown how long others take.
        let has_moved = self.done.tasks > left;
        let has_learnt = self.urgency.unknown as f64 > NEWS * left as f64 && self.done.tasks > left / 4;
        let rest = self.rest(limits);
        match self.is_in_time(rest, limits) {
            true => has_grown || has_moved || has_learnt,
            false => new > left && rest <= FEW,
        }
    }

    /// Number of the tasks that a look would be at.
    fn rest(&self, limits: Limits) -> usize {
        self.count_seen().saturating_sub(self.all.tasks).min(limits.window)
    }

    fn is_in_time(&self, rest: usize, limits: Limits) -> bool {
        (self.looked + rest) as f64 * COST <= limits.time * self.all.took as f64
    }

    /// Number of the tasks whose urgency is known that have not ended, and of those that were submitted since.
    fn left(&self) -> usize {
        self.urgency.count.saturating_sub(self.done.tasks)
    }

    fn new_ones(&self) -> usize {
        self.submitted.saturating_sub(self.urgency.end.max(self.first.unwrap_or(0))) as usize
    }

    /// Number of tasks that were ever seen.
    fn count_seen(&self) -> usize {
        self.submitted.saturating_sub(self.first.unwrap_or(0)) as usize
    }

    /// Whether there are so many tasks that workers need not ask each time whether there are others.
    pub(super) fn is_large(&self) -> bool {
        self.count_seen() > FEW
    }

    /// Goes by this urgency from now on. What has been executed before is not counted any more.
    pub(super) fn learn(&mut self, urgency: Urgency) {
        self.looked += urgency.count;
        (self.urgency, self.searched) = (urgency, u64::MAX);
    }

    /// Begins to count what is executed anew.
    pub(super) fn count_anew(&mut self) {
        self.done = Done::default();
    }

    pub(super) fn path(&self, sequence: u64) -> Option<u64> {
        self.urgency.path(sequence)
    }

    /// The path to the end from which on a task is urgent, for so many workers; the end of time if none is so long, or
    /// if too little is known.
    pub(super) fn threshold(&self, workers: usize) -> u64 {
        let Urgency { count, unknown, work, longest, .. } = self.urgency;
        let rest = match unknown > count / 2 {
            true => (work as f64 * self.left() as f64 / count as f64) as u64,
            false => work.saturating_sub(self.done.took),
        };
        let threshold = rest / (AMPLE * workers as u64);
        if threshold > longest || self.new_ones() > self.left() { u64::MAX } else { threshold }
    }

    /// Whether the lines have to be searched for tasks that are urgent by this threshold: it has fallen so far since
    /// that was last done that there may be more.
    pub(super) fn is_lower(&mut self, threshold: u64) -> bool {
        let is_lower = threshold < self.searched - self.searched / 8;
        if is_lower {
            self.searched = threshold;
        }
        is_lower
    }
}
