//! What workers do.

use super::{Engine, Plan, Prices, task_of};
use sched_core::{MemoryNode, Stage, WorkerId, fetch_ahead};
use sched_graph::{AccessMode, TaskId};
use sched_trace::{CodeletId, Event};
use sched_tree::seat::{DeferredWake, Seat, Seated, Work};
use sched_tree::{Slot, Tree};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// One worker. On a machine of a thousand the processor does not know whose turn is next: see
/// [`fetch`](Worker::fetch).
#[repr(align(64))]
pub(super) struct Worker {
    pub(super) class: usize,
    pub(super) memory: u32,
    pipeline: u32,
    /// Its tasks, in the order in which they came; the first is executed, or will be first.
    pub(super) flights: SmallVec<[u32; 4]>,
    /// The first flight is being executed, or its start is planned.
    executing: bool,
    /// Ready tasks that it has to push.
    pushes: VecDeque<u32>,
    /// What it pushed since it last pulled.
    pub(super) deferred: DeferredWake,
    pub(super) seat: Seat<Arc<Tree>>,
    /// It is in a team, and waits for the others, or executes a task with them.
    pub(super) attends: bool,
    /// Its thread is occupied until a planned moment.
    pub(super) host_busy: bool,
    /// When it last looked for a task and found none: the time, how much had changed until then, and how often it looked.
    vain: (u64, u64, u32),
    pub(super) executed: u64,
    /// Nanoseconds in kernels.
    pub(super) busy: u64,
}

impl Worker {
    pub(super) fn new(id: WorkerId, class: usize, memory: u32, pipeline: usize) -> Worker {
        Worker {
            class,
            memory,
            pipeline: pipeline as u32,
            flights: SmallVec::new(),
            executing: false,
            pushes: VecDeque::new(),
            deferred: DeferredWake::default(),
            seat: Seat::new(id),
            attends: false,
            host_busy: false,
            vain: (u64::MAX, 0, 0),
            executed: 0,
            busy: 0,
        }
    }
}

/// How often a worker looks for a task at one moment while nothing changes. Tasks may move towards it meanwhile.
const LOOKS: u32 = 8;

impl Worker {
    /// Whether it has looked for a task as often as makes sense at this moment, when so much has changed.
    pub(super) fn has_looked(&self, now: u64, changes: u64) -> bool {
        self.vain.0 == now && self.vain.1 == changes && self.vain.2 >= LOOKS
    }

    /// Begins to bring it near: its turn comes next.
    pub(super) fn fetch(&self) {
        fetch_ahead(&self.flights);
        fetch_ahead(&self.pushes);
        fetch_ahead(&self.busy);
        fetch_ahead(&self.executing);
    }

    /// Whether it has a task.
    pub(super) fn is_occupied(&self) -> bool {
        !self.flights.is_empty()
    }

    /// The worker looked for a task in vain, when so much had changed.
    pub(super) fn note_vain_look(&mut self, now: u64, changes: u64) {
        let again = if (self.vain.0, self.vain.1) == (now, changes) { self.vain.2 + 1 } else { 1 };
        self.vain = (now, changes, again);
    }
}

/// A task that a worker has pulled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) task: u32,
    pub(super) slot: u32,
    pub(super) worker: u32,
    /// The combined worker that executes it, which this worker leads.
    pub(super) combined: Option<WorkerId>,
    /// Transfers that it waits for.
    pub(super) missing: u32,
    /// When its memory is allocated.
    pub(super) allocated: u64,
    /// When its kernel can begin; [`NOT_READY`] while data is missing.
    ready: u64,
    /// Bytes of memory for scratch.
    pub(super) scratch: u64,
}

const NOT_READY: u64 = u64::MAX;

impl Flight {
    /// The task in this slot, pulled by a worker.
    pub(super) fn new(task: u32, slot: u32, worker: u32) -> Flight {
        Flight { task, slot, worker, combined: None, missing: 0, allocated: 0, ready: NOT_READY, scratch: 0 }
    }

