//! A queue whose two ends seldom meet.

use super::level::Entry;
use super::{Padded, Place, TaskQueue};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering::*};
use sched_core::fetch_ahead;
use std::collections::VecDeque;

#[cfg(all(test, loom))]
mod models;

/// A [`TaskQueue`] for threads that push and threads that pop at once.
///
/// What is pushed arrives in a list of its own, with a lock of its own, and is taken over as a whole when those who pop
/// have nothing left: while tasks stream through, neither side writes what the other one looks at. The order is that of
/// one queue nevertheless. As long as all tasks have the [usual](USUAL) priority, whatever arrived last leaves last; and
/// from the first one on that has another priority, every pop takes over what arrived before it looks.
///
/// The lock of the queue is taken before that of the arrivals.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SharedQueue<T, B = ()> {
    queue: Padded<Front<T>>,
    arrived: Padded<Back<T>>,
    /// Not all tasks have the usual priority.
    is_ranked: AtomicBool,
    /// What else both sides look at and seldom write: it shares a line with `is_ranked`.
    pub(crate) beside: B,
    /// Arrivals of other priorities, locked and counted with those of the usual one.
    others: Mutex<Vec<(i32, T)>>,
}

/// The priority of tasks that were given none.
const USUAL: i32 = 0;

/// Where tasks are popped.
#[derive(Debug)]
#[repr(C)]
struct Front<T> {
    /// Number of tasks, written under the lock: to see that there are none takes no lock.
    len: AtomicUsize,
    tasks: Mutex<TaskQueue<T>>,
    /// Their expected length in nanoseconds, written under the lock.
    expected: AtomicU64,
}

/// Where tasks are pushed.
#[derive(Debug)]
#[repr(C)]
struct Back<T> {
    /// Number of tasks of any priority, written under the lock.
    len: AtomicUsize,
    /// Tasks of the usual priority, numbered from 0.
    tasks: Mutex<VecDeque<Entry<T>>>,
}

impl<T, B> SharedQueue<T, B> {
    pub(crate) fn new(beside: B) -> SharedQueue<T, B> {
        let (len, expected) = (AtomicUsize::new(0), AtomicU64::new(0));
        SharedQueue {
            queue: Padded(Front { len, expected, tasks: Mutex::new(TaskQueue::new()) }),
            arrived: Padded(Back { len: AtomicUsize::new(0), tasks: Mutex::new(VecDeque::new()) }),
            is_ranked: AtomicBool::new(false),
            beside,
            others: Mutex::new(Vec::new()),
        }
    }

    /// Number of tasks, without a lock: others may change it meanwhile.
    pub(crate) fn len(&self) -> usize {
        self.arrived.0.len.load(Acquire) + self.queue.0.len.load(Acquire)
    }

    /// Nanoseconds that the tasks count with, without a lock.
    pub(crate) fn expected(&self) -> u64 {
        self.queue.0.expected.load(Relaxed)
    }

