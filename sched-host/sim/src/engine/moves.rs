//! Moving data: what tasks need is brought to their memory, in the order of urgency, and what is in the way goes.
//!
//! Between two memories one transfer at a time is under way in each direction, as copy engines of devices have it; the
//! most urgent goes first. Transfers between different memories share links.

use super::{Engine, Plan};
use crate::error::SimError;
use crate::memory::Room;
use crate::network::Network;
use sched_core::MemoryNode;
use sched_graph::{AccessMode, DataId};
use sched_memory::Reason;
use sched_trace::{Event, Transfer};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One piece of data on its way.
#[derive(Debug)]
struct Move {
    data: u32,
    from: u32,
    to: u32,
    /// What it is a copy of.
    version: u32,
    why: Reason,
    under_way: bool,
    /// Flights that wait for it.
    waiters: SmallVec<[u32; 2]>,
}

/// Transfers from one memory to another.
#[derive(Debug, Default)]
struct Channel {
    busy: bool,
    /// By urgency.
    queues: [VecDeque<u32>; 4],
}

/// See the [module](self).
pub(super) struct Moves {
    memories: usize,
    moves: Vec<Move>,
    free: Vec<u32>,
    channels: Vec<Channel>,
    /// The transfer that brings data to a memory.
    arriving: BTreeMap<(u32, u32), u32>,
    /// Flights that wait for memory, by memory.
    waiting: Vec<VecDeque<u32>>,
    network: Network,
    /// Number of the last change of the network.
    change: u32,
    arrived: Vec<u32>,
    /// When memory can be allocated on a device again.
    allocation: u64,
    pub(super) link_bytes: Vec<u64>,
    pub(super) done: u64,
    pub(super) bytes: u64,
}

impl Moves {
    pub(super) fn new(memories: usize, network: Network) -> Moves {
        Moves {
            memories,
            moves: Vec::new(),
            free: Vec::new(),
            channels: (0..memories * memories).map(|_| Channel::default()).collect(),
            arriving: BTreeMap::new(),
            waiting: vec![VecDeque::new(); memories],
            link_bytes: vec![0; network.links()],
            network,
            change: 0,
            arrived: Vec::new(),
            allocation: 0,
            done: 0,
            bytes: 0,
        }
    }

    fn channel(&mut self, from: u32, to: u32) -> &mut Channel {
        &mut self.channels[from as usize * self.memories + to as usize]
    }
}

