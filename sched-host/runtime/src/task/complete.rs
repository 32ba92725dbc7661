//! Steps when a task becomes ready, and when it ends.

mod special;

use super::failure::{Cause, Outcome};
use super::job::Job;
use super::record::Taken;
use super::scratch::{Freed, WorkerScratch};
use crate::context::{ContextCore, enter_task};
use crate::core::{Core, TaskPlace, Vacant};
use sched_core::WorkerId;
use sched_graph::ContextId;
use sched_sync::light_fence;
use sched_tree::{Phase, Slot, Tree};
use special::Special;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*, fence};

/// Why a task with a deadline is cancelled.
pub(crate) const LATE: &str = "its deadline has passed";

impl Core {
    /// Schedules a task whose dependencies have all ended. `requester` is the worker that this thread is, here and
    /// below.
    #[inline]
    pub(crate) fn make_ready(&self, context: &ContextCore, task: TaskPlace, requester: Option<WorkerId>) {
        if task.record.is_special() {
            self.make_special_ready(task, requester);
        } else {
            self.push(&context.tree, task.slot, requester, None);
        }
    }

    #[inline(never)]
    fn make_special_ready(&self, task: TaskPlace, requester: Option<WorkerId>) {
        let mut scratch = WorkerScratch::default();
        self.schedule(task, requester, &mut scratch);
        self.settle(requester, &mut scratch);
        self.give_back(&mut scratch);
    }

    /// Ends a task, and others that are cancelled with it. The caller has dropped the arguments of a task that
    /// succeeded. A worker is in the context of the task: callbacks and drops of arguments may submit tasks.
    #[inline(never)]
    pub(crate) fn end(
        &self,
        task: TaskPlace,
        outcome: &Outcome,
        taken: Taken,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        self.end_here(task, outcome, taken, requester, scratch);
    }

    /// [`end`](Self::end), inlined into its caller.
    #[inline(always)]
    pub(crate) fn end_here(
        &self,
        task: TaskPlace,
        outcome: &Outcome,
        taken: Taken,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        self.end_one(task, outcome, taken, requester, scratch);
        self.settle(requester, scratch);
    }

    /// Ends and schedules the remaining tasks of earlier calls, without recursion: a chain of cancelled tasks may be
    /// long.
    #[inline]
    pub(crate) fn settle(&self, requester: Option<WorkerId>, scratch: &mut WorkerScratch) {
        if !scratch.ending.is_empty() || !scratch.retry.is_empty() {
            self.settle_all(requester, scratch);
        }
    }

    #[inline(never)]
    fn settle_all(&self, requester: Option<WorkerId>, scratch: &mut WorkerScratch) {
        loop {
            if let Some((slot, outcome)) = scratch.ending.pop() {
                // Its end may call the program.
                self.push_kept(requester, scratch);
                let task = self.place(slot);
                if requester.is_some() {
                    enter_task(self.id, task.record.context());
                }
                let mut taken = task.record.body.lock().take();
                taken.restore();
                self.end_one(task, &outcome, taken, requester, scratch);
            } else if let Some(slot) = scratch.retry.pop() {
                self.schedule(self.place(slot), requester, scratch);
            } else {
                break;
            }
        }
    }

    /// Pushes a ready task into the tree, or notes that it ends without running.
    #[inline(never)]
    pub(crate) fn schedule(&self, task: TaskPlace, requester: Option<WorkerId>, scratch: &mut WorkerScratch) {
        let record = task.record;
        if record.is_special() && !self.schedule_special(task, requester, scratch) {
            return;
        }
        self.schedule_plain(self.tree_of(record), record.context(), task.slot, requester, scratch);
    }

