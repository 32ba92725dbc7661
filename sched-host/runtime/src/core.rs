//! What all parts of a runtime share, and how a task enters it.

use super::backend::ThreadBackend;
use super::data::DataHeader;
use super::parallel::combined::Combined;
use super::task::codelet::{CodeletFacts, Job};
use super::task::outcomes::Outcomes;
use super::task::record::{Dependent, Record, Records, TaskKey};
use super::task::submit::TaskRef;
use super::worker::stats::WorkerCounters;
use crate::context::{ContextCore, PolicyEnv, Roster};
use crate::wait::ended::Ended;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use sched_core::{ArchSet, Time, WorkerId};
use sched_graph::AccessMode;
use sched_model::Models;
use sched_tree::combined::has_team_leaves;
use sched_tree::context::{faults_of, survey_of};
use sched_tree::ledger::fetch_to_write;
use sched_tree::{Fault, Ledger, NodeState, Part, Phase, Slot, Tree, WorkerFacts};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Duration;

/// Everything that workers and submitters share.
pub(crate) struct Core {
    /// Tells this runtime from others.
    pub(crate) id: u64,
    /// The contexts, each with its tree.
    pub(crate) roster: Roster,
    /// What policies are laid over.
    pub(crate) policy_env: PolicyEnv,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) records: Records,
    pub(crate) backend: Arc<ThreadBackend>,
    pub(crate) facts: Vec<WorkerFacts>,
    /// Architectures that workers have.
    pub(crate) archs: ArchSet,
    /// Where the machine has combined workers.
    pub(crate) combined: Option<Combined>,
    pub(crate) counters: Box<[CachePadded<WorkerCounters>]>,
    /// Tasks submitted so far; also the order of submission.
    submitted: CachePadded<AtomicU64>,
    /// Tasks finished by threads that are not workers.
    pub(crate) finished_outside: AtomicU64,
    /// Accesses of the application itself, which are counted as tasks: so many began, and so many ended.
    pub(crate) turns: [AtomicU64; 2],
    /// Slots that never held a job.
    fresh: Mutex<Vec<TaskPlace>>,
    pub(crate) stop: AtomicBool,
    /// Threads of the runtime that have ended.
    pub(crate) ended: Ended,
    /// A stall was reported.
    pub(crate) stalled: AtomicBool,
    pub(crate) outcomes: Outcomes,
    pub(crate) quiet_period: Duration,
    pub(crate) models: Option<Arc<Models>>,
}

/// Where a task stands: its slot in the ledger and its record, looked up once.
#[derive(Clone, Copy)]
pub(crate) struct TaskPlace {
    pub(crate) slot: &'static Slot,
    pub(crate) record: &'static Record,
}

/// A place whose task has ended, for the next one.
#[derive(Clone, Copy)]
pub(crate) struct Vacant {
    pub(crate) place: TaskPlace,
    /// Where the job lies that is kept there.
    job: usize,
}

impl Vacant {
    pub(crate) fn new(place: TaskPlace, job: Option<&dyn Job>) -> Vacant {
        Vacant { place, job: job.map_or(0, |job| std::ptr::from_ref(job).addr()) }
    }

    /// Begins to bring near what a task that is submitted writes: who executed the last task there wrote to it, on
    /// another core.
    #[inline(always)]
    pub(crate) fn fetch(self) {
        self.place.slot.fetch();
        fetch_to_write(std::ptr::from_ref(self.place.record).addr());
        fetch_to_write(self.job);
    }
}

impl Core {
    #[expect(clippy::too_many_arguments, reason = "the parts of a runtime, once")]
    pub(crate) fn new(
        roster: Roster,
        policy_env: PolicyEnv,
        ledger: Arc<Ledger>,
        backend: Arc<ThreadBackend>,
        facts: Vec<WorkerFacts>,
        combined: Option<Combined>,
        quiet_period: Duration,
        models: Option<Arc<Models>>,
    ) -> Core {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Core {
            id: NEXT.fetch_add(1, Relaxed),
            roster,
            policy_env,
            ledger,
            records: Records::default(),
            archs: facts.iter().map(|worker| worker.arch).collect(),
            counters: facts.iter().map(|_| CachePadded::default()).collect(),
            facts,
            combined,
            backend,
            submitted: CachePadded::new(AtomicU64::new(0)),
            finished_outside: AtomicU64::new(0),
            turns: Default::default(),
            fresh: Mutex::default(),
            stop: AtomicBool::new(false),
            ended: Ended::default(),
            stalled: AtomicBool::new(false),
            outcomes: Outcomes::default(),
            quiet_period,
            models,
        }
    }

