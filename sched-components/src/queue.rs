//! A queue of tasks by priority, then by order of arrival.

mod by_archs;
mod counted;
mod divided;
mod held;
mod least;
mod level;
mod looks;
mod shared;
mod urgency;

pub(crate) use by_archs::{ALL, Able, ByArchs, Executable, Stuck, archs_of_requester};
pub(crate) use counted::{Counted, Len};
pub(crate) use held::{Held, arch_to_find};
pub(crate) use least::Reach;
use level::{Entry, Level};
pub(crate) use looks::Looks;
use sched_core::{Node, Task};
pub(crate) use shared::{Change, SharedQueue};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Keeps one worker's writes off the cache lines of others: two lines, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Number of emptied levels whose storage is kept for reuse, so that a queue with few simultaneous priorities does not
/// allocate.
const KEPT_STORAGE: usize = 64;

/// Tasks, higher priorities first, and each priority in order of arrival.
///
/// Pushing and popping take O(log p) with p priorities present; with a single one, they cost as much as in a deque.
/// A pop passes over tasks that are not eligible; where these are many, they are [kept apart](Self::divide), and
/// passing over them costs nothing. What decides whether a task is eligible is therefore nothing but who
/// [can execute](Executable::able) it.
///
/// What every pop needs comes first: with the lock before it, it is one cache line, which those who pop pass on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TaskQueue<T = Task> {
    /// The level of the highest priority. When it is exhausted, the next pop replaces it with the next level.
    main: Level<T>,
    main_priority: i32,
    len: u32,
    expected: u64,
    arrivals: u64,
    /// Boxed, so that what every task needs occupies few cache lines.
    rest: Box<Rest<T>>,
    /// Whether the tasks are [kept apart](Self::divide): `main` and the levels below are empty then.
    is_divided: bool,
}

/// The part of a queue that tasks of a single priority do not need.
#[derive(Debug)]
struct Rest<T> {
    /// The levels below `main`, all nonempty.
    levels: BTreeMap<Reverse<i32>, Level<T>>,
    /// Storage of levels that were emptied.
    spare: Vec<Level<T>>,
    /// The tasks, while the queue is divided.
    apart: ByArchs<T>,
}

impl<T> Rest<T> {
    /// Keeps the storage of an emptied level.
    fn keep(&mut self, emptied: Level<T>) {
        if self.spare.len() < KEPT_STORAGE {
            self.spare.push(emptied);
        }
    }
}

/// The position of a popped task in its queue, for putting it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    priority: i32,
    arrival: u64,
    expected: u64,
}

impl Place {
    /// The task's contribution to the expected length.
    #[inline]
    pub(crate) fn expected(self) -> u64 {
        self.expected
    }
}

impl<T> TaskQueue<T> {
    pub(crate) fn new() -> TaskQueue<T> {
        TaskQueue {
            main: Level::default(),
            main_priority: 0,
            len: 0,
            expected: 0,
            arrivals: 0,
            rest: Box::new(Rest { levels: BTreeMap::new(), spare: Vec::new(), apart: ByArchs::default() }),
            is_divided: false,
        }
    }

    /// Number of tasks.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Sum of the tasks' expected lengths in nanoseconds.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }
}

