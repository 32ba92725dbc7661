//! Tasks whose data a memory node may fetch ahead of them.
//!
//! A thread of the node follows the hints, rather than an idle worker: a worker that copies would be late for a task
//! that arrives meanwhile, and without idle workers nothing would be copied while tasks run, which is the purpose of
//! hints. The thread runs on the processing units of the node's workers only, so that memory that it touches first
//! belongs to the node; when all of them are busy, it takes the time that the copy would later take a worker. It sleeps
//! while there is nothing to do.

use crate::task::record::TaskKey;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// Maximum number of hints kept. Dropping further ones costs little: their tasks are far from running.
const MOST: usize = 1024;

/// Hints for one memory node, in order of arrival.
#[derive(Default)]
pub(crate) struct Hints {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    tasks: VecDeque<TaskKey>,
    stopped: bool,
}

impl Hints {
    /// Adds a task.
    pub(crate) fn add(&self, task: TaskKey) {
        let mut waiting = self.waiting.lock();
        if waiting.tasks.len() < MOST {
            waiting.tasks.push_back(task);
            drop(waiting);
            self.changed.notify_one();
        }
    }

    /// Waits for the next task; `None` when the runtime stops.
    pub(crate) fn next(&self) -> Option<TaskKey> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.stopped {
                return None;
            }
            if let Some(task) = waiting.tasks.pop_front() {
                return Some(task);
            }
            self.changed.wait(&mut waiting);
        }
    }

    /// Stops the thread: there is no next task.
    pub(crate) fn stop(&self) {
        self.waiting.lock().stopped = true;
        self.changed.notify_all();
    }
}
