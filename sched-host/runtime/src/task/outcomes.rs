//! How tasks ended, and who waits for that.

use super::failure::{Cause, Outcome, TaskFailure};
use parking_lot::{Condvar, Mutex, MutexGuard};
use sched_sync::heavy_fence;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Duration;

/// The ends of tasks that did not end well, and the threads that wait for ends.
#[derive(Default)]
pub(crate) struct Outcomes {
    waiters: AtomicU64,
    /// Threads that wait for the tasks of the default context only.
    default_waiters: AtomicU64,
    /// Some data, or some task, is bad: until then nobody needs to look.
    any_bad: AtomicBool,
    state: Mutex<EndState>,
    changed: Condvar,
}

#[derive(Default)]
struct EndState {
    /// Kernels that panicked since this was last reported.
    failed: Vec<(u16, Arc<TaskFailure>)>,
    /// Tasks that were cancelled since, by context.
    cancelled: BTreeMap<u16, u64>,
    /// Every task that did not end well, by its sequence.
    bad: HashMap<u64, Outcome>,
}

impl Outcomes {
    /// Whether anything ever went wrong.
    pub(crate) fn any_bad(&self) -> bool {
        self.any_bad.load(Acquire)
    }

    pub(crate) fn note_bad(&self, context: u16, task: u64, outcome: &Outcome, cause: &Cause) {
        let mut state = self.state.lock();
        match outcome {
            Outcome::Failed(_) => state.failed.push((context, Arc::clone(cause))),
            Outcome::Cancelled(_) => *state.cancelled.entry(context).or_insert(0) += 1,
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

    /// What failed, and how many tasks were cancelled, since the last report; in one context, or in all.
    pub(crate) fn report(&self, context: Option<u16>) -> (Vec<Arc<TaskFailure>>, u64) {
        let mut state = self.state.lock();
        let (told, rest): (Vec<_>, Vec<_>) =
            state.failed.drain(..).partition(|(of, _)| context.is_none_or(|context| context == *of));
        state.failed = rest;
        let cancelled = match context {
            Some(context) => state.cancelled.remove(&context).unwrap_or(0),
            None => std::mem::take(&mut state.cancelled).into_values().sum(),
        };
        (told.into_iter().map(|(_, failure)| failure).collect(), cancelled)
    }

    /// A context goes: what failed in it is reported with what failed in the default one.
    pub(crate) fn forget_context(&self, context: u16) {
        let mut state = self.state.lock();
        state.failed.iter_mut().filter(|(of, _)| *of == context).for_each(|(of, _)| *of = 0);
        if let Some(cancelled) = state.cancelled.remove(&context) {
            *state.cancelled.entry(0).or_insert(0) += cancelled;
        }
    }

    /// Whether a thread waits for the tasks of the default context only.
    #[inline]
    pub(crate) fn is_default_awaited(&self) -> bool {
        self.default_waiters.load(Relaxed) != 0
    }

    /// A thread waits for these from now on.
    pub(crate) fn await_default(&self) {
        self.default_waiters.fetch_add(1, SeqCst);
        heavy_fence();
    }

    /// It waits no more.
    pub(crate) fn stop_awaiting_default(&self) {
        self.default_waiters.fetch_sub(1, SeqCst);
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
