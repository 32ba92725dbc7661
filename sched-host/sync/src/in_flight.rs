//! The number of tasks of a context, and whether it takes more.
//!
//! # Protocol
//!
//! A context may be deleted while other threads submit to it. It goes when it takes no more tasks and those that it
//! took have ended; a task that it took after that would never run.
//!
//! - **reserve** (a submitter): count the task, *then* read whether the context is open. If it is not, take the task
//!   back from the count, and submit nothing.
//! - **close** (a deleter): mark the context as closed, *then* wait until as many tasks have ended as were counted.
//!
//! A full fence stands between the two steps of either. So when one thread submits while another deletes, at least one
//! sees the other: the submitter sees that the context is closed, or the deleter sees the task and waits for it. Tasks
//! that tasks of the context submit are taken while it is closed: the one that submits is counted and has not ended.
//!
//! - **end**: count the end, then read whether a thread waits; if so, and this was the last task, that thread has to
//!   be notified.
//! - **wait**: announce that a thread waits, then read the counts; then sleep until notified.
//!
//! By the same argument the waiter sees that all tasks have ended, or the last task to end sees the waiter. A refused
//! submission counts as an end here: it may have hidden from the last task that it was the last.
//!
//! A place is used for one context after the other; each use has a serial number of its own, which handles know.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU64, Ordering::*, fence};

const FREE: u64 = 0;
const OPEN: u64 = 1;
const CLOSED: u64 = 2;
const STATE: u64 = 3;

/// See the [module](self).
#[derive(Default)]
pub struct InFlight {
    /// Number of tasks taken.
    submitted: AtomicU64,
    /// Number of these that have a number in the runtime's order of submission.
    numbered: AtomicU64,
    /// Number of tasks ended.
    finished: AtomicU64,
    /// Number of threads that wait for all tasks.
    awaited: AtomicU64,
    /// The serial number of this use above, the state in the two lowest bits.
    state: AtomicU64,
}

/// Tasks of a context so far, in all uses of its place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Tasks ended.
    pub finished: u64,
    /// Tasks taken.
    pub submitted: u64,
}

impl Counts {
    /// Whether nothing was left to do, at some moment between the reads of the two counts.
    #[inline]
    #[must_use]
    pub const fn is_finished(self) -> bool {
        self.finished == self.submitted
    }
}

/// A refused submission: the context does not take the task.
pub struct Refused {
    /// Whether a thread waits that has to be notified to look again.
    pub tell: bool,
}

impl InFlight {
    /// Begins a new use of a free place; returns its serial number.
    pub fn open(&self) -> u64 {
        let serial = (self.state.load(SeqCst) >> 2) + 1;
        self.state.store(serial << 2 | OPEN, SeqCst);
        serial
    }

    /// Whether the context of this serial number exists, even if it is being deleted.
    #[inline]
    pub fn is_there(&self, serial: u64) -> bool {
        let state = self.state.load(SeqCst);
        state >> 2 == serial && state & STATE != FREE
    }

    /// The serial number of the context that exists.
    #[inline]
    pub fn serial(&self) -> Option<u64> {
        let state = self.state.load(SeqCst);
        (state & STATE != FREE).then_some(state >> 2)
    }

    /// Counts a task for the context of this serial number; `None` when a task of the context itself submits it.
    #[inline]
    pub fn reserve(&self, serial: Option<u64>) -> Result<(), Refused> {
        self.submitted.fetch_add(1, SeqCst);
        fence(SeqCst);
        let state = self.state.load(SeqCst);
        if serial.is_none_or(|serial| state == serial << 2 | OPEN) {
            return Ok(());
        }
        Err(self.take_back(1))
    }

    /// Takes tasks back that were [reserved](Self::reserve) and have no number.
    pub fn take_back(&self, count: u64) -> Refused {
        let submitted = self.submitted.fetch_sub(count, SeqCst) - count;
        fence(SeqCst);
        let last = self.finished.load(SeqCst) == submitted;
        Refused { tell: last && self.awaited.load(SeqCst) != 0 }
    }

    /// Counts a reserved task that got its number.
    #[inline]
    pub fn number(&self) {
        self.numbered.fetch_add(1, SeqCst);
    }

    /// Counts an ended task. Returns whether a waiting thread has to be notified that it was the last.
    #[inline]
    pub fn end(&self) -> bool {
        let finished = self.finished.fetch_add(1, SeqCst) + 1;
        fence(SeqCst);
        self.awaited.load(SeqCst) != 0 && finished == self.submitted.load(SeqCst)
    }

    /// Tasks ended and taken so far, read in this order.
    #[inline]
    pub fn counts(&self) -> Counts {
        let finished = self.finished.load(SeqCst);
        Counts { finished, submitted: self.submitted.load(SeqCst) }
    }

    /// Announces a thread that waits.
    pub fn await_end(&self) {
        self.awaited.fetch_add(1, SeqCst);
        fence(SeqCst);
    }

    /// Ends the wait of a thread.
    pub fn stop_awaiting(&self) {
        self.awaited.fetch_sub(1, SeqCst);
    }

    /// Closes the context to tasks from outside. `false` when it is closed already or has another serial number.
    pub fn close(&self, serial: u64) -> bool {
        let closed = self.state.compare_exchange(serial << 2 | OPEN, serial << 2 | CLOSED, SeqCst, SeqCst).is_ok();
        fence(SeqCst);
        closed
    }

    /// Opens a closed context again.
    pub fn reopen(&self, serial: u64) {
        self.state.store(serial << 2 | OPEN, SeqCst);
    }

    /// Frees the place of a context that was closed and whose tasks have all ended.
    pub fn free(&self, serial: u64) {
        self.state.store(serial << 2 | FREE, SeqCst);
    }

    /// Number of tasks with a number, in all uses of the place.
    pub fn numbered(&self) -> u64 {
        self.numbered.load(SeqCst)
    }

    /// Number of tasks ended so far, in all uses of the place.
    pub fn finished(&self) -> u64 {
        self.finished.load(SeqCst)
    }
}
