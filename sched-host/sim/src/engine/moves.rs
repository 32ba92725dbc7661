//! Data movement: the inputs of tasks are brought to their memory nodes in order of urgency.
//!
//! Between two memory nodes one transfer at a time is under way in each direction, as with the copy engines of devices;
//! the most urgent goes first. Transfers between different memory nodes share links.

mod room;

use super::flights::FlightId;
use super::{Action, Engine};
use crate::network::{Network, RouteId, TransferId};
use crate::platform::Platform;
use sched_core::MemoryNode;
use sched_graph::{Access, DataId, TaskId};
use sched_memory::Reason;
use sched_trace::{Event, Transfer};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// A transfer that has not arrived.
#[derive(Debug)]
struct Move {
    data: DataId,
    from: MemoryNode,
    to: MemoryNode,
    /// Version of the data that is copied.
    version: u32,
    why: Reason,
    under_way: bool,
    /// When it began.
    began: u64,
    waiters: SmallVec<[Waiter; 2]>,
}

/// Who waits for a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiter {
    /// A worker, for the data of a task.
    Flight(FlightId),
    /// A task that sends the data to another rank.
    Send(TaskId),
}

const NO_TRANSFER: TransferId = TransferId(u32::MAX);

/// Transfers from one memory node to another.
#[derive(Debug, Default)]
struct Channel {
    busy: bool,
    /// By urgency.
    queues: [VecDeque<TransferId>; Reason::ALL.len()],
}

/// See the [module](self).
pub(super) struct Moves {
    memories: usize,
    moves: Vec<Move>,
    free: Vec<TransferId>,
    channels: Vec<Channel>,
    /// The transfer that brings a piece of data to a memory node, by data, then node; [`NO_TRANSFER`] for none.
    arriving: Vec<TransferId>,
    /// Whether a task may need more memory than some node has for it.
    pub(super) may_lack_room: bool,
    /// Flights that wait for memory, by memory node.
    waiting: Vec<VecDeque<FlightId>>,
    /// The memory nodes on which room is being made: bit *n* stands for memory node *n*.
    evicting: u64,
    network: Network,
    arrived: Vec<TransferId>,
    /// Time at which memory can be allocated on a device again.
    allocation: u64,
    pub(super) link_bytes: Vec<u64>,
    pub(super) done: u64,
    pub(super) bytes: u64,
}

impl Moves {
    pub(super) fn new(platform: &Platform, data: usize, may_lack_room: bool) -> Moves {
        let memories = platform.memories.len();
        let mut network = Network::new(platform.links.iter().map(|link| link.bandwidth).collect());
        for route in &platform.routes {
            network.add_route(&route.links, platform.sharing.weight(route.latency));
        }
        Moves {
            memories,
            moves: Vec::new(),
            free: Vec::new(),
            channels: (0..memories * memories).map(|_| Channel::default()).collect(),
            arriving: vec![NO_TRANSFER; if memories > 1 { data * memories } else { 0 }],
            may_lack_room,
            waiting: vec![VecDeque::new(); memories],
            evicting: 0,
            link_bytes: vec![0; network.links()],
            network,
            arrived: Vec::new(),
            allocation: 0,
            done: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, new: Move) -> TransferId {
        let (data, to) = (new.data, new.to);
        let id = match self.free.pop() {
            Some(free) => {
                *self.get_mut(free) = new;
                free
            }
            None => {
                self.moves.push(new);
                TransferId(self.moves.len() as u32 - 1)
            }
        };
        *self.arriving_at(data, to) = id;
        id
    }

    fn arriving_at(&mut self, data: DataId, to: MemoryNode) -> &mut TransferId {
        &mut self.arriving[data.index() * self.memories + to.index()]
    }

    /// The transfer that brings a piece of data to a memory node, if any.
    fn arriving(&self, data: DataId, to: MemoryNode) -> Option<TransferId> {
        let transfer = self.arriving[data.index() * self.memories + to.index()];
        (transfer != NO_TRANSFER).then_some(transfer)
    }

    fn get(&self, transfer: TransferId) -> &Move {
        &self.moves[transfer.index()]
    }

    fn get_mut(&mut self, transfer: TransferId) -> &mut Move {
        &mut self.moves[transfer.index()]
    }

    fn channel(&mut self, from: MemoryNode, to: MemoryNode) -> &mut Channel {
        &mut self.channels[from.index() * self.memories + to.index()]
    }
}

impl Engine<'_> {
    /// Begins to fetch the data of a flight, after the flights that wait for memory already.
    pub(super) fn fetch(&mut self, flight: FlightId) {
        if self.replicas.is_none() {
            return self.inputs_complete(flight);
        }
        let memory = self.workers[self.flights[flight].worker.index()].memory;
        let is_next = self.moves.waiting[memory.index()].is_empty() && !self.is_evicting(memory);
        if is_next && self.reserve(flight, memory) {
            self.bring_inputs(flight, memory);
        } else {
            self.moves.waiting[memory.index()].push_back(flight);
        }
    }

