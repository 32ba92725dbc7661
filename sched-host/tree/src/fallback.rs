//! Tasks that left a tree other than by a pull: refused by the root, dropped, or taken back from a failed node. The
//! workers of the context look here when the tree has nothing for them.

use super::ledger::{Phase, Slot};
use super::restrictions::Restrictions;
use super::services::Services;
use parking_lot::Mutex;
use sched_core::abi::wire::RawWorker;
use sched_core::{SharedSet, WorkerId, WorkerSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence};

#[cfg(test)]
mod tests;

/// Tasks by arrival, with a queue for each kind: a worker that looks for one that it can execute looks at the first of
/// each, and not at all those before it that are for others.
#[derive(Default)]
struct Stored {
    /// Each task with its number in the order of arrival. No queue is empty.
    queues: BTreeMap<Kind, VecDeque<(u64, &'static Slot)>>,
    arrived: u64,
    len: usize,
}

/// What single workers can execute a task depends on: its open architectures, the set of workers that it is restricted
/// to, and its architectures then.
type Kind = (u32, u64, u32);

impl Stored {
    fn put(&mut self, slot: &'static Slot) {
        let head = slot.head();
        let kind = (head.archs.load(Relaxed), head.restriction(), head.all_archs());
        self.queues.entry(kind).or_default().push_back((self.arrived, slot));
        self.arrived += 1;
        self.len += 1;
    }

    /// Takes the first task that `fits`.
    fn take(&mut self, mut fits: impl FnMut(&Slot) -> bool) -> Option<&'static Slot> {
        let firsts = self.queues.iter().filter_map(|(kind, queue)| Some((queue.front()?, *kind)));
        let ((_, slot), kind) = firsts.filter(|((_, slot), _)| fits(slot)).min_by_key(|((number, _), _)| *number)?;
        let slot = *slot;
        if let Some(queue) = self.queues.get_mut(&kind) {
            queue.pop_front();
            if queue.is_empty() {
                self.queues.remove(&kind);
            }
        }
        self.len -= 1;
        Some(slot)
    }

    /// All tasks, in order of arrival.
    fn all(&self) -> Vec<&'static Slot> {
        let mut all: Vec<_> = self.queues.values().flatten().copied().collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, slot)| slot).collect()
    }
}

/// One store for each context; it survives the exchange of the tree.
pub(super) struct Fallback {
    tasks: Mutex<Stored>,
    len: AtomicUsize,
    /// Workers that look here: bit *n* of word *m* stands for worker 64·m + n.
    members: Box<[AtomicU64]>,
    workers: Arc<[RawWorker]>,
    restrictions: Arc<Restrictions>,
    services: Arc<dyn Services>,
    sleeping: Arc<SharedSet>,
    /// Whether a worker that looks here is asked to look after the tree.
    attention: AtomicBool,
}

/// Bit of the length that is set while [`Fallback::attention`] is: a worker that looks here reads the length only.
const ATTENTION: usize = 1 << (usize::BITS - 1);

impl Fallback {
    /// An empty store without members.
    pub(super) fn new(
        workers: Arc<[RawWorker]>,
        services: Arc<dyn Services>,
        restrictions: Arc<Restrictions>,
    ) -> Fallback {
        let members = (0..workers.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let sleeping = services.sleeping();
        let (tasks, len) = (Mutex::default(), AtomicUsize::new(0));
        Fallback { tasks, len, members, workers, restrictions, services, sleeping, attention: AtomicBool::new(false) }
    }

    /// Sets the workers that look here.
    pub(super) fn set_members(&self, members: impl Iterator<Item = usize>) {
        let mut words = vec![0; self.members.len()];
        members.for_each(|worker| words[worker / 64] |= 1 << (worker % 64));
        self.members.iter().zip(words).for_each(|(member, word)| member.store(word, SeqCst));
    }

    /// Whether the worker looks here.
    pub(super) fn has_member(&self, worker: WorkerId) -> bool {
        let word = self.members.get(worker.index() / 64);
        word.is_some_and(|word| word.load(SeqCst) & 1 << (worker.0 % 64) != 0)
    }

    /// Number of tasks.
    pub(super) fn len(&self) -> usize {
        self.len.load(SeqCst) & !ATTENTION
    }

    fn note_len(&self, tasks: &Stored) {
        let attention = if self.attention.load(SeqCst) { ATTENTION } else { 0 };
        self.len.store(tasks.len | attention, SeqCst);
    }

    /// Asks for a look at the tree, by a worker that has nothing to do.
    pub(super) fn call_attention(&self) {
        {
            let tasks = self.tasks.lock();
            self.attention.store(true, SeqCst);
            self.note_len(&tasks);
        }
        let all = WorkerSet::from_words(&self.members.iter().map(|word| word.load(SeqCst)).collect::<Vec<_>>());
        self.wake(&all);
    }

    /// Whether a look at the tree was asked for, since the last call.
    pub(super) fn takes_attention(&self) -> bool {
        let tasks = self.tasks.lock();
        let asked = self.attention.swap(false, SeqCst);
        self.note_len(&tasks);
        asked
    }

    /// Wakes those of these workers that sleep.
    pub(super) fn wake(&self, workers: &WorkerSet) {
        for worker in workers.iter().filter(|worker| self.sleeping.contains(worker.0)) {
            self.services.wake(worker);
        }
    }

    /// Whether nobody needs to look here.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.len.load(SeqCst) == 0
    }

    /// Stores a task that the caller owns, whose handles are stale and whose phase is [`Phase::Fallback`] already.
    pub(super) fn put(&self, slot: &'static Slot) {
        debug_assert_eq!(slot.phase(), Phase::Fallback);
        {
            let mut tasks = self.tasks.lock();
            tasks.put(slot);
            self.note_len(&tasks);
        }
        self.wake_for(slot);
    }

    /// Wakes a sleeping member that can execute the task, if any.
    fn wake_for(&self, slot: &Slot) {
        fence(SeqCst);
        let _ = self.sleeping.iter().map(WorkerId).any(|worker| {
            let fits = self.restrictions.allow(slot.head(), self.workers[worker.index()].arch, worker, None);
            fits && self.has_member(worker) && self.services.wake(worker)
        });
    }

    /// Wakes members after they have changed: a task stored meanwhile woke a former member.
    pub(super) fn wake_again(&self) {
        let tasks = self.tasks.lock().all();
        tasks.into_iter().for_each(|slot| self.wake_for(slot));
    }

    /// Takes the first task that a worker can execute, if the worker is a member.
    #[cold]
    pub(super) fn take(&self, worker: WorkerId) -> Option<&'static Slot> {
        let arch = self.workers.get(worker.index())?.arch;
        let mut tasks = self.tasks.lock();
        // Under the lock: a thread that exchanges the members takes all tasks first.
        if !self.has_member(worker) {
            return None;
        }
        let slot = tasks.take(|slot| self.restrictions.allow(slot.head(), arch, worker, None))?;
        self.note_len(&tasks);
        Some(slot)
    }

    /// Takes every task, in order of arrival.
    pub(super) fn take_all(&self) -> Vec<&'static Slot> {
        let mut tasks = self.tasks.lock();
        let all = std::mem::take(&mut *tasks);
        self.note_len(&tasks);
        drop(tasks);
        all.all()
    }
}
