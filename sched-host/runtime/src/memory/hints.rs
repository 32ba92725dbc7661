//! Tasks whose data a memory node may fetch ahead of them.
//!
//! A thread of the node follows the hints, rather than an idle worker: a worker that copies would come late to a task that arrives
//! meanwhile, and where no worker is idle, nothing would be copied while tasks run, which is what hints are for. The thread may
//! run on the processing units of the node's workers and on no others, so that what it touches first is the node's; where all
//! of them are busy, it takes the time that the copy would take a worker later. It sleeps while there is nothing to do.

use crate::task::record::TaskKey;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// So many hints are kept at most: further ones are no loss, since their tasks are far from running.
const MOST: usize = 1024;

/// The hints for one memory node, in the order in which they came.
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

    /// There is no next task.
    pub(crate) fn stop(&self) {
        self.waiting.lock().stopped = true;
        self.changed.notify_all();
    }
}
