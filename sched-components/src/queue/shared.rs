//! A queue whose producers and consumers seldom touch the same cache lines.

#[cfg(all(test, loom))]
mod models;

use super::level::{Entry, push_back};
use super::{Executable, Padded, Place, TaskQueue};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering::*};
use sched_core::{fetch_ahead, fetch_to_write};
use std::collections::VecDeque;

/// A [`TaskQueue`] for concurrent producers and consumers.
///
/// Pushed tasks arrive in a separate list with a lock of its own; a consumer that finds nothing else takes over the
/// whole list. While tasks stream through, neither side writes what the other reads. The order is nevertheless that of
/// one queue. While all tasks have the [usual](USUAL) priority, the last arrival leaves last; from the first task of
/// another priority on, every pop first takes over the arrivals.
///
/// Lock order: the queue's lock before the arrivals' lock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SharedQueue<T, B = ()> {
    queue: Padded<Front<T>>,
    arrived: Padded<Back<T>>,
    /// Whether any task has an unusual priority.
    is_ranked: AtomicBool,
    /// Other data that both sides read and seldom write; it shares a cache line with `is_ranked`.
    pub(crate) beside: B,
    /// Arrivals of other priorities; locked and counted together with those of the usual one.
    others: Mutex<Vec<(i32, T)>>,
}

/// A change of a queue's expected length, in nanoseconds, or of whether it has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// Whether there is room now, if that has changed.
    pub(crate) has_room: Option<bool>,
}

/// The priority of tasks that were given none.
const USUAL: i32 = 0;

/// Number of tasks that are moved from one queue to another at once.
pub(crate) const MOVED: usize = 15;

/// The consumers' side.
#[derive(Debug)]
#[repr(C)]
struct Front<T> {
    /// Number of tasks, written under the lock, so that an empty queue is detected without it.
    len: AtomicUsize,
    tasks: Mutex<TaskQueue<T>>,
    /// Sum of their expected lengths in nanoseconds, written under the lock.
    expected: AtomicU64,
    /// Number of tasks from which on there is no room; whoever pushes heeds it.
    limit: usize,
}

/// The producers' side.
#[derive(Debug)]
#[repr(C)]
struct Back<T> {
    /// Number of tasks of any priority, written under the lock.
    len: AtomicUsize,
    /// Tasks of the usual priority, numbered from 0.
    tasks: Mutex<VecDeque<Entry<T>>>,
}

impl<T: Executable, B> SharedQueue<T, B> {
    /// A queue with room for any number of tasks.
    pub(crate) fn new(beside: B) -> SharedQueue<T, B> {
        SharedQueue::with_limit(beside, usize::MAX)
    }

    /// A queue with room for this number of tasks.
    pub(crate) fn with_limit(beside: B, limit: usize) -> SharedQueue<T, B> {
        let (len, expected) = (AtomicUsize::new(0), AtomicU64::new(0));
        SharedQueue {
            queue: Padded(Front { len, expected, limit, tasks: Mutex::new(TaskQueue::new()) }),
            arrived: Padded(Back { len: AtomicUsize::new(0), tasks: Mutex::new(VecDeque::new()) }),
            is_ranked: AtomicBool::new(false),
            beside,
            others: Mutex::new(Vec::new()),
        }
    }