    /// Requests the data that a flight reads and that is not valid on its memory node.
    fn bring_inputs(&mut self, flight: FlightId, memory: MemoryNode) {
        let task = self.flights[flight].task;
        // One more, so that it does not begin before all are requested.
        self.flights[flight].missing = 1;
        for at in 0..self.backend.accesses(task).len() {
            let Some(Access { data, mode }) = self.backend.accesses(task).get(at) else { break };
            let is_valid = || self.replicas.as_ref().is_none_or(|held| held.is_valid(data, memory));
            if mode.reads() && !is_valid() {
                self.flights[flight].missing += 1;
                self.request_for(Waiter::Flight(flight), data, memory);
            }
        }
        self.no_longer_missing(flight);
    }

    fn no_longer_missing(&mut self, id: FlightId) {
        let flight = &mut self.flights[id];
        flight.missing -= 1;
        if flight.missing == 0 {
            self.inputs_complete(id);
        }
    }

    /// Lets `waiter` wait for the transfer that already brings `data`, or for a new one.
    pub(super) fn request_for(&mut self, waiter: Waiter, data: DataId, memory: MemoryNode) {
        let Some(transfer) = self.moves.arriving(data, memory) else {
            if let Some(replicas) = &mut self.replicas {
                replicas.pin(data, memory);
            }
            return self.request(data, None, memory, Reason::Demand, Some(waiter));
        };
        let found = self.moves.get_mut(transfer);
        found.waiters.push(waiter);
        if found.why != Reason::Demand && !found.under_way {
            let (from, why) = (found.from, found.why);
            found.why = Reason::Demand;
            let queues = &mut self.moves.channel(from, memory).queues;
            if let Some(at) = queues[why as usize].iter().position(|queued| *queued == transfer) {
                queues[why as usize].remove(at);
                queues[Reason::Demand as usize].push_back(transfer);
            }
        }
    }

    /// Begins to bring the data of a task to a memory node, while it has room without evictions.
    pub(super) fn prefetch(&mut self, memory: MemoryNode, task: TaskId) {
        let backend = Arc::clone(&self.backend);
        for access in backend.accesses(task).iter().filter(|access| access.mode.reads()) {
            let Some(held) = &mut self.replicas else { return };
            let data = access.data;
            if held.is_valid(data, memory) || self.moves.arriving(data, memory).is_some() {
                continue;
            }
            if !held.is_allocated(data, memory) && !held.has_room(memory, held.bytes(data)) {
                continue;
            }
            held.pin(data, memory);
            if held.allocate(data, memory) && backend.platform.memories[memory.index()].device {
                self.moves.allocation = self.moves.allocation.max(self.now) + self.prices.allocation;
            }
            self.request(data, None, memory, Reason::Prefetch, None);
        }
    }

    /// Writes data home that will not be used any more.
    pub(super) fn settle_unwanted(&mut self) {
        while let Some(data) = self.tasks.take_unwanted() {
            let Some(held) = &mut self.replicas else { continue };
            let Some(from) = held.wont_use(data) else { continue };
            let (home, version) = (held.home(data), held.version(data));
            let arriving = self.moves.arriving(data, home);
            if arriving.is_some_and(|transfer| self.moves.get(transfer).version == version) {
                held.unpin(data, from);
                continue;
            }
            held.pin(data, home);
            self.request(data, Some(from), home, Reason::WontUse, None);
        }
    }

    /// Requests a transfer of `data`, whose replica on `to` is pinned. Its source is `pinned`, if given, whose replica
    /// is pinned too; else the cheapest one.
    fn request(
        &mut self,
        data: DataId,
        pinned: Option<MemoryNode>,
        to: MemoryNode,
        why: Reason,
        waiter: Option<Waiter>,
    ) {
        let Some(held) = &mut self.replicas else { return };
        let from = pinned.unwrap_or_else(|| held.pin_source(data, to));
        let (version, waiters) = (held.version(data), waiter.into_iter().collect());
        let transfer = self.moves.add(Move { data, from, to, version, why, under_way: false, began: 0, waiters });
        let on_device = self.backend.platform.memories[to.index()].device;
        if on_device && self.moves.allocation > self.now {
            self.plan(self.moves.allocation, Action::Queue(transfer));
        } else {
            self.queue_transfer(transfer);
        }
    }

    /// Queues a transfer whose memory is allocated.
    pub(super) fn queue_transfer(&mut self, transfer: TransferId) {
        if self.prices.free_transfers {
            self.report_transfer(transfer, Event::TransferStarted);
            self.report_transfer(transfer, Event::TransferEnded);
            return self.finish_transfer(transfer);
        }
        let Move { from, to, why, .. } = *self.moves.get(transfer);
        self.moves.channel(from, to).queues[why as usize].push_back(transfer);
        self.start_transfer(from, to);
    }

