//! A queue whose tasks are kept apart by who can execute them.

use super::by_archs::{ByArchs, Executable};
use super::{Place, TaskQueue};
use std::mem::take;

/// A pop that looks at more tasks than this divides the queue. Below, looking costs less than dividing.
const LONG_LOOK: usize = if cfg!(test) { 3 } else { 64 };

impl<T: Executable> TaskQueue<T> {
    /// Divides the queue if a pop had to look at many tasks: the next one would pass over the same ones again.
    pub(super) fn divide_after(&mut self, looks: usize) {
        if looks > LONG_LOOK {
            self.divide();
        }
    }

    /// Moves all tasks to where they are kept apart by who can execute them. They stay in one order; a pop compares the
    /// first of each kind. The queue is divided until it is empty.
    fn divide(&mut self) {
        let first = (self.main_priority, take(&mut self.main));
        let levels = take(&mut self.rest.levels).into_iter().map(|(key, level)| (key.0, level));
        for (priority, mut level) in std::iter::once(first).chain(levels) {
            level.drain(|arrival, expected, task| self.rest.apart.unpop(task, Place { priority, arrival, expected }));
            self.rest.keep(level);
        }
        self.is_divided = self.len > 0;
    }

    /// Undoes [`divide`](Self::divide).
    pub(super) fn unite(&mut self) {
        let mut apart = take(&mut self.rest.apart);
        self.is_divided = false;
        while let Some((task, place)) = apart.pop_of(|_| true, |_| true) {
            self.subtract(place.expected);
            self.unpop(task, place);
        }
    }

    /// Stores a task of a divided queue.
    #[inline(never)]
    pub(super) fn put_apart(&mut self, task: T, place: Place) {
        self.rest.apart.unpop(task, place);
    }

    /// Takes a task out of a divided queue.
    pub(super) fn pop_apart(&mut self, pop: impl FnOnce(&mut ByArchs<T>) -> Option<(T, Place)>) -> Option<(T, Place)> {
        let (task, place) = pop(&mut self.rest.apart)?;
        self.subtract(place.expected);
        self.is_divided = self.len > 0;
        Some((task, place))
    }
}
