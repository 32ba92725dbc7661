//! Tasks in one order, stored separately by the workers that can execute them.

use super::{Held, Len, Place, TaskQueue};
use sched_core::{Arch, ArchSet, Node, Task};
use std::cmp::Reverse;

/// All architectures.
pub(crate) const ALL: ArchSet = ArchSet::from_bits(u32::MAX);

/// All architectures but these.
#[inline]
fn all_but(archs: ArchSet) -> ArchSet {
    ArchSet::from_bits(!archs.bits())
}

/// The union of two sets.
#[inline]
fn either(these: ArchSet, those: ArchSet) -> ArchSet {
    ArchSet::from_bits(these.bits() | those.bits())
}

/// The architecture of the requesting worker; all without a requester.
#[inline]
pub(crate) fn archs_of_requester(node: Node<'_>) -> ArchSet {
    let arch = node.requester().and_then(|worker| node.arch(worker));
    arch.map_or(ALL, |arch| ArchSet::EMPTY.with(arch))
}

/// The workers that can execute a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Able {
    archs: ArchSet,
    /// See [`Task::restriction`].
    restriction: u64,
    /// How many workers may execute it together: whether a combined one can depends on it.
    width: u32,
}

/// What a queue can be divided by.
pub(crate) trait Executable {
    /// The workers that can execute it.
    fn able(&self) -> Able;
}

impl Executable for Task {
    #[inline]
    fn able(&self) -> Able {
        Able { archs: self.archs(), restriction: self.restriction(), width: self.width() }
    }
}

impl Executable for Held {
    #[inline]
    fn able(&self) -> Able {
        self.task.able()
    }
}

impl Able {
    #[cfg(test)]
    pub(crate) fn new(archs: ArchSet, restriction: u64) -> Able {
        Able { archs, restriction, width: 1 }
    }

    /// Whether some of these workers have one of `archs`.
    #[inline]
    pub(crate) fn are_of(self, archs: ArchSet) -> bool {
        self.archs.intersects(archs)
    }

    /// Whether these are not all workers of the architectures.
    #[inline]
    pub(crate) fn is_restricted(self) -> bool {
        self.restriction != 0
    }
}

/// Workers that have no room, as far as refusals of tasks show.
#[derive(Default, Debug)]
pub(crate) struct Stuck {
    archs: ArchSet,
    restricted: Vec<Able>,
}

impl Stuck {
    /// All workers that are not of `arch`.
    pub(crate) fn all_but_those_of(arch: Arch) -> Stuck {
        Stuck { archs: all_but(ArchSet::EMPTY.with(arch)), restricted: Vec::new() }
    }

    /// None of these workers has room.
    pub(crate) fn note(&mut self, able: Able) {
        match able.is_restricted() {
            true => self.restricted.push(able),
            false => self.archs = either(self.archs, able.archs),
        }
    }

    /// Whether any of these workers may have room.
    #[inline]
    pub(crate) fn lets_pass(&self, able: Able) -> bool {
        able.archs.intersects(all_but(self.archs)) && !self.restricted.contains(&able)
    }
}

/// Tasks by priority, then by arrival, with one queue for each set of workers: passing over any number of tasks that
/// the requester cannot execute costs nothing. There are few such sets at a time.
#[derive(Debug)]
pub(crate) struct ByArchs<T = Task> {
    kinds: Vec<(Able, TaskQueue<T>)>,
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

    /// Number of queues.
    #[cfg(test)]
    pub(crate) fn kinds(&self) -> usize {
        self.kinds.len()
    }
}

