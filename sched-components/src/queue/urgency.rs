//! How urgent the first task of a queue is, and tasks that are more urgent than others elsewhere.

use super::{Executable, Place, TaskQueue};
use std::cmp::Reverse;

impl<T: Executable> TaskQueue<T> {
    /// The highest priority of a task.
    pub(super) fn highest(&self) -> Option<i32> {
        match self.is_divided {
            true => self.rest.apart.highest(),
            false => self.levels().find(|(_, level)| !level.is_empty()).map(|(Reverse(priority), _)| priority),
        }
    }

    /// Takes the first `eligible` task of a priority above `least`.
    pub(super) fn pop_above(&mut self, least: i32, mut eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        if self.is_divided {
            return self.pop_apart(|apart| apart.pop_above(least, eligible));
        }
        self.promote();
        let above = self.levels().take_while(|(Reverse(priority), _)| *priority > least);
        let found = { above }.find_map(|(key, level)| Some((key, level.find(&mut eligible)?)));
        found.map(|(key, index)| self.take(key, index))
    }
}
