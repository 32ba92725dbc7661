//! State that workers and submitters of a runtime share.

use super::Start;
use super::backend::{Followers, ThreadBackend};
use super::capture::Capture;
use super::parallel::combined::Combined;
use super::parallel::crew::Crews;
use super::task::ahead::Ahead;
use super::task::bound::TaskBound;
use super::task::codelet::CodeletFacts;
use super::task::job::Job;
use super::task::nest::{NestState, place_of};
use super::task::outcomes::Outcomes;
use super::task::record::{Record, Records, TaskKey};
use super::task::submit::Restriction;
use super::wait::lease::QuietHook;
use super::worker::progression::Progression;
use super::worker::stats::WorkerCounters;
use crate::context::{ContextCore, PolicyEnv, Roster};
use crate::device::Device;
use crate::recording::Recorded;
use crate::wait::ended::Ended;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use sched_core::{ArchSet, Time, WorkerId, WorkerSet, fetch_to_write};
use sched_graph::{ContextId, Where};
use sched_model::Models;
use sched_sync::at_hand::Hand;
use sched_sync::in_flight::Counts;
use sched_sync::sole::{Right, Sole};
use sched_trace::Recorder;
use sched_tree::attendance::Post;
use sched_tree::combined::has_team_leaves;
use sched_tree::context::{faults_of, survey_of};
use sched_tree::{ContextFacts, Fault, Ledger, NodeState, Part, Slot, SlotId, Tree, WorkerFacts};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;

/// Name of the context that every runtime has.
const DEFAULT_NAME: &str = "default";

/// State that workers and submitters of a runtime share.
pub(crate) struct Core {
    /// Distinguishes this runtime from others.
    pub(crate) id: u64,
    /// The right to what submissions change: the orders of data, and free slots.
    pub(crate) sole: CachePadded<Sole>,
    /// The contexts, each with its tree.
    pub(crate) roster: Roster,
    /// The machine and the components that policies are laid over.
    pub(crate) policy_env: PolicyEnv,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) records: Records,
    pub(crate) backend: Arc<ThreadBackend>,
    pub(crate) facts: Vec<WorkerFacts>,
    /// Architectures of the workers.
    pub(crate) archs: ArchSet,
    /// Present if the machine has combined workers.
    pub(crate) combined: Option<Combined>,
    pub(crate) counters: Box<[Arc<CachePadded<WorkerCounters>>]>,
    /// What each worker has [at hand](crate::worker::at_hand).
    pub(crate) hands: Box<[CachePadded<Hand>]>,
    /// Number of tasks submitted; also the order of submission.
    submitted: CachePadded<AtomicU64>,
    /// All tasks up to this sequence have ended.
    ended_up_to: AtomicU64,
    /// Whether some order has had a [standing entry](crate::recording::standing). Nobody who submits beside others needs to
    /// know.
    pub(crate) has_standing: AtomicBool,
    /// Number of tasks finished by threads that are not workers.
    pub(crate) finished_outside: AtomicU64,
    pub(crate) own_accesses: OwnAccesses,
    /// Leases of data that there are, or that are to come: work that the runtime does not see.
    pub(crate) outside: AtomicU64,
    /// What workers without a task do for the program.
    pub(crate) progression: Progression,
    pub(crate) quiet_hook: QuietHook,
    /// Slots that never held a job.
    fresh: Mutex<Vec<TaskPlace>>,
    /// Whether the program has dropped the runtime: only tasks and callbacks submit.
    pub(crate) is_ending: AtomicBool,
    /// Whether nobody submits any more; see [`number_tasks`](Self::number_tasks).
    is_over: AtomicBool,
    pub(crate) stop: AtomicBool,
    /// Whether the program has the report of a stall, after which not all tasks have ended.
    pub(crate) stall_is_told: AtomicBool,
    /// Threads of the runtime that have ended.
    pub(crate) ended: Ended,
    pub(crate) outcomes: Outcomes,
    pub(crate) quiet_period: Duration,
    pub(crate) models: Option<Arc<Models>>,
    /// Bound on the tasks in flight.
    pub(crate) bound: Option<TaskBound>,
    /// Tasks that nest, until their kernels have returned.
    pub(crate) nests: Mutex<HashMap<SlotId, Arc<NestState>>>,
    /// Recordings of which a replay is in progress.
    pub(crate) replays: Mutex<Vec<Arc<Recorded>>>,
    /// Number of those whose tasks [wait at home](crate::recording::Recorded::waits_at_home).
    pub(crate) at_home: AtomicUsize,
    /// Settings of codelets, by their names.
    pub(crate) codelet_settings: BTreeMap<String, CodeletSettings>,
}

/// Settings that a runtime has for a codelet of some name.
#[derive(Clone, Default)]
pub(crate) struct CodeletSettings {
    pub(crate) only: Option<Where>,
    pub(crate) sched_data: Option<u64>,
}

