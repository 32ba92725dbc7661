//! Waiting: for all tasks, for one, for data.

pub(crate) mod acquire;
pub(crate) mod barrier;
pub(crate) mod data;
pub(crate) mod ended;
mod ending;
pub(crate) mod future;
pub(crate) mod held;
pub(crate) mod lease;
pub(crate) mod stall_detector;

use self::acquire::is_in_callback;
use self::data::Data;
use self::held::Asked;
use self::stall_detector::StallDetector;
use super::data::{DataHeader, LastTurn};
use super::task::failure::{Outcome, RunError, TaskFailure};
use super::task::record::{RareFields, TaskKey};
use super::task::submit::{Submitter, TaskRef};
use super::{Runtime, core::Core};
use crate::context::{ContextCore, SchedContext};
use crate::worker::main_worker::{Looks, UntilDone};
use crate::worker::{executed_here, this_worker};
use sched_core::driver::DriverError;
use sched_graph::{AccessMode, ContextId};
use sched_sync::turn::Came;
use sched_tree::SlotId;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::task::Waker;

impl Core {
    /// Waits until `done`, or until the run or the awaited context has stalled. The worker without a thread, if there
    /// is one, is this thread meanwhile, or another one that waits. (Where all workers have threads, this thread
    /// sleeps: it could only take over a worker that has nothing to do.)
    pub(crate) fn wait_until(
        &self,
        context: Option<&ContextCore>,
        looks: Looks,
        done: impl Fn() -> bool,
    ) -> Result<(), RunError> {
        let mut watch = StallDetector::default();
        let mut stall = None;
        let period = self.quiet_period / 2;
        let go_on = || {
            stall = watch.look(self, context, period);
            stall.is_none()
        };
        // A task that waits blocks its worker.
        let blocked = this_worker(self).map(|worker| &self.counters[worker.index()].waits);
        blocked.inspect(|waits| waits.store(true, Relaxed));
        self.outcomes.waiters.wait_until(period, blocked.is_none(), &done, go_on, |worker, go_on| {
            worker.serve(UntilDone::new(&done, looks, period, go_on));
        });
        blocked.inspect(|waits| waits.store(false, Relaxed));
        match stall {
            Some(report) => {
                self.stall_is_told.store(true, Relaxed);
                Err(RunError::Stalled(report))
            }
            None => Ok(()),
        }
    }

    /// Checks that the program may use data.
    pub(crate) fn check_use(&self, header: &DataHeader, mode: AccessMode) -> Result<(), DataError> {
        if header.runtime() != self.id {
            return Err(DataError::Foreign);
        }
        header.loan().map_or(Ok(()), |loan| loan.check(mode.writes())).map_err(DataError::Loan)
    }

    /// Panics inside a task, which might wait for itself.
    pub(crate) fn refuse_inside(&self, what: &str) {
        assert!(
            !is_in_callback(self),
            "{what} by a callback that has data of the same runtime: it might wait for itself"
        );
        assert!(executed_here(self).is_none(), "{what} by a task of the same runtime, which might wait for itself");
    }

    pub(crate) fn wait_all(&self) -> Result<(), RunError> {
        if !self.is_finished() {
            self.wait_until(None, Looks::Seldom, || self.is_finished())?;
        }
        self.note_ended();
        self.stall_is_told.store(false, Relaxed);
        self.report_failures(None)
    }

    fn report_failures(&self, context: Option<ContextId>) -> Result<(), RunError> {
        let (failed, cancelled) = self.outcomes.report(context);
        if failed.is_empty() && cancelled == 0 { Ok(()) } else { Err(RunError::Failed { failed, cancelled }) }
    }

    /// Waits for every task of a context, and reports failures. The serial number tells whether the context still
    /// exists.
    pub(crate) fn wait_context(&self, context: &SchedContext) -> Result<(), RunError> {
        self.wait_until_ended(context)?;
        match context.context.in_flight.is_there(context.serial) {
            true => self.report_failures(Some(context.context.number)),
            false => Ok(()),
        }
    }

