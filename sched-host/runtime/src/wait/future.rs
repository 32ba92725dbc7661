//! Tasks and data as futures of the standard library, for any executor.
//!
//! A future is woken by the thread that ends the task, or by the one whose task lets go of the data. Nothing polls, and
//! tasks that nobody awaits pay nothing: the record of an awaited task is marked as one that a thread waits for.

use super::data::Data;
use super::{Entered, Turn};
use crate::Runtime;
use crate::core::Core;
use crate::task::failure::Outcome;
use crate::task::submit::{Submitter, TaskRef};
use crate::wait::DataError;
use parking_lot::Mutex;
use sched_graph::AccessMode;
use sched_tree::SlotId;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::task::{Context, Poll, Waker};

/// Wakers of futures that wait for the end of tasks, by slot.
#[derive(Default)]
pub(crate) struct Wakers {
    by_slot: Mutex<HashMap<SlotId, Vec<(u64, Waker)>>>,
    next: AtomicU64,
}

impl Wakers {
    /// Notes the waker of the future of this id, in the place of an earlier one.
    fn note(&self, slot: SlotId, future: u64, waker: Waker) {
        let mut by_slot = self.by_slot.lock();
        let wakers = by_slot.entry(slot).or_default();
        let earlier = match wakers.iter_mut().find(|(id, _)| *id == future) {
            Some((_, noted)) => Some(std::mem::replace(noted, waker)),
            None => {
                wakers.push((future, waker));
                None
            }
        };
        drop(by_slot);
        // Not under the lock: that is code of the executor, and may drop other futures.
        drop(earlier);
    }

    fn forget(&self, slot: SlotId, future: u64) {
        let mut by_slot = self.by_slot.lock();
        let Some(wakers) = by_slot.get_mut(&slot) else { return };
        let noted = wakers.iter().position(|(id, _)| *id == future).map(|at| wakers.swap_remove(at));
        if wakers.is_empty() {
            by_slot.remove(&slot);
        }
        drop(by_slot);
        // As above.
        drop(noted);
    }

    /// Wakes those that wait for the task in a slot, which has ended.
    pub(crate) fn wake(&self, slot: SlotId) {
        let wakers = self.by_slot.lock().remove(&slot);
        wakers.into_iter().flatten().for_each(|(_, waker)| wake(waker));
    }
}

/// Wakes a future. That is code of the executor: the caller holds no lock.
pub(super) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The drop of a payload may panic in turn.
        std::mem::forget(payload);
        tracing::error!("the waker of a future panicked");
    }
}

/// The end of a task, as a future; see [`Submitter::ended`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct TaskEnded<'a> {
    core: &'a Core,
    task: TaskRef,
    id: u64,
}

impl fmt::Debug for TaskEnded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskEnded").field("task", &self.task).finish_non_exhaustive()
    }
}

impl Submitter {
    /// A future that is ready when a task has ended, with its outcome. Any executor runs it; a run that makes no
    /// progress is reported to threads that wait only.
    ///
    /// ```
    /// use sched_runtime::{Outcome, Runtime, Write};
    /// # use std::sync::Arc;
    /// # fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// #     struct Unpark(std::thread::Thread);
    /// #     impl std::task::Wake for Unpark {
    /// #         fn wake(self: Arc<Self>) {
    /// #             self.0.unpark();
    /// #         }
    /// #     }
    /// #     let waker = Arc::new(Unpark(std::thread::current())).into();
    /// #     let (mut context, mut future) = (std::task::Context::from_waker(&waker), std::pin::pin!(future));
    /// #     loop {
    /// #         match future.as_mut().poll(&mut context) {
    /// #             std::task::Poll::Ready(value) => return value,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// let set = runtime.codelet::<(Write<u64>,), u64>("set").cpu("set", |context, (x,)| *x = *context.params).build();
    /// let x = runtime.register(0);
    /// let seen = block_on(async {
    ///     let task = runtime.task_with(&set, 7, (&x,)).submit()?;
    ///     assert_eq!(runtime.ended(task).await, Outcome::Done);
    ///     let x = runtime.read_async(&x).await?;
    ///     Ok::<u64, Box<dyn std::error::Error>>(*x)
    /// });
    /// assert_eq!(seen?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the task belongs to another runtime. A poll panics inside a task of this runtime, which might wait for
    /// itself.
    pub fn ended(&self, task: TaskRef) -> TaskEnded<'_> {
        task.assert_of(self.core.id, "awaited");
        TaskEnded { core: &self.core, task, id: self.core.outcomes.wakers.next.fetch_add(1, Relaxed) }
    }
}