impl<T: Executable> ByArchs<T> {
    /// Inserts `task` behind all tasks of its `priority` or higher. Its expected length is `expected` nanoseconds.
    pub(crate) fn push(&mut self, task: T, priority: i32, expected: u64) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let queue = self.kind(task.able());
        queue.arrivals = arrival;
        queue.push(task, priority, expected);
    }

    /// Takes the first `eligible` task that any of `archs` can execute.
    pub(crate) fn pop(&mut self, archs: ArchSet, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        self.pop_of(|able| able.are_of(archs), eligible)
    }

    /// Takes the first `eligible` task of the `wanted` kinds. All tasks of a kind are eligible, or none.
    pub(crate) fn pop_of(
        &mut self,
        wanted: impl Fn(Able) -> bool,
        eligible: impl FnMut(&T) -> bool,
    ) -> Option<(T, Place)> {
        Some(self.with_end::<false>(i64::MIN, wanted, eligible)?.take_end::<false>())
    }

    /// Takes the first `eligible` task of a priority above `least`. All tasks of a kind are eligible, or none.
    pub(super) fn pop_above(&mut self, least: i32, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        Some(self.with_end::<false>(least.into(), |_| true, eligible)?.take_end::<false>())
    }

    /// The highest priority of a task.
    pub(super) fn highest(&self) -> Option<i32> {
        self.kinds.iter().filter_map(|(_, queue)| queue.highest()).max()
    }

    /// Takes the last task of the highest priority that has an `eligible` one. All tasks of a kind are eligible, or
    /// none.
    pub(crate) fn pop_newest(&mut self, eligible: impl FnMut(&T) -> bool) -> Option<(T, Place)> {
        Some(self.with_end::<true>(i64::MIN, |_| true, eligible)?.take_end::<true>())
    }

    /// The queue that has the first of all tasks of wanted and eligible kinds, or the last of the highest priority
    /// (`NEWEST`), if that priority is above `least`.
    fn with_end<const NEWEST: bool>(
        &mut self,
        least: i64,
        wanted: impl Fn(Able) -> bool,
        mut eligible: impl FnMut(&T) -> bool,
    ) -> Option<&mut TaskQueue<T>> {
        let mut best: Option<((Reverse<i32>, u64), usize)> = None;
        for (index, (kind, queue)) in self.kinds.iter_mut().enumerate() {
            if !wanted(*kind) {
                continue;
            }
            let Some((end, task)) = queue.end::<NEWEST>() else { continue };
            if i64::from(end.0.0) <= least {
                continue;
            }
            // Whether a task is eligible is asked of the host.
            if best.is_none_or(|(best, _)| end < best) && eligible(task) {
                best = Some((end, index));
            }
        }
        best.map(|(_, index)| &mut self.kinds[index].1)
    }

    /// Whether a task is in the queue for which this is true. It is true of all tasks of a kind, or of none.
    pub(crate) fn has_kind(&self, is_so: impl Fn(&T) -> bool) -> bool {
        self.kinds.iter().any(|(_, queue)| queue.any_task().is_some_and(&is_so))
    }

    /// Whether every task has this priority.
    pub(super) fn has_only(&self, priority: i32) -> bool {
        self.kinds.iter().all(|(_, queue)| queue.has_only(priority))
    }

    /// Puts a popped task back at its position, whatever was pushed, popped or put back meanwhile.
    #[inline]
    pub(crate) fn unpop(&mut self, task: T, place: Place) {
        self.kind(task.able()).unpop(task, place);
    }

    /// Removes all tasks, in order.
    #[inline]
    pub(crate) fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop(ALL, |_| true)).map(|(task, _)| task).collect()
    }

    fn kind(&mut self, able: Able) -> &mut TaskQueue<T> {
        let known = self.kinds.iter().position(|(kind, _)| *kind == able);
        // An application may restrict tasks to ever other sets of workers.
        let free = || self.kinds.iter().position(|(_, queue)| queue.len() == 0);
        let index = known.or_else(free).unwrap_or_else(|| {
            self.kinds.push((able, TaskQueue::new()));
            self.kinds.len() - 1
        });
        let (kind, queue) = &mut self.kinds[index];
        *kind = able;
        queue
    }
}

impl<T> Len for ByArchs<T> {
    fn len(&self) -> usize {
        self.kinds.iter().map(|(_, queue)| queue.len()).sum()
    }
}