    /// Waits for every task of a context, without a report.
    pub(crate) fn wait_until_ended(&self, context: &SchedContext) -> Result<(), RunError> {
        let core = &*context.context;
        let is_done = || self.counts(core).is_finished() || !core.in_flight.is_there(context.serial);
        let is_default = core.number == ContextId::DEFAULT;
        match is_default {
            true => self.outcomes.await_default(),
            false => core.in_flight.await_end(),
        }
        let waited = match is_done() {
            true => Ok(()),
            false => self.wait_until(Some(core), Looks::Seldom, is_done),
        };
        match is_default {
            true => self.outcomes.stop_awaiting_default(),
            false => core.in_flight.stop_awaiting(),
        }
        waited
    }
}

fn in_callback(what: &str) -> String {
    format!("{what} by a callback that has data of the same runtime, and might wait for itself")
}

/// Why data is not available.
#[derive(Clone, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum DataError {
    /// The last task that wrote it failed, or was cancelled because of that failure.
    #[error("the data was not computed: {0}")]
    Bad(Arc<TaskFailure>),
    /// The run makes no progress.
    #[error("{0}")]
    Stalled(RunError),
    /// A device did not give it back.
    #[error("the data is not copied from its device: {0}")]
    Device(DriverError),
    /// The handle belongs to another runtime.
    #[error("the handle belongs to another runtime")]
    Foreign,
    /// The data belongs to a scope that has ended, or that lent it for reading only.
    #[error("{0}")]
    Loan(&'static str),
    /// There is no such memory node.
    #[error("there is no memory node {node}: the runtime has {nodes}, from 0")]
    NoMemoryNode {
        /// The number.
        node: u32,
        /// Number of memory nodes.
        nodes: usize,
    },
}

impl Runtime {
    /// Waits until every submitted task has ended, including tasks submitted meanwhile.
    ///
    /// It reports failures, and those that no wait has reported are kept: a program that runs for long and has tasks
    /// that fail calls this, or [`SchedContext::wait_all`], now and then, even if it waits for each task.
    ///
    /// # Errors
    /// [`RunError::Failed`] with the failures since the last call, once everything else has ended; the runtime remains
    /// usable. [`RunError::Stalled`] if the run makes no progress.
    ///
    /// # Panics
    /// If a task of this runtime calls it: the task would wait for itself. Submit a task
    /// [`after`](super::TaskBuilder::after) the others, or one that uses their data, instead.
    pub fn wait_all(&self) -> Result<(), RunError> {
        self.core.refuse_inside("all tasks are waited for");
        self.core.wait_all()
    }

    /// Waits for the tasks of this thread's current context, set by [`SchedContext::with`]; for all tasks, as
    /// [`wait_all`](Self::wait_all), if none is set. So code that submits a graph and waits for it can run in any
    /// context. All tasks of a context that has been [deleted](SchedContext::delete) have ended: nothing is waited for.
    ///
    /// # Errors
    /// As for [`wait_all`](Self::wait_all).
    pub fn wait_current(&self) -> Result<(), RunError> {
        let (number, serial) = crate::context::current(&self.core);
        if number == ContextId::DEFAULT {
            return self.wait_all();
        }
        // A later context may be in the place of one that was deleted.
        let is_it = |of: &SchedContext| of.context.number == number && serial.is_none_or(|serial| of.serial == serial);
        self.contexts().into_iter().find(is_it).map_or(Ok(()), |of| of.wait_all())
    }

    /// Waits until a task has ended, and returns its outcome. A task that waits for another one blocks its worker, so
    /// that one needs another worker: [nest](crate::Context::nest) tasks instead.
    ///
    /// # Errors
    /// [`RunError::Stalled`] if the run makes no progress, as where all workers wait.
    ///
    /// # Panics
    /// If the task belongs to another runtime, or a callback that [has data](Self::acquire_read) calls it.
    pub fn wait(&self, task: TaskRef) -> Result<Outcome, RunError> {
        task.assert_of(self.core.id, "waited for");
        assert!(!is_in_callback(&self.core), "{}", in_callback("a task is waited for"));
        let core = &self.core;
        let key = task.key();
        if !core.is_ended(key) {
            let current = &core.ledger.slot(key.slot).head().sequence;
            core.records.get(key.slot).watch(current, key.sequence);
            core.wait_until(None, Looks::Often, || core.is_ended(key))?;
        }
        Ok(self.core.outcomes.outcome(key.sequence))
    }

    /// Whether a task has ended, in whatever way.
    ///
    /// # Panics
    /// If the task belongs to another runtime.
    #[must_use]
    pub fn is_done(&self, task: TaskRef) -> bool {
        task.assert_of(self.core.id, "asked for");
        self.core.is_ended(task.key())
    }