impl Future for TaskEnded<'_> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let TaskEnded { core, task, id } = &*self;
        let key = task.key();
        core.refuse_inside("a task is awaited");
        if !core.is_ended(key) {
            // Noted before the task is marked: its end finds the waker, or has been before the second look.
            core.outcomes.wakers.note(key.slot, *id, context.waker().clone());
            core.records.get(key.slot).watch(&core.ledger.slot(key.slot).head().sequence, key.sequence);
            if !core.is_ended(key) {
                return Poll::Pending;
            }
        }
        Poll::Ready(core.outcomes.outcome(key.sequence))
    }
}

impl Drop for TaskEnded<'_> {
    fn drop(&mut self) {
        self.core.outcomes.wakers.forget(self.task.key().slot, self.id);
    }
}

/// A turn at data, as a future.
struct TurnWhenReady<'a, D: Data> {
    runtime: &'a Submitter,
    handle: &'a D,
    /// Taken when the turn has come.
    entered: Option<Result<Entered, DataError>>,
}

impl<'a, D: Data> TurnWhenReady<'a, D> {
    #[track_caller]
    fn enter(runtime: &'a Runtime, handle: &'a D, mode: AccessMode) -> TurnWhenReady<'a, D> {
        let header = handle.header();
        // Not by `and_then`: the caller's place is noted.
        let entered = match runtime.core.check_use(header, mode) {
            Ok(()) => Turn::enter(runtime, header, mode),
            Err(error) => Err(error),
        };
        TurnWhenReady { runtime, handle, entered: Some(entered) }
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<Turn<'a>, DataError>> {
        let entered = self.entered.as_ref().expect("a future is not polled after it was ready");
        // Kept meanwhile: the waker is code of the executor, which may panic.
        if entered.as_ref().is_ok_and(|entered| !entered.is_ready_or_wakes(context.waker())) {
            return Poll::Pending;
        }
        let entered = self.entered.take().expect("it is there");
        Poll::Ready(entered.and_then(|entered| {
            let turn = entered.into_turn(self.runtime);
            turn.check(self.handle.header()).map(|()| turn)
        }))
    }
}

impl<D: Data> Drop for TurnWhenReady<'_, D> {
    fn drop(&mut self) {
        if let Some(Ok(entered)) = self.entered.take()
            && !entered.give_up()
        {
            drop(entered.into_turn(self.runtime));
        }
    }
}

impl Runtime {
    /// [Reads](Self::read) data in its turn, which is taken by this call: the future is ready when the tasks submitted
    /// so far that write it have ended. Later tasks that write it wait until the result is dropped, or the future.
    ///
    /// # Panics
    /// If a task of this runtime calls it, which may use the data itself: name the data at the submission of the task.
    #[track_caller]
    pub fn read_async<'a, D: Data>(&'a self, handle: &'a D) -> ReadWhenReady<'a, D> {
        ReadWhenReady(TurnWhenReady::enter(self, handle, AccessMode::Read))
    }

    /// [Changes](Self::write) data in its turn, which is taken by this call: the future is ready when the tasks
    /// submitted so far that use it have ended. Later tasks that use it wait until the result is dropped, or the
    /// future.
    ///
    /// # Panics
    /// If a task of this runtime calls it, which may use the data itself: name the data at the submission of the task.
    #[track_caller]
    pub fn write_async<'a, D: Data>(&'a self, handle: &'a D) -> WriteWhenReady<'a, D> {
        WriteWhenReady(TurnWhenReady::enter(self, handle, AccessMode::ReadWrite))
    }
}

macro_rules! futures {
    ($($(#[$doc:meta])* $name:ident, $guard:ident, $take:ident;)*) => {
        $(
            $(#[$doc])*
            #[must_use = "a future does nothing unless it is awaited"]
            pub struct $name<'a, D: Data>(TurnWhenReady<'a, D>);

            impl<D: Data> fmt::Debug for $name<'_, D> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_struct(stringify!($name)).finish_non_exhaustive()
                }
            }

            impl<'a, D: Data> Future for $name<'a, D> {
                type Output = Result<D::$guard<'a>, DataError>;

                fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                    let handle = self.0.handle;
                    self.0.poll(context).map(|turn| turn.map(|turn| handle.$take(turn)))
                }
            }

            impl<D: Data> Unpin for $name<'_, D> {}
        )*
    };
}

futures! {
    /// A read in its turn, as a future; see [`Runtime::read_async`].
    ReadWhenReady, Reading, reading;
    /// A write in its turn, as a future; see [`Runtime::write_async`].
    WriteWhenReady, Writing, writing;
}
