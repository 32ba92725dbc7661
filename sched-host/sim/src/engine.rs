//! The event engine: a virtual clock, and workers that act as the threads of the runtime do.
//!
//! Everything happens in one thread, in order of time, then of planning, so equal runs yield equal events. A worker
//! with room in its pipeline pulls from the tree, fetches the data of the task, executes it, ends it, pushes the tasks
//! that became ready, and pulls again; it sleeps when it finds nothing. A worker of an accelerator keeps several tasks
//! in flight: the next ones fetch their data while one is executed.

mod agenda;
mod contexts;
mod flights;
mod hypervisor;
mod mail;
mod moves;
mod seat;
mod tasks;
mod teams;
mod workers;

use super::backend::{Notes, SimBackend, task_of};
use super::error::SimError;
use super::memory::Replicas;
use super::network::TransferId;
use super::outcome::{LinkStats, MemoryStats, SimOutcome, WorkerStats};
use super::overflow;
use super::platform::Overheads;
use agenda::Agenda;
use contexts::{ChangeId, LiveContext};
pub(super) use contexts::{Opening, PlannedChange, PolicyEnv};
use flights::{FlightId, Flights};
pub(super) use hypervisor::Supervision;
pub(super) use mail::{CoreWork, Job, Mail, RankCosts};
use moves::Moves;
use sched_core::{MemoryNode, Stage, WorkerId};
use sched_graph::{TaskGraph, TaskId};
use sched_trace::{Event, Observer};
use sched_tree::combined::CombinedWorkers;
use sched_tree::{Ledger, Services, Slot};
use std::cell::Cell;
use std::sync::Arc;
use tasks::Tasks;
use teams::Purpose;
use workers::Worker;

/// What happens at a planned time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Action {
    /// The application submits the next task.
    Submit,
    /// The thread of a worker is free again.
    Host(WorkerId),
    /// The thread of a worker begins to fetch the data of a flight.
    Fetch(FlightId),
    /// All inputs of a flight have arrived, and its memory is allocated.
    Inputs(FlightId),
    /// The device of a worker begins the kernel of its first flight.
    Start(WorkerId),
    /// The kernel of a worker's first flight ends.
    End(WorkerId),
    /// A transfer can be queued.
    Queue(TransferId),
    /// A transfer begins to use the links.
    Flow(TransferId),
    /// Some flow arrives.
    Arrive,
    /// A context is changed, unless all of its tasks have ended.
    Change(ChangeId),
    /// The hypervisor looks at the contexts.
    Supervise,
    /// A core has received a message for a task.
    Deliver(TaskId),
}

/// Number of workers that stay in the processor's cache. Of more, the next one is fetched ahead.
const IN_CACHE: usize = 64;

pub(super) struct Engine<'a> {
    backend: Arc<SimBackend>,
    graph: Arc<TaskGraph>,
    prices: Prices,
    policy_env: PolicyEnv,
    /// The default context first.
    contexts: Vec<LiveContext>,
    planned: Vec<PlannedChange>,
    /// The hypervisor of the contexts, if there is one.
    pub(super) supervision: Option<Supervision>,
    tasks: Tasks,
    /// Messages from and to other ranks, on a node of a cluster.
    pub(super) mail: Option<Mail>,
    teams: CombinedWorkers<Purpose>,
    workers: Vec<Worker>,
    flights: Flights,
    /// Replicas of all data; `None` if there is only one memory node.
    replicas: Option<Replicas>,
    moves: Moves,
    now: u64,
    agenda: Agenda,
    notes: Notes,
    observer: &'a mut dyn Observer,
    error: Option<SimError>,
    events: u64,
    /// Time of the end of the last task.
    end: u64,
    /// Energy of the kernels so far, in joules; NaN if that of one of them is unknown.
    joules: f64,
    /// Number of changes that may let a worker find a task where it found none before.
    changes: u64,
    /// Incremented whenever the contexts that a worker serves may have changed.
    roster_version: u64,
}