/// Number of accesses of the application itself, which are counted as tasks.
#[derive(Default)]
pub(crate) struct OwnAccesses {
    pub(crate) begun: AtomicU64,
    pub(crate) ended: AtomicU64,
}

/// Location of a task: its slot in the ledger and its record, looked up once.
#[derive(Clone, Copy)]
pub(crate) struct TaskPlace {
    pub(crate) slot: &'static Slot,
    pub(crate) record: &'static Record,
}

/// A place whose task has ended, ready for the next one.
#[derive(Clone, Copy)]
pub(crate) struct Vacant {
    pub(crate) place: TaskPlace,
    /// Address of the job that is kept there.
    job: usize,
}

impl Vacant {
    pub(crate) fn new(place: TaskPlace, job: Option<&dyn Job>) -> Vacant {
        Vacant { place, job: job.map_or(0, |job| std::ptr::from_ref(job).addr()) }
    }

    /// Prefetches the lines that a submission writes: the worker that executed the last task there wrote to them on
    /// another core.
    #[inline(always)]
    pub(crate) fn fetch(self) {
        self.place.slot.fetch();
        fetch_to_write(self.place.record);
        fetch_to_write(std::ptr::without_provenance::<u8>(self.job));
    }
}

impl Core {
    /// Creates the shared state with the tree of the default context, before any thread runs.
    pub(crate) fn new(start: Start) -> Arc<Core> {
        let facts = start.workers;
        let sole = Sole::default();
        let count = facts.len();
        let ledger = Arc::new(Ledger::new());
        let recorder = start.trace.map(|most| Arc::new(Recorder::new(count, most)));
        let capture = start.captures.then(|| Capture::new(count));
        let followers = Followers { recorder, capture };
        let backend = ThreadBackend::new(&facts, &start.combined, start.distances, followers, start.memories);
        let backend = Arc::new(backend);
        let has_teams = has_team_leaves(&start.parts, count);
        let ahead = Arc::new(Ahead::new(ContextId::DEFAULT, Arc::clone(&backend), Arc::clone(&ledger)));
        let (services, lookahead) = (Arc::<ThreadBackend>::clone(&backend), Some(Arc::<Ahead>::clone(&ahead) as _));
        let facts_of_context = ContextFacts { name: DEFAULT_NAME.to_owned(), user_data: start.user_data };
        let (parts, seed) = (start.parts, start.seed);
        let tree =
            Tree::assemble_in_context(parts, &facts, services, Arc::clone(&ledger), seed, lookahead, facts_of_context)
                .expect("it is the first tree of its ledger, of fewer than 2^24 nodes");
        let crews = Crews::new(count, &start.combined, start.binding);
        let combined = Combined::new(count, &start.combined, crews);
        if let Some(combined) = combined.as_ref().filter(|_| has_teams) {
            combined.workers.begin_use();
        }
        let workers = WorkerSet::first(count as u32);
        let default = ContextCore::new(ContextId::DEFAULT, tree, ahead, DEFAULT_NAME.to_owned(), start.laid, workers);
        default.set_priorities(&start.priorities, start.bound.is_some());
        let outcomes = Outcomes::new(start.main_worker, &backend);
        let core = Arc::new(Core {
            id: sole.number(),
            sole: CachePadded::new(sole),
            roster: Roster::new(default),
            policy_env: start.policy_env,
            ledger,
            records: Records::default(),
            archs: facts.iter().map(|worker| worker.arch).collect(),
            counters: facts.iter().map(|_| Arc::default()).collect(),
            hands: facts.iter().map(|_| CachePadded::default()).collect(),
            facts,
            combined,
            backend,
            submitted: CachePadded::new(AtomicU64::new(0)),
            ended_up_to: AtomicU64::new(0),
            has_standing: AtomicBool::new(false),
            finished_outside: AtomicU64::new(0),
            own_accesses: OwnAccesses::default(),
            outside: AtomicU64::new(0),
            progression: Progression::default(),
            quiet_hook: QuietHook::default(),
            fresh: Mutex::default(),
            is_ending: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            stall_is_told: AtomicBool::new(false),
            ended: Ended::default(),
            outcomes,
            quiet_period: start.quiet_period,
            models: start.models,
            codelet_settings: start.codelet_settings,
            bound: start.bound,
            nests: Mutex::default(),
            replays: Mutex::default(),
            at_home: AtomicUsize::new(0),
        });
        core.roster.default.ahead.serve(&core);
        if let Some(memories) = &core.backend.memories {
            memories.serve(&core);
        }
        core
    }

    /// The place of the task in a slot.
    #[inline(always)]
    pub(crate) fn place(&self, slot: SlotId) -> TaskPlace {
        self.records.place(slot)
    }

