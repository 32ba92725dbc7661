//! Room for the data of flights: replicas are evicted to make it. Tasks whose data never fits are handed on.

use super::super::Engine;
use super::super::flights::FlightId;
use crate::backend::task_of;
use crate::error::SimError;
use crate::lengths::NEVER;
use crate::memory::{Replicas, Room};
use crate::specs::Accesses;
use sched_core::{MemoryNode, WorkerId, WorkerSet};
use sched_graph::{Access, AccessMode, DataId};
use sched_memory::Reason;
use sched_tree::Slot;
use smallvec::SmallVec;
use std::sync::Arc;

/// Data of a task; mostly there are few.
type Listed = SmallVec<[DataId; 8]>;

impl Engine<'_> {
    /// Gives memory to the flights that wait for it, in the order in which they came, until there is too little.
    #[inline]
    pub(in crate::engine) fn serve(&mut self, memory: MemoryNode) {
        if !self.moves.waiting[memory.index()].is_empty() {
            self.serve_waiting(memory);
        }
    }

    #[inline(never)]
    fn serve_waiting(&mut self, memory: MemoryNode) {
        if self.is_evicting(memory) {
            return;
        }
        while let Some(flight) = self.moves.waiting[memory.index()].front().copied() {
            if !self.reserve(flight, memory) {
                break;
            }
            self.moves.waiting[memory.index()].pop_front();
            self.bring_inputs(flight, memory);
        }
    }

    /// Whether room is being made on a memory node.
    pub(super) fn is_evicting(&self, memory: MemoryNode) -> bool {
        self.moves.evicting & 1 << memory.0 != 0
    }

    /// Reserves memory for all data of a flight, or for none. Returns whether there was enough.
    pub(super) fn reserve(&mut self, flight: FlightId, memory: MemoryNode) -> bool {
        if self.has_all(flight, memory) {
            return true;
        }
        loop {
            match self.try_to_reserve(flight, memory) {
                Room::Made => return true,
                Room::WriteBack(data) if self.write_back(data, memory) => {}
                Room::WriteBack(_) | Room::None => return false,
            }
        }
    }

    /// Writes home what must be evicted from a memory node, and is pinned there. Returns whether it has arrived, as it
    /// does where transfers take no time.
    fn write_back(&mut self, data: DataId, memory: MemoryNode) -> bool {
        let Some(held) = &mut self.replicas else { return false };
        let home = held.home(data);
        held.pin(data, home);
        self.moves.evicting |= 1 << memory.0;
        self.request(data, Some(memory), home, Reason::Eviction, None);
        self.moves.evicting &= !(1 << memory.0);
        self.moves.arriving(data, home).is_none()
    }

    /// Pins all data of a flight, if its memory has a place for all of it already. Returns whether it has.
    fn has_all(&mut self, flight: FlightId, memory: MemoryNode) -> bool {
        let Some(held) = &mut self.replicas else { return true };
        let accesses = self.backend.accesses(self.flights[flight].task);
        let is_there = |access: Access| access.mode != AccessMode::Scratch && held.is_allocated(access.data, memory);
        let has_all = accesses.iter().all(is_there);
        if has_all {
            accesses.iter().for_each(|access| held.pin(access.data, memory));
        }
        has_all
    }

    /// Reserves memory for all data of a flight, if there is room.
    fn try_to_reserve(&mut self, flight: FlightId, memory: MemoryNode) -> Room {
        let Engine { replicas: Some(held), backend, flights, moves, .. } = self else { return Room::Made };
        let flight = &mut flights[flight];
        let accesses = backend.accesses(flight.task);
        // The scratchpad of a task has memory of its own, beside a replica of the same data.
        let copies = || accesses.iter().filter(|access| access.mode != AccessMode::Scratch);
        let (mut missing, mut scratch) = (Listed::new(), 0);
        for access in accesses.iter() {
            let data = access.data;
            if access.mode == AccessMode::Scratch {
                scratch += held.bytes(data);
                continue;
            }
            // Replicas that are already there must not be evicted to make room for the others.
            held.pin(data, memory);
            if !held.is_allocated(data, memory) {
                missing.push(data);
            }
        }
        let are_allocated = missing.is_empty();
        let room = held.make_room(memory, bytes_of_each(held, missing) + scratch);
        if room != Room::Made {
            copies().for_each(|access| held.unpin(access.data, memory));
        }
        if room == Room::None {
            let (capacity, needed) = (held.room_for_copies(memory), needed_on(held, accesses, memory));
            if needed > capacity {
                let memory = backend.platform.memories[memory.index()].name.clone();
                self.error = Some(SimError::Task { task: flight.task.0, memory, needed, capacity });
            }
        }
        if room != Room::Made {
            return room;
        }
        held.take(memory, scratch);
        flight.scratch = scratch;
        if are_allocated {
            return Room::Made;
        }
        let cost = if backend.platform.memories[memory.index()].device { self.prices.allocation } else { 0 };
        for access in copies() {
            if held.allocate(access.data, memory) && cost > 0 {
                moves.allocation = moves.allocation.max(self.now) + cost;
                flight.allocated = moves.allocation;
            }
        }
        Room::Made
    }

    /// Gives a task that was pulled `by` a worker, and whose data never fits into the memory of the `worker` that would
    /// execute it, or lead its team, to the workers into whose memory it fits. Returns whether it did: not if it fits,
    /// or if there are none.
    pub(in crate::engine) fn hand_on(&mut self, by: WorkerId, worker: WorkerId, slot: &'static Slot) -> bool {
        let Engine { replicas: Some(held), backend, tasks, contexts, .. } = &*self else { return false };
        let (head, task) = (slot.head(), task_of(slot.head()));
        let fits = |other: WorkerId| {
            let memory = backend.platform.workers[other.index()].memory;
            needed_on(held, backend.accesses(task), memory) <= held.room_for_copies(memory)
        };
        if fits(worker) {
            return false;
        }
        let context = &contexts[self.context_of(task)];
        let tree = Arc::clone(&context.tree);
        let row = backend.lengths.row(task);
        let can = |other: WorkerId| {
            let class = backend.platform.workers[other.index()].class;
            let arch = backend.platform.classes[class].arch;
            backend.lengths.nanos(row, class) != NEVER && tasks.allows(head, arch, other) && tree.serves(other)
        };
        let others: WorkerSet = self.worker_ids().filter(|other| can(*other) && fits(*other)).collect();
        if others.is_empty() {
            return false;
        }
        tasks.renew(slot, &others, context.priority(backend.spec(task).priority));
        backend.note_handed_on(task, others);
        self.changes += 1;
        self.teams.note_pushed(slot);
        tree.push(slot, Some(by), None);
        self.settle_notes();
        true
    }
}

/// Bytes that a task needs of a memory beside the data at home there.
fn needed_on(held: &Replicas, accesses: Accesses<'_>, memory: MemoryNode) -> u64 {
    let is_scratch = |access: &Access| access.mode == AccessMode::Scratch;
    let copies = accesses.iter().filter(|access| !is_scratch(access)).map(|access| access.data);
    let scratch: u64 = accesses.iter().filter(is_scratch).map(|access| held.bytes(access.data)).sum();
    bytes_of_each(held, copies.filter(|data| held.home(*data) != memory).collect()) + scratch
}

/// Sum of the sizes of data, each counted once however often it is listed.
fn bytes_of_each(held: &Replicas, mut data: Listed) -> u64 {
    data.sort_unstable();
    data.dedup();
    data.into_iter().map(|data| held.bytes(data)).sum()
}
