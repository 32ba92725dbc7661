//! A task that ends with those that it submitted as parts of it.
//!
//! # Protocol
//!
//! The count of a [`Family`] begins at 1, for the kernel of the task; each nested task [enters](Family::enter), on the
//! thread of the kernel and before that returns, and [leaves](Family::leave) when it has ended. Whoever brings the
//! count to 0 ends the task. The kernel leaves too, so the count is not 0 before, however soon nested tasks end.
//!
//! A nested task that needs what the kernel holds waits for its return: it enters with its name, and is in the list
//! that the [return](Family::returned) takes. One that needs nothing of that may begin at once.
//!
//! *The last one sees all.* Each leaves with release, and the last one with acquire: it sees what the kernel and every
//! nested task have done.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU64, Mutex, Ordering::*, lock};

/// See the [module](self). `T` names a nested task.
pub struct Family<T> {
    /// Number of nested tasks that have not ended, and 1 until the kernel has left.
    left: AtomicU64,
    /// Nested tasks that wait for the return of the kernel; `None` once it has returned.
    waiting: Mutex<Option<Vec<T>>>,
}

impl<T> Default for Family<T> {
    fn default() -> Family<T> {
        Family { left: AtomicU64::new(1), waiting: Mutex::new(Some(Vec::new())) }
    }
}

impl<T> Family<T> {
    /// Whether all have ended, and the task with them.
    pub fn has_ended(&self) -> bool {
        self.left.load(Acquire) == 0
    }

    /// Counts a nested task. Returns whether it waits for the return of the kernel, if it is to: then it is given a
    /// name.
    pub fn enter(&self, waits: Option<T>) -> bool {
        self.left.fetch_add(1, AcqRel);
        let Some(task) = waits else { return false };
        let mut waiting = lock(&self.waiting);
        waiting.as_mut().map(|waiting| waiting.push(task)).is_some()
    }

    /// Notes that the kernel has returned. Returns the tasks that have waited for it, to be released. The kernel leaves
    /// afterwards.
    pub fn returned(&self) -> Vec<T> {
        lock(&self.waiting).take().unwrap_or_default()
    }

    /// A nested task has ended, or the kernel leaves. Returns whether that was the last one: the caller ends the task.
    pub fn leave(&self) -> bool {
        self.left.fetch_sub(1, AcqRel) == 1
    }
}
