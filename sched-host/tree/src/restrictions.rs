//! Sets of workers that tasks are restricted to: the one place that decides whether a worker may execute a task.
//!
//! Most tasks may run on every worker of their architectures, and are decided by a bit mask. A restricted task has no
//! bit set, so the mask says no, and only then the set is looked at: other tasks pay nothing.

use parking_lot::RwLock;
use sched_core::abi::TaskHead;
use sched_core::{WorkerId, WorkerSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// The different sets of workers that tasks of a ledger were restricted to, numbered from 1.
#[derive(Default)]
pub(super) struct Restrictions {
    sets: RwLock<Sets>,
}

#[derive(Default)]
struct Sets {
    all: Vec<Arc<WorkerSet>>,
    numbers: BTreeMap<Box<[u64]>, u64>,
}

impl Restrictions {
    /// Restricts a task, whose architectures are set, to these workers.
    pub(super) fn restrict(&self, head: &TaskHead, workers: &WorkerSet) {
        head.restrict(self.number(workers), head.all_archs());
    }

    fn number(&self, workers: &WorkerSet) -> u64 {
        let words = workers.words();
        let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        let words = &words[..used];
        if let Some(number) = self.sets.read().numbers.get(words) {
            return *number;
        }
        let sets = &mut *self.sets.write();
        let next = sets.all.len() as u64 + 1;
        let number = *sets.numbers.entry(words.into()).or_insert(next);
        if number == next {
            sets.all.push(Arc::new(WorkerSet::from_words(words)));
        }
        number
    }

    /// The set of this number.
    fn get(&self, number: u64) -> Option<Arc<WorkerSet>> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.sets.read().all.get(index).cloned()
    }

    /// The workers that a task is restricted to; `None` if it is not.
    pub(super) fn of(&self, head: &TaskHead) -> Option<Arc<WorkerSet>> {
        self.get(head.restriction())
    }

    /// Whether the simple worker `worker`, or the combined worker with these `members`, may execute a task on the
    /// architecture number `arch`.
    #[inline]
    pub(super) fn allow(&self, head: &TaskHead, arch: u32, worker: WorkerId, members: Option<&[WorkerId]>) -> bool {
        let open = head.archs.load(Relaxed) & 1 << arch != 0;
        (open || self.allow_restricted(head, arch, worker, members))
            && members.is_none_or(|members| members.len() <= usize::from(head.width.load(Relaxed)))
    }

    #[cold]
    fn allow_restricted(&self, head: &TaskHead, arch: u32, worker: WorkerId, members: Option<&[WorkerId]>) -> bool {
        let Some(set) = self.of(head) else { return false };
        head.all_archs() & 1 << arch != 0
            && match members {
                None => set.contains(worker),
                Some(members) => members.iter().all(|member| set.contains(*member)),
            }
    }

    /// Whether the set of this number contains `worker`.
    pub(super) fn contains(&self, number: u64, worker: WorkerId) -> bool {
        self.get(number).is_some_and(|set| set.contains(worker))
    }
}