impl Engine<'_> {
    /// A flight begins to fetch its data, after those that wait for memory already.
    pub(super) fn fetch(&mut self, flight: u32) {
        if self.backend.replicas.is_none() {
            return self.inputs_are_there(flight);
        }
        let memory = self.workers[self.flights[flight as usize].worker as usize].memory;
        let queue = &mut self.moves.waiting[memory as usize];
        queue.push_back(flight);
        if queue.len() == 1 {
            self.serve(memory);
        }
    }

    /// Flights that wait for memory get it, as long as there is room, in the order in which they came.
    pub(super) fn serve(&mut self, memory: u32) {
        while let Some(flight) = self.moves.waiting[memory as usize].front().copied() {
            if !self.reserve(flight, memory) {
                break;
            }
            self.moves.waiting[memory as usize].pop_front();
            self.bring_inputs(flight, memory);
        }
    }

    /// Reserves memory for all data of a flight, or for none. Whether there was enough.
    fn reserve(&mut self, flight: u32, memory: u32) -> bool {
        let backend = Arc::clone(&self.backend);
        let Some(replicas) = &backend.replicas else { return true };
        let task = self.flights[flight as usize].task;
        let accesses = backend.accesses(task);
        let mut held = replicas.lock();
        let (mut needed, mut scratch, mut all) = (0, 0, 0);
        for (at, access) in accesses.iter().enumerate() {
            let (data, bytes) = (access.data.0, held.bytes(access.data.0));
            if access.mode == AccessMode::Scratch {
                scratch += bytes;
            } else if accesses[..at].iter().all(|other| other.data != access.data) && held.home(data) != memory {
                all += bytes;
                needed += if held.is_allocated(data, memory) { 0 } else { bytes };
            }
        }
        // What is there already must not go to make room for the rest.
        for access in accesses.iter().filter(|access| access.mode != AccessMode::Scratch) {
            held.pin(access.data.0, memory);
        }
        match held.make_room(memory, needed + scratch) {
            Room::Made => {}
            room => {
                for access in accesses.iter().filter(|access| access.mode != AccessMode::Scratch) {
                    held.unpin(access.data.0, memory);
                }
                if let Room::WriteBack(data) = room {
                    let home = held.home(data);
                    held.pin(data, home);
                    drop(held);
                    self.request(data, Some(memory), home, Reason::Eviction, None);
                } else {
                    let capacity = held.room_for_copies(memory);
                    if all + scratch > capacity {
                        let memory = backend.platform.memories[memory as usize].name.clone();
                        self.error = Some(SimError::Task { task, memory, needed: all + scratch, capacity });
                    }
                }
                return false;
            }
        }
        held.take(memory, scratch);
        self.flights[flight as usize].scratch = scratch;
        let cost = if backend.platform.memories[memory as usize].device { self.prices.allocation } else { 0 };
        for access in accesses.iter().filter(|access| access.mode != AccessMode::Scratch) {
            if held.allocate(access.data.0, memory) && cost > 0 {
                self.moves.allocation = self.moves.allocation.max(self.now) + cost;
                self.flights[flight as usize].allocated = self.moves.allocation;
            }
        }
        true
    }

    /// Requests what a flight reads and is not there.
    fn bring_inputs(&mut self, flight: u32, memory: u32) {
        let backend = Arc::clone(&self.backend);
        let Some(replicas) = &backend.replicas else { return };
        let task = self.flights[flight as usize].task;
        // One more, so that it does not begin before all are requested.
        self.flights[flight as usize].missing = 1;
        for access in backend.accesses(task).iter().filter(|access| access.mode.reads()) {
            let data = access.data.0;
            if !replicas.lock().is_valid(data, memory) {
                self.flights[flight as usize].missing += 1;
                self.request_for(flight, data, memory);
            }
        }
        self.no_longer_missing(flight);
    }

    fn no_longer_missing(&mut self, flight: u32) {
        let state = &mut self.flights[flight as usize];
        state.missing -= 1;
        if state.missing == 0 {
            self.inputs_are_there(flight);
        }
    }

    /// `flight` waits for `data`: for the transfer that brings it already, or for a new one.
    fn request_for(&mut self, flight: u32, data: u32, memory: u32) {
        let Some(number) = self.moves.arriving.get(&(data, memory)).copied() else {
            if let Some(replicas) = &self.backend.replicas {
                replicas.lock().pin(data, memory);
            }
            return self.request(data, None, memory, Reason::Demand, Some(flight));
        };
        let found = &mut self.moves.moves[number as usize];
        found.waiters.push(flight);
        if found.why != Reason::Demand && !found.under_way {
            let (from, why) = (found.from, found.why);
            found.why = Reason::Demand;
            let queues = &mut self.moves.channel(from, memory).queues;
            if let Some(at) = queues[why as usize].iter().position(|queued| *queued == number) {
                queues[why as usize].remove(at);
                queues[Reason::Demand as usize].push_back(number);
            }
        }
    }

    /// Begins to bring the data of a task to a memory, as far as there is room.
    pub(super) fn prefetch(&mut self, memory: u32, task: u32) {
        let backend = Arc::clone(&self.backend);
        let Some(replicas) = &backend.replicas else { return };
        for access in backend.accesses(task).iter().filter(|access| access.mode.reads()) {
            let data = access.data.0;
            let mut held = replicas.lock();
            if held.is_valid(data, memory) || self.moves.arriving.contains_key(&(data, memory)) {
                continue;
            }
            if !held.is_allocated(data, memory) && !held.has_room(memory, held.bytes(data)) {
                continue;
            }
            held.pin(data, memory);
            let allocated = held.allocate(data, memory);
            drop(held);
            if allocated && backend.platform.memories[memory as usize].device {
                self.moves.allocation = self.moves.allocation.max(self.now) + self.prices.allocation;
            }
            self.request(data, None, memory, Reason::Prefetch, None);
        }
    }

    /// Writes home what nobody will use any more.
    pub(super) fn settle_unwanted(&mut self) {
        while let Some(data) = self.tasks.take_unwanted() {
            let backend = Arc::clone(&self.backend);
            let Some(replicas) = &backend.replicas else { continue };
            let mut held = replicas.lock();
            let Some(from) = held.wont_use(data) else { continue };
            let home = held.home(data);
            if self.moves.arriving.contains_key(&(data, home)) {
                held.unpin(data, from);
                continue;
            }
            held.pin(data, home);
            drop(held);
            self.request(data, Some(from), home, Reason::WontUse, None);
        }
    }

    /// A transfer of `data`, whose copy at `to` is pinned, and so is the one at `pinned`, if that is given; then it is the
    /// source.
    fn request(&mut self, data: u32, pinned: Option<u32>, to: u32, why: Reason, waiter: Option<u32>) {
        let backend = Arc::clone(&self.backend);
        let Some(replicas) = &backend.replicas else { return };
        let mut held = replicas.lock();
        let from = pinned.unwrap_or_else(|| {
            let from = backend.source(&held, data, to).0;
            held.pin(data, from);
            from
        });
        let new = Move {
            data,
            from,
            to,
            version: held.version(data),
            why,
            under_way: false,
            waiters: waiter.into_iter().collect(),
        };
        drop(held);
        let number = match self.moves.free.pop() {
            Some(free) => {
                self.moves.moves[free as usize] = new;
                free
            }
            None => {
                self.moves.moves.push(new);
                self.moves.moves.len() as u32 - 1
            }
        };
        self.moves.arriving.insert((data, to), number);
        let on_device = backend.platform.memories[to as usize].device;
        if on_device && self.moves.allocation > self.now {
            self.plan(self.moves.allocation, Plan::Queue(number));
        } else {
            self.queue_transfer(number);
        }
    }

    /// Memory for a transfer is allocated: it takes its place among others.
    pub(super) fn queue_transfer(&mut self, number: u32) {
        if self.prices.free_transfers {
            self.tell_transfer(number, Event::TransferStarted);
            return self.finish_transfer(number);
        }
        let Move { from, to, why, .. } = self.moves.moves[number as usize];
        self.moves.channel(from, to).queues[why as usize].push_back(number);
        self.start_transfer(from, to);
    }

    /// Starts the most urgent transfer between two memories, if none is under way.
    fn start_transfer(&mut self, from: u32, to: u32) {
        let channel = self.moves.channel(from, to);
        if channel.busy {
            return;
        }
        let Some(number) = channel.queues.iter_mut().find_map(VecDeque::pop_front) else { return };
        channel.busy = true;
        self.moves.moves[number as usize].under_way = true;
        self.tell_transfer(number, Event::TransferStarted);
        let latency = self.backend.platform.route(from as usize, to as usize).latency;
        let at = self.now + latency + self.prices.transfer_queueing;
        self.plan(at, Plan::Flow(number));
    }

    /// The first byte of a transfer has come through.
    pub(super) fn begin_flow(&mut self, number: u32) {
        let Move { data, from, to, .. } = self.moves.moves[number as usize];
        let bytes = self.backend.graph.data[data as usize].bytes;
        let platform = Arc::clone(&self.backend.platform);
        let links = &platform.route(from as usize, to as usize).links;
        for link in links {
            self.moves.link_bytes[*link] += bytes;
        }
        self.moves.network.begin(self.now, number, links, bytes);
        self.network_changed();
    }

    fn network_changed(&mut self) {
        self.moves.change = self.moves.change.wrapping_add(1);
        if let Some(next) = self.moves.network.next() {
            self.plan(next, Plan::Arrive(self.moves.change));
        }
    }

    /// Some transfer has arrived.
    pub(super) fn arrive(&mut self, change: u32) {
        if change != self.moves.change {
            return;
        }
        let mut arrived = std::mem::take(&mut self.moves.arrived);
        self.moves.network.arrived(self.now, &mut arrived);
        self.network_changed();
        for number in arrived.drain(..) {
            let Move { from, to, .. } = self.moves.moves[number as usize];
            self.moves.channel(from, to).busy = false;
            self.start_transfer(from, to);
            self.finish_transfer(number);
        }
        self.moves.arrived = arrived;
    }

    fn finish_transfer(&mut self, number: u32) {
        self.tell_transfer(number, Event::TransferEnded);
        let waiters = std::mem::take(&mut self.moves.moves[number as usize].waiters);
        let Move { data, from, to, version, .. } = self.moves.moves[number as usize];
        self.moves.free.push(number);
        self.moves.arriving.remove(&(data, to));
        self.moves.done += 1;
        let backend = Arc::clone(&self.backend);
        let Some(replicas) = &backend.replicas else { return };
        let mut held = replicas.lock();
        self.moves.bytes += held.bytes(data);
        let current = held.arrive(data, to, version);
        held.unpin(data, from);
        held.unpin(data, to);
        drop(held);
        for flight in waiters {
            if current {
                self.no_longer_missing(flight);
            } else {
                // It was changed on the way.
                self.request_for(flight, data, to);
            }
        }
        self.serve(from);
        self.serve(to);
    }

    fn tell_transfer(&mut self, number: u32, event: fn(Transfer) -> Event) {
        let Move { data, from, to, why, .. } = self.moves.moves[number as usize];
        let (data, from, to) = (DataId(data), MemoryNode(from), MemoryNode(to));
        let bytes = self.graph.data[data.index()].bytes;
        self.tell(event(Transfer { data, from, to, bytes, why }));
    }
}
