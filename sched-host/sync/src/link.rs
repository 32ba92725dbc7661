//! How a task waits for others: links, made while the others may be ending, and what is left to wait for.
//!
//! # Protocol
//!
//! Each record has a list of the tasks that wait for it, behind a lock, and beside it the sequence of its task, which is
//! 0 when the task has ended.
//!
//! - **link**: under the lock, if the sequence is still that of the task to wait for, the new task joins the list.
//! - **end**: under the lock, the list is taken and the sequence set to 0 ([`end`]). Each of those on the list is
//!   released, once.
//!
//! So a task is on the list before it is taken, or is told that it need not wait: then the sequence that it read was
//! written when the other's work was done, and it sees that work.
//!
//! The new task is submitted meanwhile, and may be released before it has made its last link. It counts down from a
//! number that no release can bring to 0 before [`submitted`](Pending::submitted) has put the number of links in.

use crate::primitives::{AtomicU32, AtomicU64, Ordering::*};

#[cfg(all(test, loom))]
mod models;

/// More than any number of tasks to wait for.
const SUBMISSION: u32 = 1 << 31;

/// How many tasks a task waits for, and `SUBMISSION` while it is being submitted.
pub struct Pending(AtomicU32);

impl Default for Pending {
    fn default() -> Pending {
        Pending(AtomicU32::new(0))
    }
}

impl Pending {
    /// A new task, which is not released before [`submitted`](Self::submitted).
    #[inline]
    pub fn open(&self) {
        self.0.store(SUBMISSION, Relaxed);
    }

    /// The task is submitted, and was linked to so many others. Whether it need not wait for any of them (any more).
    #[inline]
    pub fn submitted(&self, links: u32) -> bool {
        // Without a link nobody else knows of the task.
        links == 0 || self.0.fetch_sub(SUBMISSION - links, AcqRel) == SUBMISSION - links
    }

    /// One thing less to wait for. Whether it was the last.
    #[inline]
    pub fn release(&self) -> bool {
        self.0.fetch_sub(1, AcqRel) == 1
    }
}

/// Lets a task wait for the task of this sequence, unless that has ended: `join` puts it on the list, which `lock`
/// locks. Whether it has to wait.
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

/// The task has ended: nobody can begin to wait for it. The caller holds the lock of the list, which it has taken.
#[inline]
pub fn end(current: &AtomicU64) {
    current.store(0, Release);
}