    /// Reads data in its turn: after every task submitted so far that writes it. Later tasks that write it wait until
    /// the result is dropped.
    ///
    /// # Errors
    /// If the data was not computed; see [`DataError`].
    ///
    /// # Panics
    /// If a task of this runtime calls it, which may use the data itself: name the data at the submission of the task.
    #[track_caller]
    pub fn read<'a, D: Data>(&'a self, handle: &'a D) -> Result<D::Reading<'a>, DataError> {
        let turn = Turn::wait(self, handle.header(), AccessMode::Read)?;
        Ok(handle.reading(turn))
    }

    /// [Reads](Self::read) data if that does not have to wait: `None` if a task submitted so far still has to write it.
    ///
    /// ```
    /// use sched_runtime::{ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(1).build()?;
    /// let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
    /// let x = runtime.register(0);
    /// let held = runtime.read(&x)?;
    /// let task = runtime.task(&count, (&x,)).submit()?;
    /// assert!(runtime.try_read(&x)?.is_none());
    /// drop(held);
    /// runtime.wait(task)?;
    /// assert_eq!(runtime.try_read(&x)?.as_deref(), Some(&1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the data was not computed; see [`DataError`].
    ///
    /// # Panics
    /// If a task of this runtime calls it, which may use the data itself: name the data at the submission of the task.
    #[track_caller]
    pub fn try_read<'a, D: Data>(&'a self, handle: &'a D) -> Result<Option<D::Reading<'a>>, DataError> {
        let turn = Turn::try_take(self, handle.header(), AccessMode::Read)?;
        turn.map(|turn| turn.check(handle.header()).map(|()| handle.reading(turn))).transpose()
    }

    /// Changes data in its turn: after every task submitted so far that uses it. Later tasks that use it wait until the
    /// result is dropped.
    ///
    /// # Errors
    /// If the data was not computed; see [`DataError`]. A task with [`Write`](crate::Write) access makes it good again,
    /// or a [lease](Self::lease_write).
    ///
    /// # Panics
    /// If a task of this runtime calls it, which may use the data itself: name the data at the submission of the task.
    #[track_caller]
    pub fn write<'a, D: Data>(&'a self, handle: &'a D) -> Result<D::Writing<'a>, DataError> {
        let turn = Turn::wait(self, handle.header(), AccessMode::ReadWrite)?;
        Ok(handle.writing(turn))
    }

    /// Takes data back from the runtime, in its turn. `Ok(Err(handle))` while other clones of the handle exist, or
    /// handles to parts; and for a part, or for data that a scope lent.
    ///
    /// # Errors
    /// If the data was not computed; see [`DataError`].
    ///
    /// # Panics
    /// If a task of this runtime calls it, which may use the data itself: name the data at the submission of the task.
    #[track_caller]
    pub fn unregister<D: Data>(&self, handle: D) -> Result<Result<D::Value, D>, DataError> {
        if handle.header().loan().is_some() {
            return Ok(Err(handle));
        }
        drop(self.write(&handle)?);
        if !handle.is_only() {
            return Ok(Err(handle));
        }
        // Another handle may have been there until just now, and tasks that it was submitted with.
        drop(self.write(&handle)?);
        Ok(handle.into_value(&LastTurn(())))
    }
}

/// A turn that was asked for.
struct Entered {
    key: TaskKey,
    shared: Arc<sched_sync::turn::Turn<Waker>>,
}

impl Entered {
    fn is_ready(&self) -> bool {
        self.shared.has_come()
    }

    /// Whether the turn has come; otherwise `waker` is woken when it does.
    fn is_ready_or_wakes(&self, waker: &Waker) -> bool {
        self.shared.has_come_or_wakes(waker.clone())
    }

    /// Gives up a turn that has not come; `false` if it has. The turn cannot end yet, so the thread that would report
    /// it ends it then.
    fn give_up(&self) -> bool {
        self.shared.give_up(self.key.slot.0)
    }

    /// The turn, which has come.
    fn into_turn(self, submitter: &Submitter) -> Turn<'_> {
        Turn { submitter, slot: Some(self.key.slot) }
    }
}

/// The application's turn at data; its drop ends the turn.
pub struct Turn<'a> {
    submitter: &'a Submitter,
    /// `None` where the turn ends with a callback instead.
    slot: Option<SlotId>,
}

