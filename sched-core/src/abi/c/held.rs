//! The tasks that a component in C holds.

use crate::abi::task::RawTask;
use parking_lot::Mutex;
use std::collections::HashSet;

/// Number of parts, each with its own lock.
const PARTS: usize = 8;

/// A set of handles. Threads that look at different tasks rarely wait for each other.
#[derive(Default)]
pub(super) struct Held {
    parts: [Mutex<HashSet<(usize, u64)>>; PARTS],
}

impl Held {
    fn part(&self, task: RawTask) -> &Mutex<HashSet<(usize, u64)>> {
        // Records of tasks are 128 bytes apart.
        &self.parts[(task.head.addr() >> 7) % PARTS]
    }

    /// Notes that the component holds a task.
    pub(super) fn insert(&self, task: RawTask) {
        self.part(task).lock().insert((task.head.addr(), task.generation));
    }

    /// Notes that it does not hold it any longer. Returns whether it did.
    pub(super) fn remove(&self, task: RawTask) -> bool {
        self.part(task).lock().remove(&(task.head.addr(), task.generation))
    }

    /// Whether it holds a task.
    pub(super) fn contains(&self, task: RawTask) -> bool {
        self.part(task).lock().contains(&(task.head.addr(), task.generation))
    }
}
