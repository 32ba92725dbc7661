//! A queue behind a lock, whose length can be read without the lock.

use super::TaskQueue;
use sched_core::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// A container of tasks with a length.
pub(crate) trait Len {
    /// Number of tasks.
    fn len(&self) -> usize;
}

impl<T> Len for TaskQueue<T> {
    fn len(&self) -> usize {
        TaskQueue::len(self)
    }
}

/// A queue, and its length after the last change.
#[derive(Debug)]
pub(crate) struct Counted<Q> {
    queue: Mutex<Q>,
    /// Written under the lock.
    len: AtomicUsize,
}

impl<Q: Len> Counted<Q> {
    #[inline]
    pub(crate) fn new(queue: Q) -> Counted<Q> {
        Counted { len: AtomicUsize::new(queue.len()), queue: Mutex::new(queue) }
    }

    /// Number of tasks, read without the lock; it may be out of date.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Acquire)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the queue under the lock.
    #[inline]
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Q) -> T) -> T {
        look(&self.queue.lock())
    }

    /// Changes the queue under the lock.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Q) -> T) -> T {
        let mut queue = self.queue.lock();
        let answer = change(&mut queue);
        self.len.store(queue.len(), Release);
        answer
    }
}
