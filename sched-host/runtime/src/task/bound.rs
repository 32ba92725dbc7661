//! A bound on the tasks that are submitted and have not ended.
//!
//! The bound costs nothing where there is none: a context whose submissions need a closer look shows them an empty
//! range of priorities, which each submission checks anyway.

use super::failure::SubmitError;
use crate::context::ContextCore;
use crate::core::Core;
use crate::worker::acting::is_needed_by;
use crate::worker::executed_here;
use crate::worker::main_worker::Looks;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::*;

/// What a submission does when as many tasks are in flight as the runtime was
/// [built](crate::Builder::bound_tasks) for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WhenFull {
    /// It waits until a quarter of them have ended.
    Wait,
    /// It is refused, with [`SubmitError::Full`].
    Refuse,
}

/// See the [module](self).
#[derive(Clone, Copy)]
pub(crate) struct TaskBound {
    pub(crate) most: u64,
    pub(crate) when_full: WhenFull,
}

impl TaskBound {
    /// Number of tasks in flight at which a thread that waits goes on.
    fn low(self) -> u64 {
        self.most - (self.most / 4).max(1)
    }
}

impl Core {
    /// Number of tasks that are submitted and have not ended.
    fn in_flight(&self) -> u64 {
        // In this order, so that it is never too low.
        let finished = self.finished().saturating_sub(self.own_accesses.ended.load(SeqCst));
        self.submitted().saturating_sub(self.own_accesses.begun.load(SeqCst)).saturating_sub(finished)
    }

    /// Whether a thread that waits for room may go on.
    pub(crate) fn has_room(&self) -> bool {
        self.bound.is_some_and(|bound| self.in_flight() <= bound.low())
    }

    /// The closer look at a submission to a context that shows no allowed priority: it has ended, or is about to, or
    /// tasks are bounded.
    /// Waits for room if that is so. Returns the allowed priorities.
    #[cold]
    pub(crate) fn look_closer(
        &self,
        context: &ContextCore,
        codelet: &str,
        is_nested: bool,
    ) -> Result<RangeInclusive<i32>, SubmitError> {
        let ended = || SubmitError::Ended { codelet: codelet.to_owned() };
        let range = || context.priorities().ok_or_else(ended);
        let allowed = range()?;
        let is_inside = is_nested || executed_here(self).is_some();
        if self.is_ending.load(SeqCst) && !is_inside && !self.is_in_access() {
            return Err(ended());
        }
        let Some(bound) = self.bound else { return Ok(allowed) };
        // What a running task submits is taken, and what a callback does: it might be the one that has to end.
        if is_inside || is_needed_by(self) || self.in_flight() < bound.most {
            return Ok(allowed);
        }
        let full = || SubmitError::Full { codelet: codelet.to_owned(), most: bound.most };
        if bound.when_full == WhenFull::Refuse {
            return Err(full());
        }
        self.outcomes.await_default();
        let waited = self.wait_until(None, Looks::Seldom, || self.has_room());
        self.outcomes.stop_awaiting_default();
        waited.map_err(|_| {
            // The error has no report.
            self.stall_is_told.store(false, Relaxed);
            full()
        })?;
        range()
    }
}
