//! What a task can wait for in addition to the order by data.

use super::submit::TaskRef;
use smallvec::SmallVec;

/// The tasks that a new one is to wait for. Few fit in place: builders are passed on by value.
pub(super) type AfterTasks = SmallVec<[TaskRef; 4]>;

/// What a task can [wait for](crate::TaskBuilder::after): a task, or a list of tasks.
pub trait After {
    /// The tasks to wait for.
    fn tasks(&self) -> &[TaskRef];
}

impl After for TaskRef {
    #[inline]
    fn tasks(&self) -> &[TaskRef] {
        std::slice::from_ref(self)
    }
}

impl After for [TaskRef] {
    #[inline]
    fn tasks(&self) -> &[TaskRef] {
        self
    }
}

impl<const N: usize> After for [TaskRef; N] {
    #[inline]
    fn tasks(&self) -> &[TaskRef] {
        self
    }
}

impl After for Vec<TaskRef> {
    #[inline]
    fn tasks(&self) -> &[TaskRef] {
        self
    }
}

impl<A: After + ?Sized> After for &A {
    #[inline]
    fn tasks(&self) -> &[TaskRef] {
        (*self).tasks()
    }
}
