//! When a plan is made, and why.

use super::{Agenda, Limits};
use std::collections::VecDeque;

/// Maximum number of planned tasks for each lane with which it is worth planning again for one idle lane.
pub(super) const SHORT_PLAN: usize = 16;

/// Change of expected lengths from which on the rest of a plan is planned again.
const NEWS: f64 = 0.03;

/// A plan is made again after such a share of its tasks has ended, at the earliest.
const REPAIRS: usize = 32;

/// Where kernels deviate, the rest is planned again after such a share of the tasks has ended, even without changes:
/// what each of them took is news too.
const STEADY: usize = 16;

/// Of fewer tasks than these the rest is planned again after each. Of more, both shares are in proportion to the number
/// of tasks, as long as that makes them smaller: a plan of fewer tasks takes less time.
const AFTER_EACH: usize = 128;

/// How much later than planned a task begins, as a share of the length of the plan, from which on the rest is planned
/// again: nobody foresees all that is in the way of data.
const LATE: f64 = 0.02;

/// That is done after such a share of the tasks has ended.
const LATE_AFTER: usize = 8;

/// A plan that nothing speaks against is searched on after such a share of its tasks has ended, where that takes no
/// time: the same tries go farther with fewer tasks.
const REVISED: usize = 4;

/// The least share of the tries of a plan that is searched on. What goes into any plan costs more than a few tries.
const WORTH_REVISING: f64 = 0.5;

/// Why a plan is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Occasion {
    /// For new tasks, or for a lane that has nothing to do.
    New,
    /// For what is left of the plan: kernels take, or have taken, other times than those that it went by, tasks begin
    /// late, or fewer are left, so that a search goes farther.
    Again,
}

impl Agenda {
    /// Whether what is left of the plan should be planned [again](Occasion::Again): there is a reason, enough tasks have
    /// ended since the last time, and that takes no more than its share of time.
    pub(super) fn is_due_again(&mut self, now: u64, limits: Limits) -> bool {
        let left: usize = self.plan.iter().map(VecDeque::len).sum();
        let ended = |share: usize| self.ended > self.count / share;
        let often = AFTER_EACH.pow(2) / self.count.max(1);
        if left == 0 || !ended(REPAIRS.max(often)) || self.spent > limits.time * now.saturating_sub(self.began) as f64 {
            return false;
        }
        let is_late = self.late as f64 > LATE * self.length as f64 && ended(LATE_AFTER);
        is_late
            || (ended(REVISED) && self.spent == 0.0 && self.effort >= WORTH_REVISING)
            || (std::mem::take(&mut self.has_learnt)
                && (self.experience.news(&self.lanes) > NEWS
                    || (ended(STEADY.max(often)) && self.experience.is_scattered())))
    }

    /// Whether half of a full window is done, and more tasks are submitted: nobody has said what the last tasks of the
    /// window are good for.
    pub(super) fn is_half_done(&self, window: usize) -> bool {
        self.is_full && self.end < self.submitted && self.done > window / 2
    }

    pub(super) fn is_stale(&self, window: usize) -> bool {
        let left: usize = self.plan.iter().map(VecDeque::len).sum();
        let more = self.submitted.saturating_sub(self.end) as usize;
        left < self.lanes.len()
            || (left < SHORT_PLAN * self.lanes.len() && self.has_idle_lane())
            || if self.is_full { left < window / 2 } else { more > self.count / 4 }
            // Concurrent submissions may arrive out of order, so planned tasks may wait for tasks outside the plan.
            || (self.sent.is_empty() && !self.held.keys().any(|sequence| self.lane_of.contains_key(sequence)))
    }

    /// Whether a lane has nothing to do, and its next task is not ready.
    fn has_idle_lane(&self) -> bool {
        let mut waits: Vec<bool> = self
            .plan
            .iter()
            .map(|plan| plan.front().is_none_or(|next| !self.held.contains_key(&next.sequence)))
            .collect();
        for sent in &self.sent {
            waits[sent.lane] = false;
        }
        waits.contains(&true)
    }
}