    /// The rest of [`schedule`](Self::schedule), for a task of which the tree of its context has to know only.
    #[inline(always)]
    pub(crate) fn schedule_plain(
        &self,
        tree: &Tree,
        context: ContextId,
        slot: &'static Slot,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        if let Some((served, worker, arch)) = scratch.goes_on
            && served == context
            && tree.comes_straight_back(slot, arch)
        {
            // A task that this worker goes on with has its home here, whatever was said before.
            let is_at_home = slot.head().home() == Some(worker.0);
            if let Some(other) = scratch.deferred.keep(slot, is_at_home)
                && let Some(other) = self.hold(tree, other, worker, scratch)
            {
                self.push_here(tree, other, requester, scratch);
            }
            return;
        }
        // In the order in which they became ready: this one may be the more urgent.
        self.push_kept(requester, scratch);
        self.push_here(tree, slot, requester, scratch);
    }

    /// Pushes the task that this worker would go on with, before something that takes long.
    #[inline]
    pub(crate) fn push_kept(&self, requester: Option<WorkerId>, scratch: &mut WorkerScratch) {
        if let Some(kept) = scratch.deferred.take_kept() {
            self.push_here(self.tree_of(self.records.get(kept.id())), kept, requester, scratch);
        }
    }

    /// Pushes a task on behalf of this thread.
    #[inline]
    pub(crate) fn push_here(
        &self,
        tree: &Tree,
        slot: &'static Slot,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        if scratch.will_pull {
            scratch.deferred.note_pushed(slot.id());
        }
        let deferred = scratch.will_pull.then_some(scratch.deferred.cell());
        self.push(tree, slot, requester, deferred);
    }

    /// Pushes a task into the tree of its context.
    #[inline]
    fn push(
        &self,
        tree: &Tree,
        slot: &'static Slot,
        requester: Option<WorkerId>,
        deferred: Option<&Cell<Option<WorkerId>>>,
    ) {
        if let Some(combined) = &self.combined {
            combined.workers.note_pushed(slot);
        }
        match requester {
            None => tree.push_from_outside(slot),
            Some(_) => tree.push(slot, requester, deferred),
        }
    }

    /// Ends one task and releases those that waited for it. Inlined as one function: every task passes here, and each
    /// call that needs its registers costs instructions (see `submit`).
    #[inline(always)]
    fn end_one(
        &self,
        task: TaskPlace,
        outcome: &Outcome,
        taken: Taken,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        let TaskPlace { slot, record } = task;
        let current = &slot.head().sequence;
        let context = record.context();
        let failed = match outcome {
            Outcome::Done => None,
            Outcome::Failed(cause) | Outcome::Cancelled(cause) => Some(cause),
        };
        let job = match taken {
            Taken { job, rare: None } if failed.is_none() => job,
            taken => match self.end_special(task, outcome, taken, requester, scratch) {
                Some(Special { job }) => job,
                None => return,
            },
        };
        let codelet = slot.head().codelet.load(Relaxed);
        let (watched, vacant);
        {
            let mut body = record.body.lock();
            vacant = Vacant::new(task, job.as_deref());
            body.job = job;
            if !body.dependents.is_empty() {
                scratch.dependents.extend_from_slice(&body.dependents);
                body.dependents.clear();
            }
            record.close(current);
            watched = record.take_watched();
        }
        slot.renew(Phase::Free);
        if scratch.freed.push(codelet, vacant) {
            self.give_back(scratch);
        }
        if !scratch.dependents.is_empty() {
            self.release_dependents(failed, requester, scratch);
        }
        self.count_finished(context, requester);
        if watched {
            self.outcomes.tell_ended(slot.id());
        }
    }

    /// Releases the tasks in `scratch` that waited for one that has ended; those that were submitted
    /// [after](crate::TaskBuilder::after) it are cancelled if it `failed`.
    #[inline(always)]
    fn release_dependents(&self, failed: Option<&Cause>, requester: Option<WorkerId>, scratch: &mut WorkerScratch) {
        // The list stays where it is: nothing below adds to it, and moving it to and fro costs as much as a release.
        let mut at = 0;
        while let Some(&dependent) = scratch.dependents.get(at) {
            at += 1;
            let next = self.place(dependent.slot());
            let waiting = next.record;
            if let Some(cause) = failed.filter(|_| dependent.is_explicit()) {
                let mut body = waiting.body.lock();
                body.rare(waiting).cancelled.get_or_insert_with(|| Arc::clone(cause));
            }
            if waiting.release() {
                self.schedule(next, requester, scratch);
            }
        }
        scratch.dependents.clear();
    }

    #[inline(always)]
    pub(crate) fn count_finished(&self, context: ContextId, requester: Option<WorkerId>) {
        match requester {
            _ if context != ContextId::DEFAULT => {
                if self.roster.get(context).in_flight.end() {
                    self.outcomes.tell();
                }
                if requester.is_none() {
                    self.note_if_finished(None);
                } else if self.outcomes.is_default_awaited() {
                    self.note_if_default_finished();
                }
            }
            Some(worker) => {
                // Only the worker itself writes its counter.
                let finished = &self.counters[worker.index()].finished;
                finished.store(finished.load(Relaxed) + 1, Release);
                // Idle workers notify threads that wait for all tasks; but the workers of this context may be busy for
                // other contexts.
                light_fence();
                if self.outcomes.is_default_awaited() {
                    self.note_if_default_finished();
                }
            }
            None => {
                self.finished_outside.fetch_add(1, SeqCst);
                self.note_if_finished(None);
            }
        }
    }

    #[cold]
    fn note_if_default_finished(&self) {
        // The last two tasks may end at once: one of them sees the other.
        fence(SeqCst);
        if self.counts(&self.roster.default).is_finished() || self.has_room() {
            self.outcomes.tell();
        }
    }

    /// Returns free slots to the codelets whose jobs they hold.
    pub(crate) fn give_back(&self, scratch: &mut WorkerScratch) {
        let Freed { places, of_one, codelet, mixed } = &mut scratch.freed;
        // Often they belong to one codelet, otherwise to few.
        while *mixed && let Some(last) = places.last() {
            let of = |vacant: &Vacant| vacant.place.slot.head().codelet.load(Relaxed);
            let codelet = of(last);
            // Taken out first: once a slot is returned, a task of another codelet may be in it.
            of_one.extend(places.extract_if(.., |vacant| of(vacant) == codelet));
            self.put_back(codelet, |list| list.append(of_one));
        }
        if !places.is_empty() {
            self.put_back(*codelet, |list| list.append(places));
        }
        *mixed = false;
    }

    fn put_back(&self, codelet: u32, add: impl FnOnce(&mut Vec<Vacant>)) {
        let mut left = Vec::new();
        match self.backend.codelets.get(codelet) {
            Some(facts) => facts.slots.put_back(&mut left, add),
            None => add(&mut left),
        }
        if !left.is_empty() {
            self.release(&left);
        }
    }

    /// Drops the job of a task. That is code of the application: the caller holds no lock.
    pub(crate) fn release_job(&self, slot: &Slot, job: Option<Box<dyn Job>>) {
        aside(&slot.head().sequence, "the drop of a kernel", || drop(job));
    }

    /// Drops the jobs that slots hold, for tasks of any codelet. That drops kernels, code of the application: the
    /// caller holds no lock.
    #[cold]
    pub(crate) fn release(&self, vacant: &[Vacant]) {
        for TaskPlace { slot, record } in vacant.iter().map(|vacant| vacant.place) {
            let job = record.body.lock().job.take();
            self.release_job(slot, job);
        }
        self.keep_fresh(vacant);
    }
}

/// Marks the data that a task should have written.
fn note_bad_data(job: &dyn Job, cause: &Cause) {
    job.visit(&mut |header, mode| {
        if mode.writes() {
            header.note_bad(cause.task);
        }
    });
}

/// Drops the arguments of a task. This is the application's code: no lock is held meanwhile.
pub(crate) fn clear(job: &mut dyn Job, task: &AtomicU64) {
    aside(task, "the drop of a task's arguments", || job.clear());
}

/// Runs the application's code outside a kernel. A panic is logged.
pub(crate) fn aside(task: &AtomicU64, what: &str, body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        // The drop of a payload may panic in turn.
        std::mem::forget(payload);
        tracing::error!(task = task.load(Relaxed), "{what} panicked");
    }
}
