//! What workers do.

use super::flights::{Flight, FlightId};
use super::{Action, CoreWork, Engine, Job, Prices, task_of};
use sched_core::{MemoryNode, Stage, WorkerId, fetch_ahead};
use sched_graph::{AccessMode, TaskId};
use sched_trace::{CodeletId, Event};
use sched_tree::seat::{DeferredWake, Seat, Seated, Work};
use sched_tree::{TaskEnd, Tree};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One worker. On a machine with a thousand workers the processor cannot predict which one is next: see
/// [`fetch`](Worker::fetch).
#[repr(align(64))]
pub(super) struct Worker {
    pub(super) class: usize,
    pub(super) memory: MemoryNode,
    pipeline: usize,
    /// Its flights, in the order in which they were pulled; the first one is executed, or will be next.
    pub(super) flights: SmallVec<[FlightId; 4]>,
    /// Whether the first flight is being executed, or its start is planned.
    executing: bool,
    /// Ready tasks that it has to push.
    pushes: VecDeque<TaskId>,
    /// What it pushed since it last pulled.
    pub(super) deferred: DeferredWake,
    pub(super) seat: Seat<Arc<Tree>>,
    /// Whether it is in a team, and waits for the others or executes a task with them.
    pub(super) attends: bool,
    /// Whether its thread is occupied until a planned time.
    pub(super) host_busy: bool,
    /// Its last looks for a task that found none.
    vain: VainLooks,
    pub(super) executed: u64,
    /// Nanoseconds in kernels.
    pub(super) busy: u64,
    /// Nanoseconds that copies have taken from it, which its next kernel ends later.
    pub(super) taken: u64,
    /// When its last kernel began, if it shares its core.
    began: u64,
}

/// Consecutive vain looks for a task without any change between them.
struct VainLooks {
    /// Time of the last one.
    at: u64,
    /// Number of changes before the looks.
    changes: u64,
    /// Number of looks at that time.
    count: u32,
    /// Number of looks at any time.
    total: u32,
}

/// Maximum number of looks for a task at one time while nothing changes. Tasks may move towards the worker between
/// them.
const LOOKS: u32 = 8;

/// Maximum number of looks at different times while nothing changes, where waking up takes time.
const ALL_LOOKS: u32 = 64;

impl Worker {
    pub(super) fn new(id: WorkerId, class: usize, memory: MemoryNode, pipeline: usize) -> Worker {
        Worker {
            class,
            memory,
            pipeline,
            flights: SmallVec::new(),
            executing: false,
            pushes: VecDeque::new(),
            deferred: DeferredWake::default(),
            seat: Seat::new(id),
            attends: false,
            host_busy: false,
            vain: VainLooks { at: u64::MAX, changes: 0, count: 0, total: 0 },
            executed: 0,
            busy: 0,
            taken: 0,
            began: 0,
        }
    }

    /// Whether it has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.flights.is_empty() && !self.host_busy && !self.attends
    }

    /// Whether it has looked for a task the maximum number of times, at this time or after this number of changes.
    pub(super) fn has_looked(&self, now: u64, changes: u64) -> bool {
        let VainLooks { at, changes: before, count, total } = self.vain;
        before == changes && ((at == now && count >= LOOKS) || total >= ALL_LOOKS)
    }

    /// Prefetches the worker into the processor's cache, since it is next.
    pub(super) fn fetch(&self) {
        fetch_ahead(&self.flights);
        fetch_ahead(&self.pushes);
        fetch_ahead(&self.busy);
        fetch_ahead(&self.executing);
    }

    /// Records a vain look for a task, at this time and after this number of changes.
    pub(super) fn note_vain_look(&mut self, now: u64, changes: u64) {
        let (count, total) = match self.vain.changes == changes {
            true if self.vain.at == now => (self.vain.count + 1, self.vain.total + 1),
            true => (1, self.vain.total + 1),
            false => (1, 1),
        };
        self.vain = VainLooks { at: now, changes, count, total };
    }
}