impl<'a> Turn<'a> {
    /// Waits for the turn at data with this header, which is good then.
    #[track_caller]
    pub(crate) fn wait(
        runtime: &'a Submitter,
        header: &Arc<DataHeader>,
        mode: AccessMode,
    ) -> Result<Turn<'a>, DataError> {
        runtime.core.check_use(header, mode)?;
        let turn = Turn::take(runtime, header, mode)?;
        turn.check(header)?;
        Ok(turn)
    }

    /// Waits for the turn at data with this header, good or bad.
    #[track_caller]
    pub(crate) fn take(
        runtime: &'a Submitter,
        header: &Arc<DataHeader>,
        mode: AccessMode,
    ) -> Result<Turn<'a>, DataError> {
        let core = &runtime.core;
        let entered = Turn::enter(runtime, header, mode)?;
        if !entered.is_ready() {
            let waited = core.wait_until(None, Looks::Often, || entered.is_ready());
            if let Err(stalled) = waited
                && entered.give_up()
            {
                return Err(DataError::Stalled(stalled));
            }
        }
        Ok(entered.into_turn(runtime))
    }

    /// The turn at data with this header, good or bad, if it need not be waited for.
    #[track_caller]
    pub(crate) fn try_take(
        runtime: &'a Submitter,
        header: &Arc<DataHeader>,
        mode: AccessMode,
    ) -> Result<Option<Turn<'a>>, DataError> {
        runtime.core.check_use(header, mode)?;
        let has_ended = |task| runtime.core.is_ended(task);
        let is_free = match header.part() {
            Some(part) => part.whole.order.lock().is_free(part.id, mode, has_ended),
            None => header.order.with(&mut runtime.core.sole.enter(), |order| order.is_free(mode, has_ended)),
        };
        if !is_free {
            return Ok(None);
        }
        let entered = Turn::enter(runtime, header, mode)?;
        // Another thread may have submitted a task meanwhile.
        let waits = !entered.is_ready() && entered.give_up();
        Ok(if waits { None } else { Some(entered.into_turn(runtime)) })
    }

    /// Enters the turn at data with this header, for a guard.
    #[track_caller]
    fn enter(runtime: &Submitter, header: &Arc<DataHeader>, mode: AccessMode) -> Result<Entered, DataError> {
        Turn::enter_for(runtime, (header, mode), Some(Asked::here(header.id, mode)))
    }

    /// Enters the turn at data with this header, for a guard if one was asked for.
    fn enter_for(
        runtime: &Submitter,
        (header, mode): (&Arc<DataHeader>, AccessMode),
        asked: Option<Asked>,
    ) -> Result<Entered, DataError> {
        let core = &runtime.core;
        if header.runtime() != core.id {
            return Err(DataError::Foreign);
        }
        core.refuse_inside("data is waited for");
        let shared: Arc<sched_sync::turn::Turn<Waker>> = Arc::default();
        let (noted, of) = (Arc::clone(&shared), Arc::downgrade(core));
        let ready = move |_: &_| match (noted.come(), of.upgrade()) {
            (Came::Awaited(Some(waker)), _) => future::wake(waker),
            // A thread waits, or will look before it does.
            (Came::Awaited(None), Some(core)) => core.outcomes.tell(),
            (Came::GivenUp(slot), Some(core)) => core.end_access(SlotId(slot)),
            (_, None) => {}
        };
        let rare = RareFields { callback: Some(Box::new(ready)), asked, ..RareFields::default() };
        let key = runtime.enter_turn(header, mode, rare);
        Ok(Entered { key, shared })
    }

    /// The turn that a callback has, which ends when the callback returns.
    fn of_callback(submitter: &'a Submitter) -> Turn<'a> {
        Turn { submitter, slot: None }
    }

    /// Brings the data to where the application uses it. Returns whether it was computed.
    pub(crate) fn check(&self, header: &DataHeader) -> Result<(), DataError> {
        if let Some(part) = header.part() {
            part.bring(None, true).map_err(DataError::Device)?;
        }
        match header.failed() {
            0 => Ok(()),
            task => self.submitter.core.outcomes.cause(task).map_or(Ok(()), |cause| Err(DataError::Bad(cause))),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.submitter.core.end_access(slot);
        }
    }
}

sched_text::debug_as_text!(DataError);
