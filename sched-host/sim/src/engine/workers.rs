//! What workers do.

use super::teams::Found;
use super::{Engine, Plan, Prices, task_of};
use sched_core::{MemoryNode, Stage, WorkerId, fetch_ahead};
use sched_graph::{Mode, TaskId};
use sched_trace::Event;
use sched_tree::Slot;
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::VecDeque;

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
    /// Slots that it pushed since it last pulled.
    pushed: Vec<u32>,
    /// A worker to wake if the next pull gives another task than the one that was pushed.
    deferred: Cell<Option<WorkerId>>,
    /// The contexts that it serves, by number.
    pub(super) contexts: SmallVec<[usize; 2]>,
    /// Which of them to ask first.
    pub(super) next: usize,
    /// The same for parallel tasks.
    pub(super) next_for_team: usize,
    /// Parallel tasks come first, the next time that it looks for work.
    pub(super) teams_next: bool,
    /// It is in a team, and waits for the others, or executes a task with them.
    pub(super) attends: bool,
    /// Its thread is occupied until a planned moment.
    pub(super) host_busy: bool,
    /// Somebody woke it, and counts on it for a task.
    pub(super) expected: bool,
    /// When it last looked for a task and found none: the time, how much had changed until then, and how often it looked.
    vain: (u64, u64, u32),
    pub(super) executed: u64,
    /// Nanoseconds in kernels.
    pub(super) busy: u64,
}

impl Worker {
    pub(super) fn new(class: usize, memory: u32, pipeline: usize) -> Worker {
        Worker {
            class,
            memory,
            pipeline: pipeline as u32,
            flights: SmallVec::new(),
            executing: false,
            pushes: VecDeque::new(),
            pushed: Vec::new(),
            deferred: Cell::new(None),
            contexts: SmallVec::new(),
            next: 0,
            next_for_team: 0,
            teams_next: true,
            attends: false,
            host_busy: false,
            expected: false,
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
    pub(super) fn has_looked(&self, now: u64, stirred: u64) -> bool {
        self.vain.0 == now && self.vain.1 == stirred && self.vain.2 >= LOOKS
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

    /// It does not pull now: the worker whose wake was put off until it does, if there is one.
    pub(super) fn put_off(&mut self) -> Option<WorkerId> {
        self.pushed.clear();
        self.deferred.take()
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
        self.desk.get_up(worker);
        let Prices { push, fetch, .. } = self.prices;
        loop {
            let state = &mut self.workers[worker as usize];
            let room = state.flights.len() < state.pipeline as usize;
            if let Some(task) = state.pushes.pop_front() {
                let deferred = std::mem::take(&mut state.deferred);
                // A worker that pulls right after need not wake another for the first task.
                let slot = self.push(task, Some(worker), (room && push == 0).then_some(&deferred));
                let state = &mut self.workers[worker as usize];
                state.deferred = deferred;
                state.pushed.push(slot);
                if push > 0 {
                    return self.occupy(worker, push, Plan::Host(worker));
                }
                continue;
            }
            // Who is in a team has nothing else in flight.
            let held_back = !state.flights.is_empty() && state.teams_next && self.teams.may_want(worker);
            if !room || held_back {
                return self.pass_wake_on(worker);
            }
            let found = if state.flights.is_empty() {
                self.look(worker)
            } else {
                self.pull(worker).map_or(Found::Nothing, Found::Alone)
            };
            let slot = match found {
                Found::Alone(slot) => slot,
                Found::Together(gathering) => return self.attend(worker, &gathering),
                Found::Nothing => break,
            };
            let task = task_of(slot.head());
            self.tell(Event::Pulled { task: TaskId(task).submitted(), worker: WorkerId(worker) });
            self.desk.progress.reach(task, Stage::Taken);
            let flight = self.new_flight(Flight::new(task, slot.index(), worker));
            self.workers[worker as usize].flights.push(flight);
            self.book_pull(worker, task, slot);
            let cost = fetch * self.desk.accesses(task).len() as u64;
            if cost > 0 {
                return self.occupy(worker, cost, Plan::Fetch(flight));
            }
            self.fetch(flight);
        }
        let state = &mut self.workers[worker as usize];
        state.expected = false;
        let idle = state.flights.is_empty();
        self.desk.fall_asleep(worker);
        if idle {
            self.tell(Event::Idle { worker: WorkerId(worker) });
        }
    }

    /// The worker should be done later by the length of a task that it pulled, and its transfers as far as they do not hide
    /// behind earlier ones.
    fn book_pull(&mut self, worker: u32, task: u32, slot: &Slot) {
        let state = &self.workers[worker as usize];
        let length = self.desk.lengths.nanos(self.desk.lengths.row(task), state.class);
        let transfer = sched_tree::Services::expected_transfer(&*self.desk, MemoryNode(state.memory), slot.head());
        let ready = self.now.saturating_add(transfer.as_nanos() as u64);
        let end = self.desk.busy_until_nanos(worker).max(ready).saturating_add(length);
        self.desk.book(worker, end);
    }

    /// The first task of the worker begins now, or has just ended: when it should be done with all that it has.
    fn book_rest(&mut self, worker: u32) {
        let state = &self.workers[worker as usize];
        let length = |flight: &u32| self.length_of(self.flights[*flight as usize]);
        let rest = state.flights.iter().map(length).fold(0, u64::saturating_add);
        self.desk.book(worker, if rest == 0 { 0 } else { self.now.saturating_add(rest) });
    }

    pub(super) fn occupy(&mut self, worker: u32, nanos: u64, plan: Plan) {
        self.workers[worker as usize].host_busy = true;
        self.plan(self.now + nanos, plan);
    }

    pub(super) fn pull(&mut self, worker: u32) -> Option<&'static Slot> {
        let slot = self.pull_in_turn(worker);
        let state = &mut self.workers[worker as usize];
        let other = state.deferred.take();
        let as_expected = slot.is_some_and(|slot| state.pushed == [slot.index()]);
        state.pushed.clear();
        match slot {
            Some(slot) => {
                // One who serves a single context was woken for its tasks only.
                state.expected &= state.contexts.len() > 1;
                self.stirred += 1;
                self.teams.note_pulled(slot);
            }
            None => {
                let (now, stirred, times) = state.vain;
                let again = if (now, stirred) == (self.now, self.stirred) { times + 1 } else { 1 };
                state.vain = (self.now, self.stirred, again);
            }
        }
        if let Some(other) = other.filter(|_| !as_expected) {
            sched_tree::Services::wake(&*self.desk, other);
        }
        self.settle_notes();
        if slot.is_some() {
            self.pass_wake_on(worker);
        }
        slot
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
        if let Some(replicas) = &self.desk.replicas {
            let mut replicas = replicas.lock();
            for access in self.desk.accesses(task).iter().filter(|access| access.mode.writes()) {
                replicas.write(access.data.0, memory);
            }
        }
        let (id, codelet) = (TaskId(task).submitted(), self.graph.tasks[task as usize].kind.0);
        self.each_member(flight, |engine, member| {
            let state = &mut engine.workers[member.0 as usize];
            state.busy += length;
            engine.joules += engine.desk.draws.joules(&engine.graph.tasks[task as usize], state.class, length);
            engine.desk.book(member.0, engine.now.saturating_add(length));
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
        self.desk.progress.reach(task, Stage::Ended);
        self.stirred += 1;
        self.end = self.now;
        if let Some(replicas) = &self.desk.replicas {
            let mut replicas = replicas.lock();
            replicas.give_back(memory, scratch);
            for access in self.desk.accesses(task).iter().filter(|access| access.mode != Mode::Scratch) {
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
