//! What a task can wait for in addition to the order by data.

use super::submit::TaskRef;

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
