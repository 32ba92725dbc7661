//! Room for the data of flights: replicas are evicted to make it.

use super::super::Engine;
use super::super::flights::FlightId;
use crate::error::SimError;
use crate::memory::{Replicas, Room};
use sched_core::MemoryNode;
use sched_graph::{AccessMode, DataId};
use sched_memory::Reason;
use smallvec::SmallVec;

/// Data of a task; mostly there are few.
type Listed = SmallVec<[DataId; 8]>;

impl Engine<'_> {
    /// Gives memory to the flights that wait for it, in the order in which they came, until there is too little.
    pub(in crate::engine) fn serve(&mut self, memory: MemoryNode) {
        if self.moves.evicting & 1 << memory.0 != 0 {
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

    /// Reserves memory for all data of a flight, or for none. Returns whether there was enough.
    fn reserve(&mut self, flight: FlightId, memory: MemoryNode) -> bool {
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
            let capacity = held.room_for_copies(memory);
            let away = copies().map(|access| access.data).filter(|data| held.home(*data) != memory).collect();
            let needed = bytes_of_each(held, away) + scratch;
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
}

/// Sum of the sizes of data, each counted once however often it is listed.
fn bytes_of_each(held: &Replicas, mut data: Listed) -> u64 {
    data.sort_unstable();
    data.dedup();
    data.into_iter().map(|data| held.bytes(data)).sum()
}