impl<'a> Engine<'a> {
    /// An engine with these contexts, the default one first.
    pub(super) fn new(
        backend: SimBackend,
        policy_env: PolicyEnv,
        contexts: Vec<Opening>,
        planned: Vec<PlannedChange>,
        observer: &'a mut dyn Observer,
    ) -> Result<Engine<'a>, SimError> {
        let backend = Arc::new(backend);
        let ledger = Arc::new(Ledger::new());
        let open = |opening| LiveContext::new(opening, &backend, &ledger, policy_env.seed);
        let mut contexts: Vec<LiveContext> = contexts.into_iter().map(open).collect::<Result<_, _>>()?;
        backend.specs.iter().for_each(|(_, spec)| contexts[spec.context.index()].count_task());
        let platform = Arc::clone(&backend.platform);
        let workers = platform.workers.iter().zip(0..).map(|(worker, id)| {
            let class = &platform.classes[worker.class];
            Worker::new(WorkerId(id), worker.class, worker.memory, class.pipeline)
        });
        let teams = CombinedWorkers::new(platform.workers.len(), backend.combined());
        if !backend.combined().is_empty() {
            teams.begin_use();
        }
        let replicas = backend.copies.as_ref().map(|copies| {
            let data = backend.graph.data.iter().map(|datum| (datum.bytes, datum.home));
            let capacities: Vec<Option<u64>> = platform.memories.iter().map(|memory| memory.capacity).collect();
            Replicas::new(data, &capacities, Arc::clone(copies))
        });
        let largest = backend.graph.data.iter().map(|datum| datum.bytes).max().unwrap_or(0);
        let most = largest.saturating_mul(backend.specs.most_accesses as u64);
        let lacks_room = |held: &Replicas| platform.memory_nodes().any(|node| held.room_for_copies(node) < most);
        let may_lack_room = replicas.as_ref().is_some_and(lacks_room);
        Ok(Engine {
            policy_env,
            contexts,
            planned,
            supervision: None,
            mail: None,
            graph: Arc::clone(&backend.graph),
            prices: Prices::new(platform.overheads),
            tasks: Tasks::new(&backend, ledger),
            teams,
            workers: workers.collect(),
            flights: Flights::default(),
            replicas,
            moves: Moves::new(&platform, backend.graph.data.len(), may_lack_room),
            backend,
            now: 0,
            agenda: Agenda::new(),
            notes: Notes::default(),
            observer,
            error: None,
            events: 0,
            end: 0,
            joules: 0.0,
            changes: 0,
            roster_version: 1,
        })
    }

    /// Runs all tasks.
    pub(super) fn run(mut self) -> Result<SimOutcome, SimError> {
        self.begin();
        while self.step() {}
        self.finish()
    }

    /// Submits the first task.
    pub(super) fn begin(&mut self) {
        for worker in self.worker_ids() {
            self.backend.fall_asleep(worker);
        }
        self.plan_timed_changes();
        self.begin_supervision();
        match self.passed_over() {
            0 => self.submit(),
            nanos => self.plan(nanos, Action::Submit),
        }
    }

    /// Time of the next action; `None` if there is none, or an error.
    pub(super) fn next_time(&self) -> Option<u64> {
        if self.error.is_none() { self.agenda.next_time() } else { None }
    }

    /// Performs the next action. Returns whether there was one.
    pub(super) fn step(&mut self) -> bool {
        if self.error.is_some() {
            return false;
        }
        let Some((time, action)) = self.agenda.pop() else { return false };
        if self.mail.is_some()
            && let Err(error) = overflow::check_time(time)
        {
            self.error = Some(error);
            return true;
        }
        self.set_now(time);
        self.events += 1;
        if self.workers.len() > IN_CACHE
            && let Some(Action::End(next) | Action::Host(next)) = self.agenda.peek()
        {
            self.workers[next.index()].fetch();
        }
        self.perform(action);
        true
    }

    fn set_now(&mut self, time: u64) {
        self.now = time;
        self.backend.set_now(time);
    }

    /// The result, once there is nothing left to do.
    pub(super) fn finish(self) -> Result<SimOutcome, SimError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let tasks = self.tasks.total();
        if self.tasks.ended < tasks {
            return Err(SimError::Stalled {
                left: tasks - self.tasks.ended,
                tasks,
                nanos: self.agenda.last_withdrawn().max(self.now),
                without_workers: self.without_workers(),
                nodes: self.survey(),
                faults: self.faults(),
            });
        }
        Ok(self.outcome())
    }

    /// Whether combined workers may execute tasks.
    pub(super) fn has_teams(&self) -> bool {
        !self.backend.combined().is_empty()
    }

    fn worker_ids(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.workers.len() as u32).map(WorkerId)
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Submit => self.submit(),
            Action::Host(worker) => {
                self.workers[worker.index()].host_busy = false;
                self.host(worker);
            }
            Action::Fetch(flight) => {
                let worker = self.flights[flight].worker;
                self.workers[worker.index()].host_busy = false;
                self.fetch(flight);
                self.host(worker);
            }
            Action::Inputs(flight) => self.inputs_complete(flight),
            Action::Start(worker) => self.start(worker),
            Action::End(worker) => self.end(worker),
            Action::Queue(transfer) => self.queue_transfer(transfer),
            Action::Flow(transfer) => self.begin_flow(transfer),
            Action::Arrive => self.arrive(),
            Action::Change(change) => self.change(change),
            Action::Supervise => self.supervise(),
            Action::Deliver(task) => self.deliver(task),
        }
    }

    fn plan(&mut self, time: u64, action: Action) {
        self.agenda.push(time, action);
    }

    /// Lets time pass, if nothing is planned until it has: a caller that would plan an action for its end, and do
    /// nothing before, goes on instead. Returns whether it has passed. A node of a cluster does not know what the others
    /// plan.
    fn time_passes(&mut self, nanos: u64) -> bool {
        let time = self.now + nanos;
        let is_next = self.agenda.next_time().is_none_or(|next| time < next);
        let passes = is_next && self.mail.is_none() && self.error.is_none();
        if passes {
            self.set_now(time);
            self.events += 1;
        }
        passes
    }

    fn report(&mut self, event: Event) {
        self.observer.event(self.now, &event);
    }

    /// Does what the tree requested while it was called.
    fn settle_notes(&mut self) {
        if !self.backend.has_notes() {
            return;
        }
        let mut notes = std::mem::take(&mut self.notes);
        self.backend.take_notes(&mut notes);
        for mut worker in notes.woken.drain(..) {
            let exhausted = |worker: WorkerId| self.workers[worker.index()].has_looked(self.now, self.changes);
            if exhausted(worker) {
                // It has looked repeatedly, and nothing has changed since: two workers that wake each other would go on
                // for ever, since nothing else happens. A worker that has looked less often goes in its place.
                self.backend.fall_asleep(worker);
                let Some(other) = self.backend.find_sleeper(|other| !exhausted(other)) else { continue };
                self.backend.get_up(other);
                worker = other;
            }
            self.report(Event::Woken { worker });
            let wake_up = self.prices.wake_up;
            let state = &mut self.workers[worker.index()];
            state.seat.expect();
            if !state.host_busy {
                state.host_busy = true;
                self.plan(self.now + wake_up, Action::Host(worker));
            }
        }
        for wanted in notes.prefetch.drain(..) {
            self.prefetch(wanted.memory, wanted.task);
        }
        self.notes = notes;
    }

    /// Pushes a ready task into the tree.
    fn push(&mut self, task: TaskId, by: Option<WorkerId>, deferred: Option<&Cell<Option<WorkerId>>>) -> &'static Slot {
        self.report(Event::Ready { task: task.submitted(), by });
        self.backend.progress.reach(task, Stage::Ready);
        let context = self.context_of(task);
        let priority = self.contexts[context].priority(self.backend.spec(task).priority);
        let slot = self.tasks.slot_for(task, priority, &self.backend);
        self.changes += 1;
        self.teams.note_pushed(slot);
        self.contexts[context].tree.push(slot, by, deferred);
        self.settle_notes();
        slot
    }

    /// The application submits tasks until one costs time.
    fn submit(&mut self) {
        let Prices { submission, push, .. } = self.prices;
        while let Some(task) = self.tasks.next_submitted() {
            self.report(Event::Submitted { task: task.submitted() });
            self.backend.progress.submitted(task);
            self.note_submitted(task);
            let mut cost = submission + self.passed_over();
            self.tasks.submitted(task, &self.graph);
            while let Some(task) = self.next_to_push() {
                self.push(task, None, None);
                cost += push;
            }
            self.settle_unwanted();
            if cost > 0 && !self.time_passes(cost) {
                self.plan(self.now + cost, Action::Submit);
                return;
            }
        }
        self.end_submission();
    }

    /// Wakes the workers whose components wait for the end of the submission.
    fn end_submission(&mut self) {
        if self.backend.progress.take_awaited() {
            self.changes += 1;
            for worker in self.worker_ids() {
                self.backend.wake(worker);
            }
            self.settle_notes();
        }
    }

    /// Takes the next ready task that is to be pushed. Ready tasks before it that are not, send, receive, or end at
    /// once, which makes others ready.
    #[inline]
    fn next_to_push(&mut self) -> Option<TaskId> {
        while let Some(task) = self.tasks.ready.pop_front() {
            let is_plain = self.mail.is_none() && self.backend.spec(task).runs();
            if is_plain || !self.passes(task) {
                return Some(task);
            }
        }
        None
    }

    /// Ends a task without work at once, and begins to send or receive. Returns whether it was such a task.
    #[inline(never)]
    fn passes(&mut self, task: TaskId) -> bool {
        if self.takes_message(task) {
            return true;
        }
        if self.backend.spec(task).runs() {
            return false;
        }
        self.report(Event::Passed { task: task.submitted() });
        self.end_without_worker(task);
        true
    }

    /// Ends a task that no worker executes, which may make others ready.
    fn end_without_worker(&mut self, task: TaskId) {
        self.backend.progress.reach(task, Stage::Ended);
        self.end = self.end.max(self.now);
        self.tasks.ended(task, &self.graph, &self.backend.dependencies);
        self.note_ended(task);
    }

    fn outcome(mut self) -> SimOutcome {
        let governance = self.end_supervision();
        let (backend, end) = (&self.backend, self.until());
        let (graph, platform) = (&backend.graph, &backend.platform);
        let workers = self.worker_ids().zip(&self.workers).map(|(id, worker)| WorkerStats {
            id,
            class: platform.classes[worker.class].name.clone(),
            tasks: worker.executed,
            busy: std::time::Duration::from_nanos(worker.busy),
            idle: std::time::Duration::from_nanos(end.saturating_sub(worker.busy)),
        });
        let workers: Vec<WorkerStats> = workers.collect();
        let idle = workers.iter().zip(&self.workers);
        let idle = idle.map(|(stats, worker)| stats.idle.as_secs_f64() * platform.classes[worker.class].power.idle);
        let energy = Some(self.joules + idle.sum::<f64>()).filter(|joules| !joules.is_nan());
        let links = platform.links.iter().zip(&self.moves.link_bytes);
        let links = links.map(|(link, bytes)| LinkStats { name: link.name.clone(), bytes: *bytes });
        let memories = (0..).map(MemoryNode).zip(&platform.memories).map(|(node, memory)| {
            let peak = self.replicas.as_ref().map(|replicas| replicas.peak(node));
            MemoryStats { name: memory.name.clone(), peak: peak.unwrap_or_else(|| graph.bytes()) }
        });
        SimOutcome {
            makespan: std::time::Duration::from_nanos(end),
            tasks: self.tasks.total(),
            flops: graph.flops(),
            critical_path: self.tasks.critical_path(backend),
            energy,
            workers,
            links: links.collect(),
            memories: memories.collect(),
            transfers: self.moves.done,
            bytes: self.moves.bytes,
            events: self.events + self.agenda.withdrawn(),
            contexts: self.context_stats(),
            faults: self.faults(),
            governance,
        }
    }
}

/// Costs other than those of kernels and transfers, in nanoseconds.
#[derive(Clone, Copy)]
struct Prices {
    submission: u64,
    push: u64,
    fetch: u64,
    kernel_queueing: u64,
    transfer_queueing: u64,
    allocation: u64,
    wake_up: u64,
    free_transfers: bool,
}

impl Prices {
    fn new(overheads: Overheads) -> Prices {
        let nanos = |length: std::time::Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Prices {
            submission: nanos(overheads.submission),
            push: nanos(overheads.push),
            fetch: nanos(overheads.fetch),
            kernel_queueing: nanos(overheads.kernel_queueing),
            transfer_queueing: nanos(overheads.transfer_queueing),
            allocation: nanos(overheads.allocation),
            wake_up: nanos(overheads.wake_up),
            free_transfers: overheads.free_transfers,
        }
    }
}
