//! The tasks that one worker has made ready.

use super::ahead::Done;
use crate::queue::TaskQueue;
use sched_core::{Mutex, Task};
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Nanoseconds of work after which a worker looks at what has become urgent.
const OFTEN: u64 = 100_000;

/// See the [module](self). The line of tasks that no worker has made ready is one, too.
#[derive(Debug)]
pub(super) struct Line {
    /// Number of tasks, written under the lock.
    len: AtomicUsize,
    state: Mutex<LineState>,
}

#[derive(Debug)]
struct LineState {
    queue: TaskQueue,
    done: Done,
}

impl Line {
    pub(super) fn new() -> Line {
        let state = LineState { queue: TaskQueue::new(), done: Done::default() };
        Line { len: AtomicUsize::new(0), state: Mutex::new(state) }
    }

    /// Number of tasks.
    pub(super) fn len(&self) -> usize {
        self.len.load(Acquire)
    }

    /// Adds a task, unless `is_closed` says by now that none may be added.
    pub(super) fn push(&self, task: Task, is_closed: impl FnOnce() -> bool) -> Result<(), Task> {
        let mut state = self.state.lock();
        if is_closed() {
            return Err(task);
        }
        let priority = task.priority();
        state.queue.push(task, priority, 0);
        self.len.store(state.queue.len(), Release);
        Ok(())
    }

    /// Takes all tasks for which there is a `key`.
    pub(super) fn take<K>(&self, key: impl Fn(&Task) -> Option<K>) -> Vec<(K, Task)> {
        let (mut state, mut taken) = (self.state.lock(), Vec::new());
        for task in state.queue.drain() {
            match key(&task) {
                Some(key) => taken.push((key, task)),
                None => {
                    let priority = task.priority();
                    state.queue.push(task, priority, 0);
                }
            }
        }
        self.len.store(state.queue.len(), Release);
        taken
    }

    /// Takes note that the worker has executed a task, in so many nanoseconds.
    pub(super) fn note_ended(&self, took: u64) {
        self.state.lock().done.add(Done { tasks: 1, took });
    }

    /// Takes the first task, or the `newest`, of the highest priority.
    pub(super) fn pop(&self, newest: bool) -> Option<Task> {
        if self.len.load(Acquire) == 0 {
            return None;
        }
        let mut state = self.state.lock();
        let popped = if newest { state.queue.pop_newest(|_| true) } else { state.queue.pop(|_| true) };
        self.len.store(state.queue.len(), Release);
        popped.map(|(task, _)| task)
    }

    /// What was executed, if it is much or is asked for.
    pub(super) fn report(&self, is_asked_for: bool) -> Option<Done> {
        let mut state = self.state.lock();
        (is_asked_for || state.done.took >= OFTEN).then(|| std::mem::take(&mut state.done))
    }
}
