//! Tasks in one order, stored separately by the architectures that can execute them.

use super::{Len, Place, TaskQueue};
use sched_core::{ArchSet, Node, Task};

/// All architectures.
pub(crate) const ALL: ArchSet = ArchSet::from_bits(u32::MAX);

/// All architectures but these.
#[inline]
pub(crate) fn all_but(archs: ArchSet) -> ArchSet {
    ArchSet::from_bits(!archs.bits())
}

/// The union of two sets.
#[inline]
pub(crate) fn either(these: ArchSet, those: ArchSet) -> ArchSet {
    ArchSet::from_bits(these.bits() | those.bits())
}

/// The architecture of the requesting worker; all without a requester.
#[inline]
pub(crate) fn archs_of_requester(node: Node<'_>) -> ArchSet {
    let arch = node.requester().and_then(|worker| node.arch(worker));
    arch.map_or(ALL, |arch| ArchSet::EMPTY.with(arch))
}

/// Tasks by priority, then by arrival, with one queue for each set of architectures: passing over any number of tasks
/// that the requester cannot execute costs nothing. There are few such sets.
#[derive(Debug)]
pub(crate) struct ByArchs<T = Task> {
    kinds: Vec<(ArchSet, TaskQueue<T>)>,
    arrivals: u64,
}

impl<T> Default for ByArchs<T> {
    fn default() -> ByArchs<T> {
        ByArchs { kinds: Vec::new(), arrivals: 0 }
    }
}

impl<T> ByArchs<T> {
    /// Sum of the tasks' expected lengths in nanoseconds.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.kinds.iter().map(|(_, queue)| queue.expected()).fold(0, u64::saturating_add)
    }

    /// Inserts `task`, which `archs` can execute, behind all tasks of its `priority` or higher. Its expected length is
    /// `expected` nanoseconds.
    pub(crate) fn push(&mut self, archs: ArchSet, task: T, priority: i32, expected: u64) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let queue = self.kind(archs);
        queue.arrivals = arrival;
        queue.push(task, priority, expected);
    }

    /// Takes the first `eligible` task that any of `archs` can execute.
    pub(crate) fn pop(&mut self, archs: ArchSet, mut eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        if let [(kind, queue)] = &mut *self.kinds {
            return if kind.intersects(archs) { queue.pop(eligible) } else { None };
        }
        let able = self.kinds.iter_mut().filter(|(kind, _)| kind.intersects(archs));
        let first = able.filter_map(|(_, queue)| Some((queue.first(&mut eligible)?, queue)));
        let (_, queue) = first.min_by_key(|(first, _)| *first)?;
        queue.pop(eligible)
    }

    /// Puts a popped task back at its position, whatever was pushed, popped or put back meanwhile.
    #[inline]
    pub(crate) fn unpop(&mut self, archs: ArchSet, task: T, place: Place) {
        self.kind(archs).unpop(task, place);
    }

    /// Removes all tasks, in order.
    #[inline]
    pub(crate) fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop(ALL, |_| true)).map(|(task, _)| task).collect()
    }

    fn kind(&mut self, archs: ArchSet) -> &mut TaskQueue<T> {
        let known = self.kinds.iter().position(|(kind, _)| *kind == archs);
        let index = known.unwrap_or_else(|| {
            self.kinds.push((archs, TaskQueue::new()));
            self.kinds.len() - 1
        });
        &mut self.kinds[index].1
    }
}

impl<T> Len for ByArchs<T> {
    fn len(&self) -> usize {
        self.kinds.iter().map(|(_, queue)| queue.len()).sum()
    }
}