impl Engine<'_> {
    /// Runs the free thread of a worker: it pushes the tasks that it has to, then pulls while its pipeline has room.
    pub(super) fn host(&mut self, worker: WorkerId) {
        let state = &self.workers[worker.index()];
        if state.host_busy || state.attends {
            return;
        }
        self.backend.get_up(worker);
        let Prices { push, fetch, .. } = self.prices;
        loop {
            let state = &mut self.workers[worker.index()];
            let room = state.flights.len() < state.pipeline;
            if let Some(task) = state.pushes.pop_front() {
                // The wake is deferred to the pull, if that follows at once.
                let wake = state.deferred.cell().clone();
                let slot = self.push(task, Some(worker), (room && push == 0).then_some(&wake));
                let deferred = &mut self.workers[worker.index()].deferred;
                deferred.cell().set(wake.get());
                deferred.note_pushed(slot.id());
                if push > 0 && !self.time_passes(push) {
                    return self.occupy(worker, push, Action::Host(worker));
                }
                continue;
            }
            // A worker in a team has no other flight.
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
            if self.moves.may_lack_room && self.hand_on(worker, worker, slot) {
                continue;
            }
            let task = task_of(slot.head());
            self.report(Event::Pulled { task: task.submitted(), worker });
            // What its start will look at.
            fetch_ahead(self.backend.dependencies.successors(task));
            self.backend.progress.reach(task, Stage::Taken);
            let class = self.workers[worker.index()].class;
            let length = self.backend.lengths.nanos(self.backend.lengths.row(task), class);
            let flight = self.flights.add(Flight::new(task, slot, worker, length));
            self.workers[worker.index()].flights.push(flight);
            self.book_pull(worker, task, length);
            let cost = fetch * self.backend.accesses(task).len() as u64;
            if cost > 0 && !self.time_passes(cost) {
                return self.occupy(worker, cost, Action::Fetch(flight));
            }
            self.fetch(flight);
        }
        let idle = self.workers[worker.index()].flights.is_empty();
        self.backend.fall_asleep(worker);
        if idle {
            self.report(Event::Idle { worker });
        }
    }

    /// Moves the expected end of the worker's tasks by the length of a task that it pulled, and by the part of its
    /// transfers that earlier tasks do not hide.
    fn book_pull(&mut self, worker: WorkerId, task: TaskId, length: u64) {
        let transfer = self.backend.transfer_nanos(task, self.workers[worker.index()].memory);
        let ready = self.now.saturating_add(transfer);
        let end = self.backend.busy_until_nanos(worker).max(ready).saturating_add(length);
        self.backend.book(worker, end);
    }

    /// Updates the expected end of the worker's tasks when the first one begins or has just ended.
    fn book_rest(&mut self, worker: WorkerId) {
        let state = &self.workers[worker.index()];
        let length = |flight: &FlightId| self.flights[*flight].length;
        let rest = state.flights.iter().map(length).fold(0, u64::saturating_add);
        self.backend.book(worker, if rest == 0 { 0 } else { self.now.saturating_add(rest) });
    }

    /// Occupies the thread of a worker for some time, at the end of which `action` follows.
    pub(super) fn occupy(&mut self, worker: WorkerId, nanos: u64, action: Action) {
        self.workers[worker.index()].host_busy = true;
        self.plan(self.now + nanos, action);
    }

    /// Makes a flight ready, none of whose data is missing any more, once its memory is allocated.
    pub(super) fn inputs_complete(&mut self, id: FlightId) {
        let flight = &mut self.flights[id];
        if flight.allocated > self.now {
            let at = flight.allocated;
            return self.plan(at, Action::Inputs(id));
        }
        let worker = flight.worker;
        let queued = self.workers[worker.index()].pipeline > 1;
        let queueing = if queued { self.prices.kernel_queueing } else { 0 };
        flight.ready = Some(self.now + queueing);
        self.start_next(worker);
    }

    /// Starts the first flight of a worker, if it can be started.
    fn start_next(&mut self, worker: WorkerId) {
        let state = &mut self.workers[worker.index()];
        let Some(first) = state.flights.first().filter(|_| !state.executing) else { return };
        let Some(ready) = self.flights[*first].ready else { return };
        state.executing = true;
        if ready > self.now {
            self.plan(ready, Action::Start(worker));
        } else {
            self.start(worker);
        }
    }

    /// Begins the kernel of the first flight.
    pub(super) fn start(&mut self, worker: WorkerId) {
        let state = &mut self.workers[worker.index()];
        let first = *state.flights.first().expect("only the first flight of a worker is started");
        state.executed += 1;
        let taken = std::mem::take(&mut state.taken);
        let (flight, memory, class) = (self.flights[first], state.memory, state.class);
        let Flight { task, length: expected, .. } = flight;
        let length = self.real_length_of(&flight).saturating_add(self.take_debt());
        if let Some(replicas) = &mut self.replicas {
            for access in self.backend.accesses(task).iter().filter(|access| access.mode.writes()) {
                replicas.write(access.data, memory);
            }
        }
        self.note_execution(&flight, None);
        let (id, codelet) = (task.submitted(), CodeletId(self.backend.spec(task).kind.0));
        let (shares, mut cores) = (self.shares_cores(class), 0);
        self.each_member(&flight, |engine, member| {
            let now = engine.now;
            let state = &mut engine.workers[member.index()];
            state.began = now;
            // On a shared core it is known at the end.
            state.busy += if shares { 0 } else { length };
            cores += 1;
            engine.joules += engine.backend.draws.joules(engine.backend.spec(task).kind, state.class, length);
            engine.backend.book(member, engine.now.saturating_add(expected));
            engine.report(Event::Started { task: id, worker: member, codelet });
        });
        self.book_rest(worker);
        // Specs lie far apart, and what its end makes ready would wait for them then.
        for next in self.tasks.nearly_ready(task, &self.backend.dependencies) {
            fetch_ahead(self.backend.spec(next));
        }
        let nanos = length.saturating_add(taken);
        match shares {
            true => self.ask(CoreWork { job: Job::Kernel(worker), nanos, cores }),
            false => self.plan(self.now.saturating_add(nanos), Action::End(worker)),
        }
    }

    /// Tells components that follow executions that the kernel of a flight starts, or with its length that it has
    /// ended.
    #[inline]
    fn note_execution(&mut self, flight: &Flight, length: Option<u64>) {
        if self.backend.is_followed.load(Relaxed) {
            self.tell_followers(flight, length);
        }
    }

    #[inline(never)]
    fn tell_followers(&mut self, flight: &Flight, length: Option<u64>) {
        let end = length.map(|length| {
            let mut joules = 0.0;
            self.each_member(flight, |engine, member| {
                let class = engine.workers[member.index()].class;
                joules += engine.backend.draws.joules(engine.backend.spec(flight.task).kind, class, length);
            });
            let energy = Some(joules).filter(|joules: &f64| !joules.is_nan());
            TaskEnd { length: Duration::from_nanos(length), energy, failed: false }
        });
        let tree = Arc::clone(&self.contexts[self.context_of(flight.task)].tree);
        tree.note_execution(flight.slot, flight.combined.unwrap_or(flight.worker), flight.worker, end);
    }

    /// Ends the kernel of the first flight.
    pub(super) fn end(&mut self, worker: WorkerId) {
        let state = &mut self.workers[worker.index()];
        let flight = state.flights.remove(0);
        state.executing = false;
        let (memory, class, took) = (state.memory, state.class, self.now - state.began);
        let ended = self.flights[flight];
        let shares = self.shares_cores(class);
        let Flight { task, slot, scratch, .. } = ended;
        let id = task.submitted();
        self.each_member(&ended, |engine, worker| {
            engine.workers[worker.index()].busy += if shares { took } else { 0 };
            engine.report(Event::Ended { task: id, worker });
        });
        self.note_execution(&ended, Some(if shares { took } else { self.real_length_of(&ended) }));
        self.backend.progress.reach(task, Stage::Ended);
        self.changes += 1;
        self.end = self.now;
        if let Some(replicas) = &mut self.replicas {
            replicas.give_back(memory, scratch);
            for access in self.backend.accesses(task).iter().filter(|access| access.mode != AccessMode::Scratch) {
                replicas.unpin(access.data, memory);
                if access.mode.writes() {
                    replicas.end_write(access.data);
                }
            }
        }
        self.dismiss(&ended);
        self.book_rest(worker);
        self.flights.remove(flight);
        self.tasks.give_back(slot);
        self.tasks.ended(task, &self.graph, &self.backend.dependencies);
        self.note_ended(task);
        while let Some(task) = self.next_to_push() {
            self.workers[worker.index()].pushes.push_back(task);
        }
        self.settle_unwanted();
        self.serve(memory);
        self.start_next(worker);
        self.host(worker);
    }
}
