//! The task, as a component owns it.

use crate::WorkerId;
use crate::abi::task::{RawTask, TaskHead};
use crate::estimate::nanos;
use crate::workers::ArchSet;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A task. It can be moved, but neither copied nor lost.
///
/// A component that is pushed a task keeps it or passes it on; a component that is pulled from gives a task away.
/// Dropping a task returns it to the host, which records that this component lost it and still runs it: no task is ever
/// lost, but a component that drops one is faulty.
#[must_use = "a task that is dropped is reported as lost by this component"]
pub struct Task {
    raw: RawTask,
}

/// Identifies a task, even after it was passed on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(u64);

impl TaskId {
    /// The id of the task with this position in the order of submission.
    #[inline]
    #[must_use]
    pub const fn new(sequence: u64) -> TaskId {
        TaskId(sequence)
    }

    /// Position of the task in the order of submission.
    #[inline]
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.0)
    }
}

impl Task {
    /// Takes ownership of a handle that is not "none".
    ///
    /// # Safety
    /// The task's head lies in memory that the host keeps until every plugin object is gone, and nobody else owns the
    /// handle.
    #[inline]
    pub unsafe fn from_raw(raw: RawTask) -> Task {
        debug_assert!(!raw.is_none(), "a task is never none");
        Task { raw }
    }

    /// Takes ownership of a handle that the host returned, if it is a task.
    #[inline]
    pub(crate) fn received(raw: RawTask) -> Option<Task> {
        // SAFETY: the host gives away every handle that it returns, and keeps the head in its memory.
        (!raw.is_none()).then(|| unsafe { Task::from_raw(raw) })
    }

    /// The raw handle, which the caller now owns.
    #[inline]
    pub fn into_raw(self) -> RawTask {
        ManuallyDrop::new(self).raw
    }

    /// The raw handle; `self` still owns it.
    #[inline]
    #[must_use]
    pub fn raw(&self) -> RawTask {
        self.raw
    }

    fn head(&self) -> &TaskHead {
        // SAFETY: `from_raw` requires the head to outlive every plugin object; its fields are atomic.
        unsafe { &*self.raw.head }
    }

    /// The id of this task.
    #[inline]
    #[must_use]
    pub fn id(&self) -> TaskId {
        TaskId(self.head().sequence.load(Relaxed))
    }

    /// Priority: higher runs earlier; 0 if the application set none.
    #[inline]
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.head().priority.load(Relaxed)
    }

    /// Sets the priority for the queues below. This overwrites the application's value, so a component that changes it
    /// and is refused must restore it. The host restores it where the task goes to another tree, or runs again. (Since
    /// 1.1.)
    #[inline]
    pub fn set_priority(&mut self, priority: i32) {
        self.head().set_priority(priority);
    }

    /// The codelet's number in the runtime.
    #[inline]
    #[must_use]
    pub fn codelet(&self) -> u32 {
        self.head().codelet.load(Relaxed)
    }

    /// The architectures that the codelet has an implementation for, and on which the application lets the task run.
    #[inline]
    #[must_use]
    pub fn archs(&self) -> ArchSet {
        ArchSet::from_bits(self.head().all_archs())
    }

    /// The architectures of which every worker can execute the task; none if it is restricted to certain workers. Ask
    /// [`Node::worker_can_execute`](crate::Node::worker_can_execute) and its like about those.
    #[inline]
    #[must_use]
    pub fn open_archs(&self) -> ArchSet {
        ArchSet::from_bits(self.head().archs.load(Relaxed))
    }

    /// Number of the set of workers that the task is restricted to; 0 if there is none. Tasks with the same number and
    /// [architectures](Self::archs) can be executed by the same single workers. (Since 1.1; 0 with an older host.)
    #[inline]
    #[must_use]
    pub fn restriction(&self) -> u64 {
        self.head().restriction()
    }

    /// Hash of the sizes and shapes of the data: tasks of one codelet and one footprint have the same duration on one
    /// architecture.
    #[inline]
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.head().footprint.load(Relaxed)
    }

    /// A number from the application for the scheduler's use; 0 if it gave none.
    #[inline]
    #[must_use]
    pub fn sched_data(&self) -> u64 {
        self.head().sched_data.load(Relaxed)
    }

    /// The worker near which the host would have the task run, since what it touches is or will be in the caches there.
    /// No more than a hint: it may be none of the node's workers, or be unable to execute the task. Tasks of graphs that
    /// run again and again have a home. (Since 1.1.)
    #[inline]
    #[must_use]
    pub fn home(&self) -> Option<WorkerId> {
        self.head().home().map(WorkerId)
    }

    /// Maximum number of workers that may execute the task together: 1, or more for a parallel task. A combined worker
    /// of at most this size can execute it, and so can a single worker.
    #[inline]
    #[must_use]
    pub fn width(&self) -> u32 {
        u32::from(self.head().width.load(Relaxed))
    }

    /// Expected duration, if a component set it.
    #[inline]
    #[must_use]
    pub fn predicted(&self) -> Option<Duration> {
        read_nanos(self.head().predicted.load(Relaxed))
    }

    /// Sets the expected duration. A component that decides by a duration sets it for the queues below: the ends of
    /// children ([`Node::ends_below`](crate::Node::ends_below)) and of workers count only tasks that have one, from the
    /// queue to the end of their execution.
    #[inline]
    pub fn set_predicted(&mut self, length: Option<Duration>) {
        self.head().predicted.store(length.map_or(u64::MAX, nanos), Relaxed);
    }

    /// Expected duration of the transfers of its data, if a component set it.
    #[inline]
    #[must_use]
    pub fn predicted_transfer(&self) -> Option<Duration> {
        read_nanos(self.head().predicted_transfer.load(Relaxed))
    }

    /// Sets the expected duration of the transfers of its data.
    #[inline]
    pub fn set_predicted_transfer(&mut self, length: Option<Duration>) {
        self.head().set_predicted_transfer(length.map_or(u64::MAX, nanos));
    }

    /// Number of the implementation to run, if a component chose one; otherwise the first that fits the worker runs.
    #[inline]
    #[must_use]
    pub fn implementation(&self) -> Option<u32> {
        Some(self.head().implementation.load(Relaxed)).filter(|chosen| *chosen != u16::MAX).map(u32::from)
    }

    /// Chooses the implementation to run, by its number among those for the worker's architecture.
    #[inline]
    pub fn set_implementation(&mut self, implementation: Option<u32>) {
        let number = implementation.and_then(|number| u16::try_from(number).ok());
        self.head().implementation.store(number.unwrap_or(u16::MAX), Relaxed);
    }
}

fn read_nanos(nanos: u64) -> Option<Duration> {
    (nanos != u64::MAX).then(|| Duration::from_nanos(nanos))
}

impl Drop for Task {
    /// By value, so that a task which some path may drop can stay in registers: otherwise it lies in memory, written in
    /// two pieces and read in one, which the processor waits for.
    #[inline(always)]
    fn drop(&mut self) {
        lose(self.raw);
    }
}

#[cold]
#[inline(never)]
fn lose(raw: RawTask) {
    // SAFETY: only a task that is dropped comes here, and `Task::from_raw` requires its head to outlive it.
    unsafe { ((*raw.head).lost)(raw) }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("id", &self.id().0).field("priority", &self.priority()).finish_non_exhaustive()
    }
}

// SAFETY: a handle owns a reference to memory whose fields are atomic, which any thread may read.
unsafe impl Send for Task {}
// SAFETY: as above; `&Task` only reads.
unsafe impl Sync for Task {}
