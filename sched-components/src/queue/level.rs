//! The tasks of one priority.

use sched_core::fetch_ahead;
use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

/// Tasks of one priority, in order of arrival.
#[derive(Debug)]
pub(super) struct Level<T> {
    entries: VecDeque<Entry<T>>,
    /// Base of the entries' numbers.
    base: u64,
}

#[derive(Debug)]
pub(super) struct Entry<T> {
    /// Position in the order of arrival, relative to the level's base.
    pub(super) number: u64,
    pub(super) expected: u64,
    pub(super) task: T,
}

/// Appends an entry. Where there is room, which is nearly always, it goes from registers to its place: growing needs it
/// in memory, and a detour there, written in small pieces and read in large ones, makes the processor wait.
#[inline(always)]
pub(super) fn push_back<T>(entries: &mut VecDeque<Entry<T>>, entry: Entry<T>) {
    if entries.len() < entries.capacity() {
        entries.push_back(entry);
    } else {
        grow_and_push_back(entries, entry);
    }
}

#[cold]
#[inline(never)]
fn grow_and_push_back<T>(entries: &mut VecDeque<Entry<T>>, entry: Entry<T>) {
    entries.push_back(entry);
}

impl<T> Default for Level<T> {
    fn default() -> Level<T> {
        Level { entries: VecDeque::new(), base: 0 }
    }
}

impl<T> Level<T> {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(super) fn iter(&self) -> Iter<'_, Entry<T>> {
        self.entries.iter()
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Entry<T>> {
        self.entries.get(index)
    }

    /// The arrival number of an entry of this level.
    #[inline(always)]
    pub(super) fn arrival(&self, entry: &Entry<T>) -> u64 {
        self.base.wrapping_add(entry.number)
    }

    /// Appends a task that arrived last.
    #[inline(always)]
    pub(super) fn push(&mut self, arrival: u64, expected: u64, task: T) {
        push_back(&mut self.entries, Entry { number: arrival.wrapping_sub(self.base), expected, task });
    }

    /// Puts a task back at its position.
    #[inline]
    pub(super) fn unpop(&mut self, arrival: u64, expected: u64, task: T) {
        let is_before = |entry: &Entry<T>| self.base.wrapping_add(entry.number) < arrival;
        let entry = Entry { number: arrival.wrapping_sub(self.base), expected, task };
        // Mostly it was the first one, and the others are not in the processor's cache.
        if self.entries.front().is_some_and(is_before) {
            let index = self.entries.partition_point(is_before);
            self.entries.insert(index, entry);
        } else {
            self.entries.push_front(entry);
        }
    }

    /// Appends entries, which are numbered from 0, as arrivals from `arrival` on, and empties `entries`.
    pub(super) fn append(&mut self, arrival: u64, entries: &mut VecDeque<Entry<T>>) {
        if self.is_empty() {
            std::mem::swap(&mut self.entries, entries);
            self.base = arrival;
        } else {
            for (arrival, Entry { expected, task, .. }) in (arrival..).zip(entries.drain(..)) {
                self.push(arrival, expected, task);
            }
        }
    }

    /// Removes all tasks, in order, and hands each over with its arrival number and its expected length.
    pub(super) fn drain(&mut self, mut take: impl FnMut(u64, u64, T)) {
        for Entry { number, expected, task } in self.entries.drain(..) {
            take(self.base.wrapping_add(number), expected, task);
        }
    }

    /// Index of the first eligible entry.
    #[inline]
    pub(super) fn find(&self, mut eligible: impl FnMut(&T) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| eligible(&entry.task))
    }

    /// Index of the last eligible entry.
    #[inline]
    pub(super) fn find_newest(&self, mut eligible: impl FnMut(&T) -> bool) -> Option<usize> {
        self.entries.iter().rposition(|entry| eligible(&entry.task))
    }

    /// Removes the entry at an index that was just found.
    #[inline(always)]
    pub(super) fn remove(&mut self, index: usize) -> Entry<T> {
        let entry = if index == 0 {
            self.entries.pop_front()
        } else if index + 1 == self.entries.len() {
            let last = self.entries.pop_back();
            // With many long queues, the next entry is rarely in the cache.
            self.entries.back().inspect(|next| fetch_ahead(*next));
            last
        } else {
            self.entries.remove(index)
        };
        entry.expect("the task was just found")
    }
}