    /// Prepares for a tree of these parts, which is about to be installed.
    pub(crate) fn note_parts(&self, parts: &[Part]) {
        if let Some(combined) = &self.combined
            && has_team_leaves(parts, self.facts.len())
        {
            combined.workers.begin_use();
        }
    }

    /// Expected time when a simple worker is done with its current task and with everything queued for it in any
    /// context; at least `now`.
    pub(crate) fn free_at(&self, worker: WorkerId, now: Time) -> Time {
        let ends = self.roster.contexts().map(|context| context.tree.free_at(worker, now));
        ends.max().unwrap_or(now)
    }

    /// Takes a slot for a task of this codelet.
    #[inline(always)]
    pub(crate) fn take_slot(&self, codelet: &CodeletFacts, right: &mut Right<'_>) -> TaskPlace {
        let Some((place, soon)) = codelet.slots.take(right) else { return self.take_fresh() };
        if let Some(soon) = soon {
            soon.fetch();
        }
        place
    }

    /// Takes a slot that holds no job.
    #[cold]
    pub(crate) fn take_fresh(&self) -> TaskPlace {
        let mut fresh = self.fresh.lock();
        if fresh.is_empty() {
            let grown = self.ledger.grow();
            self.records.grow(grown);
            fresh.extend(grown.iter().rev().map(|slot| self.place(slot.id())));
        }
        fresh.pop().expect("the ledger grows by one slot at least")
    }

    /// Returns places that hold no job to the list of those.
    pub(crate) fn keep_fresh(&self, vacant: &[Vacant]) {
        self.fresh.lock().extend(vacant.iter().map(|vacant| vacant.place));
    }

    /// Returns places that hold nothing to the list of those.
    pub(crate) fn keep_fresh_places(&self, places: impl Iterator<Item = TaskPlace>) {
        self.fresh.lock().extend(places);
    }

    /// Numbers this many tasks of a context at once, and returns the sequence of the first. If the runtime
    /// [is over](Self::close), there is none, and the context does not count them any more.
    ///
    /// A submission may have begun, and been found to be in order, long before the end. So the last word is here: who
    /// has the number counts, and looks afterwards; who ends the runtime says so, and counts afterwards. At least one
    /// sees the other. A thread that is alone need not look: nobody is when the runtime is over.
    #[inline(always)]
    pub(crate) fn number_tasks(&self, count: u64, context: &ContextCore, right: &Right<'_>) -> Option<u64> {
        match right {
            Right::Alone(_) => Some(self.number_all(count, right)),
            Right::Shared(_) => {
                let first = self.number_all(count, right);
                if self.is_over.load(SeqCst) {
                    self.take_back(count, context);
                    return None;
                }
                Some(first)
            }
        }
    }

    /// [`number_tasks`](Self::number_tasks) for what is no task, and goes on after the end.
    #[inline(always)]
    pub(crate) fn number_all(&self, count: u64, right: &Right<'_>) -> u64 {
        let before = match right {
            // Nobody else numbers tasks meanwhile. Who sees one of these finished sees the number, too.
            Right::Alone(_) => {
                let before = self.submitted.load(Relaxed);
                self.submitted.store(before + count, Release);
                before
            }
            Right::Shared(_) => self.submitted.fetch_add(count, SeqCst),
        };
        before + 1
    }

    /// Counts numbers that no task gets as tasks that have ended.
    #[cold]
    fn take_back(&self, count: u64, context: &ContextCore) {
        self.finished_outside.fetch_add(count, SeqCst);
        self.note_if_finished(None);
        self.give_up_reserved(count, context);
    }

    /// Has a context count tasks no more that get no number.
    #[cold]
    pub(crate) fn give_up_reserved(&self, count: u64, context: &ContextCore) {
        if context.number != ContextId::DEFAULT && context.in_flight.take_back(count).tell {
            self.outcomes.tell();
        }
    }

    /// From now on no task gets a number. Those that have one when this returns are counted.
    pub(crate) fn close(&self) {
        self.is_over.store(true, SeqCst);
        self.sole.share();
    }

