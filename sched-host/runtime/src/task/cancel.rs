//! Cancellation: tasks that have not begun do not run any more.
//!
//! A task begins when a worker takes its job out of its record, under the lock of the record's body. To cancel it, the
//! job is taken out first, and kept beside: so either the worker or the cancellation gets it, and each knows. The task
//! stays where it is, in a tree or waiting for others, and ends as cancelled when its turn comes. (Tasks of recordings
//! begin without that, as long as nobody withdraws one: see [`unasked`](sched_sync::unasked).)

use super::failure::{Cause, Outcome, TaskFailure};
use super::record::{Taken, TaskKey};
use super::submit::{Submitter, TaskRef};
use crate::context::SchedContext;
use crate::core::{Core, NO_CODELET, TaskPlace};
use sched_graph::ContextId;
use sched_tree::Slot;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

impl Submitter {
    /// Cancels a task that has not begun: it will not run, and ends as [`Outcome::Cancelled`] when its turn comes. What
    /// follows from it is cancelled as after a failure: tasks submitted [after](crate::TaskBuilder::after) it, and
    /// those that read what it should have written. Returns whether it was cancelled; otherwise it is running or has
    /// ended, or stands for a [replay](Self::replay), whose tasks [`cancel_all`](Self::cancel_all) cancels.
    ///
    /// [`wait_all`](crate::Runtime::wait_all) does not report what the program has cancelled.
    ///
    /// ```
    /// use sched_runtime::{Outcome, Read, Runtime, Write};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(1).build()?;
    /// let make = runtime.codelet::<(Write<u64>,), ()>("make").cpu("make", |_, (x,)| *x = 1).build();
    /// let copy = runtime.codelet::<(Read<u64>, Write<u64>), ()>("copy").cpu("copy", |_, (x, y)| *y = *x).build();
    /// let (x, y) = (runtime.register(0), runtime.register(0));
    /// // The program holds x, so nothing has begun.
    /// let held = runtime.read(&x)?;
    /// let first = runtime.task(&make, (&x,)).submit()?;
    /// let second = runtime.task(&copy, (&x, &y)).submit()?;
    /// assert!(runtime.cancel(first));
    /// drop(held);
    /// runtime.wait_all()?;
    /// assert!(matches!(runtime.wait(second)?, Outcome::Cancelled(why) if why.cancelled));
    /// assert!(runtime.read(&y).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the task belongs to another runtime.
    pub fn cancel(&self, task: TaskRef) -> bool {
        task.assert_of(self.core.id, "cancelled");
        self.core.withdraw(task.key(), None)
    }

    /// [Cancels](Self::cancel) all tasks that have not begun, in every context. Returns their number; tasks of replays
    /// that wait for others are cancelled too, but not counted. Tasks that are submitted meanwhile may be cancelled or
    /// not.
    pub fn cancel_all(&self) -> u64 {
        self.core.withdraw_all(|_| true)
    }
}

impl SchedContext {
    /// [Cancels](Submitter::cancel) all tasks of this context that have not begun. Returns their number; tasks of
    /// replays that wait for others are cancelled too, but not counted. Tasks that are submitted meanwhile may be
    /// cancelled or not.
    pub fn cancel(&self) -> u64 {
        let number = self.context.number;
        match self.context.in_flight.is_there(self.serial) || number == ContextId::DEFAULT {
            true => self.submitter.core.withdraw_all(|context| context == number),
            false => 0,
        }
    }
}

impl Core {
    /// Takes the job of a task that has not begun, in this context if one is given.
    pub(crate) fn withdraw(&self, task: TaskKey, context: Option<&dyn Fn(ContextId) -> bool>) -> bool {
        let TaskPlace { slot, record } = self.place(task.slot);
        let mut body = record.body.lock();
        if slot.head().sequence.load(Acquire) != task.sequence || body.job.is_none() {
            return false;
        }
        if context.is_some_and(|is_meant| !is_meant(record.context())) {
            return false;
        }
        // A task whose nested tasks run has begun.
        if body.rare.as_ref().and_then(|rare| rare.nests.as_ref()).is_some_and(|nest| nest.has_returned()) {
            return false;
        }
        let replayed = body.rare.as_ref().and_then(|rare| rare.replayed.as_ref());
        if replayed.is_some_and(|replayed| !replayed.will_ask(task.sequence)) {
            return false;
        }
        let job = body.job.take();
        let codelet = job.as_ref().map_or_else(String::new, |job| job.facts().name.clone());
        let rare = body.rare(record);
        let cause = cancelled(slot, codelet, rare.name.as_deref(), "the program cancelled it");
        rare.cancelled.get_or_insert(cause);
        rare.withdrawn = job;
        true
    }

    /// Takes the jobs of all tasks that have not begun in some contexts. Returns their number, without those of replays
    /// that wait for others.
    fn withdraw_all(&self, context: impl Fn(ContextId) -> bool) -> u64 {
        // Dropped without the lock: it may be the last reference.
        let replays = self.replays.lock().clone();
        replays.iter().filter(|recorded| context(recorded.context_now())).for_each(|recorded| recorded.cancel());
        let meant = |slot: &Slot| {
            let sequence = slot.head().sequence.load(Acquire);
            let is_task = sequence != 0 && slot.head().codelet.load(Relaxed) != NO_CODELET;
            is_task && self.withdraw(TaskKey { slot: slot.id(), sequence }, Some(&context))
        };
        self.ledger.slots().map(|slot| u64::from(meant(slot))).sum()
    }
}

impl Taken {
    /// Puts the job of a cancelled task back, for its end.
    pub(crate) fn restore(&mut self) {
        if self.job.is_none()
            && let Some(rare) = &mut self.rare
        {
            self.job = rare.withdrawn.take();
        }
    }

    /// Outcome of a task whose job was not there: it was cancelled.
    #[cold]
    pub(crate) fn withdrawn(&mut self) -> Outcome {
        self.restore();
        let cause = self.rare.as_mut().and_then(|rare| rare.cancelled.take());
        cause.map_or(Outcome::Done, Outcome::Cancelled)
    }
}

/// Why a task is cancelled that did not fail.
#[cold]
pub(crate) fn cancelled(slot: &Slot, codelet: String, name: Option<&str>, message: &str) -> Cause {
    Arc::new(TaskFailure {
        task: slot.head().sequence.load(Relaxed),
        codelet,
        implementation: String::new(),
        name: name.map(str::to_owned),
        worker: 0,
        panicked: false,
        cancelled: true,
        message: message.to_owned(),
    })
}
