//! Reductions: values that many tasks add to at once, each worker to a value of its own.
//!
//! # Protocol
//!
//! A task with [`Redux`] access takes the accumulator of its worker, or a new one if the order is asked for, and notes
//! that accumulators are pending. Tasks that reduce run at once, and no other task uses the data meanwhile: that is the
//! order of [`AccessOrder`](sched_graph::AccessOrder). The first thread that uses the value afterwards combines the
//! accumulators with it; others that come at the same time wait for that. They look whether something is pending before
//! they lock the value, so it is free while it is combined.

use super::access::Access;
use super::{Begun, DataHeader, DataSize, Handle, OfTask};
use crate::core::Core;
use crate::parallel::share::TeamAccess;
use crate::task::submit::Submitter;
use crossbeam::utils::CachePadded;
use parking_lot::{
    MappedMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard,
    RwLockWriteGuard,
};
use sched_core::WorkerId;
use sched_graph::AccessMode;
use sched_sync::settle::Settling;
use smallvec::SmallVec;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Weak};

/// The kernel adds to a `T`, and such tasks run at once: it sees `&mut T`, an accumulator of its worker. The handle is
/// a [`Reduction`].
pub struct Redux<T>(PhantomData<fn() -> T>);

/// Data that tasks with [`Redux`] access add to; for other accesses it derefs to a [`Handle`].
///
/// Each worker accumulates on its own, beginning with what `init` returns; `combine` adds the accumulators to the value
/// before the next task, or the application, uses it otherwise. Made with [`Submitter::reduction`].
///
/// ```
/// use sched_runtime::{Plan, Read, ReadWrite, Redux, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
/// let dot = runtime
///     .codelet::<(Read<[f64]>, Read<[f64]>, Redux<f64>), ()>("dot")
///     .cpu("dot", |_, (x, y, sum)| *sum += x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>())
///     .build();
/// let root = runtime.codelet::<(ReadWrite<f64>,), ()>("root").cpu("root", |_, (x,)| *x = x.sqrt()).build();
/// let x = runtime.array(vec![2.0; 1000]);
/// let norm = runtime.reduction(0.0, || 0.0, |sum, part| *sum += part);
/// for part in &x.partition(&Plan::ranges(8))? {
///     runtime.task(&dot, (part, part, &norm)).submit()?;
/// }
/// runtime.task(&root, (&norm,)).submit()?;
/// assert_eq!(*runtime.read(&norm)?, 4000f64.sqrt());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reduction<T>(Handle<T>);

impl<T> Clone for Reduction<T> {
    fn clone(&self) -> Reduction<T> {
        Reduction(self.0.clone())
    }
}

impl<T> fmt::Debug for Reduction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reduction({})", self.0.header().id)
    }
}

impl<T> Deref for Reduction<T> {
    type Target = Handle<T>;

    fn deref(&self) -> &Handle<T> {
        &self.0
    }
}

impl<T> Reduction<T> {
    pub(crate) fn into_handle(self) -> Handle<T> {
        self.0
    }

    pub(crate) fn of_handle(handle: Handle<T>) -> Reduction<T> {
        Reduction(handle)
    }
}

/// Adds a value to another.
type Combine<T> = Box<dyn Fn(&mut T, T) + Send + Sync>;

/// A value with its accumulators.
pub(crate) struct Reduced<T> {
    value: RwLock<T>,
    /// Whether there are accumulators to combine.
    settling: Settling,
    accumulators: Accumulators<T>,
    init: Box<dyn Fn() -> T + Send + Sync>,
    combine: Combine<T>,
}

/// What the accumulators of tasks are ordered by: the [place](Core::place_on) of the task, and the member of its team.
type Order = (SmallVec<[u64; 2]>, WorkerId);

enum Accumulators<T> {
    /// One for each worker, if it has one.
    OfWorkers(Box<[CachePadded<Mutex<Option<T>>>]>),
    /// One for each task.
    OfTasks(Mutex<Vec<(Order, T)>>, Weak<Core>),
}

impl<T> Reduced<T> {
    /// Combines what is pending.
    fn settle(&self) {
        self.settling.settle(|| self.combine());
    }

    #[cold]
    fn combine(&self) {
        let mut value = self.value.try_write().expect("nobody uses it before it is combined");
        match &self.accumulators {
            Accumulators::OfWorkers(workers) => {
                let pending = workers.iter().filter_map(|of_worker| of_worker.lock().take());
                pending.for_each(|part| (self.combine)(&mut value, part));
            }
            Accumulators::OfTasks(tasks, _) => {
                let mut pending = std::mem::take(&mut *tasks.lock());
                pending.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                pending.into_iter().for_each(|(_, part)| (self.combine)(&mut value, part));
            }
        }
    }

