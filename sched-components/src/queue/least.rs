//! Taking the task of the least cost instead of the first.

use super::level::{Entry, Level};
use super::{Executable, Place, TaskQueue};
use std::cmp::Reverse;

/// Which tasks compete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Those of the highest priority that has an eligible task.
    HighestLevel,
    /// All tasks.
    AllLevels,
}

/// The best task so far: its cost, its level, and its position there.
type Best = (u64, Reverse<i32>, usize);

impl<T: Executable> TaskQueue<T> {
    /// Takes the task of the least `cost`; on ties, the one that [`pop`](Self::pop) would take. Tasks without a cost do
    /// not compete. The search stops at the first task that costs nothing.
    pub(crate) fn pop_least(&mut self, reach: Reach, mut cost: impl FnMut(&T) -> Option<u64>) -> Option<(T, Place)> {
        if self.is_divided {
            self.unite();
        }
        let mut best: Option<Best> = None;
        for (key, level) in self.levels() {
            search(key, level, &mut cost, &mut best);
            match best {
                Some((0, ..)) => break,
                Some(_) if reach == Reach::HighestLevel => break,
                _ => {}
            }
        }
        let (_, key, index) = best?;
        Some(self.take(key, index))
    }
}

fn search<T>(key: Reverse<i32>, level: &Level<T>, cost: &mut impl FnMut(&T) -> Option<u64>, best: &mut Option<Best>) {
    for (index, Entry { task, .. }) in level.iter().enumerate() {
        let Some(found) = cost(task) else { continue };
        if best.is_none_or(|(least, ..)| found < least) {
            *best = Some((found, key, index));
        }
        if found == 0 {
            return;
        }
    }
}
