//! Room for the data of flights: replicas are evicted to make it.

use super::super::Engine;
use super::super::flights::FlightId;
use crate::error::SimError;
use crate::memory::Room;
use crate::specs::Accesses;
use sched_core::MemoryNode;
use sched_graph::{Access, AccessMode, DataId};
use sched_memory::Reason;

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
        let (mut needed, mut scratch, mut are_allocated) = (0, 0, true);
        for (at, access) in accesses.iter().enumerate() {
            let data = access.data;
            if access.mode == AccessMode::Scratch {
                scratch += held.bytes(data);
                continue;
            }
            // Replicas that are already there must not be evicted to make room for the others.
            held.pin(data, memory);
            if !held.is_allocated(data, memory) {
                are_allocated = false;
                needed += if is_first(accesses, at) { held.bytes(data) } else { 0 };
            }
        }
        let room = held.make_room(memory, needed + scratch);
        if room != Room::Made {
            copies().for_each(|access| held.unpin(access.data, memory));
        }
        if room == Room::None {
            let capacity = held.room_for_copies(memory);
            let away = |(at, access): &(usize, Access)| {
                access.mode != AccessMode::Scratch && held.home(access.data) != memory && is_first(accesses, *at)
            };
            let bytes = accesses.iter().enumerate().filter(away).map(|(_, access)| held.bytes(access.data));
            let needed = bytes.sum::<u64>() + scratch;
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

/// Whether the access at this place is the first that is not to a scratchpad of its data.
fn is_first(accesses: Accesses<'_>, at: usize) -> bool {
    let data = accesses.get(at).map(|access| access.data);
    let is_same = |other: Access| Some(other.data) == data && other.mode != AccessMode::Scratch;
    !accesses.iter().take(at).any(is_same)
}