    /// Whether there are no tasks. Who takes over what arrived counts it on the one side before it is gone from the other.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.0.len.load(Acquire) == 0 && self.has_nothing_to_take_over()
    }

    #[inline(never)]
    fn has_nothing_to_take_over(&self) -> bool {
        self.arrived.0.len.load(Acquire) == 0 && self.queue.0.len.load(Acquire) == 0
    }

    /// Puts `task` behind all of its `priority` and above. It counts with nothing towards the expected length.
    #[inline(always)]
    pub(crate) fn push(&self, task: T, priority: i32) {
        let Back { tasks, len } = &self.arrived.0;
        let mut arrived = tasks.lock();
        if priority == USUAL {
            let number = arrived.len() as u64;
            arrived.push_back(Entry { number, expected: 0, task });
        } else {
            self.rank();
            self.others.lock().push((priority, task));
        }
        len.store(len.load(Relaxed) + 1, Release);
    }

    /// The same on behalf of those who pop, so that the task need not arrive first: it is in front of what arrived and was
    /// not taken over yet. It counts with `expected` nanoseconds.
    #[inline]
    pub(crate) fn push_inside(&self, task: T, priority: i32, expected: u64) {
        let mut queue = self.queue.0.tasks.lock();
        queue.push(task, priority, expected);
        if priority != USUAL {
            self.rank();
        }
        self.note(&queue, |_| ());
    }

    /// Says that not all tasks have the usual priority. To be called under a lock that who says the opposite takes, too.
    fn rank(&self) {
        if !self.is_ranked.load(Relaxed) {
            self.is_ranked.store(true, Release);
        }
    }

    /// To be called under the queue's lock after each change. What is new of the expected length is told to `changed`.
    #[inline(always)]
    fn note(&self, queue: &TaskQueue<T>, changed: impl FnOnce(u64)) {
        let Front { len, expected, .. } = &self.queue.0;
        len.store(queue.len(), Release);
        if expected.load(Relaxed) != queue.expected() {
            expected.store(queue.expected(), Relaxed);
            changed(queue.expected());
        }
    }

    /// Takes the first task that is `eligible`. `changed` is told of another expected length, under the lock.
    #[inline(always)]
    pub(crate) fn pop(&self, eligible: impl FnMut(&T) -> bool, changed: impl FnOnce(u64)) -> Option<(T, Place)> {
        self.take::<false>(eligible, changed)
    }

    /// Takes the last task that is `eligible` of the highest priority that has one.
    #[inline(always)]
    pub(crate) fn pop_newest(&self, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        self.take::<true>(eligible, |_| ())
    }

    #[inline(always)]
    fn take<const NEWEST: bool>(
        &self,
        mut eligible: impl FnMut(&T) -> bool,
        changed: impl FnOnce(u64),
    ) -> Option<(T, Place)> {
        if self.is_empty() {
            return None;
        }
        if NEWEST {
            // Behind the lock, nothing is read before its turn; and this queue may be one of a thousand.
            fetch_ahead(&self.is_ranked);
            fetch_ahead(&self.queue.0.expected);
        }
        let mut queue = self.queue.0.tasks.lock();
        let mut is_all = queue.len() == 0 || self.is_ranked.load(Acquire);
        if is_all {
            self.take_over(&mut queue);
        }
        loop {
            let popped = if NEWEST { queue.pop_newest(&mut eligible) } else { queue.pop(&mut eligible) };
            if let Some(popped) = popped {
                self.note(&queue, changed);
                return Some(popped);
            }
            // Nothing that was there suits.
            if is_all || !self.take_over(&mut queue) {
                return None;
            }
            is_all = true;
        }
    }

    /// Takes over what arrived. Whether that is anything.
    #[inline(never)]
    fn take_over(&self, queue: &mut TaskQueue<T>) -> bool {
        self.arrived.0.len.load(Acquire) != 0 && self.take_over_from(&mut self.arrived.0.tasks.lock(), queue)
    }

    fn take_over_from(&self, arrived: &mut VecDeque<Entry<T>>, queue: &mut TaskQueue<T>) -> bool {
        let before = queue.len();
        queue.append(USUAL, arrived);
        if self.is_ranked.load(Relaxed) {
            for (priority, task) in self.others.lock().drain(..) {
                queue.push(task, priority, 0);
            }
            self.is_ranked.store(!queue.has_only(USUAL), Release);
        }
        self.queue.0.len.store(queue.len(), Release);
        self.arrived.0.len.store(0, Release);
        queue.len() > before
    }

    /// Changes the queue, with all that has arrived, while nobody pushes or pops. `changed` is told of another expected
    /// length.
    pub(crate) fn change<A>(&self, change: impl FnOnce(&mut TaskQueue<T>) -> A, changed: impl FnOnce(u64)) -> A {
        let mut queue = self.queue.0.tasks.lock();
        let mut arrived = self.arrived.0.tasks.lock();
        self.take_over_from(&mut arrived, &mut queue);
        let answer = change(&mut queue);
        if !queue.has_only(USUAL) {
            self.rank();
        }
        self.note(&queue, changed);
        answer
    }

    /// Does something while nobody pushes or pops, which is told whether there are no tasks.
    pub(crate) fn hold(&self, then: impl FnOnce(bool)) {
        let queue = self.queue.0.tasks.lock();
        let _arrived = self.arrived.0.tasks.lock();
        then(queue.len() == 0 && self.arrived.0.len.load(Relaxed) == 0);
    }
}
