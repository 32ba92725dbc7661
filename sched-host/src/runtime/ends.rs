//! How tasks ended, and who waits for that.

use super::failure::{Cause, Outcome, TaskFailure};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Duration;

/// The ends of tasks that did not end well, and the threads that wait for ends.
#[derive(Default)]
pub(crate) struct Ends {
    waiters: AtomicU64,
    /// Some data, or some task, is bad: until then nobody needs to look.
    any_bad: AtomicBool,
    state: Mutex<EndState>,
    changed: Condvar,
}

#[derive(Default)]
struct EndState {
    /// Kernels that panicked since this was last reported.
    failed: Vec<Arc<TaskFailure>>,
    /// Tasks that were cancelled since.
    cancelled: u64,
    /// Every task that did not end well, by its sequence.
    bad: HashMap<u64, Outcome>,
}

impl Ends {
    /// Whether anything ever went wrong.
    pub(crate) fn any_bad(&self) -> bool {
        self.any_bad.load(Acquire)
    }

    pub(crate) fn note_bad(&self, task: u64, outcome: &Outcome, cause: &Cause) {
        let mut state = self.state.lock();
        match outcome {
            Outcome::Failed(_) => state.failed.push(Arc::clone(cause)),
            Outcome::Cancelled(_) => state.cancelled += 1,
            Outcome::Done => {}
        }
        state.bad.insert(task, outcome.clone());
        self.any_bad.store(true, Release);
    }

    /// Why the task did not end well, if it did not.
    pub(crate) fn cause(&self, task: u64) -> Option<Cause> {
        match self.state.lock().bad.get(&task)? {
            Outcome::Failed(cause) | Outcome::Cancelled(cause) => Some(Arc::clone(cause)),
            Outcome::Done => None,
        }
    }

    /// How a finished task ended.
    pub(crate) fn outcome(&self, task: u64) -> Outcome {
        self.state.lock().bad.get(&task).cloned().unwrap_or(Outcome::Done)
    }

    /// What failed, and how many tasks were cancelled, since the last report.
    pub(crate) fn report(&self) -> (Vec<Arc<TaskFailure>>, u64) {
        let mut state = self.state.lock();
        (std::mem::take(&mut state.failed), std::mem::take(&mut state.cancelled))
    }

    /// Whether a thread waits.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiters.load(SeqCst) > 0
    }

    /// Lets those who wait look again.
    pub(crate) fn tell(&self) {
        drop(self.state.lock());
        self.changed.notify_all();
    }

    /// Waits until `done`, looking whenever something ended, and at the latest after each `period`: then `go_on` says
    /// whether to go on waiting.
    pub(crate) fn wait_until(&self, period: Duration, done: impl Fn() -> bool, mut go_on: impl FnMut() -> bool) {
        self.waiters.fetch_add(1, SeqCst);
        let mut state = self.state.lock();
        while !done() {
            if self.changed.wait_for(&mut state, period).timed_out() && !MutexGuard::unlocked(&mut state, &mut go_on) {
                break;
            }
        }
        drop(state);
        self.waiters.fetch_sub(1, SeqCst);
    }
}
