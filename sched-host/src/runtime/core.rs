//! What all parts of a runtime share, and how a task enters it.

use super::codelet::CodeletFacts;
use super::data::{DataHeader, Mode};
use super::ends::Ends;
use super::record::{Dependent, Record, TaskKey};
use super::sleep::Sleep;
use super::stats::WorkerCounters;
use crate::tree::ledger::Beside;
use crate::tree::{Ledger, Phase, Services, Tree, WorkerFacts};
use crossbeam::utils::CachePadded;
use parking_lot::{Mutex, RwLock};
use sched_core::abi::TaskHead;
use sched_core::{Arch, ArchSet, Estimate, LogLevel, Time, WorkerId};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// Everything that workers and submitters share.
pub(crate) struct Core {
    /// Tells this runtime from others.
    pub(crate) id: u64,
    pub(crate) tree: Tree,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) records: Beside<Record>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) facts: Vec<WorkerFacts>,
    /// Architectures that workers have.
    pub(crate) archs: ArchSet,
    pub(crate) counters: Box<[CachePadded<WorkerCounters>]>,
    /// Tasks submitted so far; also the order of submission.
    submitted: CachePadded<AtomicU64>,
    /// Tasks finished by threads that are not workers.
    pub(crate) finished_outside: AtomicU64,
    pub(crate) codelets: RwLock<Vec<Arc<CodeletFacts>>>,
    /// Slots that never held a job.
    fresh: Mutex<Vec<u32>>,
    pub(crate) stop: AtomicBool,
    /// A stall was reported.
    pub(crate) stalled: AtomicBool,
    pub(crate) ends: Ends,
    pub(crate) quiet_period: Duration,
}

/// Time and sleeping workers: the tree's back end.
pub(crate) struct Clock {
    pub(crate) began: Instant,
    pub(crate) sleep: Sleep,
    /// Architecture of each worker.
    archs: Vec<Arch>,
    codelets: RwLock<Vec<Arc<CodeletFacts>>>,
}

impl Clock {
    pub(crate) fn new(workers: &[WorkerFacts]) -> Clock {
        Clock {
            began: Instant::now(),
            sleep: Sleep::new(workers.len()),
            archs: workers.iter().map(|worker| worker.arch).collect(),
            codelets: RwLock::default(),
        }
    }
}

impl Services for Clock {
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn sleeping(&self) -> &[AtomicU64] {
        self.sleep.sleeping()
    }

    fn wake(&self, worker: WorkerId) -> bool {
        self.sleep.wake(worker.0 as usize)
    }

    fn implementations(&self, arch: Arch, task: &TaskHead) -> u32 {
        let codelets = self.codelets.read();
        let facts = codelets.get(task.codelet.load(Relaxed) as usize);
        facts.map_or(0, |facts| facts.implementations.iter().filter(|(of, _)| *of == arch).count() as u32)
    }

    fn expected_length(&self, worker: WorkerId, task: &TaskHead, _implementation: Option<u32>) -> Estimate {
        let Some(arch) = self.archs.get(worker.0 as usize) else { return Estimate::NoModel };
        let codelets = self.codelets.read();
        let facts = codelets.get(task.codelet.load(Relaxed) as usize);
        facts.map_or(Estimate::NoModel, |facts| facts.expected_length(*arch))
    }

    fn log(&self, node: &str, level: LogLevel, line: &str) {
        match level {
            LogLevel::Error => tracing::error!(node, "{line}"),
            LogLevel::Warn => tracing::warn!(node, "{line}"),
            LogLevel::Info => tracing::info!(node, "{line}"),
            LogLevel::Debug => tracing::debug!(node, "{line}"),
        }
    }
}

impl Core {
    pub(crate) fn new(
        tree: Tree,
        ledger: Arc<Ledger>,
        clock: Arc<Clock>,
        facts: Vec<WorkerFacts>,
        quiet_period: Duration,
    ) -> Core {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Core {
            id: NEXT.fetch_add(1, Relaxed),
            tree,
            ledger,
            records: Beside::new(),
            archs: facts.iter().map(|worker| worker.arch).collect(),
            counters: facts.iter().map(|_| CachePadded::default()).collect(),
            facts,
            clock,
            submitted: CachePadded::new(AtomicU64::new(0)),
            finished_outside: AtomicU64::new(0),
            codelets: RwLock::default(),
            fresh: Mutex::default(),
            stop: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            ends: Ends::default(),
            quiet_period,
        }
    }

