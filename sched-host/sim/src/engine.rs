//! The event engine: a virtual clock, and workers that do what the threads of the runtime do.
//!
//! Everything happens in one thread, in the order of (time, order of planning), so that the same run is the same event for
//! event. A worker with room in its pipeline pulls from the tree, fetches the data of the task, executes it, ends it, pushes
//! the tasks that became ready, and pulls again; it sleeps when it finds nothing. A worker of an accelerator keeps several
//! tasks in flight: the next ones fetch their data while one is executed.

mod agenda;
mod contexts;
mod moves;
mod seat;
mod tasks;
mod teams;
mod workers;

use super::backend::{Notes, SimBackend, task_of};
use super::error::SimError;
use super::network::Network;
use super::outcome::{LinkStats, MemoryStats, Outcome, WorkerStats};
use super::platform::Overheads;
use agenda::Agenda;
use contexts::Context;
pub(super) use contexts::{Opening, Planned, PolicyEnv};
use moves::Moves;
use sched_core::{Stage, WorkerId};
use sched_graph::{TaskGraph, TaskId};
use sched_trace::{Event, Observer};
use sched_tree::combined::CombinedWorkers;
use sched_tree::{Ledger, Services};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use tasks::Tasks;
use teams::Purpose;
use workers::{Flight, Worker};

/// What is planned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Plan {
    /// The application submits the next task.
    Submit,
    /// The thread of a worker is free again.
    Host(u32),
    /// The thread of a worker begins to fetch the data of a flight.
    Fetch(u32),
    /// All inputs of a flight are there, and its memory is allocated.
    Inputs(u32),
    /// The device of a worker begins the kernel of its first flight.
    Start(u32),
    /// The kernel of a worker's first flight is done.
    End(u32),
    /// A transfer can be queued.
    Queue(u32),
    /// A transfer begins to use the links.
    Flow(u32),
    /// Some flow arrives, if nothing has changed since change number *n*.
    Arrive(u32),
    /// A context is changed, if there is something left to do in it.
    Change(u32),
}

pub(super) struct Engine<'a> {
    backend: Arc<SimBackend>,
    graph: Arc<TaskGraph>,
    prices: Prices,
    policy_env: PolicyEnv,
    /// The default one first.
    contexts: Vec<Context>,
    planned: Vec<Planned>,
    tasks: Tasks,
    teams: CombinedWorkers<Purpose>,
    workers: Vec<Worker>,
    flights: Vec<Flight>,
    free_flights: Vec<u32>,
    moves: Moves,
    now: u64,
    agenda: Agenda,
    notes: Notes,
    observer: &'a mut dyn Observer,
    error: Option<SimError>,
    events: u64,
    /// When the last task ended.
    end: u64,
    /// Joules that kernels took so far; no number if that is not known of one.
    joules: f64,
    /// How often something changed that a worker that found nothing may find now.
    changes: u64,
    /// Changes whenever a worker may have to serve other contexts.
    roster_version: u64,
}

