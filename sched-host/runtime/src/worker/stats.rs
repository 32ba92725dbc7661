//! What each worker did.

use serde::Serialize;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// Written by one worker, read by whoever asks.
#[derive(Default)]
pub(crate) struct WorkerCounters {
    /// Tasks executed, whether they ended well or not.
    pub(crate) executed: AtomicU64,
    /// Tasks finished: executed, or cancelled.
    pub(crate) finished: AtomicU64,
    /// Nanoseconds without a task, up to the last time it found one.
    pub(crate) idle: AtomicU64,
    /// When it last found nothing, in nanoseconds since the start, plus 1; 0 while it has a task.
    pub(crate) idle_since: AtomicU64,
    /// The slot of the task that it executes, plus 1; 0 when it executes none.
    pub(crate) executing: AtomicU32,
    /// The slot of the parallel task that it executes with others, or gathers for, plus 1; 0 when there is none.
    pub(crate) in_team: AtomicU32,
    /// How often it parked.
    pub(crate) sleeps: AtomicU64,
    /// How often it was woken from that.
    pub(crate) wakes: AtomicU64,
    /// Of these wakes, those after which it found no task.
    pub(crate) wakes_in_vain: AtomicU64,
}

/// What one worker did since the runtime began.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WorkerStats {
    /// Its number.
    pub id: u32,
    /// Tasks that it executed.
    pub tasks: u64,
    /// Time without a task.
    pub idle: Duration,
    /// How often it went to sleep.
    pub sleeps: u64,
    /// How often it was woken from that, because there was a task that it could run.
    pub wakes: u64,
    /// Of these wakes, those that came to nothing: another worker had taken the task.
    pub wakes_in_vain: u64,
}
