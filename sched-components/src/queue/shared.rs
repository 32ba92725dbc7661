//! A queue whose two ends seldom meet.

use super::level::Entry;
use super::{Padded, Place, TaskQueue};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering::*};
use std::collections::VecDeque;

/// A [`TaskQueue`] for threads that push and threads that pop at once.
///
/// What is pushed arrives in a list of its own, with a lock of its own, and is taken over as a whole when those who pop
/// have nothing left: while tasks stream through, neither side writes what the other one looks at. The order is that of
/// one queue nevertheless. As long as all tasks have the [usual](USUAL) priority, whatever arrived last leaves last; and
/// from the first one on that has another priority, every pop takes over what arrived before it looks.
///
/// The lock of the queue is taken before that of the arrivals.
#[derive(Debug)]
pub(crate) struct SharedQueue<T> {
    queue: Padded<Side<TaskQueue<T>>>,
    /// Arrivals of the usual priority, numbered from 0.
    arrived: Padded<Side<VecDeque<Entry<T>>>>,
    /// Not all tasks have the usual priority.
    is_ranked: AtomicBool,
    /// Arrivals of other priorities, locked and counted with those of the usual one.
    others: Mutex<Vec<(i32, T)>>,
}

/// The priority of tasks that were given none.
const USUAL: i32 = 0;

#[derive(Debug)]
struct Side<Q> {
    tasks: Mutex<Q>,
    /// Number of tasks, written under the lock: to see that there are none takes no lock.
    len: AtomicUsize,
}

impl<Q> Side<Q> {
    fn new(tasks: Q) -> Padded<Side<Q>> {
        Padded(Side { tasks: Mutex::new(tasks), len: AtomicUsize::new(0) })
    }
}

impl<T> SharedQueue<T> {
    pub(crate) fn new() -> SharedQueue<T> {
        SharedQueue {
            queue: Side::new(TaskQueue::new()),
            arrived: Side::new(VecDeque::new()),
            is_ranked: AtomicBool::new(false),
            others: Mutex::new(Vec::new()),
        }
    }

    /// Number of tasks, without a lock: others may change it meanwhile.
    pub(crate) fn len(&self) -> usize {
        self.arrived.0.len.load(Acquire) + self.queue.0.len.load(Acquire)
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
        let Side { tasks, len } = &self.arrived.0;
        let mut arrived = tasks.lock();
        if priority == USUAL {
            let number = arrived.len() as u64;
            arrived.push_back(Entry { number, expected: 0, task });
        } else {
            self.is_ranked.store(true, Release);
            self.others.lock().push((priority, task));
        }
        len.store(len.load(Relaxed) + 1, Release);
    }

    /// The same on behalf of those who pop, so that the task need not arrive first: it is in front of what arrived and was
    /// not taken over yet. It counts with `expected` nanoseconds.
    #[inline]
    pub(crate) fn push_inside(&self, task: T, priority: i32, expected: u64, look: impl FnOnce(&TaskQueue<T>)) {
        let Side { tasks, len } = &self.queue.0;
        let mut queue = tasks.lock();
        queue.push(task, priority, expected);
        if priority != USUAL {
            self.is_ranked.store(true, Release);
        }
        len.store(queue.len(), Release);
        look(&queue);
    }

    /// Takes the first task that is `eligible`, and looks at the rest under the lock.
    #[inline(always)]
    pub(crate) fn pop(
        &self,
        mut eligible: impl FnMut(&T) -> bool,
        look: impl FnOnce(&TaskQueue<T>),
    ) -> Option<(T, Place)> {
        self.take(|queue| queue.pop(&mut eligible), look)
    }

    /// Takes the last task that is `eligible` of the highest priority that has one, and looks at the rest under the lock.
    #[inline(always)]
    pub(crate) fn pop_newest(
        &self,
        mut eligible: impl FnMut(&T) -> bool,
        look: impl FnOnce(&TaskQueue<T>),
    ) -> Option<(T, Place)> {
        self.take(|queue| queue.pop_newest(&mut eligible), look)
    }

    #[inline(always)]
    fn take(
        &self,
        mut pop: impl FnMut(&mut TaskQueue<T>) -> Option<(T, Place)>,
        look: impl FnOnce(&TaskQueue<T>),
    ) -> Option<(T, Place)> {
        if self.is_empty() {
            return None;
        }
        let Side { tasks, len } = &self.queue.0;
        let mut queue = tasks.lock();
        if queue.len() == 0 || self.is_ranked.load(Acquire) {
            self.take_over(&mut queue);
        }
        if let Some(popped) = pop(&mut queue) {
            len.store(queue.len(), Release);
            look(&queue);
            return Some(popped);
        }
        // Nothing that was there suits.
        if !self.take_over(&mut queue) {
            return None;
        }
        let popped = pop(&mut queue)?;
        len.store(queue.len(), Release);
        look(&queue);
        Some(popped)
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

    /// Changes the queue, with all that has arrived, while nobody pushes or pops.
    pub(crate) fn change<A>(&self, change: impl FnOnce(&mut TaskQueue<T>) -> A) -> A {
        let Side { tasks, len } = &self.queue.0;
        let mut queue = tasks.lock();
        let mut arrived = self.arrived.0.tasks.lock();
        self.take_over_from(&mut arrived, &mut queue);
        let answer = change(&mut queue);
        if !queue.has_only(USUAL) {
            self.is_ranked.store(true, Release);
        }
        len.store(queue.len(), Release);
        answer
    }

    /// Does something while nobody pushes or pops, which is told whether there are no tasks.
    pub(crate) fn hold(&self, then: impl FnOnce(bool)) {
        let queue = self.queue.0.tasks.lock();
        let _arrived = self.arrived.0.tasks.lock();
        then(queue.len() == 0 && self.arrived.0.len.load(Relaxed) == 0);
    }
}
