//! A task in the hands of a component.

use crate::abi::task::{RawTask, TaskHead};
use crate::estimate::nanos;
use crate::workers::ArchSet;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A task, owned: it can be moved, and neither copied nor lost.
///
/// A component that is pushed a task keeps it or hands it on; one that is asked for a task gives it away. Dropping a task
/// gives it back to the host, which notes that this node lost it and runs it all the same: no task is ever lost, but a
/// component that drops one is at fault.
#[must_use = "a task that is dropped is reported as lost by this component"]
pub struct Task {
    raw: RawTask,
}

/// Tells which task is meant, also after it has been handed on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(u64);

impl TaskId {
    /// The task with this place in the order of submission.
    #[must_use]
    pub const fn new(sequence: u64) -> TaskId {
        TaskId(sequence)
    }

    /// The task's place in the order of submission.
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
    /// The owner of a handle that is not "none".
    ///
    /// # Safety
    /// The head lies in memory of a host that keeps it until every plugin object is gone, and nobody else owns the handle.
    pub unsafe fn from_raw(raw: RawTask) -> Task {
        debug_assert!(!raw.is_none(), "a task is never none");
        Task { raw }
    }

    /// The owner of what the host just handed over, if that is a task.
    pub(crate) fn received(raw: RawTask) -> Option<Task> {
        // SAFETY: whatever crosses the edge as a result is given away by the host, in whose memory the head lies.
        (!raw.is_none()).then(|| unsafe { Task::from_raw(raw) })
    }

    /// The bare handle: the caller owns it now.
    pub fn into_raw(self) -> RawTask {
        ManuallyDrop::new(self).raw
    }

    /// The bare handle; `self` still owns it.
    #[must_use]
    pub fn raw(&self) -> RawTask {
        self.raw
    }

    fn head(&self) -> &TaskHead {
        // SAFETY: `from_raw` was promised that the head outlives every plugin object; its fields are atomic.
        unsafe { &*self.raw.head }
    }

    /// Which task this is.
    #[must_use]
    pub fn id(&self) -> TaskId {
        TaskId(self.head().sequence.load(Relaxed))
    }

    /// Higher runs earlier; 0 when the application set none.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.head().priority.load(Relaxed)
    }

    /// Sets the priority, for the queues below. What the application had set is gone then, so a component that changes it
    /// and is refused sets it back.
    pub fn set_priority(&mut self, priority: i32) {
        self.head().priority.store(priority, Relaxed);
    }

    /// The codelet, as the runtime numbers them.
    #[must_use]
    pub fn codelet(&self) -> u32 {
        self.head().codelet.load(Relaxed)
    }

    /// The architectures that have an implementation.
    #[must_use]
    pub fn archs(&self) -> ArchSet {
        ArchSet::from_bits(self.head().archs.load(Relaxed))
    }

    /// Identifies the sizes and shapes of the data: tasks of one codelet and footprint take alike long on one architecture.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.head().footprint.load(Relaxed)
    }

    /// A number that the application gave for the scheduler's use, 0 when it gave none.
    #[must_use]
    pub fn sched_data(&self) -> u64 {
        self.head().sched_data.load(Relaxed)
    }

    /// How many workers may execute it together: 1, or more for a parallel task, which a combined worker of at most this
    /// size can execute. (So can one worker alone.)
    #[must_use]
    pub fn width(&self) -> u32 {
        u32::from(self.head().width.load(Relaxed))
    }

    /// Expected duration, if a component set it.
    #[must_use]
    pub fn predicted(&self) -> Option<Duration> {
        read_nanos(self.head().predicted.load(Relaxed))
    }

    /// Sets the expected duration, as a component that decides by it does for the queues below.
    pub fn set_predicted(&mut self, length: Option<Duration>) {
        self.head().predicted.store(length.map_or(u64::MAX, nanos), Relaxed);
    }

    /// Expected duration of the transfers of its data, if a component set it.
    #[must_use]
    pub fn predicted_transfer(&self) -> Option<Duration> {
        read_nanos(self.head().predicted_transfer.load(Relaxed))
    }

    /// Sets the expected duration of the transfers of its data.
    pub fn set_predicted_transfer(&mut self, length: Option<Duration>) {
        self.head().set_predicted_transfer(length.map_or(u64::MAX, nanos));
    }

    /// The implementation to run, if a component chose one; otherwise the first that fits the worker runs.
    #[must_use]
    pub fn implementation(&self) -> Option<u32> {
        Some(self.head().implementation.load(Relaxed)).filter(|chosen| *chosen != u16::MAX).map(u32::from)
    }

    /// Chooses the implementation to run: its number among those for the worker's architecture.
    pub fn set_implementation(&mut self, implementation: Option<u32>) {
        let number = implementation.and_then(|number| u16::try_from(number).ok());
        self.head().implementation.store(number.unwrap_or(u16::MAX), Relaxed);
    }
}

fn read_nanos(nanos: u64) -> Option<Duration> {
    (nanos != u64::MAX).then(|| Duration::from_nanos(nanos))
}

impl Drop for Task {
    fn drop(&mut self) {
        (self.head().lost)(self.raw);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("id", &self.id().0).field("priority", &self.priority()).finish_non_exhaustive()
    }
}

// SAFETY: a handle is an owned reference to memory whose fields are atomic and that any thread may read.
unsafe impl Send for Task {}
// SAFETY: as above; `&Task` gives reads only.
unsafe impl Sync for Task {}