    pub(crate) fn read(&self) -> MappedRwLockReadGuard<'_, T> {
        self.settle();
        RwLockReadGuard::map(self.value.try_read().expect(super::KEPT_APART), |value| value)
    }

    pub(crate) fn write(&self) -> MappedRwLockWriteGuard<'_, T> {
        self.settle();
        RwLockWriteGuard::map(self.value.try_write().expect(super::KEPT_APART), |value| value)
    }

    /// [`write`](Self::write) for a task that replaces the value: what an earlier one lost does not matter to it.
    pub(crate) fn overwrite(&self) -> MappedRwLockWriteGuard<'_, T> {
        self.settling.start_over(|| match &self.accumulators {
            Accumulators::OfWorkers(workers) => workers.iter().for_each(|of_worker| drop(of_worker.lock().take())),
            Accumulators::OfTasks(tasks, _) => tasks.lock().clear(),
        });
        self.write()
    }

    /// Takes the value, with which everything is combined.
    pub(crate) fn into_value(self) -> T {
        self.value.into_inner()
    }

    /// An accumulator of a worker for the task that its leader runs: itself, unless it is in a team.
    fn accumulator(&self, worker: WorkerId, leader: WorkerId) -> ReduxGuard<'_, T> {
        self.settling.leave();
        match &self.accumulators {
            Accumulators::OfWorkers(workers) => {
                let own = workers[worker.index()].try_lock().expect("a worker runs one task at a time");
                ReduxGuard::OfWorker(MutexGuard::map(own, |own| own.get_or_insert_with(&self.init)))
            }
            Accumulators::OfTasks(tasks, core) => {
                let place = core.upgrade().map_or_else(SmallVec::new, |core| core.place_on(leader));
                ReduxGuard::OfTask { part: Some(((place, worker), (self.init)())), tasks }
            }
        }
    }
}

/// An accumulator, while a task adds to it.
pub enum ReduxGuard<'a, T> {
    #[doc(hidden)]
    OfWorker(MappedMutexGuard<'a, T>),
    #[doc(hidden)]
    OfTask { part: Option<(Order, T)>, tasks: &'a Mutex<Vec<(Order, T)>> },
}

impl<T> ReduxGuard<'_, T> {
    fn value(&mut self) -> &mut T {
        match self {
            ReduxGuard::OfWorker(value) => value,
            ReduxGuard::OfTask { part, .. } => &mut part.as_mut().expect("it is there until the end").1,
        }
    }
}

impl<T> Drop for ReduxGuard<'_, T> {
    fn drop(&mut self) {
        if let ReduxGuard::OfTask { part, tasks } = self {
            tasks.lock().extend(part.take());
        }
    }
}

impl<T: Send + Sync + 'static> Access for Redux<T> {
    type Handle = Reduction<T>;
    type Guard<'a> = ReduxGuard<'a, T>;
    type View<'a> = &'a mut T;

    fn own(handle: &Reduction<T>, of_task: &OfTask) -> Reduction<T> {
        Reduction(handle.to_use(of_task))
    }

    fn visit<'h>(handle: &'h Reduction<T>, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
        visitor(handle.header(), AccessMode::Redux);
    }

    fn guard(handle: &Reduction<T>, worker: WorkerId, _begun: Begun) -> ReduxGuard<'_, T> {
        handle.value().reduced().accumulator(worker, worker)
    }

    fn view<'g>(guard: &'g mut ReduxGuard<'_, T>) -> &'g mut T {
        guard.value()
    }
}

impl<T: Send + Sync + 'static> TeamAccess for Redux<T> {
    type TeamGuard<'a> = Vec<ReduxGuard<'a, T>>;
    type Part<'a> = &'a mut T;

    fn team_guard<'a>(handle: &'a Reduction<T>, members: &[WorkerId], _begun: Begun) -> Vec<ReduxGuard<'a, T>> {
        members.iter().map(|member| handle.value().reduced().accumulator(*member, members[0])).collect()
    }

    fn parts<'g>(guards: &'g mut Vec<ReduxGuard<'_, T>>, _size: usize) -> Vec<&'g mut T> {
        guards.iter_mut().map(ReduxGuard::value).collect()
    }
}

impl Submitter {
    /// Registers data that tasks with [`Redux`] access add to: `init` makes the accumulator of a worker, and `combine`
    /// adds it to the value. In which order accumulators are combined is not said; see
    /// [`reduction_in_order`](Self::reduction_in_order).
    ///
    /// If `combine` panics, the task fails that is the next to use the value, or the call of the program panics that
    /// is. What was to be added is lost: whoever uses the value later panics too, until a task with
    /// [`Write`](super::access::Write) access replaces it, or a [`WriteLease`](crate::WriteLease) does.
    pub fn reduction<T: Send + Sync + 'static>(
        &self,
        value: T,
        init: impl Fn() -> T + Send + Sync + 'static,
        combine: impl Fn(&mut T, T) + Send + Sync + 'static,
    ) -> Reduction<T> {
        let workers = self.core.facts.iter().map(|_| CachePadded::default()).collect();
        self.reduced(value, Accumulators::OfWorkers(workers), Box::new(init), Box::new(combine))
    }

    /// [`reduction`](Self::reduction) with the same result in each run: each task has an accumulator of its own, and
    /// they are combined in the order of submission, those of [nested](crate::Context::nest) tasks behind that of the
    /// task that they are part of. So sums of floating-point numbers do not depend on which worker ran what.
    /// Accumulators are kept until the value is used.
    pub fn reduction_in_order<T: Send + Sync + 'static>(
        &self,
        value: T,
        init: impl Fn() -> T + Send + Sync + 'static,
        combine: impl Fn(&mut T, T) + Send + Sync + 'static,
    ) -> Reduction<T> {
        let tasks = Accumulators::OfTasks(Mutex::default(), Arc::downgrade(&self.core));
        self.reduced(value, tasks, Box::new(init), Box::new(combine))
    }

    fn reduced<T: Send + Sync + 'static>(
        &self,
        value: T,
        accumulators: Accumulators<T>,
        init: Box<dyn Fn() -> T + Send + Sync>,
        combine: Combine<T>,
    ) -> Reduction<T> {
        let (value, settling) = (RwLock::new(value), Settling::default());
        let reduced = Reduced { value, settling, accumulators, init, combine };
        Reduction(Handle::reduced(reduced, DataSize::of_bytes(size_of::<T>() as u64), &self.core))
    }
}