    /// Number of tasks, read without a lock; it may be out of date.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.arrived.0.len.load(Acquire) + self.queue.0.len.load(Acquire)
    }

    /// Sum of the tasks' expected lengths in nanoseconds, read without a lock.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.queue.0.expected.load(Relaxed)
    }

    /// Whether there are no tasks. A consumer that takes over arrivals counts them at the front before it subtracts
    /// them at the back.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.0.len.load(Acquire) == 0 && self.has_nothing_to_take_over()
    }

    #[inline(never)]
    fn has_nothing_to_take_over(&self) -> bool {
        self.arrived.0.len.load(Acquire) == 0 && self.queue.0.len.load(Acquire) == 0
    }

    /// Inserts `task` behind all tasks of its `priority` or higher. Its expected length is zero.
    #[inline(always)]
    pub(crate) fn push(&self, task: T, priority: i32) {
        let Back { tasks, len } = &self.arrived.0;
        let mut arrived = tasks.lock();
        if priority == USUAL {
            let number = arrived.len() as u64;
            push_back(&mut arrived, Entry { number, expected: 0, task });
        } else {
            self.rank();
            self.others.lock().push((priority, task));
        }
        len.store(len.load(Relaxed) + 1, Release);
    }

    /// Inserts a task on behalf of a consumer, without passing through the arrivals: it precedes arrivals that were not
    /// taken over yet. Its expected length is `expected` nanoseconds.
    #[inline]
    pub(crate) fn push_inside(&self, task: T, priority: i32, expected: u64) {
        let mut queue = self.queue.0.tasks.lock();
        queue.push(task, priority, expected);
        if priority != USUAL {
            self.rank();
        }
        self.note(&queue, |_| ());
    }

    /// Records that a task has an unusual priority. Call it under a lock that the reverse change takes too.
    fn rank(&self) {
        if !self.is_ranked.load(Relaxed) {
            self.is_ranked.store(true, Release);
        }
    }

    /// Updates the counters; call it under the queue's lock after each change. `changed` receives a change of the
    /// expected length, or of whether there is room.
    #[inline(always)]
    fn note(&self, queue: &TaskQueue<T>, changed: impl FnOnce(Change)) {
        let Front { len, expected, limit, .. } = &self.queue.0;
        let (had_room, has_room) = (len.load(Relaxed) < *limit, queue.len() < *limit);
        len.store(queue.len(), Release);
        let before = expected.load(Relaxed);
        if before != queue.expected() || had_room != has_room {
            let has_room = (had_room != has_room).then_some(has_room);
            self.note_change(Change { before, after: queue.expected(), has_room }, changed);
        }
    }

    /// [`note`](Self::note) after a task of this expected length was taken.
    #[inline(always)]
    fn note_taken(&self, queue: &TaskQueue<T>, expected: u64, changed: impl FnOnce(Change)) {
        let Front { len, limit, .. } = &self.queue.0;
        match expected {
            0 if *limit == usize::MAX => len.store(queue.len(), Release),
            _ => self.note(queue, changed),
        }
    }

    /// Out of line, for the sake of queues whose tasks nobody predicts.
    #[inline(never)]
    fn note_change(&self, change: Change, changed: impl FnOnce(Change)) {
        self.queue.0.expected.store(change.after, Relaxed);
        changed(change);
    }

    /// Calls `then` with the expected length, under the lock that each change of it is made under.
    #[inline]
    pub(crate) fn with_expected(&self, then: impl FnOnce(u64)) {
        then(self.queue.0.tasks.lock().expected());
    }

    /// Takes the first `eligible` task. `changed` receives a change of the expected length, under the lock.
    #[inline(always)]
    pub(crate) fn pop(&self, eligible: impl FnMut(&T) -> bool, changed: impl FnOnce(Change)) -> Option<(T, Place)> {
        self.take::<false>(eligible, changed)
    }

    /// [`pop`](Self::pop) of a task that will not be put back.
    #[inline(always)]
    pub(crate) fn pop_for_good(&self, eligible: impl FnMut(&T) -> bool, changed: impl FnOnce(Change)) -> Option<T> {
        // The look alone would share the line with who popped last, and the lock ask for it again.
        fetch_to_write(&self.queue.0.len);
        self.take_for_good::<false>(eligible, changed)
    }

    /// [`pop_newest`](Self::pop_newest) of a task that will not be put back.
    #[inline(always)]
    pub(crate) fn pop_newest_for_good(&self, eligible: impl FnMut(&T) -> bool) -> Option<T> {
        self.take_for_good::<true>(eligible, |_| ())
    }

    #[inline(always)]
    fn take_for_good<const NEWEST: bool>(
        &self,
        mut eligible: impl FnMut(&T) -> bool,
        changed: impl FnOnce(Change),
    ) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        if NEWEST {
            self.fetch_for_newest();
        }
        let mut queue = self.queue.0.tasks.lock();
        if queue.len() == 0 || self.is_ranked.load(Acquire) {
            self.take_over(&mut queue);
        }
        // Apart from the other ways to pop, which return a task through memory: written there in small pieces and read
        // in large ones, it would make the processor wait.
        if let Some((task, expected)) = queue.pop_end::<NEWEST>(&mut eligible) {
            self.note_taken(&queue, expected, changed);
            return Some(task);
        }
        drop(queue);
        self.find_for_good::<NEWEST>(eligible, changed)
    }

    #[inline(never)]
    fn find_for_good<const NEWEST: bool>(
        &self,
        eligible: impl FnMut(&T) -> bool,
        changed: impl FnOnce(Change),
    ) -> Option<T> {
        self.take::<NEWEST>(eligible, changed).map(|(task, _)| task)
    }

    /// The processor does not read ahead of the lock, and this queue may be one of a thousand.
    #[inline(always)]
    fn fetch_for_newest(&self) {
        fetch_ahead(&self.is_ranked);
        fetch_ahead(&self.queue.0.expected);
    }

    /// Takes the last `eligible` task of the highest priority that has one.
    #[inline(always)]
    pub(crate) fn pop_newest(&self, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        self.take::<true>(eligible, |_| ())
    }

    #[inline(always)]
    fn take<const NEWEST: bool>(
        &self,
        mut eligible: impl FnMut(&T) -> bool,
        changed: impl FnOnce(Change),
    ) -> Option<(T, Place)> {
        if self.is_empty() {
            return None;
        }
        if NEWEST {
            self.fetch_for_newest();
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
            // No task at the front is eligible.
            if is_all || !self.take_over(&mut queue) {
                return None;
            }
            is_all = true;
        }
    }

    /// Whether any task has an unusual priority, or has had one until lately.
    #[inline]
    pub(crate) fn is_ranked(&self) -> bool {
        self.is_ranked.load(Acquire)
    }

    /// The highest priority of a task.
    pub(crate) fn highest(&self) -> Option<i32> {
        let mut queue = self.queue.0.tasks.lock();
        self.take_over(&mut queue);
        queue.highest()
    }

    /// Takes the first `eligible` task of a priority above `least`.
    pub(crate) fn pop_above(&self, least: i32, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.0.tasks.lock();
        self.take_over(&mut queue);
        let popped = queue.pop_above(least, eligible);
        self.note(&queue, |_| ());
        popped
    }

    /// Takes the first `eligible` task, and moves those that follow to the queue `to`: up to `more` of them, as long as
    /// they are eligible and have the usual priority. The consumer of that queue, who takes the newest of it, gets them
    /// in their order. Returns whether any were moved, too.
    ///
    /// They are in neither queue for a moment: notify the consumers afterwards, since one that looked then found none.
    #[inline(never)]
    pub(crate) fn pop_and_move<C>(
        &self,
        more: usize,
        to: &SharedQueue<T, C>,
        mut eligible: impl FnMut(&T) -> bool,
    ) -> Option<(T, bool)> {
        let first = self.pop_for_good(&mut eligible, |_| ())?;
        if more == 0 {
            return Some((first, false));
        }
        let mut moved = [const { None }; MOVED];
        let mut queue = self.queue.0.tasks.lock();
        // Without the mark, all tasks that were taken over have the usual priority.
        let most = if self.is_ranked() { 0 } else { more.min(MOVED) };
        let mut count = 0;
        while count < most
            && let Some(task) = queue.pop_end::<false>(&mut eligible)
        {
            moved[count] = Some(task);
            count += 1;
        }
        self.note(&queue, |_| ());
        drop(queue);
        if count > 0 {
            let mut queue = to.queue.0.tasks.lock();
            moved.into_iter().flatten().rev().for_each(|(task, expected)| queue.push(task, USUAL, expected));
            to.note(&queue, |_| ());
        }
        Some((first, count > 0))
    }

    /// Takes over the arrivals. Returns whether there were any.
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

    /// Changes the queue, arrivals included, while nobody else pushes or pops. `changed` receives a change of the
    /// expected length.
    pub(crate) fn change<A>(&self, change: impl FnOnce(&mut TaskQueue<T>) -> A, changed: impl FnOnce(Change)) -> A {
        let mut queue = self.queue.0.tasks.lock();
        let mut arrived = self.arrived.0.tasks.lock();
        if self.arrived.0.len.load(Relaxed) != 0 {
            self.take_over_from(&mut arrived, &mut queue);
        }
        let answer = change(&mut queue);
        if !self.is_ranked.load(Relaxed) && !queue.has_only(USUAL) {
            self.rank();
        }
        self.note(&queue, changed);
        answer
    }

    /// Runs `then` while nobody else pushes or pops; its argument says whether the queue is empty.
    #[inline]
    pub(crate) fn hold(&self, then: impl FnOnce(bool)) {
        let queue = self.queue.0.tasks.lock();
        let _arrived = self.arrived.0.tasks.lock();
        then(queue.len() == 0 && self.arrived.0.len.load(Relaxed) == 0);
    }
}
