//! Parallel tasks: the members of a combined worker come together for one, and execute it from a common start to its end.
//!
//! A member that has come waits: it neither pulls nor sleeps. When the last has come, the data of the task is fetched to
//! where the first member is.

use super::workers::Flight;
use super::{Engine, Plan};
use crate::backend::task_of;
use sched_core::{Stage, WorkerId};
use sched_graph::TaskId;
use sched_sync::gathering::Gathering;
use sched_trace::Event;
use sched_tree::Slot;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What a team gathers for.
pub(super) struct Purpose {
    task: u32,
    slot: u32,
    combined: WorkerId,
    /// The member that pulled the task.
    by: u32,
    /// Nanoseconds that the task takes.
    length: u64,
    /// Members that have come.
    came: AtomicUsize,
}

impl Engine<'_> {
    /// What the team of `combined` gathers for, when the member `by` pulled a task for it. The members are expected to be
    /// busy with it.
    pub(super) fn purpose_of(&mut self, slot: &Slot, combined: WorkerId, by: u32) -> Purpose {
        self.changes += 1;
        let memberships = Arc::clone(self.teams.memberships());
        let task = task_of(slot.head());
        let number = memberships.number(combined);
        let length = self.backend.lengths.team_nanos(self.backend.lengths.row(task), number);
        self.backend.progress.reach(task, Stage::Taken);
        self.tell(Event::Pulled { task: TaskId(task).submitted(), worker: WorkerId(by) });
        memberships.team(combined).iter().for_each(|member| self.backend.expect_team(member.0, length));
        Purpose { task, slot: slot.index(), combined, by, length, came: AtomicUsize::new(0) }
    }

    /// A worker without a task comes to a team, and waits for the others; the last to come begins.
    pub(super) fn attend(&mut self, worker: u32, gathering: &Gathering<Purpose>) {
        let Purpose { task, slot, combined, by, length, came } = &gathering.purpose;
        self.backend.joined_team(worker, *length);
        self.backend.book(worker, self.now.saturating_add(*length));
        let state = &mut self.workers[worker as usize];
        state.attends = true;
        if worker != *by {
            self.tell(Event::Pulled { task: TaskId(*task).submitted(), worker: WorkerId(worker) });
        }
        let team = self.teams.memberships().team(*combined);
        if came.fetch_add(1, Relaxed) + 1 < team.len() {
            return;
        }
        let leader = team[0].0;
        let flight = self.new_flight(Flight::new(*task, *slot, leader).together(*combined));
        self.workers[leader as usize].flights.push(flight);
        match self.prices.fetch * self.backend.accesses(*task).len() as u64 {
            0 => self.fetch(flight),
            cost => self.occupy(leader, cost, Plan::Fetch(flight)),
        }
    }

    /// Who executes a flight: its worker, or the members of its team.
    pub(super) fn each_member(&mut self, flight: Flight, mut what: impl FnMut(&mut Self, WorkerId)) {
        let Some(combined) = flight.combined else { return what(self, WorkerId(flight.worker)) };
        let memberships = Arc::clone(self.teams.memberships());
        memberships.team(combined).iter().for_each(|member| what(self, *member));
    }

    /// Nanoseconds that the kernel of a flight takes.
    pub(super) fn length_of(&self, flight: Flight) -> u64 {
        let row = self.backend.lengths.row(flight.task);
        match flight.combined {
            Some(combined) => self.backend.lengths.team_nanos(row, self.teams.memberships().number(combined)),
            None => self.backend.lengths.nanos(row, self.workers[flight.worker as usize].class),
        }
    }

    /// The members of a team may go: they look for work when what happens now is done.
    pub(super) fn dismiss(&mut self, flight: Flight) {
        self.each_member(flight, |engine, member| {
            let state = &mut engine.workers[member.0 as usize];
            state.attends = false;
            if member.0 != flight.worker {
                engine.backend.book(member.0, 0);
                engine.occupy(member.0, 0, Plan::Host(member.0));
            }
        });
    }
}
