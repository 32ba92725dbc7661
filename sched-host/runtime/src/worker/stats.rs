//! Counters of workers.

use serde::Serialize;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// Written by one worker, read by any thread.
#[derive(Default)]
pub(crate) struct WorkerCounters {
    /// Tasks executed, successful or not.
    pub(crate) executed: AtomicU64,
    /// Tasks finished: executed or cancelled.
    pub(crate) finished: AtomicU64,
    /// Nanoseconds without a task, up to the last time that it found one.
    pub(crate) idle: AtomicU64,
    /// Start of the current idle period in nanoseconds since the start of the runtime, plus 1; 0 while it has a task.
    pub(crate) idle_since: AtomicU64,
    /// Slot of the task that it executes, plus 1; 0 for none.
    pub(crate) executing: AtomicU32,
    /// Slot of the parallel task that it executes or gathers for, plus 1; 0 for none.
    pub(crate) in_team: AtomicU32,
    /// Number of times that it parked.
    pub(crate) sleeps: AtomicU64,
    /// Number of times that it was woken.
    pub(crate) wakes: AtomicU64,
    /// Wakes after which it found no task.
    pub(crate) wakes_in_vain: AtomicU64,
}

/// Counters of one worker since the start of the runtime.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WorkerStats {
    /// Number of the worker.
    pub id: u32,
    /// Tasks executed.
    pub tasks: u64,
    /// Time without a task.
    pub idle: Duration,
    /// Number of times that it went to sleep.
    pub sleeps: u64,
    /// Number of times that it was woken for a task that it could run.
    pub wakes: u64,
    /// Wakes after which it found no task: another worker had taken it.
    pub wakes_in_vain: u64,
}