    /// Starts the most urgent transfer between two memory nodes, if none is under way. A copy that a write has
    /// overtaken while it was queued is not begun.
    fn start_transfer(&mut self, from: MemoryNode, to: MemoryNode) {
        let transfer = loop {
            let channel = self.moves.channel(from, to);
            if channel.busy {
                return;
            }
            let Some(next) = channel.queues.iter_mut().find_map(VecDeque::pop_front) else { return };
            if self.is_current(next) {
                break next;
            }
            self.end_transfer(next);
        };
        self.moves.channel(from, to).busy = true;
        let started = self.now;
        let of = self.moves.get_mut(transfer);
        (of.under_way, of.began) = (true, started);
        self.report_transfer(transfer, Event::TransferStarted);
        let latency = self.backend.platform.route(from, to).latency;
        let at = self.now + latency + self.prices.transfer_queueing;
        self.plan(at, Action::Flow(transfer));
    }

    /// Begins the flow of a transfer, after its latency.
    pub(super) fn begin_flow(&mut self, transfer: TransferId) {
        let Move { data, from, to, .. } = *self.moves.get(transfer);
        let bytes = self.backend.graph.data[data.index()].bytes;
        for link in &self.backend.platform.route(from, to).links {
            self.moves.link_bytes[*link] += bytes;
        }
        let route = RouteId((from.index() * self.moves.memories + to.index()) as u32);
        self.moves.network.begin(self.now, transfer, route, bytes);
        self.network_changed();
    }

    fn network_changed(&mut self) {
        let next = self.moves.network.next();
        self.agenda.plan_arrival(next);
    }

    /// Finishes the transfers that arrive now.
    pub(super) fn arrive(&mut self) {
        let mut arrived = std::mem::take(&mut self.moves.arrived);
        self.moves.network.arrived(self.now, &mut arrived);
        self.network_changed();
        for transfer in arrived.drain(..) {
            let Move { from, to, .. } = *self.moves.get(transfer);
            // Before the next one begins: at one instant, readers of events expect the end of what was before.
            self.report_transfer(transfer, Event::TransferEnded);
            self.moves.channel(from, to).busy = false;
            self.take_from_worker(transfer);
            self.start_transfer(from, to);
            self.finish_transfer(transfer);
        }
        self.moves.arrived = arrived;
    }

    /// Takes the time of a copy that nobody waited for from the first worker of its target, where copies are made by
    /// the processors that workers use. Who waits for a copy has spent the time already.
    fn take_from_worker(&mut self, transfer: TransferId) {
        let Move { from, to, why, began, ref waiters, .. } = *self.moves.get(transfer);
        let by_workers = |memory: MemoryNode| self.backend.platform.memories[memory.index()].copied_by_workers;
        if why == Reason::Demand || !waiters.is_empty() || !(by_workers(from) || by_workers(to)) {
            return;
        }
        let took = self.now - began;
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.memory == to) {
            worker.taken += took;
        }
    }

    /// Whether a copy of this transfer would be valid, as far as is known now.
    fn is_current(&self, transfer: TransferId) -> bool {
        let Move { data, version, .. } = *self.moves.get(transfer);
        self.replicas.as_ref().is_none_or(|held| held.version(data) == version)
    }

    fn finish_transfer(&mut self, transfer: TransferId) {
        self.moves.done += 1;
        self.moves.bytes += self.graph.data[self.moves.get(transfer).data.index()].bytes;
        self.end_transfer(transfer);
    }

    /// Ends a transfer that has arrived, or that was overtaken before it began.
    fn end_transfer(&mut self, transfer: TransferId) {
        let waiters = std::mem::take(&mut self.moves.get_mut(transfer).waiters);
        let Move { data, from, to, version, why, .. } = *self.moves.get(transfer);
        self.moves.free.push(transfer);
        // A later one may have been requested since a write overtook this.
        let arriving = self.moves.arriving_at(data, to);
        if *arriving == transfer {
            *arriving = NO_TRANSFER;
        }
        let Some(held) = &mut self.replicas else { return };
        let current = held.arrive(data, to, version);
        match why {
            Reason::Eviction => held.unpin_evicted(data, from),
            _ => held.unpin(data, from),
        }
        held.unpin(data, to);
        for waiter in waiters {
            match waiter {
                // A write has overtaken the copy.
                _ if !current => self.request_for(waiter, data, to),
                Waiter::Flight(flight) => self.no_longer_missing(flight),
                Waiter::Send(task) => self.post(task),
            }
        }
        self.serve(from);
        self.serve(to);
    }

    fn report_transfer(&mut self, transfer: TransferId, event: fn(Transfer) -> Event) {
        let Move { data, from, to, why, .. } = *self.moves.get(transfer);
        let bytes = self.graph.data[data.index()].bytes;
        self.report(event(Transfer { data, from, to, bytes, why }));
    }
}
