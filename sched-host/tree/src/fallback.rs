//! Tasks that left a tree other than by a pull: refused by the root, dropped, or taken back from a failed node. The
//! workers of the context look here when the tree has nothing for them.

use super::ledger::{Phase, Slot};
use super::restrictions::Restrictions;
use super::services::Services;
use parking_lot::Mutex;
use sched_core::abi::wire::RawWorker;
use sched_core::{SharedSet, WorkerId, WorkerSet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence};

/// One store for each context; it survives the exchange of the tree.
pub(super) struct Fallback {
    tasks: Mutex<VecDeque<&'static Slot>>,
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

    fn note_len(&self, tasks: &VecDeque<&'static Slot>) {
        let attention = if self.attention.load(SeqCst) { ATTENTION } else { 0 };
        self.len.store(tasks.len() | attention, SeqCst);
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
            tasks.push_back(slot);
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
        let tasks: Vec<_> = self.tasks.lock().iter().copied().collect();
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
        let found = tasks.iter().position(|slot| self.restrictions.allow(slot.head(), arch, worker, None))?;
        let slot = tasks.remove(found);
        self.note_len(&tasks);
        slot
    }

    /// Takes every task, in order of arrival.
    pub(super) fn take_all(&self) -> VecDeque<&'static Slot> {
        let mut tasks = self.tasks.lock();
        let all = std::mem::take(&mut *tasks);
        self.note_len(&tasks);
        all
    }
}
