//! How many tasks a context has, and whether it takes more.
//!
//! # Protocol
//!
//! A context may be deleted while other threads submit to it. It goes when it takes no more tasks and those that it took
//! have ended; a task that it took after that would never run.
//!
//! - **reserve** (who submits): count the task, *then* look whether the context is open. If it is not, take the task back
//!   from the count, and submit nothing.
//! - **close** (who deletes): say that the context is closed, *then* wait until as many tasks have ended as were counted.
//!
//! A full fence stands between the two steps of either, so of a submitter and a deleter at the same moment at least one
//! sees the other: the submitter sees that it is closed, or the deleter sees the task and waits for it. Tasks that tasks of the context submit
//! are taken while it is closed: the one that submits is counted and has not ended.
//!
//! - **end**: count the end, then look whether somebody waits; if so, and this was the last, it has to be told.
//! - **wait**: say that somebody waits, then look at the counts; then sleep until told.
//!
//! By the same argument the waiter sees that all tasks have ended, or the last that ends sees the waiter. A refused
//! submission is an end in this sense: it may have hidden from the last that it was the last.
//!
//! A place is used for one context after the other; each use has a serial number of its own, which handles know.

use crate::primitives::{AtomicU64, Ordering::*, fence};

#[cfg(all(test, loom))]
mod models;

const FREE: u64 = 0;
const OPEN: u64 = 1;
const CLOSED: u64 = 2;
const STATE: u64 = 3;

/// See the [module](self).
#[derive(Default)]
pub struct Tally {
    /// Tasks taken.
    submitted: AtomicU64,
    /// Of these, those that have a number in the runtime's order of submission.
    numbered: AtomicU64,
    /// Tasks ended.
    finished: AtomicU64,
    /// Threads that wait for all tasks.
    awaited: AtomicU64,
    /// The serial number of this use above, the state in the two lowest bits.
    state: AtomicU64,
}

/// The context does not take the task.
pub struct Refused {
    /// Somebody waits who has to be told to look again.
    pub tell: bool,
}

impl Tally {
    /// A new use of a place that is free; its serial number.
    pub fn open(&self) -> u64 {
        let serial = (self.state.load(SeqCst) >> 2) + 1;
        self.state.store(serial << 2 | OPEN, SeqCst);
        serial
    }

    /// Whether the context of this serial number is there, be it that it is just being deleted.
    #[inline]
    pub fn is_there(&self, serial: u64) -> bool {
        let state = self.state.load(SeqCst);
        state >> 2 == serial && state & STATE != FREE
    }

    /// The serial number of the context that is there.
    #[inline]
    pub fn serial(&self) -> Option<u64> {
        let state = self.state.load(SeqCst);
        (state & STATE != FREE).then_some(state >> 2)
    }

    /// Counts a task for the context of this serial number; without one, a task of the context itself submits it.
    #[inline]
    pub fn reserve(&self, serial: Option<u64>) -> Result<(), Refused> {
        self.submitted.fetch_add(1, SeqCst);
        fence(SeqCst);
        let state = self.state.load(SeqCst);
        if serial.is_none_or(|serial| state == serial << 2 | OPEN) {
            return Ok(());
        }
        let submitted = self.submitted.fetch_sub(1, SeqCst) - 1;
        fence(SeqCst);
        let last = self.finished.load(SeqCst) == submitted;
        Err(Refused { tell: last && self.awaited.load(SeqCst) != 0 })
    }

    /// A task that was reserved got its number.
    #[inline]
    pub fn number(&self) {
        self.numbered.fetch_add(1, SeqCst);
    }

    /// A task has ended. Whether somebody has to be told that it was the last.
    #[inline]
    pub fn end(&self) -> bool {
        let finished = self.finished.fetch_add(1, SeqCst) + 1;
        fence(SeqCst);
        self.awaited.load(SeqCst) != 0 && finished == self.submitted.load(SeqCst)
    }

    /// Tasks ended and tasks taken so far, in all uses of the place. If they are equal, nothing was left to do at the moment
    /// between.
    #[inline]
    pub fn counts(&self) -> (u64, u64) {
        let finished = self.finished.load(SeqCst);
        (finished, self.submitted.load(SeqCst))
    }

    /// Somebody waits from now on.
    pub fn await_end(&self) {
        self.awaited.fetch_add(1, SeqCst);
        fence(SeqCst);
    }

    /// It waits no more.
    pub fn stop_awaiting(&self) {
        self.awaited.fetch_sub(1, SeqCst);
    }

    /// The context takes no more tasks from outside. `false` when it does not already, or is another one.
    pub fn close(&self, serial: u64) -> bool {
        let closed = self.state.compare_exchange(serial << 2 | OPEN, serial << 2 | CLOSED, SeqCst, SeqCst).is_ok();
        fence(SeqCst);
        closed
    }

    /// It takes tasks again.
    pub fn reopen(&self, serial: u64) {
        self.state.store(serial << 2 | OPEN, SeqCst);
    }

    /// The context is gone: it was closed, and all its tasks have ended.
    pub fn free(&self, serial: u64) {
        self.state.store(serial << 2 | FREE, SeqCst);
    }

    /// Of these, those with a number.
    pub fn numbered(&self) -> u64 {
        self.numbered.load(SeqCst)
    }

    /// Tasks ended so far, in all uses of the place.
    pub fn finished(&self) -> u64 {
        self.finished.load(SeqCst)
    }
}
