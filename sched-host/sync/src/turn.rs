//! A turn that somebody waits for, or gives up, while it comes.
//!
//! # Protocol
//!
//! The program asks for its turn at data. The thread that lets go of the data says that it has [come](Turn::come),
//! once; meanwhile the program looks whether it has, leaves a waker, or [gives it up](Turn::give_up).
//!
//! *Exactly one side ends the turn.* Coming and giving up both exchange the state, so one of them sees the other: a
//! turn that came first is the program's, which ends it, and one that was given up first is ended by the thread that
//! says that it has come.
//!
//! *No waker is left behind.* A waker is left under its lock, before the look at the state; the state is exchanged
//! before the waker is taken under that lock. So the waker is taken, or the look sees that the turn has come.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU64, Mutex, Ordering::*, lock};

/// State of a turn: one of these, or the name under which it was given up.
const WAITS: u64 = u64::MAX;
const CAME: u64 = u64::MAX - 1;

/// See the [module](self). `W` is a waker.
pub struct Turn<W> {
    state: AtomicU64,
    waker: Mutex<Option<W>>,
}

/// What the thread does that says that a turn has come.
#[derive(PartialEq, Eq, Debug)]
pub enum Came<W> {
    /// Wakes those who wait for it.
    Awaited(Option<W>),
    /// Ends the turn of this name.
    GivenUp(u32),
}

impl<W> Default for Turn<W> {
    fn default() -> Turn<W> {
        Turn { state: AtomicU64::new(WAITS), waker: Mutex::new(None) }
    }
}

impl<W> Turn<W> {
    /// Says that the turn has come.
    pub fn come(&self) -> Came<W> {
        match self.state.swap(CAME, AcqRel) {
            WAITS => Came::Awaited(lock(&self.waker).take()),
            name => Came::GivenUp(name as u32),
        }
    }

    /// Whether the turn has come.
    pub fn has_come(&self) -> bool {
        self.state.load(Acquire) == CAME
    }

    /// Whether the turn has come; otherwise `waker` is left for that moment, in the place of an earlier one.
    pub fn has_come_or_wakes(&self, waker: W) -> bool {
        if self.has_come() {
            return true;
        }
        let earlier = lock(&self.waker).replace(waker);
        // Not under the lock.
        drop(earlier);
        self.has_come()
    }

    /// Gives up a turn of this name that has not come; `false` if it has, which the caller ends then.
    pub fn give_up(&self, name: u32) -> bool {
        self.state.compare_exchange(WAITS, u64::from(name), AcqRel, Acquire).is_ok()
    }
}
