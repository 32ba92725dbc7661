//! Tasks in flight: those that workers have pulled and not ended.

use sched_core::WorkerId;
use sched_graph::TaskId;
use sched_tree::Slot;
use std::ops::{Index, IndexMut};

/// A flight: its place in [`Flights`] until it ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FlightId(u32);

/// A task that a worker has pulled.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    pub(super) task: TaskId,
    pub(super) slot: &'static Slot,
    pub(super) worker: WorkerId,
    /// Expected execution time in nanoseconds.
    pub(super) length: u64,
    /// Combined worker that executes it, led by [`worker`](Self::worker).
    pub(super) combined: Option<WorkerId>,
    /// Number of transfers that it waits for.
    pub(super) missing: u32,
    /// Time at which its memory is allocated.
    pub(super) allocated: u64,
    /// Time at which its kernel can begin; `None` while data is missing.
    pub(super) ready: Option<u64>,
    /// Bytes of scratch memory.
    pub(super) scratch: u64,
}

impl Flight {
    /// The task in this slot, pulled by a worker, with its expected execution time there.
    pub(super) fn new(task: TaskId, slot: &'static Slot, worker: WorkerId, length: u64) -> Flight {
        Flight { task, slot, worker, length, combined: None, missing: 0, allocated: 0, ready: None, scratch: 0 }
    }

    /// The flight for a combined worker that its worker leads.
    pub(super) fn together(self, combined: WorkerId) -> Flight {
        Flight { combined: Some(combined), ..self }
    }
}

/// All flights.
#[derive(Default)]
pub(super) struct Flights {
    all: Vec<Flight>,
    free: Vec<FlightId>,
}

impl Flights {
    pub(super) fn add(&mut self, flight: Flight) -> FlightId {
        if let Some(free) = self.free.pop() {
            self[free] = flight;
            return free;
        }
        self.all.push(flight);
        FlightId(self.all.len() as u32 - 1)
    }

    /// Frees the place of a flight that has ended.
    pub(super) fn remove(&mut self, flight: FlightId) {
        self.free.push(flight);
    }
}

impl Index<FlightId> for Flights {
    type Output = Flight;

    fn index(&self, flight: FlightId) -> &Flight {
        &self.all[flight.0 as usize]
    }
}

impl IndexMut<FlightId> for Flights {
    fn index_mut(&mut self, flight: FlightId) -> &mut Flight {
        &mut self.all[flight.0 as usize]
    }
}
