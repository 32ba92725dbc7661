//! Submission of data, codelets and tasks, from the application and from inside tasks.

mod special;
mod steps;

pub(super) use special::{Entered, Request};
pub(super) use steps::admit;
pub(crate) use steps::{Accessed, Restriction};

use super::after::{After, AfterTasks};
use super::codelet::{Codelet, CodeletBuilder};
use super::entry::Entry;
use super::failure::Outcome;
use super::nest::NestState;
use super::record::{RareFields, TaskKey};
use crate::context::SchedContext;
use crate::core::{Core, TaskPlace};
use crate::data::access::AccessList;
use crate::data::replicated::ReplicatedData;
use crate::data::{DataHeader, DataSize, Handle, Scratchpad};
use crate::recording::Draft;
use crate::worker::this_worker;
use sched_graph::{AccessMode, Where};
use sched_model::DataShape;
use sched_tree::SlotId;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

/// Submits tasks: the runtime itself, or its substitute inside a task. Cheap to clone; keeps no worker alive.
#[derive(Clone)]
pub struct Submitter {
    pub(crate) core: Arc<Core>,
}

impl std::fmt::Debug for Submitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Submitter").field("runtime", &self.core.id).finish()
    }
}

/// A submitted task.
// Small: programs copy them to have tasks wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TaskRef {
    slot: SlotId,
    /// See [`short`](Self::short).
    owner: u32,
    sequence: u64,
}

const _: () = assert!(size_of::<TaskRef>() == 16, "see above");

impl TaskRef {
    /// A task of this runtime, or of this recording that captures it.
    #[inline]
    pub(crate) fn new(key: TaskKey, owner: u64) -> TaskRef {
        TaskRef { slot: key.slot, owner: TaskRef::short(owner), sequence: key.sequence }
    }

    /// Whether it is a task of this runtime, or of this recording.
    #[inline]
    pub(crate) fn is_of(self, owner: u64) -> bool {
        self.owner == TaskRef::short(owner)
    }

    /// Panics if it is no task of this runtime, in which it is `used`.
    #[inline]
    #[track_caller]
    pub(crate) fn assert_of(self, runtime: u64, used: &str) {
        let recorded = || match self.owner >> 31 {
            1 => ": one of a recording is no task of its own, `replay` returns one that stands for all of them",
            _ => "",
        };
        assert!(self.is_of(runtime), "a task is {used} with the runtime that it was submitted to{}", recorded());
    }

    /// The number of a runtime or a recording in 32 bits. The top bit, which [recordings](crate::recording::OF_RECORDINGS)
    /// have and runtimes have not, stays on top; both have small numbers otherwise.
    #[inline]
    fn short(owner: u64) -> u32 {
        owner as u32 ^ (owner >> 32) as u32
    }

    #[inline]
    pub(crate) fn key(self) -> TaskKey {
        TaskKey { slot: self.slot, sequence: self.sequence }
    }

