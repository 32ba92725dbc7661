//! A barrier that no thread waits at in vain.
//!
//! The members of a team run the application's code, which may panic, or return while others continue to a barrier.
//! Either way the barrier can never open: it *breaks*, every member at it or arriving later unwinds, and the task
//! fails.

use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Number of times a member checks for the others before it parks.
const LOOKS: u32 = 200;

pub(crate) struct Barrier {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// Number of times it opened; written under the lock.
    opened: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: usize,
    /// Number of members that have returned.
    gone: usize,
    broken: bool,
}

/// Payload of a member that unwinds from a broken barrier: another member failed.
struct Broken;

impl Barrier {
    pub(crate) fn new(size: usize) -> Barrier {
        Barrier { size, state: Mutex::default(), changed: Condvar::new(), opened: AtomicU64::new(0) }
    }

    /// Waits for the other members; unwinds if they will not come.
    pub(crate) fn wait(&self) {
        let mut state = self.state.lock();
        if state.broken {
            drop(state);
            resume_unwind(Box::new(Broken));
        }
        state.waiting += 1;
        if state.waiting == self.size {
            state.waiting = 0;
            self.opened.store(self.opened.load(Relaxed) + 1, Release);
            self.changed.notify_all();
            return;
        }
        if state.waiting + state.gone == self.size {
            self.deserted(&mut state);
        }
        let round = self.opened.load(Relaxed);
        let opened = || self.opened.load(Acquire) != round;
        drop(state);
        for _ in 0..LOOKS {
            if opened() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut state = self.state.lock();
        while !opened() && !state.broken {
            self.changed.wait(&mut state);
        }
        drop(state);
        if !opened() {
            resume_unwind(Box::new(Broken));
        }
    }

    /// Notes that a member has returned, and will not come.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.gone += 1;
        if state.waiting > 0 && state.waiting + state.gone == self.size {
            self.deserted(&mut state);
        }
    }

    /// Breaks the barrier: a member has failed.
    pub(crate) fn break_up(&self) {
        self.state.lock().broken = true;
        self.changed.notify_all();
    }

    /// Whether the barrier broke.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.lock().broken
    }

    fn deserted(&self, state: &mut State) {
        state.broken = true;
        self.changed.notify_all();
    }

    /// Whether a payload only tells that another member failed.
    pub(crate) fn is_consequence(payload: &(dyn Any + Send)) -> bool {
        payload.is::<Broken>()
    }
}
