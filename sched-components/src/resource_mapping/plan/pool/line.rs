//! The tasks that one worker has made ready.

use super::ahead::Done;
use super::lengths::Lengths;
use crate::queue::TaskQueue;
use sched_core::{Mutex, Task};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;

/// Nanoseconds of work after which a worker looks at what has become urgent.
const OFTEN: u64 = 100_000;

/// See the [module](self). The line of tasks that no worker has made ready is one, too.
#[derive(Debug)]
pub(super) struct Line {
    /// Number of tasks, written under the lock.
    len: AtomicUsize,
    queue: Mutex<TaskQueue>,
    /// What the worker has executed since it was last reported: number, and nanoseconds.
    done: AtomicUsize,
    took: AtomicU64,
    lengths: Mutex<Lengths>,
}

impl Line {
    pub(super) fn new() -> Line {
        Line {
            len: AtomicUsize::new(0),
            queue: Mutex::new(TaskQueue::new()),
            done: AtomicUsize::new(0),
            took: AtomicU64::new(0),
            lengths: Mutex::default(),
        }
    }

    /// Number of tasks.
    pub(super) fn len(&self) -> usize {
        self.len.load(Acquire)
    }

    /// Adds a task, unless `is_closed` says by now that none may be added.
    pub(super) fn push(&self, task: Task, is_closed: impl FnOnce() -> bool) -> Result<(), Task> {
        let mut queue = self.queue.lock();
        if is_closed() {
            return Err(task);
        }
        let priority = task.priority();
        queue.push(task, priority, 0);
        self.len.store(queue.len(), Release);
        Ok(())
    }

    /// Takes all tasks for which there is a `key`.
    pub(super) fn take<K>(&self, key: impl Fn(&Task) -> Option<K>) -> Vec<(K, Task)> {
        let (mut queue, mut taken) = (self.queue.lock(), Vec::new());
        for task in queue.drain() {
            match key(&task) {
                Some(key) => taken.push((key, task)),
                None => {
                    let priority = task.priority();
                    queue.push(task, priority, 0);
                }
            }
        }
        self.len.store(queue.len(), Release);
        taken
    }

    /// Takes note that the worker has executed a task, in so many nanoseconds.
    pub(super) fn note_ended(&self, took: u64) {
        self.done.fetch_add(1, Relaxed);
        self.took.fetch_add(took, Relaxed);
    }

    /// Takes the first task, or the `newest`, of the highest priority.
    pub(super) fn pop(&self, newest: bool) -> Option<Task> {
        if self.len.load(Acquire) == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let popped = if newest { queue.pop_newest(|_| true) } else { queue.pop(|_| true) };
        self.len.store(queue.len(), Release);
        popped.map(|(task, _)| task)
    }

    /// What was executed, if it is much or is asked for.
    pub(super) fn report(&self, is_asked_for: bool) -> Option<Done> {
        let is_due = is_asked_for || self.took.load(Relaxed) >= OFTEN;
        is_due.then(|| Done { tasks: self.done.swap(0, Relaxed), took: self.took.swap(0, Relaxed) })
    }

    /// How long a task should take on the worker: what was last known of such tasks, or else what the host says when it
    /// is asked.
    pub(super) fn expected_length(&self, task: &Task, ask: impl FnOnce() -> Option<Duration>) -> Option<Duration> {
        self.lengths.lock().of((task.codelet(), task.footprint()), ask)
    }
}