impl<'a> Engine<'a> {
    /// The first of the contexts is the default one.
    pub(super) fn new(
        backend: SimBackend,
        policy_env: PolicyEnv,
        contexts: Vec<Opening>,
        planned: Vec<Planned>,
        observer: &'a mut dyn Observer,
    ) -> Engine<'a> {
        let backend = Arc::new(backend);
        let ledger = Arc::new(Ledger::new());
        let open = |opening| Context::new(opening, &backend, &ledger, policy_env.seed);
        let mut contexts: Vec<Context> = contexts.into_iter().map(open).collect();
        backend.graph.tasks.iter().for_each(|task| contexts[usize::from(task.context)].count_task());
        let platform = Arc::clone(&backend.platform);
        let workers = platform.workers.iter().zip(0..).map(|(worker, id)| {
            let class = &platform.classes[worker.class];
            Worker::new(WorkerId(id), worker.class, worker.memory.0, class.pipeline)
        });
        let teams = CombinedWorkers::new(platform.workers.len(), backend.combined());
        if !backend.combined().is_empty() {
            teams.begin_use();
        }
        let bandwidth = platform.links.iter().map(|link| link.bandwidth).collect();
        Engine {
            policy_env,
            contexts,
            planned,
            graph: Arc::clone(&backend.graph),
            prices: Prices::new(platform.overheads),
            tasks: Tasks::new(&backend.graph, Arc::clone(&backend.dependencies), ledger),
            teams,
            workers: workers.collect(),
            flights: Vec::new(),
            free_flights: Vec::new(),
            moves: Moves::new(platform.memories.len(), Network::new(bandwidth)),
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
        }
    }

    /// Runs all tasks.
    pub(super) fn run(mut self) -> Result<Outcome, SimError> {
        for worker in 0..self.workers.len() as u32 {
            self.backend.fall_asleep(worker);
        }
        self.plan_timed_changes();
        self.submit();
        while self.error.is_none() {
            let Some((time, plan)) = self.agenda.pop() else {
                if !self.look_around() {
                    break;
                }
                continue;
            };
            self.now = time;
            self.backend.set_now(time);
            self.events += 1;
            if let Some(Plan::End(next) | Plan::Host(next)) = self.agenda.peek() {
                self.workers[next as usize].fetch();
            }
            self.carry_out(plan);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let tasks = self.tasks.total();
        if self.tasks.ended < tasks {
            return Err(SimError::Stalled {
                left: tasks - self.tasks.ended,
                tasks,
                nanos: self.now,
                without_workers: self.without_workers(),
                nodes: self.survey(),
            });
        }
        Ok(self.outcome())
    }

    /// Nothing is planned any more. If tasks are left, every worker looks once more before the run is given up. Whether
    /// there is something to do now.
    fn look_around(&mut self) -> bool {
        if self.tasks.ended < self.tasks.total() {
            self.changes += 1;
            for worker in 0..self.workers.len() as u32 {
                self.host(worker);
            }
        }
        // What follows from vain looks is planned too, but only a task that was found changes something.
        let found = self.workers.iter().any(|worker| worker.is_occupied());
        found && !self.agenda.is_empty()
    }

    fn carry_out(&mut self, plan: Plan) {
        match plan {
            Plan::Submit => self.submit(),
            Plan::Host(worker) => {
                self.workers[worker as usize].host_busy = false;
                self.host(worker);
            }
            Plan::Fetch(flight) => {
                let worker = self.flights[flight as usize].worker;
                self.workers[worker as usize].host_busy = false;
                self.fetch(flight);
                self.host(worker);
            }
            Plan::Inputs(flight) => self.inputs_are_there(flight),
            Plan::Start(worker) => self.start(worker),
            Plan::End(worker) => self.end(worker),
            Plan::Queue(transfer) => self.queue_transfer(transfer),
            Plan::Flow(transfer) => self.begin_flow(transfer),
            Plan::Arrive(change) => self.arrive(change),
            Plan::Change(change) => self.change(change),
        }
    }

    fn plan(&mut self, time: u64, plan: Plan) {
        self.agenda.push(time, plan);
    }

    fn tell(&mut self, event: Event) {
        self.observer.event(self.now, &event);
    }

    /// Does what the tree asked for while it was called.
    fn settle_notes(&mut self) {
        if !self.backend.has_notes() {
            return;
        }
        let mut notes = std::mem::take(&mut self.notes);
        self.backend.take_notes(&mut notes);
        for mut worker in notes.woken.drain(..) {
            let tired = |worker: u32| self.workers[worker as usize].has_looked(self.now, self.changes);
            if tired(worker.0) {
                // It has looked again and again, and nothing has changed since: two that wake each other would go on for ever,
                // since no time passes. Somebody who has not looked so often goes in its place.
                self.backend.fall_asleep(worker.0);
                let Some(other) = self.backend.find_sleeper(|other| !tired(other)) else { continue };
                self.backend.get_up(other);
                worker = WorkerId(other);
            }
            self.tell(Event::Woken { worker });
            let wake_up = self.prices.wake_up;
            let state = &mut self.workers[worker.0 as usize];
            state.seat.expect();
            if !state.host_busy {
                state.host_busy = true;
                self.plan(self.now + wake_up, Plan::Host(worker.0));
            }
        }
        for (memory, task) in notes.prefetch.drain(..) {
            self.prefetch(memory, task);
        }
        self.notes = notes;
    }

    /// Pushes a ready task into the tree.
    fn push(&mut self, task: u32, by: Option<u32>, deferred: Option<&Cell<Option<WorkerId>>>) -> u32 {
        let by = by.map(WorkerId);
        self.tell(Event::Ready { task: TaskId(task).submitted(), by });
        self.backend.progress.reach(task, Stage::Ready);
        let context = self.context_of(task);
        let priority = self.contexts[context].priority(self.graph.tasks[task as usize].priority);
        let slot = self.tasks.slot_for(task, priority, &self.backend);
        self.changes += 1;
        self.teams.note_pushed(slot);
        self.contexts[context].tree.push(slot, by, deferred);
        self.settle_notes();
        slot.index()
    }

    /// The application submits tasks until it has to pay for one.
    fn submit(&mut self) {
        let Prices { submission, push, .. } = self.prices;
        while let Some(task) = self.tasks.next_submitted() {
            self.tell(Event::Submitted { task: TaskId(task).submitted() });
            self.backend.progress.submitted(task + 1);
            self.note_submitted(task);
            let mut cost = submission;
            self.tasks.submitted(task, &self.graph);
            let mut ready = std::mem::take(&mut self.tasks.ready);
            while let Some(task) = ready.pop_front() {
                if self.passes(task, &mut ready) {
                    continue;
                }
                self.push(task, None, None);
                cost += push;
            }
            self.settle_unwanted();
            self.tasks.ready = ready;
            if cost > 0 {
                self.plan(self.now + cost, Plan::Submit);
                return;
            }
        }
    }

    /// Whether the task does nothing, and has ended now; what it made ready is added.
    fn passes(&mut self, task: u32, ready: &mut VecDeque<u32>) -> bool {
        if self.graph.kind_of(self.graph.task(TaskId(task))).runs {
            return false;
        }
        self.tell(Event::Passed { task: TaskId(task).submitted() });
        self.backend.progress.reach(task, Stage::Ended);
        self.end = self.end.max(self.now);
        std::mem::swap(&mut self.tasks.ready, ready);
        self.tasks.ended(task, &self.graph);
        std::mem::swap(&mut self.tasks.ready, ready);
        self.note_ended(task);
        true
    }

    fn outcome(self) -> Outcome {
        let (backend, end) = (&self.backend, self.end);
        let (graph, platform) = (&backend.graph, &backend.platform);
        let workers = self.workers.iter().enumerate().map(|(id, worker)| WorkerStats {
            id: id as u32,
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
        let memories = platform.memories.iter().enumerate().map(|(number, memory)| {
            let peak = backend.replicas.as_ref().map(|replicas| replicas.lock().peak(number as u32));
            MemoryStats { name: memory.name.clone(), peak: peak.unwrap_or_else(|| graph.bytes()) }
        });
        Outcome {
            makespan: std::time::Duration::from_nanos(end),
            tasks: self.tasks.total(),
            flops: graph.flops(),
            critical_path: self.tasks.critical_path(&backend.lengths),
            energy,
            workers,
            links: links.collect(),
            memories: memories.collect(),
            transfers: self.moves.done,
            bytes: self.moves.bytes,
            events: self.events,
            contexts: self.context_stats(),
            faults: self.faults(),
        }
    }
}

/// What is paid beside kernels and transfers, in nanoseconds.
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