    /// Place in the order of submission, from 1.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Submitter {
    /// Registers data with one place for all workers; see [`replicated`](Self::replicated) for data that is copied to
    /// the memory nodes which need it.
    pub fn register<T: Send + Sync + 'static>(&self, value: T) -> Handle<T> {
        self.register_sized(value, size_of::<T>() as u64)
    }

    /// Registers data with a size in bytes other than that of `T`, for performance models.
    pub fn register_sized<T: Send + Sync + 'static>(&self, value: T, bytes: u64) -> Handle<T> {
        Handle::new(value, DataSize::of_bytes(bytes), &self.core)
    }

    /// Registers data with a known shape, so that performance models from StarPU apply to its tasks: the footprints are
    /// equal.
    pub fn register_shaped<T: Send + Sync + 'static>(&self, value: T, bytes: u64, shape: DataShape) -> Handle<T> {
        Handle::new(value, DataSize { bytes, footprint: shape.footprint() }, &self.core)
    }

    /// Registers data that may be copied: with several memory nodes, each node that needs the data gets a replica, and
    /// all replicas are kept coherent. See [`ReplicatedData`].
    pub fn replicated<T: Clone + Send + Sync + 'static>(&self, value: T) -> ReplicatedData<'_, T> {
        ReplicatedData::new(self, value)
    }

    /// Creates memory for the duration of a task, one for each worker, made with `make` on first use.
    pub fn scratchpad<T: Send + 'static>(&self, make: impl Fn() -> T + Send + Sync + 'static) -> Scratchpad<T> {
        Scratchpad::new(&self.core, make)
    }

    /// Starts to build a codelet. `L` is a tuple of accesses: `(Read<f64>, ReadWrite<Vec<f64>>)`; `P` is the type of
    /// the parameters of each task.
    ///
    /// ```
    /// use sched_runtime::{Read, ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// // y ← y + a·x, where a is a parameter of the task.
    /// let axpy = runtime
    ///     .codelet::<(Read<Vec<f64>>, ReadWrite<Vec<f64>>), f64>("axpy")
    ///     .cpu("axpy_cpu", |context, (x, y)| {
    ///         for (x, y) in x.iter().zip(y) {
    ///             *y += context.params * x;
    ///         }
    ///     })
    ///     .build();
    /// let (x, y) = (runtime.register(vec![1.0, 2.0]), runtime.register(vec![10.0, 10.0]));
    /// runtime.task_with(&axpy, 3.0, (&x, &y)).submit()?;
    /// assert_eq!(*runtime.read(&y)?, [13.0, 16.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn codelet<L: AccessList, P: Send + 'static>(&self, name: &str) -> CodeletBuilder<L, P> {
        CodeletBuilder::new(Arc::clone(&self.core), name)
    }

    /// Starts to build a task: a codelet with data.
    pub fn task<'a, L: AccessList>(
        &'a self,
        codelet: &'a Codelet<L, ()>,
        data: L::Passed<'a>,
    ) -> TaskBuilder<'a, L, ()> {
        self.task_with(codelet, (), data)
    }

    /// Starts to build a task with parameters.
    pub fn task_with<'a, L: AccessList, P: Send + 'static>(
        &'a self,
        codelet: &'a Codelet<L, P>,
        params: P,
        data: L::Passed<'a>,
    ) -> TaskBuilder<'a, L, P> {
        TaskBuilder {
            submitter: self,
            codelet,
            params,
            data,
            context: None,
            priority: None,
            sched_data: codelet.inner.facts.sched_data,
            after: SmallVec::new(),
            rare: None,
        }
    }

    /// Enters an access to data that is no task. Its callback is called when its turn comes.
    pub(crate) fn enter_turn(&self, header: &Arc<DataHeader>, mode: AccessMode, rare: RareFields) -> TaskKey {
        self.enter_turns(&[(header, mode)], rare)
    }

    /// Enters an access to several data, in the order of their ids, that is no task.
    pub(crate) fn enter_turns(&self, accesses: &[Accessed<'_>], rare: RareFields) -> TaskKey {
        let has_special = accesses.iter().any(|(header, _)| header.is_special());
        self.enter_entry(rare, |core, place| {
            let mut right = core.sole.enter();
            let sequence = core.number_all(1, &right);
            let entry = Entry::of_program((place, sequence), accesses, None);
            match has_special {
                true => core.enter_with_parts(entry, &mut right),
                false => core.enter(entry, &mut right),
            }
        })
    }

    /// Enters what is no task: `enter` enters a place in the orders of its data, and returns its key and its number of
    /// links.
    pub(crate) fn enter_entry(
        &self,
        rare: RareFields,
        enter: impl FnOnce(&Core, TaskPlace) -> (TaskKey, u32),
    ) -> TaskKey {
        let core = &*self.core;
        core.own_accesses.begun.fetch_add(1, SeqCst);
        let place = core.take_fresh();
        *place.record.body.lock().rare(place.record) = rare;
        let (key, links) = enter(core, place);
        if core.roster.default.ahead.is_attended() {
            core.roster.default.ahead.note(place, key.sequence);
        }
        if place.record.submitted(links) {
            core.make_ready(&core.roster.default, place, this_worker(core));
        }
        key
    }
}

/// Settings of a task before submission.
///
/// ```
/// use sched_runtime::{Outcome, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
/// let say = runtime.codelet::<(), &str>("say").cpu("say", |context, ()| assert!(!context.params.is_empty())).build();
/// let first = runtime.task_with(&say, "first", ()).name("the first").priority(7).submit()?;
/// // No data orders these two tasks, so the second one waits explicitly.
/// let second = runtime
///     .task_with(&say, "second", ())
///     .after(first)
///     .on_end(|outcome| assert_eq!(*outcome, Outcome::Done))
///     .submit()?;
/// assert_eq!(runtime.wait(second)?, Outcome::Done);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a task begins with `submit`"]
pub struct TaskBuilder<'a, L: AccessList, P> {
    pub(super) submitter: &'a Submitter,
    pub(super) codelet: &'a Codelet<L, P>,
    pub(super) params: P,
    pub(super) data: L::Passed<'a>,
    context: Option<&'a SchedContext>,
    priority: Option<i32>,
    pub(super) sched_data: u64,
    pub(super) after: AfterTasks,
    pub(super) rare: Option<Box<RareFields>>,
}