    pub(crate) fn register_codelet(&self, make: impl FnOnce(u32, u64) -> CodeletFacts) -> Arc<CodeletFacts> {
        let mut codelets = self.backend.codelets.write();
        let facts = Arc::new(make(codelets.len() as u32, self.id));
        codelets.push(Arc::clone(&facts));
        facts
    }

    /// Where the task in a slot stands.
    #[inline(always)]
    pub(crate) fn place(&self, slot: u32) -> TaskPlace {
        TaskPlace { slot: self.ledger.slot(slot), record: self.records.get(slot) }
    }

    /// A tree of these parts is about to take its place.
    pub(crate) fn note_parts(&self, parts: &[Part]) {
        if let Some(combined) = &self.combined
            && has_team_leaves(parts, self.facts.len())
        {
            combined.workers.begin_use();
        }
    }

    /// When a simple worker should have done what it executes, and what waits for it in any context; `now` at the earliest.
    pub(crate) fn free_at(&self, worker: WorkerId, now: Time) -> Time {
        let ends = self.roster.contexts().map(|context| context.tree.free_at(worker, now));
        ends.max().unwrap_or(now)
    }

    /// A slot for a task of this codelet.
    #[inline(always)]
    pub(crate) fn take_slot(&self, codelet: &CodeletFacts) -> TaskPlace {
        let Some((place, soon)) = codelet.slots.take() else { return self.take_fresh() };
        if let Some(soon) = soon {
            soon.fetch();
        }
        place
    }

    /// A slot that holds no job.
    #[cold]
    pub(crate) fn take_fresh(&self) -> TaskPlace {
        let mut fresh = self.fresh.lock();
        if fresh.is_empty() {
            let grown = self.ledger.grow();
            self.records.grow(&grown);
            fresh.extend(grown.rev().map(|slot| self.place(slot)));
        }
        fresh.pop().expect("the ledger grows by one slot at least")
    }

    /// Puts places that hold no job on the list of those.
    pub(crate) fn keep_fresh(&self, vacant: &[Vacant]) {
        self.fresh.lock().extend(vacant.iter().map(|vacant| vacant.place));
    }

