//! A barrier that nobody waits at in vain.
//!
//! The members of a team run the application's code, which may panic, or return where others go on to a barrier. Either
//! way the barrier can never open: it *breaks*, everybody who waits at it or comes to it unwinds, and the task fails.

use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// How often a member looks whether the others have come before it parks.
const LOOKS: u32 = 200;

pub(crate) struct Barrier {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// How often it opened; written under the lock.
    opened: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: usize,
    /// Members that have returned.
    gone: usize,
    broken: bool,
}

/// What a member unwinds with that waits at a broken barrier: the failure is another's.
struct Broken;

impl Barrier {
    pub(crate) fn new(size: usize) -> Barrier {
        Barrier { size, state: Mutex::default(), changed: Condvar::new(), opened: AtomicU64::new(0) }
    }

    /// Waits for the others; unwinds when they will not come.
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

    /// A member has returned: from now on nobody waits for it.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.gone += 1;
        if state.waiting > 0 && state.waiting + state.gone == self.size {
            self.deserted(&mut state);
        }
    }

    /// A member has failed.
    pub(crate) fn break_up(&self) {
        self.state.lock().broken = true;
        self.changed.notify_all();
    }

    /// Whether it could not open.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.lock().broken
    }

    fn deserted(&self, state: &mut State) {
        state.broken = true;
        self.changed.notify_all();
    }

    /// Whether a payload says only that somebody else failed.
    pub(crate) fn is_consequence(payload: &(dyn Any + Send)) -> bool {
        payload.is::<Broken>()
    }
}
