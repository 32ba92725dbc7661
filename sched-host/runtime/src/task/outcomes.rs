//! Outcomes of tasks, and threads that wait for them.

use super::bad_tasks::BadTasks;
use super::failure::{Cause, Outcome, TaskFailure};
use crate::backend::ThreadBackend;
use crate::wait::future::Wakers;
use crate::worker::Worker;
use parking_lot::Mutex;
use sched_core::WorkerId;
use sched_graph::ContextId;
use sched_sync::heavy_fence;
use sched_sync::waiters::Waiters;
use sched_tree::SlotId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};

/// What workers look for before they run a task: what has happened in the runtime at least once.
#[derive(Clone, Copy)]
pub(crate) struct Watch(u8);

impl Watch {
    const BAD: u8 = 1;
    const TURNS: u8 = 2;

    /// Whether data may be bad, since a task failed; or a task may be late.
    #[inline]
    pub(crate) fn for_bad_data(self) -> bool {
        self.0 & Watch::BAD != 0
    }

    /// Whether the task may have turns to take, since a task commuted.
    #[inline]
    pub(crate) fn for_turns(self) -> bool {
        self.0 & Watch::TURNS != 0
    }
}

/// Outcomes of tasks that failed or were cancelled, and threads that wait for the end of tasks.
#[derive(Default)]
pub(crate) struct Outcomes {
    pub(crate) waiters: Waiters<Worker>,
    /// The worker without a thread, and where it parks.
    main: Option<(WorkerId, Arc<ThreadBackend>)>,
    /// Number of threads that wait only for the tasks of the default context.
    default_waiters: AtomicU64,
    /// A [`Watch`].
    watch: AtomicU8,
    state: Mutex<EndState>,
    pub(crate) wakers: Wakers,
}

#[derive(Default)]
struct EndState {
    /// Kernels that panicked since the last report, by context.
    failed: Vec<(ContextId, Arc<TaskFailure>)>,
    /// Number of tasks cancelled since the last report, by context.
    cancelled: BTreeMap<ContextId, u64>,
    /// Every task that failed or was cancelled.
    bad: BadTasks,
}

impl Outcomes {
    /// Outcomes of a runtime whose worker `main`, if any, has no thread of its own.
    pub(crate) fn new(main: Option<WorkerId>, backend: &Arc<ThreadBackend>) -> Outcomes {
        Outcomes { main: main.map(|worker| (worker, Arc::clone(backend))), ..Outcomes::default() }
    }

    /// The worker without a thread, if no thread is it now.
    pub(crate) fn vacant_worker(&self) -> Option<WorkerId> {
        self.main.as_ref().filter(|_| self.waiters.is_vacant()).map(|(worker, _)| *worker)
    }

    /// What workers have to look for.
    #[inline]
    pub(crate) fn watch(&self) -> Watch {
        Watch(self.watch.load(Acquire))
    }

    /// Notes that a task commutes, before it is pushed.
    pub(crate) fn note_commute(&self) {
        if !self.watch().for_turns() {
            self.watch.fetch_or(Watch::TURNS, AcqRel);
        }
    }

    /// Notes that a task has a deadline, before it is pushed: whoever looks for bad data looks for that too.
    pub(crate) fn note_deadline(&self) {
        if !self.watch().for_bad_data() {
            self.watch.fetch_or(Watch::BAD, AcqRel);
        }
    }

    /// Notes a task that failed or was cancelled; `counts` unless it only stands for others.
    pub(crate) fn note_bad(&self, context: ContextId, task: u64, outcome: &Outcome, cause: &Cause, counts: bool) {
        let mut state = self.state.lock();
        match outcome {
            Outcome::Failed(_) => state.failed.push((context, Arc::clone(cause))),
            Outcome::Cancelled(_) if !counts => {}
            Outcome::Cancelled(_) => *state.cancelled.entry(context).or_insert(0) += 1,
            Outcome::Done => {}
        }
        state.bad.insert(task, outcome.clone());
        self.watch.fetch_or(Watch::BAD, AcqRel);
    }

    /// Why the task failed or was cancelled, if so.
    pub(crate) fn cause(&self, task: u64) -> Option<Cause> {
        match self.state.lock().bad.get(task)? {
            Outcome::Failed(cause) | Outcome::Cancelled(cause) => Some(cause),
            Outcome::Done => None,
        }
    }

    /// Outcome of a finished task.
    pub(crate) fn outcome(&self, task: u64) -> Outcome {
        self.state.lock().bad.get(task).unwrap_or(Outcome::Done)
    }

    /// Failures, and the number of cancelled tasks, since the last report; in one context, or in all.
    pub(crate) fn report(&self, context: Option<ContextId>) -> (Vec<Arc<TaskFailure>>, u64) {
        let mut state = self.state.lock();
        let (reported, rest): (Vec<_>, Vec<_>) =
            state.failed.drain(..).partition(|(of, _)| context.is_none_or(|context| context == *of));
        state.failed = rest;
        let cancelled = match context {
            Some(context) => state.cancelled.remove(&context).unwrap_or(0),
            None => std::mem::take(&mut state.cancelled).into_values().sum(),
        };
        (reported.into_iter().map(|(_, failure)| failure).collect(), cancelled)
    }

    /// Assigns the unreported failures of a deleted context to the default one.
    pub(crate) fn forget_context(&self, context: ContextId) {
        let mut state = self.state.lock();
        state.failed.iter_mut().filter(|(of, _)| *of == context).for_each(|(of, _)| *of = ContextId::DEFAULT);
        if let Some(cancelled) = state.cancelled.remove(&context) {
            *state.cancelled.entry(ContextId::DEFAULT).or_insert(0) += cancelled;
        }
    }

    /// Whether a thread waits only for the tasks of the default context.
    #[inline]
    pub(crate) fn is_default_awaited(&self) -> bool {
        self.default_waiters.load(Relaxed) != 0
    }

    /// Announces such a thread.
    pub(crate) fn await_default(&self) {
        self.default_waiters.fetch_add(1, SeqCst);
        heavy_fence();
    }

    /// Ends its wait.
    pub(crate) fn stop_awaiting_default(&self) {
        self.default_waiters.fetch_sub(1, SeqCst);
    }

    /// Whether a thread waits.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiters.is_any()
    }

    /// Notifies waiting threads, and the futures that wait for the task in this slot.
    #[cold]
    pub(crate) fn tell_ended(&self, slot: SlotId) {
        self.tell();
        self.wakers.wake(slot);
    }

    /// Notifies waiting threads.
    pub(crate) fn tell(&self) {
        self.tell_by(None);
    }

    /// Notifies waiting threads, on behalf of a worker. If a waiting thread is that worker, it has looked itself: it
    /// would keep itself from sleeping.
    pub(crate) fn tell_by(&self, teller: Option<WorkerId>) {
        self.waiters.tell();
        if let Some((worker, backend)) = &self.main
            && teller != Some(*worker)
        {
            backend.sleep.disturb(worker.index());
        }
    }
}