    /// Number of tasks submitted.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(SeqCst)
    }

    /// Number of tasks finished.
    pub(crate) fn finished(&self) -> u64 {
        let further: u64 = self.roster.places().skip(1).map(|context| context.in_flight.finished()).sum();
        self.finished_by_default() + further
    }

    /// Number of tasks of the default context finished.
    fn finished_by_default(&self) -> u64 {
        let by_workers: u64 = self.counters.iter().map(|counters| counters.finished.load(Acquire)).sum();
        by_workers + self.finished_outside.load(SeqCst)
    }

    /// Tasks finished and submitted at the place of a context. If they are equal, nothing was left to do at some moment
    /// during the call.
    pub(crate) fn counts(&self, context: &ContextCore) -> Counts {
        if context.number != ContextId::DEFAULT {
            return context.in_flight.counts();
        }
        // The default context has what the other contexts have not. A task gets its sequence before another context
        // counts it, so the result is never too low.
        let finished = self.finished_by_default();
        let further: u64 = self.roster.places().skip(1).map(|context| context.in_flight.numbered()).sum();
        Counts { finished, submitted: self.submitted() - further }
    }

    /// [`counts`](Self::counts) without the accesses of the application itself. Exact only while no thread submits.
    pub(crate) fn task_counts(&self, context: &ContextCore) -> Counts {
        let counts = self.counts(context);
        if context.number != ContextId::DEFAULT {
            return counts;
        }
        let OwnAccesses { begun, ended } = &self.own_accesses;
        let finished = counts.finished.saturating_sub(ended.load(SeqCst));
        Counts { finished, submitted: counts.submitted.saturating_sub(begun.load(SeqCst)) }
    }

    /// Each context with its tree, by its name in reports; the name is empty if there is only the default context.
    fn named_trees(&self) -> impl Iterator<Item = (String, &Tree)> {
        let single = self.roster.is_single();
        let name = move |context: &ContextCore| if single { String::new() } else { context.name() };
        self.roster.contexts().map(move |context| (name(context), &context.tree))
    }

    /// Faults of components so far.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = self.roster.past();
        faults.extend(faults_of(self.named_trees()));
        faults
    }

    /// State of each node of each tree.
    pub(crate) fn survey(&self) -> Vec<NodeState> {
        survey_of(self.named_trees())
    }

    /// The tree that schedules a task.
    #[inline]
    pub(crate) fn tree_of(&self, record: &Record) -> &Tree {
        &self.roster.get(record.context()).tree
    }

    /// Whether some device of the runtime is one of this driver.
    pub(crate) fn uses(&self, driver: &Post) -> bool {
        let Post::Driver { driver, .. } = driver else { return false };
        self.backend
            .memories
            .as_ref()
            .is_some_and(|memories| memories.devices().iter().any(|device| device.kind == *driver))
    }

    /// The device that a worker drives.
    pub(crate) fn device_of(&self, worker: WorkerId) -> Option<&Arc<Device>> {
        self.backend.memories.as_ref()?.device_of(worker)
    }

    /// The number of tasks so far, if nothing is left to do. The number of finished tasks is read before the number of
    /// submitted ones: both only grow, so if they are equal, nothing was left between the two reads.
    fn all_finished(&self) -> Option<u64> {
        let finished = self.finished();
        (finished == self.submitted()).then_some(finished)
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_finished(&self) -> bool {
        self.all_finished().is_some()
    }

    /// [Place](place_of) of the task that this thread executes as this worker, or as the leader of its team.
    pub(crate) fn place_on(&self, worker: WorkerId) -> SmallVec<[u64; 2]> {
        let executing = self.counters.get(worker.index()).and_then(|counters| counters.executing.get());
        place_of(self.id, executing.map_or(0, |slot| self.ledger.slot(slot).head().sequence.load(Relaxed)))
    }

    /// Notifies waiting threads, on behalf of a worker if `teller` is one, if nothing is left to do.
    pub(crate) fn note_if_finished(&self, teller: Option<WorkerId>) {
        if self.outcomes.is_awaited() && (self.is_finished() || self.outcomes.is_default_awaited()) {
            self.outcomes.tell_by(teller);
        }
    }

    /// Notes that all tasks so far have ended, if that is so. Tasks after them need not look at their slots, which lie
    /// in no cache any more when a program has waited for all and goes on.
    pub(crate) fn note_ended(&self) {
        if let Some(finished) = self.all_finished() {
            self.ended_up_to.fetch_max(finished, AcqRel);
        }
    }

    /// Whether the task of this sequence had ended when the program last waited for all. What it wrote is seen then.
    #[inline(always)]
    pub(crate) fn has_long_ended(&self, sequence: u64) -> bool {
        sequence <= self.ended_up_to.load(Acquire)
    }

    /// Whether a task has ended.
    pub(crate) fn is_ended(&self, task: TaskKey) -> bool {
        self.has_long_ended(task.sequence) || self.ledger.slot(task.slot).head().sequence.load(Acquire) != task.sequence
    }

    /// Restricts a task that is entered, and not submitted yet, to these places.
    #[cold]
    pub(crate) fn restrict(&self, place: TaskPlace, restriction: &Restriction) {
        let head = place.slot.head();
        head.archs.store(restriction.archs.bits(), Relaxed);
        restriction.workers.iter().for_each(|workers| self.ledger.restrict(head, workers));
    }
}

/// Codelet number of an access of the application itself, which is no task.
pub(crate) const NO_CODELET: u32 = u32::MAX;