impl<T: Executable> TaskQueue<T> {
    /// Inserts `task` behind all tasks of its `priority` or higher. Its expected length is `expected` nanoseconds.
    #[inline(always)]
    pub(crate) fn push(&mut self, task: T, priority: i32, expected: u64) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        match self.is_divided {
            false => self.level(priority).push(arrival, expected, task),
            true => self.put_apart(task, Place { priority, arrival, expected }),
        }
        self.add(expected);
    }

    /// Appends tasks of one priority, in their order, behind all tasks of that priority or higher. Their expected
    /// length is zero.
    fn append(&mut self, priority: i32, entries: &mut VecDeque<Entry<T>>) {
        let (arrival, count) = (self.arrivals, entries.len());
        if self.is_divided {
            entries.drain(..).for_each(|Entry { expected, task, .. }| self.push(task, priority, expected));
        } else if count > 0 {
            self.level(priority).append(arrival, entries);
            self.arrivals += count as u64;
            self.len += count as u32;
        }
    }

    /// Whether every task has this priority.
    fn has_only(&self, priority: i32) -> bool {
        let mut levels = self.levels().filter(|(_, level)| !level.is_empty());
        levels.all(|(key, _)| key.0 == priority) && self.rest.apart.has_only(priority)
    }

    /// Takes the first task that is `eligible`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, mut eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        // The first task nearly always fits.
        if self.main.get(0).is_some_and(|first| eligible(&first.task)) {
            return Some(self.take_main(0));
        }
        self.find_and_pop(eligible)
    }

    /// The first task of the highest priority, or the `NEWEST`, and its expected length, if it is `eligible`.
    #[inline(always)]
    fn pop_end<const NEWEST: bool>(&mut self, mut eligible: impl FnMut(&T) -> bool) -> Option<(T, u64)> {
        let index = self.index_of_end::<NEWEST>();
        let is_eligible = self.main.get(index).is_some_and(|entry| eligible(&entry.task));
        is_eligible.then(|| {
            let (task, place) = self.take_main(index);
            (task, place.expected)
        })
    }

    #[inline(never)]
    fn find_and_pop(&mut self, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        if self.is_divided {
            return self.pop_apart(|apart| apart.pop_of(|_| true, eligible));
        }
        self.search::<false>(eligible)
    }

    /// Takes the last `eligible` task of the highest priority that has one.
    #[inline(always)]
    pub(crate) fn pop_newest(&mut self, mut eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        let last = self.main.len().wrapping_sub(1);
        if self.main.get(last).is_some_and(|newest| eligible(&newest.task)) {
            return Some(self.take_main(last));
        }
        self.find_newest_and_pop(eligible)
    }

    #[inline(never)]
    fn find_newest_and_pop(&mut self, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        if self.is_divided {
            return self.pop_apart(|apart| apart.pop_newest(eligible));
        }
        self.search::<true>(eligible)
    }

    /// Takes the first eligible task, or the last of the highest priority that has one (`NEWEST`), after a look at each
    /// that it passes over.
    fn search<const NEWEST: bool>(&mut self, mut eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        self.promote();
        let mut looks = 0;
        let mut counted = |task: &T| {
            looks += 1;
            eligible(task)
        };
        let found = self.find(|level| if NEWEST { level.find_newest(&mut counted) } else { level.find(&mut counted) });
        let popped = found.map(|(key, index)| self.take(key, index));
        self.divide_after(looks);
        popped
    }

    /// The level of the highest priority in which `find` succeeds, and the position there.
    fn find(&self, mut find: impl FnMut(&Level<T>) -> Option<usize>) -> Option<(Reverse<i32>, usize)> {
        self.levels().find_map(|(key, level)| Some((key, find(level)?)))
    }

    /// All levels, highest priority first.
    fn levels(&self) -> impl Iterator<Item = (Reverse<i32>, &Level<T>)> {
        let below = self.rest.levels.iter().map(|(key, level)| (*key, level));
        std::iter::once((Reverse(self.main_priority), &self.main)).chain(below)
    }

    /// The first task, or the last of the highest priority (`NEWEST`), and what ends of several queues are compared by:
    /// the least is first, or last.
    #[inline]
    fn end<const NEWEST: bool>(&mut self) -> Option<((Reverse<i32>, u64), &T)> {
        self.promote();
        let entry = self.main.get(self.index_of_end::<NEWEST>())?;
        let arrival = self.main.arrival(entry);
        Some(((Reverse(self.main_priority), if NEWEST { !arrival } else { arrival }), &entry.task))
    }

    /// Any task of a queue that is not divided.
    fn any_task(&self) -> Option<&T> {
        let (_, level) = self.levels().find(|(_, level)| !level.is_empty())?;
        level.get(0).map(|entry| &entry.task)
    }

    /// Takes what [`end`](Self::end) found.
    #[inline]
    fn take_end<const NEWEST: bool>(&mut self) -> (T, Place) {
        self.take_main(self.index_of_end::<NEWEST>())
    }

    #[inline(always)]
    fn index_of_end<const NEWEST: bool>(&self) -> usize {
        if NEWEST { self.main.len().wrapping_sub(1) } else { 0 }
    }

    /// Puts a popped task back at its position, whatever was pushed, popped or put back meanwhile.
    #[inline]
    pub(crate) fn unpop(&mut self, task: T, place: Place) {
        let Place { priority, arrival, expected } = place;
        match self.is_divided {
            false => self.level(priority).unpop(arrival, expected, task),
            true => self.put_apart(task, place),
        }
        self.add(expected);
    }

    /// Removes all tasks, in order.
    #[inline]
    pub(crate) fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop(|_| true)).map(|(task, _)| task).collect()
    }

    fn add(&mut self, expected: u64) {
        self.len += 1;
        if expected != 0 {
            self.expected = self.expected.saturating_add(expected);
        }
    }

    /// The level for a task of `priority`, which the caller is about to insert.
    #[inline(always)]
    fn level(&mut self, priority: i32) -> &mut Level<T> {
        if self.len == 0 {
            self.main_priority = priority;
        }
        if priority == self.main_priority { &mut self.main } else { self.other_level(priority) }
    }

    #[inline(never)]
    fn other_level(&mut self, priority: i32) -> &mut Level<T> {
        let Rest { levels, spare, .. } = &mut *self.rest;
        let mut new = || spare.pop().unwrap_or_default();
        if priority < self.main_priority {
            return levels.entry(Reverse(priority)).or_insert_with(new);
        }
        if !self.main.is_empty() {
            let below = std::mem::replace(&mut self.main, new());
            levels.insert(Reverse(self.main_priority), below);
        }
        self.main_priority = priority;
        &mut self.main
    }

    /// Removes the task at a position that was just found.
    fn take(&mut self, key: Reverse<i32>, index: usize) -> (T, Place) {
        if key.0 == self.main_priority { self.take_main(index) } else { self.take_other(key, index) }
    }

    #[inline(always)]
    fn take_main(&mut self, index: usize) -> (T, Place) {
        let (priority, entry) = (self.main_priority, self.main.remove(index));
        let arrival = self.main.arrival(&entry);
        self.taken(entry, priority, arrival)
    }

    /// Replaces an exhausted highest level with the next one.
    fn promote(&mut self) {
        if self.main.is_empty()
            && let Some((Reverse(priority), level)) = self.rest.levels.pop_first()
        {
            let emptied = std::mem::replace(&mut self.main, level);
            self.main_priority = priority;
            self.rest.keep(emptied);
        }
    }

    fn take_other(&mut self, key: Reverse<i32>, index: usize) -> (T, Place) {
        let level = self.rest.levels.get_mut(&key).expect("the level was just found");
        let entry = level.remove(index);
        let arrival = level.arrival(&entry);
        if level.is_empty() {
            let emptied = self.rest.levels.remove(&key).expect("the level was just found");
            self.rest.keep(emptied);
        }
        self.taken(entry, key.0, arrival)
    }

    #[inline(always)]
    fn taken(&mut self, entry: Entry<T>, priority: i32, arrival: u64) -> (T, Place) {
        let Entry { expected, task, .. } = entry;
        self.subtract(expected);
        (task, Place { priority, arrival, expected })
    }

    #[inline(always)]
    fn subtract(&mut self, expected: u64) {
        self.len -= 1;
        // The sum may have saturated: it is never more than that of the tasks, and so zero when they have gone.
        if expected != 0 {
            self.expected = self.expected.saturating_sub(expected);
        }
    }
}

/// Nanoseconds that `task` adds to a queue whose tasks take `ahead`: its expected length and the part of its transfers
/// that is not hidden behind the tasks ahead. Zero if no model knew.
#[inline]
pub(crate) fn expected_addition(task: &Task, ahead: impl FnOnce() -> u64) -> u64 {
    let Some(length) = task.predicted() else { return 0 };
    let transfer = task.predicted_transfer().map_or(0, nanos);
    nanos(length).saturating_add(if transfer == 0 { 0 } else { transfer.saturating_sub(ahead()) })
}

/// The load that `tasks` tasks add to a node.
#[inline]
pub(crate) fn load_here(node: Node<'_>, tasks: usize) -> f64 {
    let speed = node.relative_speedup();
    if speed > 0.0 { tasks as f64 / speed } else { tasks as f64 }
}

/// Nanoseconds; 64 bits suffice for 584 years.
#[inline]
pub(crate) fn nanos(length: Duration) -> u64 {
    // 64-bit arithmetic, because every decision calls this for every child.
    length.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(length.subsec_nanos()))
}

#[cfg(test)]
mod tests;
