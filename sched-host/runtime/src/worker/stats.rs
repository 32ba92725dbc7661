//! Counters of workers.

use sched_tree::SlotId;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Written by one worker, read by any thread.
#[derive(Default)]
pub(crate) struct WorkerCounters {
    /// Tasks executed, successful or not.
    pub(crate) executed: AtomicU64,
    /// Tasks finished: executed or cancelled.
    pub(crate) finished: AtomicU64,
    /// Tasks executed that the worker made ready and went on with.
    pub(crate) went_on: AtomicU64,
    pub(crate) at_home: AtomicU64,
    /// Nanoseconds without a task, up to the last time that it found one.
    pub(crate) idle: AtomicU64,
    /// Start of the current idle period in nanoseconds since the start of the runtime, plus 1; 0 while it has a task.
    pub(crate) idle_since: AtomicU64,
    /// The task that it executes.
    pub(crate) executing: AtomicSlot,
    /// Whether that task waits for the runtime that executes it.
    pub(crate) waits: AtomicBool,
    /// The parallel task that it executes or gathers for.
    pub(crate) in_team: AtomicSlot,
    /// Number of times that it parked.
    pub(crate) sleeps: AtomicU64,
    /// Number of times that it was woken.
    pub(crate) wakes: AtomicU64,
    /// Wakes after which it found no task.
    pub(crate) wakes_in_vain: AtomicU64,
}

impl WorkerCounters {
    /// Whether it executes a task that goes on by itself.
    pub(crate) fn is_busy(&self) -> bool {
        self.executing.get().is_some() && !self.waits.load(Relaxed)
    }

    /// Counts a wake of the worker that writes these.
    pub(crate) fn count_wake(&self, in_vain: bool) {
        self.wakes.store(self.wakes.load(Relaxed) + 1, Relaxed);
        self.wakes_in_vain.store(self.wakes_in_vain.load(Relaxed) + u64::from(in_vain), Relaxed);
    }
}

/// The slot of a task, or none. One thread writes it; others may read an older value.
#[derive(Default)]
pub(crate) struct AtomicSlot(AtomicU32);

impl AtomicSlot {
    #[inline]
    pub(crate) fn set(&self, slot: Option<SlotId>) {
        // 0 is no slot. (There are fewer than 2³¹ slots.)
        self.0.store(slot.map_or(0, |slot| slot.0 + 1), Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<SlotId> {
        self.0.load(Relaxed).checked_sub(1).map(SlotId)
    }
}

/// Counters of one worker since the start of the runtime.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WorkerStats {
    /// Number of the worker.
    pub id: u32,
    /// Tasks executed.
    pub tasks: u64,
    /// Those of them that it had made ready itself and went on with, without a push and a pull: see
    /// [`newest_comes_back`](sched_core::Info::newest_comes_back).
    pub went_on: u64,
    /// Those of them that waited for it where they were at home, or for another worker, without a push and a pull: see
    /// [`waits_at_home`](sched_core::Info::waits_at_home).
    pub at_home: u64,
    /// Time without a task.
    pub idle: Duration,
    /// Number of times that it went to sleep.
    pub sleeps: u64,
    /// Number of times that it was woken for a task that it could run.
    pub wakes: u64,
    /// Wakes after which it found no task: another worker had taken it.
    pub wakes_in_vain: u64,
}