    pub(crate) fn register_codelet(&self, make: impl FnOnce(u32, u64) -> CodeletFacts) -> Arc<CodeletFacts> {
        let mut codelets = self.codelets.write();
        let facts = Arc::new(make(codelets.len() as u32, self.id));
        codelets.push(Arc::clone(&facts));
        self.clock.codelets.write().push(Arc::clone(&facts));
        facts
    }

    /// A slot for a task of this codelet.
    pub(crate) fn take_slot(&self, codelet: &CodeletFacts) -> u32 {
        codelet.slots.take().unwrap_or_else(|| self.take_fresh())
    }

    /// A slot that holds no job.
    pub(crate) fn take_fresh(&self) -> u32 {
        let mut fresh = self.fresh.lock();
        if fresh.is_empty() {
            let grown = self.ledger.grow();
            self.records.grow(&grown, Record::default);
            fresh.extend(grown.rev());
        }
        fresh.pop().expect("the ledger grows by one slot at least")
    }

    pub(crate) fn keep_fresh(&self, slots: impl Iterator<Item = u32>) {
        self.fresh.lock().extend(slots);
    }

    /// Tasks submitted so far.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(SeqCst)
    }

    /// Tasks finished so far.
    pub(crate) fn finished(&self) -> u64 {
        let by_workers: u64 = self.counters.iter().map(|counters| counters.finished.load(Acquire)).sum();
        by_workers + self.finished_outside.load(SeqCst)
    }

    /// Whether nothing is left to do. What was finished is read before what was submitted: if they are equal, nothing
    /// was left at the moment between, since both only grow.
    pub(crate) fn is_finished(&self) -> bool {
        let finished = self.finished();
        finished == self.submitted()
    }

    /// Tells those who wait, if nothing is left to do.
    pub(crate) fn note_if_finished(&self) {
        if self.ends.is_awaited() && self.is_finished() {
            self.ends.tell();
        }
    }

    /// Whether a task has ended.
    pub(crate) fn is_ended(&self, task: TaskKey) -> bool {
        self.ledger.slot(task.slot).head().sequence.load(Acquire) != task.sequence
    }

    fn link(&self, before: TaskKey, dependent: Dependent) -> bool {
        let current = &self.ledger.slot(before.slot).head().sequence;
        self.records.get(before.slot).link(current, before.sequence, dependent)
    }

    /// Enters a task: its order, and what it waits for. It begins when the record is told that it is
    /// [submitted](Record::submitted), with the number of links that is returned.
    pub(crate) fn enter(&self, entry: Entry<'_>) -> (TaskKey, u32) {
        let key = TaskKey { slot: entry.slot, sequence: self.submitted.fetch_add(1, SeqCst) + 1 };
        let (slot, record) = (self.ledger.slot(key.slot), self.records.get(key.slot));
        slot.set_phase(Phase::Waiting);
        let head = slot.head();
        head.reset();
        head.priority.store(entry.priority, Relaxed);
        head.archs.store(entry.archs.bits(), Relaxed);
        head.codelet.store(entry.codelet, Relaxed);
        if entry.sched_data != 0 {
            head.set_sched_data(entry.sched_data);
        }
        head.footprint.store(entry.footprint, Relaxed);
        record.open(&head.sequence, key.sequence);
        let mut links = 0;
        for before in entry.after {
            if self.link(*before, Dependent::new(key.slot, true)) {
                links += 1;
            } else {
                // It is finished. If it did not end well, this task makes no sense.
                if let Some(cause) = self.ends.cause(before.sequence) {
                    record.body.lock().extra(record).cancelled = Some(cause);
                }
            }
        }
        // All orders are held at once, taken in the order of the data's numbers: two tasks submitted at the same time
        // come in the same order on all data.
        let mut orders: SmallVec<[_; 8]> = SmallVec::new();
        for (header, mode) in entry.accesses {
            orders.push((header.order.lock(), *mode));
        }
        for (order, mode) in &mut orders {
            let link = |before: TaskKey| {
                links += u32::from(self.link(before, Dependent::new(key.slot, false)));
            };
            order.access(key, *mode, link, |old| self.is_ended(old));
        }
        drop(orders);
        (key, links)
    }
}

/// What [`Core::enter`] needs to know of a task.
pub(crate) struct Entry<'a> {
    pub(crate) slot: u32,
    pub(crate) priority: i32,
    pub(crate) archs: ArchSet,
    pub(crate) codelet: u32,
    pub(crate) sched_data: u64,
    pub(crate) footprint: u64,
    pub(crate) after: &'a [TaskKey],
    /// In order of the data's numbers, each data once.
    pub(crate) accesses: &'a [(&'a Arc<DataHeader>, Mode)],
}

/// The codelet number of what is no task but the application's own access.
pub(crate) const NO_CODELET: u32 = u32::MAX;
