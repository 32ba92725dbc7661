//! A queue of tasks by priority, in order of arrival where priorities are equal.

use sched_core::Task;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Emptied levels that are kept for the next task of their priority. As many fit in one node of the map, so looking past
/// them costs little, and a queue that sees few priorities does not allocate once it has seen them.
const KEPT_LEVELS: usize = 8;

/// Storage of emptied levels that is kept for levels to come.
const KEPT_STORAGE: usize = 64;

/// Tasks, higher priorities first, and each priority in order of arrival.
///
/// Pushing and popping take O(log p) for p priorities present, which is O(1) for the common one.
#[derive(Debug)]
pub(crate) struct TaskQueue<T = Task> {
    levels: BTreeMap<Reverse<i32>, VecDeque<Entry<T>>>,
    /// Emptied storage of levels that are gone.
    spare: Vec<VecDeque<Entry<T>>>,
    arrivals: u64,
    len: usize,
    expected: Duration,
}

/// The place of a popped task in its queue, for giving it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    priority: i32,
    arrival: u64,
    expected: Duration,
}

impl Place {
    /// What the task counted with towards the expected duration.
    pub(crate) fn expected(self) -> Duration {
        self.expected
    }
}

#[derive(Debug)]
struct Entry<T> {
    arrival: u64,
    expected: Duration,
    task: T,
}

impl<T> TaskQueue<T> {
    pub(crate) fn new() -> TaskQueue<T> {
        TaskQueue { levels: BTreeMap::new(), spare: Vec::new(), arrivals: 0, len: 0, expected: Duration::ZERO }
    }

    /// Number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Sum of the expected durations that tasks were pushed with.
    pub(crate) fn expected(&self) -> Duration {
        self.expected
    }

    /// Puts `task` behind all of its `priority` and above. It counts with `expected` towards the expected duration.
    pub(crate) fn push(&mut self, task: T, priority: i32, expected: Duration) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.add(expected);
        self.level(priority).push_back(Entry { arrival, expected, task });
    }

    /// Takes the first task that is `eligible`.
    pub(crate) fn pop(&mut self, mut eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        let (priority, index) = self.levels.iter().find_map(|(Reverse(priority), level)| {
            Some((*priority, level.iter().position(|entry| eligible(&entry.task))?))
        })?;
        Some(self.take(priority, index))
    }

    /// Puts a popped task back where it was, whatever was pushed, popped or put back meanwhile.
    pub(crate) fn unpop(&mut self, task: T, place: Place) {
        let Place { priority, arrival, expected } = place;
        self.add(expected);
        let level = self.level(priority);
        let index = level.partition_point(|entry| entry.arrival < arrival);
        level.insert(index, Entry { arrival, expected, task });
    }

    /// Takes all tasks, in order.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        self.len = 0;
        self.expected = Duration::ZERO;
        self.levels.values_mut().flat_map(|level| level.drain(..)).map(|entry| entry.task).collect()
    }

    fn add(&mut self, expected: Duration) {
        self.len += 1;
        self.expected = self.expected.saturating_add(expected);
    }

    fn level(&mut self, priority: i32) -> &mut VecDeque<Entry<T>> {
        let spare = &mut self.spare;
        self.levels.entry(Reverse(priority)).or_insert_with(|| spare.pop().unwrap_or_default())
    }

    fn take(&mut self, priority: i32, index: usize) -> (T, Place) {
        let key = Reverse(priority);
        let level = self.levels.get_mut(&key).expect("the level was just found");
        let Entry { arrival, expected, task } = level.remove(index).expect("the task was just found");
        if level.is_empty() && self.levels.len() > KEPT_LEVELS {
            let storage = self.levels.remove(&key);
            if self.spare.len() < KEPT_STORAGE {
                self.spare.extend(storage);
            }
        }
        self.len -= 1;
        self.expected = self.expected.saturating_sub(expected);
        (task, Place { priority, arrival, expected })
    }
}

/// What `task` adds to a queue that has `ahead` to do first: its expected duration and that of its transfers, as far as
/// they do not hide behind the tasks ahead. Nothing when no model knew.
pub(crate) fn expected_addition(task: &Task, ahead: Duration) -> Duration {
    let Some(length) = task.predicted() else { return Duration::ZERO };
    length.saturating_add(task.predicted_transfer().unwrap_or_default().saturating_sub(ahead))
}

#[cfg(test)]
mod tests;