    /// The same, for a combined worker that this one leads.
    pub(super) fn together(self, combined: WorkerId) -> Flight {
        Flight { combined: Some(combined), ..self }
    }
}

impl Engine<'_> {
    /// The thread of a worker is free: it pushes what it has to, then pulls while there is room in its pipeline.
    pub(super) fn host(&mut self, worker: u32) {
        let state = &self.workers[worker as usize];
        if state.host_busy || state.attends {
            return;
        }
        self.backend.get_up(worker);
        let Prices { push, fetch, .. } = self.prices;
        loop {
            let state = &mut self.workers[worker as usize];
            let room = state.flights.len() < state.pipeline as usize;
            if let Some(task) = state.pushes.pop_front() {
                let mut deferred = std::mem::take(&mut state.deferred);
                let will_pull = room && push == 0;
                let slot = self.push(task, Some(worker), will_pull.then_some(deferred.cell()));
                deferred.note_pushed(slot);
                self.workers[worker as usize].deferred = deferred;
                if push > 0 {
                    return self.occupy(worker, push, Plan::Host(worker));
                }
                continue;
            }
            // Who is in a team has nothing else in flight.
            let is_idle = state.flights.is_empty();
            let mut seat = self.at_seat(worker);
            if !room || (!is_idle && seat.is_kept_for_team()) {
                return seat.pass_wake_on();
            }
            let found = if is_idle { seat.look() } else { seat.pull().map(Work::Alone) };
            seat.answer_wake(found.as_ref());
            let slot = match found {
                Some(Work::Alone(slot)) => slot,
                Some(Work::Together(gathering)) => return self.attend(worker, &gathering),
                None => break,
            };
            let task = task_of(slot.head());
            self.tell(Event::Pulled { task: TaskId(task).submitted(), worker: WorkerId(worker) });
            self.backend.progress.reach(task, Stage::Taken);
            let flight = self.new_flight(Flight::new(task, slot.index(), worker));
            self.workers[worker as usize].flights.push(flight);
            self.book_pull(worker, task, slot);
            let cost = fetch * self.backend.accesses(task).len() as u64;
            if cost > 0 {
                return self.occupy(worker, cost, Plan::Fetch(flight));
            }
            self.fetch(flight);
        }
        let idle = self.workers[worker as usize].flights.is_empty();
        self.backend.fall_asleep(worker);
        if idle {
            self.tell(Event::Idle { worker: WorkerId(worker) });
        }
    }

    /// The worker should be done later by the length of a task that it pulled, and its transfers as far as they do not hide
    /// behind earlier ones.
    fn book_pull(&mut self, worker: u32, task: u32, slot: &Slot) {
        let state = &self.workers[worker as usize];
        let length = self.backend.lengths.nanos(self.backend.lengths.row(task), state.class);
        let transfer = sched_tree::Services::expected_transfer(&*self.backend, MemoryNode(state.memory), slot.head());
        let ready = self.now.saturating_add(transfer.as_nanos() as u64);
        let end = self.backend.busy_until_nanos(worker).max(ready).saturating_add(length);
        self.backend.book(worker, end);
    }

    /// The first task of the worker begins now, or has just ended: when it should be done with all that it has.
    fn book_rest(&mut self, worker: u32) {
        let state = &self.workers[worker as usize];
        let length = |flight: &u32| self.length_of(self.flights[*flight as usize]);
        let rest = state.flights.iter().map(length).fold(0, u64::saturating_add);
        self.backend.book(worker, if rest == 0 { 0 } else { self.now.saturating_add(rest) });
    }

    pub(super) fn occupy(&mut self, worker: u32, nanos: u64, plan: Plan) {
        self.workers[worker as usize].host_busy = true;
        self.plan(self.now + nanos, plan);
    }

    pub(super) fn new_flight(&mut self, flight: Flight) -> u32 {
        match self.free_flights.pop() {
            Some(free) => {
                self.flights[free as usize] = flight;
                free
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        }
    }

    /// No data of a flight is missing any more.
    pub(super) fn inputs_are_there(&mut self, flight: u32) {
        let state = &mut self.flights[flight as usize];
        if state.allocated > self.now {
            let (at, plan) = (state.allocated, Plan::Inputs(flight));
            return self.plan(at, plan);
        }
        let worker = state.worker;
        let queued = self.workers[worker as usize].pipeline > 1;
        let queueing = if queued { self.prices.kernel_queueing } else { 0 };
        state.ready = self.now + queueing;
        self.start_next(worker);
    }

    /// Starts the first flight of a worker, if it can be started.
    fn start_next(&mut self, worker: u32) {
        let state = &mut self.workers[worker as usize];
        let Some(first) = state.flights.first().filter(|_| !state.executing) else { return };
        let ready = self.flights[*first as usize].ready;
        if ready == NOT_READY {
            return;
        }
        state.executing = true;
        if ready > self.now {
            self.plan(ready, Plan::Start(worker));
        } else {
            self.start(worker);
        }
    }

    /// The kernel of the first flight begins.
    pub(super) fn start(&mut self, worker: u32) {
        let state = &mut self.workers[worker as usize];
        let first = *state.flights.first().expect("only the first flight of a worker is started");
        state.executed += 1;
        let (flight, memory) = (self.flights[first as usize], state.memory);
        let (task, length) = (flight.task, self.length_of(flight));
        if let Some(replicas) = &self.backend.replicas {
            let mut replicas = replicas.lock();
            for access in self.backend.accesses(task).iter().filter(|access| access.mode.writes()) {
                replicas.write(access.data.0, memory);
            }
        }
        let (id, codelet) = (TaskId(task).submitted(), CodeletId(self.graph.tasks[task as usize].kind.0));
        self.each_member(flight, |engine, member| {
            let state = &mut engine.workers[member.0 as usize];
            state.busy += length;
            engine.joules += engine.backend.draws.joules(&engine.graph.tasks[task as usize], state.class, length);
            engine.backend.book(member.0, engine.now.saturating_add(length));
            engine.tell(Event::Started { task: id, worker: member, codelet });
        });
        self.book_rest(worker);
        self.plan(self.now.saturating_add(length), Plan::End(worker));
    }

    /// The kernel of the first flight is done.
    pub(super) fn end(&mut self, worker: u32) {
        let state = &mut self.workers[worker as usize];
        let flight = state.flights.remove(0);
        state.executing = false;
        let memory = state.memory;
        let ended = self.flights[flight as usize];
        let Flight { task, slot, scratch, .. } = ended;
        let id = TaskId(task).submitted();
        self.each_member(ended, |engine, worker| engine.tell(Event::Ended { task: id, worker }));
        self.backend.progress.reach(task, Stage::Ended);
        self.changes += 1;
        self.end = self.now;
        if let Some(replicas) = &self.backend.replicas {
            let mut replicas = replicas.lock();
            replicas.give_back(memory, scratch);
            for access in self.backend.accesses(task).iter().filter(|access| access.mode != AccessMode::Scratch) {
                replicas.unpin(access.data.0, memory);
            }
        }
        self.dismiss(ended);
        self.book_rest(worker);
        self.free_flights.push(flight);
        self.tasks.give_back(slot);
        self.tasks.ended(task, &self.graph);
        self.note_ended(task);
        let mut ready = std::mem::take(&mut self.tasks.ready);
        while let Some(task) = ready.pop_front() {
            if !self.passes(task, &mut ready) {
                self.workers[worker as usize].pushes.push_back(task);
            }
        }
        self.tasks.ready = ready;
        self.settle_unwanted();
        self.serve(memory);
        self.start_next(worker);
        self.host(worker);
    }
}