impl<'a, L: AccessList, P: Send + 'static> TaskBuilder<'a, L, P> {
    /// Name of the codelet, for those who submit on behalf of others.
    #[doc(hidden)]
    #[must_use]
    pub fn codelet_name(&self) -> &str {
        &self.codelet.inner.facts.name
    }

    /// Calls `visitor` with the number of each datum that the task accesses.
    #[doc(hidden)]
    pub fn each_access(&self, visitor: &mut dyn FnMut(u64, AccessMode)) {
        L::visit_passed(&self.data, &mut |header, mode| visitor(header.number(), mode));
    }

    /// The priority that was set, or 0, for those who submit on behalf of others.
    #[doc(hidden)]
    #[must_use]
    pub fn urgency(&self) -> i32 {
        self.priority.unwrap_or(0)
    }

    /// Sets the context whose workers execute the task, by its policy. The default is the current context of this
    /// thread: inside a task, that of the task; within [`SchedContext::with`], that context; else the runtime's default
    /// context.
    pub fn context(mut self, context: &'a SchedContext) -> Self {
        self.context = Some(context);
        self
    }

    /// Sets the priority: higher runs earlier. The default is 0, or the nearest allowed by the context.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets a number for the scheduler, whose meaning depends on its components; 0 by default.
    pub fn sched_data(mut self, data: u64) -> Self {
        self.sched_data = data;
        self
    }

    /// Restricts execution to these places, of those that the [codelet](super::codelet::CodeletBuilder::only_on)
    /// allows.
    ///
    /// ```
    /// use sched_graph::Where;
    /// use sched_runtime::Runtime;
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// let tell = runtime.codelet::<(), ()>("tell").cpu("tell", |context, ()| assert_eq!(context.worker.0, 1)).build();
    /// runtime.task(&tell, ()).only_on(Where::worker(1)).submit()?;
    /// runtime.wait_all()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn only_on(mut self, places: Where) -> Self {
        self.rare().only = Some(places);
        self
    }

    /// Makes the task part of one that is running.
    pub(super) fn nested_in(mut self, nest: &Arc<NestState>) -> Self {
        self.rare().nested_in = Some(Arc::clone(nest));
        self
    }

    /// Has a recording capture the task.
    pub(crate) fn captured_by(mut self, draft: &Arc<Draft>) -> Self {
        self.rare().draft = Some(Arc::clone(draft));
        self
    }

    fn rare(&mut self) -> &mut RareFields {
        self.rare.get_or_insert_default()
    }

    /// Sets a time after which the task is not begun any more: then it is
    /// [cancelled](crate::Submitter::cancel) when it is ready, or when a worker is about to run it. A task that is
    /// running is not interrupted.
    ///
    /// ```
    /// use sched_runtime::{Outcome, Runtime};
    /// use std::time::Instant;
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// let frame = runtime.codelet::<(), ()>("frame").cpu("frame", |_, ()| {}).build();
    /// let late = runtime.task(&frame, ()).deadline(Instant::now()).submit()?;
    /// assert!(matches!(runtime.wait(late)?, Outcome::Cancelled(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.rare().deadline = Some(deadline);
        self.submitter.core.outcomes.note_deadline();
        self
    }

    /// Sets a name for reports.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.rare().name = Some(name.into());
        self
    }

    /// Waits for another task, or for several, in addition to the order by data. If one of them fails, this one is
    /// cancelled. (A list at once costs less than a call for each: the builder is passed on by value.)
    pub fn after(mut self, tasks: impl After) -> Self {
        self.after.extend_from_slice(tasks.tasks());
        self
    }

    /// Calls `callback` when the task has ended, on the thread that ended it, before its dependents are released. A
    /// panic in it is caught and logged.
    pub fn on_end(mut self, callback: impl FnOnce(&Outcome) + Send + 'static) -> Self {
        self.rare().callback = Some(Box::new(callback));
        self
    }
}
