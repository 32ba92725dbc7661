//! The one rule of what waits for what.

use super::AccessMode;
use smallvec::{Array, SmallVec};

/// Accesses to one piece of data that a new task may have to wait for. The runtime, which submits tasks while others
/// run, and [`Dependencies`](super::Dependencies), which knows all tasks, follow this same rule; `T` is what either
/// names tasks by.
///
/// Tasks that name the same data run as if one after the other in the order of their submission (*sequential
/// consistency*): one that reads waits for the last one before it that writes; one that writes waits for all before it
/// that read or write. Tasks that [commute](AccessMode::Commute) wait for the accesses before the first of them and not
/// for each other; running them one at a time is left to the back end. So do tasks that [reduce](AccessMode::Redux),
/// which may run at once. [Scratch](AccessMode::Scratch) memory orders nothing.
///
/// ```
/// use sched_graph::{AccessMode, AccessOrder};
///
/// let mut order = AccessOrder::default();
/// let mut before = |task, mode| {
///     let mut before = Vec::new();
///     order.access(task, mode, |other| before.push(other), |_| false);
///     before
/// };
/// assert_eq!(before("make", AccessMode::Write), [""; 0]);
/// assert_eq!(before("show", AccessMode::Read), ["make"]);
/// assert_eq!(before("save", AccessMode::Read), ["make"]);
/// assert_eq!(before("change", AccessMode::ReadWrite), ["show", "save"]);
/// ```
#[derive(Clone, Debug)]
pub struct AccessOrder<T> {
    /// Last task that writes, or several that commute or reduce.
    writers: Tasks<T, 1>,
    /// Mode of the writers.
    mode: AccessMode,
    /// Number of readers, or of commuting tasks, at which finished ones are forgotten.
    forget_at: u32,
    /// Tasks that have read since.
    readers: Tasks<T, 2>,
    /// Tasks that each of several writers waits for.
    before: Vec<T>,
}

/// Few tasks, of which this many are in place: each access touches the cache lines of its data's order.
type Tasks<T, const N: usize> = SmallVec<[T; N]>;

impl<T> Default for AccessOrder<T> {
    fn default() -> AccessOrder<T> {
        let (writers, readers, before) = (Tasks::new(), Tasks::new(), Vec::new());
        AccessOrder { writers, mode: AccessMode::Write, forget_at: 0, readers, before }
    }
}

impl<T: Copy> AccessOrder<T> {
    /// Records the access of a new task, and passes the tasks that it must wait for to `wait_for`: the nearest ones,
    /// which in turn wait for those before them. Earlier tasks for which `finished` holds may be forgotten.
    #[inline]
    pub fn access(&mut self, task: T, mode: AccessMode, wait_for: impl FnMut(T), finished: impl Fn(T) -> bool) {
        self.nearest(mode).iter().copied().for_each(wait_for);
        match mode {
            AccessMode::Read => join(&mut self.readers, task, &mut self.forget_at, finished),
            AccessMode::Commute | AccessMode::Redux if self.mode == mode && self.readers.is_empty() => {
                join(&mut self.writers, task, &mut self.forget_at, finished);
            }
            AccessMode::Write | AccessMode::ReadWrite | AccessMode::Commute | AccessMode::Redux => {
                if matches!(mode, AccessMode::Commute | AccessMode::Redux) {
                    let before: &[T] = if self.readers.is_empty() { &self.writers } else { &self.readers };
                    self.before.clear();
                    self.before.extend_from_slice(before);
                }
                self.mode = mode;
                self.readers.clear();
                self.writers.clear();
                self.writers.push(task);
            }
            AccessMode::Scratch => {}
        }
    }
}

/// What accesses to overlapping data need; see [`RegionOrder`](super::RegionOrder).
impl<T: Copy> AccessOrder<T> {
    /// Passes the tasks that an access to overlapping data must wait for to `wait_for`, which returns whether it waits:
    /// tasks that have ended are forgotten. The access itself is not recorded here.
    pub(crate) fn overlap(&mut self, mode: AccessMode, mut wait_for: impl FnMut(T) -> bool) {
        match mode {
            AccessMode::Scratch => {}
            AccessMode::Read => self.writers.retain(|task| wait_for(*task)),
            _ if self.readers.is_empty() => self.writers.retain(|task| wait_for(*task)),
            _ => self.readers.retain(|task| wait_for(*task)),
        }
    }

    /// Whether an access in this mode would wait for nothing but tasks for which `finished` holds.
    #[must_use]
    pub fn is_free(&self, mode: AccessMode, finished: impl Fn(T) -> bool) -> bool {
        let readers: &[T] = if mode == AccessMode::Read { &[] } else { &self.readers };
        mode == AccessMode::Scratch || self.writers.iter().chain(readers).all(|task| finished(*task))
    }

