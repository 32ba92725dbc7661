//! Links between tasks: a task waits for others that may be ending, and counts what is left to wait for.
//!
//! # Protocol
//!
//! Each record has a list of the tasks that wait for it, behind a lock, and beside it the sequence of its task, which
//! is 0 when the task has ended.
//!
//! - **link**: under the lock, if the sequence is still that of the task to wait for, the new task joins the list.
//! - **end**: under the lock, the list is taken and the sequence set to 0 ([`end`]). Each task of the list is
//!   released, once.
//!
//! So a task is on the list before the list is taken, or learns that it need not wait: then the sequence that it read
//! was written after the other's work was done, and it sees that work.
//!
//! The new task is being submitted meanwhile, and may be released before it has made its last link. It counts down
//! from a number that no release can bring to 0 before [`submitted`](Pending::submitted) has put the number of links
//! in.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU32, AtomicU64, Ordering::*};

/// More than any number of tasks to wait for.
const SUBMISSION: u32 = 1 << 31;

/// Number of tasks that a task waits for, plus a large number while it is being submitted.
pub struct Pending(AtomicU32);

impl Default for Pending {
    fn default() -> Pending {
        Pending(AtomicU32::new(0))
    }
}

impl Pending {
    /// That of a task whose links are known and were made before: it is released by as many [releases](Self::release).
    #[must_use]
    pub fn armed(links: u32) -> Pending {
        Pending(AtomicU32::new(links))
    }

    /// Begins the submission of a task, which is not released before [`submitted`](Self::submitted).
    #[inline]
    pub fn open(&self) {
        self.0.store(SUBMISSION, Relaxed);
    }

    /// Makes it [armed](Self::armed) again. Nobody else uses the number meanwhile.
    #[inline]
    pub fn arm(&self, links: u32) {
        self.0.store(links, Relaxed);
    }

    /// Ends the submission of a task with `links` links. Returns whether it need not wait for any of them (any more).
    #[inline]
    pub fn submitted(&self, links: u32) -> bool {
        // Without a link no other thread knows of the task.
        links == 0 || self.0.fetch_sub(SUBMISSION - links, AcqRel) == SUBMISSION - links
    }

    /// Counts one link less. Returns whether it was the last.
    #[inline]
    pub fn release(&self) -> bool {
        // The last link is this one, so nobody else counts any more: no exchange is needed.
        if self.0.load(Acquire) == 1 {
            self.0.store(0, Relaxed);
            return true;
        }
        self.0.fetch_sub(1, AcqRel) == 1
    }
}

/// Makes a task wait for the task of this sequence, unless that has ended: `lock` locks the list and `join` puts the
/// task on it. Returns whether it has to wait.
#[inline]
pub fn link<G>(current: &AtomicU64, sequence: u64, lock: impl FnOnce() -> G, join: impl FnOnce(&mut G)) -> bool {
    if current.load(Acquire) != sequence {
        return false;
    }
    let mut list = lock();
    let waits = current.load(Acquire) == sequence;
    if waits {
        join(&mut list);
    }
    waits
}

/// Ends a task: from now on no task can begin to wait for it. The caller holds the lock of the list and takes the list
/// under it.
#[inline]
pub fn end(current: &AtomicU64) {
    current.store(0, Release);
}
