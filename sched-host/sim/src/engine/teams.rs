//! Parallel tasks: the members of a combined worker gather for a task, and execute it together from start to end.
//!
//! A member that has joined waits: it neither pulls nor sleeps. When the last one has joined, the data of the task is
//! fetched to the memory node of the first member.

use super::flights::Flight;
use super::{Action, Engine};
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
    task: TaskId,
    slot: &'static Slot,
    combined: WorkerId,
    /// The member that pulled the task.
    by: WorkerId,
    /// Execution time of the task in nanoseconds.
    length: u64,
    /// Number of members that have joined.
    joined: AtomicUsize,
}

impl Engine<'_> {
    /// What the team of `combined` gathers for when the member `by` has pulled a task for it. The members are expected
    /// to be busy with it.
    pub(super) fn purpose_of(&mut self, slot: &'static Slot, combined: WorkerId, by: WorkerId) -> Purpose {
        self.changes += 1;
        let memberships = Arc::clone(self.teams.memberships());
        let task = task_of(slot.head());
        let number = memberships.number(combined);
        let length = self.backend.lengths.team_nanos(self.backend.lengths.row(task), number);
        self.backend.progress.reach(task, Stage::Taken);
        self.report(Event::Pulled { task: task.submitted(), worker: by });
        memberships.team(combined).iter().for_each(|member| self.backend.expect_team(*member, length));
        Purpose { task, slot, combined, by, length, joined: AtomicUsize::new(0) }
    }

    /// A worker without a task joins a team, and waits for the others; the last one to join begins.
    pub(super) fn attend(&mut self, worker: WorkerId, gathering: &Gathering<Purpose>) {
        let Purpose { task, slot, combined, by, length, joined } = &gathering.purpose;
        self.backend.joined_team(worker, *length);
        self.backend.book(worker, self.now.saturating_add(*length));
        self.workers[worker.index()].attends = true;
        if worker != *by {
            self.report(Event::Pulled { task: task.submitted(), worker });
        }
        let team = self.teams.memberships().team(*combined);
        if joined.fetch_add(1, Relaxed) + 1 < team.len() {
            return;
        }
        let leader = team[0];
        let flight = self.flights.add(Flight::new(*task, slot, leader, *length).together(*combined));
        self.workers[leader.index()].flights.push(flight);
        match self.prices.fetch * self.backend.accesses(*task).len() as u64 {
            0 => self.fetch(flight),
            cost => self.occupy(leader, cost, Action::Fetch(flight)),
        }
    }

    /// Calls `what` for each worker that executes a flight: its worker, or the members of its team.
    pub(super) fn each_member(&mut self, flight: &Flight, mut what: impl FnMut(&mut Self, WorkerId)) {
        let Some(combined) = flight.combined else { return what(self, flight.worker) };
        let memberships = Arc::clone(self.teams.memberships());
        memberships.team(combined).iter().for_each(|member| what(self, *member));
    }

    /// Execution time of the kernel of a flight in nanoseconds.
    #[inline]
    pub(super) fn real_length_of(&self, flight: &Flight) -> u64 {
        let Some(luck) = &self.backend.luck else { return flight.length };
        luck.nanos(&self.graph, flight.task, self.workers[flight.worker.index()].class, flight.length)
    }

    /// Releases the members of a team: they look for work once the current action is done.
    pub(super) fn dismiss(&mut self, flight: &Flight) {
        self.each_member(flight, |engine, member| {
            engine.workers[member.index()].attends = false;
            if member != flight.worker {
                engine.backend.book(member, 0);
                engine.occupy(member, 0, Action::Host(member));
            }
        });
    }
}