    /// Tasks submitted so far.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(SeqCst)
    }

    /// Tasks finished so far.
    pub(crate) fn finished(&self) -> u64 {
        let further: u64 = self.roster.places().skip(1).map(|context| context.in_flight.finished()).sum();
        self.finished_by_default() + further
    }

    /// Tasks of the default context finished so far.
    fn finished_by_default(&self) -> u64 {
        let by_workers: u64 = self.counters.iter().map(|counters| counters.finished.load(Acquire)).sum();
        by_workers + self.finished_outside.load(SeqCst)
    }

    /// Tasks finished, and tasks submitted, at the place of a context. If they are equal, nothing was left at some moment.
    pub(crate) fn counts(&self, context: &ContextCore) -> (u64, u64) {
        if context.number != 0 {
            return context.in_flight.counts();
        }
        // The default context has what the others have not. A task gets its number before it is counted as one of another
        // context, so that this is never too few.
        let finished = self.finished_by_default();
        let further: u64 = self.roster.places().skip(1).map(|context| context.in_flight.numbered()).sum();
        (finished, self.submitted() - further)
    }

    /// As [`counts`](Self::counts), without the application's own accesses to data. The numbers of a moment are only sure
    /// while nobody submits.
    pub(crate) fn task_counts(&self, context: &ContextCore) -> (u64, u64) {
        let (finished, submitted) = self.counts(context);
        if context.number != 0 {
            return (finished, submitted);
        }
        let [began, ended] = self.turns.each_ref().map(|turns| turns.load(SeqCst));
        (finished.saturating_sub(ended), submitted.saturating_sub(began))
    }

    /// Every context by its name in reports (none, where there never was but one), with its tree.
    fn named_trees(&self) -> impl Iterator<Item = (String, &Tree)> {
        let single = self.roster.is_single();
        let name = move |context: &ContextCore| if single { String::new() } else { context.name() };
        self.roster.contexts().map(move |context| (name(context), &context.tree))
    }

    /// What components did wrong so far.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = self.roster.past();
        faults.extend(faults_of(self.named_trees()));
        faults
    }

    /// Where tasks sit now.
    pub(crate) fn survey(&self) -> Vec<NodeState> {
        survey_of(self.named_trees())
    }

    /// The tree that schedules a task.
    #[inline]
    pub(crate) fn tree_of(&self, record: &Record) -> &Tree {
        &self.roster.get(record.context()).tree
    }

    /// Whether nothing is left to do. What was finished is read before what was submitted: if they are equal, nothing
    /// was left at the moment between, since both only grow.
    pub(crate) fn is_finished(&self) -> bool {
        let finished = self.finished();
        finished == self.submitted()
    }

    /// Tells those who wait, if nothing is left to do.
    pub(crate) fn note_if_finished(&self) {
        if self.outcomes.is_awaited() && (self.is_finished() || self.outcomes.is_default_awaited()) {
            self.outcomes.tell();
        }
    }

    /// Whether a task has ended.
    pub(crate) fn is_ended(&self, task: TaskKey) -> bool {
        self.ledger.slot(task.slot).head().sequence.load(Acquire) != task.sequence
    }

    fn link(&self, before: TaskKey, dependent: Dependent) -> bool {
        let TaskPlace { slot, record } = self.place(before.slot);
        record.link(&slot.head().sequence, before.sequence, dependent)
    }

    /// Enters a task: its order, and what it waits for. It begins when the record is told that it is
    /// [submitted](Record::submitted), with the number of links that is returned.
    #[inline(always)]
    pub(crate) fn enter(&self, entry: Entry<'_>) -> (TaskKey, u32) {
        let TaskPlace { slot, record } = entry.place;
        let key = TaskKey { slot: slot.index(), sequence: self.submitted.fetch_add(1, SeqCst) + 1 };
        let head = slot.head();
        head.reset();
        head.priority.store(entry.priority, Relaxed);
        head.archs.store(entry.archs.bits(), Relaxed);
        head.codelet.store(entry.codelet, Relaxed);
        if entry.width > 1 {
            head.width.store(entry.width, Relaxed);
        }
        if entry.sched_data != 0 {
            head.set_sched_data(entry.sched_data);
        }
        head.footprint.store(entry.footprint, Relaxed);
        record.open(&head.sequence, key.sequence, entry.context);
        if entry.context != 0 {
            self.roster.get(entry.context).in_flight.number();
        }
        let waits = !(entry.after.is_empty() && entry.accesses.is_empty());
        let links = if waits { self.link_all(key, entry.place, entry.after, entry.accesses) } else { 0 };
        (key, links)
    }

    /// Links a task to those that it must wait for. How many there are.
    fn link_all(
        &self,
        key: TaskKey,
        place: TaskPlace,
        after: &[TaskRef],
        accesses: &[(&Arc<DataHeader>, AccessMode)],
    ) -> u32 {
        let TaskPlace { slot, record } = place;
        slot.set_phase(Phase::Waiting);
        let mut links = 0;
        for before in after.iter().map(|task| task.key) {
            if self.link(before, Dependent::new(key.slot, true)) {
                links += 1;
            } else {
                // It is finished. If it did not end well, this task makes no sense.
                if let Some(cause) = self.outcomes.cause(before.sequence) {
                    record.body.lock().rare(record).cancelled = Some(cause);
                }
            }
        }
        if accesses.is_empty() {
            return links;
        }
        // All orders are held at once, taken in the order of the data's numbers: two tasks submitted at the same time
        // come in the same order on all data.
        let mut orders: SmallVec<[_; 8]> = SmallVec::new();
        for (header, mode) in accesses {
            orders.push((header.order.lock(), *mode));
        }
        for (order, mode) in &mut orders {
            let link = |before: TaskKey| {
                links += u32::from(self.link(before, Dependent::new(key.slot, false)));
            };
            order.access(key, *mode, link, |old| self.is_ended(old));
        }
        drop(orders);
        links
    }
}

/// What [`Core::enter`] needs to know of a task.
pub(crate) struct Entry<'a> {
    pub(crate) place: TaskPlace,
    /// The number of its context.
    pub(crate) context: u16,
    pub(crate) priority: i32,
    pub(crate) archs: ArchSet,
    pub(crate) codelet: u32,
    pub(crate) width: u16,
    pub(crate) sched_data: u64,
    pub(crate) footprint: u64,
    pub(crate) after: &'a [TaskRef],
    /// In order of the data's numbers, each data once.
    pub(crate) accesses: &'a [(&'a Arc<DataHeader>, AccessMode)],
}

/// The codelet number of what is no task but the application's own access.
pub(crate) const NO_CODELET: u32 = u32::MAX;