    /// Whether no access has to be waited for.
    pub(crate) fn is_idle(&self) -> bool {
        self.writers.is_empty() && self.readers.is_empty()
    }

    /// The tasks that an access in this mode must wait for now.
    #[inline]
    #[must_use]
    pub fn nearest(&self, mode: AccessMode) -> &[T] {
        match mode {
            AccessMode::Scratch => &[],
            AccessMode::Read => &self.writers,
            AccessMode::Commute | AccessMode::Redux if self.mode == mode && self.readers.is_empty() => &self.before,
            // Every reader waits for the writers, so there is no need to wait for both.
            _ if self.readers.is_empty() => &self.writers,
            _ => &self.readers,
        }
    }

    /// Removes a task, which has ended, so that no access waits for it.
    pub fn remove(&mut self, ended: T)
    where
        T: PartialEq,
    {
        self.writers.retain(|task| *task != ended);
        self.readers.retain(|task| *task != ended);
        self.before.retain(|task| *task != ended);
    }

    /// Forgets all accesses: a task that waits for them is recorded elsewhere.
    pub(crate) fn clear(&mut self) {
        self.writers.clear();
        self.readers.clear();
        self.before.clear();
        self.mode = AccessMode::Write;
    }
}

/// Adds a task to those that may run together. The list stays within twice the number of unfinished tasks, or 16.
#[inline]
fn join<A: Array<Item: Copy>>(
    together: &mut SmallVec<A>,
    task: A::Item,
    forget_at: &mut u32,
    finished: impl Fn(A::Item) -> bool,
) {
    // Before the new task is among them, which has not begun.
    if together.len() >= (*forget_at).max(16) as usize {
        forget(together, forget_at, finished);
    }
    together.push(task);
}

/// Out of line: every access of a task passes here, and few have anything to forget.
#[cold]
#[inline(never)]
fn forget<A: Array<Item: Copy>>(together: &mut SmallVec<A>, forget_at: &mut u32, finished: impl Fn(A::Item) -> bool) {
    together.retain(|other| !finished(*other));
    *forget_at = u32::try_from(2 * together.len()).unwrap_or(u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn mode() -> impl Strategy<Value = AccessMode> {
        use AccessMode::{Commute, Read, ReadWrite, Redux, Scratch, Write};
        prop::sample::select(vec![Read, Read, Write, ReadWrite, Commute, Commute, Redux, Redux, Scratch])
    }

    /// Whether the order of two accesses to the same data matters.
    fn conflict(a: AccessMode, b: AccessMode) -> bool {
        let uses = a != AccessMode::Scratch && b != AccessMode::Scratch;
        let together = a == b && matches!(a, AccessMode::Commute | AccessMode::Redux);
        uses && (a.writes() || b.writes()) && !together
    }

    proptest! {
        /// Tasks end while others are submitted, in any order that the rule allows.
        #[test]
        fn a_task_waits_for_all_that_conflict_with_it_and_have_not_ended(
            runs in prop::collection::vec((mode(), 1usize..40), 1..8),
            mut ends in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0..300),
        ) {
            let modes: Vec<AccessMode> = runs.iter().flat_map(|(mode, length)| vec![*mode; *length]).collect();
            let (mut forgets, mut remembers) = (AccessOrder::default(), AccessOrder::default());
            let mut running: BTreeSet<usize> = BTreeSet::new();
            // Of each task, those that it has to wait for, directly or not, and that had not ended when it was
            // submitted.
            let mut waits: Vec<BTreeSet<usize>> = Vec::new();
            for (task, mode) in modes.iter().enumerate() {
                let (mut direct, mut all) = (BTreeSet::new(), BTreeSet::new());
                forgets.access(task, *mode, |before| { direct.insert(before); }, |before| !running.contains(&before));
                remembers.access(task, *mode, |before| { all.insert(before); }, |_| false);
                direct.retain(|before| running.contains(before));
                all.retain(|before| running.contains(before));
                prop_assert_eq!(&direct, &all, "what is forgotten has ended");
                let reached: BTreeSet<usize> = direct.iter().flat_map(|before| &waits[*before]).chain(&direct).copied().collect();
                let reached: BTreeSet<usize> = reached.intersection(&running).copied().collect();
                let expected: BTreeSet<usize> =
                    running.iter().copied().filter(|before| conflict(modes[*before], *mode)).collect();
                prop_assert!(direct.is_subset(&expected), "task {} waits for what does not concern it", task);
                prop_assert!(expected.is_subset(&reached), "task {} overtakes one that it conflicts with", task);
                waits.push(reached);
                running.insert(task);
                for end in ends.pop().into_iter().flatten() {
                    let free: Vec<usize> =
                        running.iter().copied().filter(|task| waits[*task].is_disjoint(&running)).collect();
                    if !free.is_empty() {
                        running.remove(end.get(&free));
                    }
                }
            }
        }
    }
}
