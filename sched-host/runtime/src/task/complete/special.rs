//! The parts of becoming ready and of ending that only tasks with rare fields have, tasks that failed, and entries that
//! are no tasks. The usual tasks pass them by.

use super::super::cancel::cancelled;
use super::super::failure::Outcome;
use super::super::job::Job;
use super::super::record::{Callback, RareFields, Taken};
use super::{LATE, WorkerScratch, aside, clear, note_bad_data};
use crate::core::{Core, TaskPlace};
use crate::data::DataHeader;
use crate::worker::acting::Acting;
use sched_core::WorkerId;
use sched_tree::Slot;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::time::Instant;

/// What is left of a task after [`Core::end_special`].
pub(super) struct Special {
    pub(super) job: Option<Box<dyn Job>>,
}

impl Core {
    /// Takes the turn at each data that the task in `slot`, which this thread has pulled, commutes on: all or none. If
    /// it gets none, the task waits for the data whose turn another has, and the caller has no task any more.
    ///
    /// Turns are taken by the worker that runs the task, not when the task is ready: in between it may lie in a queue
    /// for long, while others could run. Each end of a task schedules one task of those that wait, so a task is
    /// scheduled a bounded number of times, however many there are. One that is scheduled so takes the turn or passes
    /// it on: while a turn is free, none waits for it but behind one that is scheduled.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_turns(&self, task: TaskPlace, worker: WorkerId, scratch: &mut WorkerScratch) -> bool {
        if !task.record.is_special() {
            return true;
        }
        let turns: SmallVec<[Arc<DataHeader>; 2]> = match &task.record.body.lock().rare {
            Some(rare) => rare.turns.iter().cloned().collect(),
            None => return true,
        };
        if turns.is_empty() {
            return true;
        }
        // What a component decided about it is out of date when it is scheduled again. Nobody else sees it here.
        let head = task.slot.head();
        let (predicted, implementation) = (head.predicted.load(Relaxed), head.implementation.load(Relaxed));
        head.predicted.store(u64::MAX, Relaxed);
        head.implementation.store(u16::MAX, Relaxed);
        let taken = turns.iter().take_while(|header| header.take_turn(task.slot)).count();
        if taken == turns.len() {
            head.predicted.store(predicted, Relaxed);
            head.implementation.store(implementation, Relaxed);
            return true;
        }
        scratch.give_turns(&turns[..taken]);
        scratch.pass_turns(&turns[taken + 1..]);
        self.settle(Some(worker), scratch);
        false
    }

    /// The part of [`schedule`](Self::schedule) for tasks with rare fields, and for entries that are no tasks. Returns
    /// whether there is a task to push.
    #[cold]
    #[inline(never)]
    pub(super) fn schedule_special(
        &self,
        task: TaskPlace,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) -> bool {
        let (slot, record) = (task.slot.id(), task.record);
        let mut body = record.body.lock();
        let is_task = body.job.is_some();
        let rare = body.rare(record);
        if let Some(cause) = rare.cancelled.take() {
            scratch.pass_turns(&std::mem::take(&mut rare.turns));
            scratch.ending.push((slot, Outcome::Cancelled(cause)));
            return false;
        }
        if rare.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            scratch.pass_turns(&std::mem::take(&mut rare.turns));
            let codelet = body.job.as_ref().map_or_else(String::new, |job| job.facts().name.clone());
            let name = body.rare(record).name.clone();
            let cause = cancelled(task.slot, codelet, name.as_deref(), LATE);
            scratch.ending.push((slot, Outcome::Cancelled(cause)));
            return false;
        }
        if let Some((header, advice)) = rare.advice.take() {
            drop(body);
            self.follow_advice(task, header, advice, scratch);
            return false;
        }
        if let Some(recorded) = rare.launches.take() {
            drop(body);
            self.launch(slot, &recorded, requester, scratch);
            return false;
        }
        if !is_task {
            // An access of the application itself: the callback reports its turn, and the application ends the access;
            // or the callback has the data, and the access ends with it.
            let (ready, ends) = (rare.callback.take(), rare.ends_with_callback);
            drop(body);
            match ready {
                Some(ready) if ends => {
                    let _acting = Acting::for_access(self);
                    self.noting_ends(scratch, || self.call_back(task.slot, ready, &Outcome::Done, requester));
                    self.own_accesses.ended.fetch_add(1, SeqCst);
                    scratch.ending.push((slot, Outcome::Done));
                }
                // It drops what it has: a waker may be among that, code of an executor.
                Some(ready) => self.noting_ends(scratch, || {
                    aside(&task.slot.head().sequence, "the drop of a waker", || ready(&Outcome::Done));
                }),
                None => {}
            }
            return false;
        }
        true
    }

    /// The part of [`end_one`](Self::end_one) for tasks that failed, and for those with rare fields. `None` if the task
    /// has ended with it.
    #[cold]
    #[inline(never)]
    pub(super) fn end_special(
        &self,
        task: TaskPlace,
        outcome: &Outcome,
        taken: Taken,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) -> Option<Special> {
        if let Some(nest) = taken.rare.as_ref().and_then(|rare| rare.nests.as_ref())
            && !nest.has_returned()
        {
            self.nest_returned(task, outcome, taken, requester, scratch);
            return None;
        }
        let Taken { mut job, rare } = taken;
        let (current, context) = (&task.slot.head().sequence, task.record.context());
        let failed = match outcome {
            Outcome::Done => None,
            Outcome::Failed(cause) | Outcome::Cancelled(cause) => Some(cause),
        };
        if let Some(cause) = failed {
            // What is no task stands for others, which are counted; the program knows what it cancels; and a task whose
            // nested tasks failed has run itself.
            let has_run = rare.as_ref().and_then(|rare| rare.nests.as_ref()).is_some_and(|nest| nest.has_run());
            let counts = job.is_some() && !cause.cancelled && !has_run;
            self.outcomes.note_bad(context, current.load(Relaxed), outcome, cause, counts);
            if let Some(job) = &job {
                note_bad_data(&**job, cause);
            }
            if let Some(job) = &mut job {
                let _acting = Acting::for_task(self, context);
                clear(&mut **job, current);
            }
        }
        let Some(mut rare) = rare else { return Some(Special { job }) };
        if let Some(nest) = rare.nested_in.take() {
            self.leave_nest(&nest, failed, scratch);
        }
        if rare.replayed.is_some() {
            self.end_replayed(task, failed, job, rare, requester, scratch);
            return None;
        }
        self.end_rare(task.slot, outcome, *rare, requester, scratch);
        Some(Special { job })
    }

    /// Ends the rare parts of a task: its callback, turns to give back.
    pub(super) fn end_rare(
        &self,
        slot: &Slot,
        outcome: &Outcome,
        rare: RareFields,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        if let Some(callback) = rare.callback {
            let _acting = Acting::for_task(self, self.records.get(slot.id()).context());
            self.call_back(slot, callback, outcome, requester);
        }
        scratch.give_turns(&rare.turns);
    }

    /// Calls a callback of a task, or of an access that ends with it.
    fn call_back(&self, slot: &Slot, callback: Callback, outcome: &Outcome, requester: Option<WorkerId>) {
        // A long callback is no stall. Only the worker itself writes this counter.
        let executing = requester.map(|worker| &self.counters[worker.index()].executing);
        let before = executing.and_then(|executing| executing.get());
        executing.inspect(|executing| executing.set(Some(slot.id())));
        aside(&slot.head().sequence, "a callback", || callback(outcome));
        executing.inspect(|executing| executing.set(before));
    }
}
