//! Parallel tasks: the members of a combined worker come together for one, and execute it from a common start to its end.
//!
//! Who looks for such tasks when, who is called, and in which order teams come for a worker that is in several, is as in the
//! runtime (`runtime::gang`, [`sched_sync::gathering`]). A member that has come waits: it neither pulls nor
//! sleeps. When the last has come, the data of the task is fetched to where the first member is.

use super::workers::Flight;
use super::{Engine, Plan};
use crate::desk::{Desk, task_of};
use sched_core::{Stage, WorkerId};
use sched_graph::TaskId;
use sched_trace::Event;
use sched_sync::gathering::{Gathering, Gatherings};
use sched_tree::{Memberships, Services, Slot};
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

/// What came of a look.
pub(super) enum Found {
    /// A task for the worker alone.
    Alone(&'static Slot),
    /// A team to attend.
    Together(Arc<Gathering<Purpose>>),
    Nothing,
}

/// The combined workers.
pub(super) struct Teams {
    gatherings: Gatherings<Purpose>,
    memberships: Arc<Memberships>,
    /// Parallel tasks that are in a tree.
    waiting: u64,
}

impl Teams {
    pub(super) fn new(desk: &Desk) -> Teams {
        let workers = desk.platform.workers.len();
        Teams {
            gatherings: Gatherings::new(workers),
            memberships: Arc::new(Memberships::new(workers, desk.combined())),
            waiting: 0,
        }
    }

    /// The next team that a worker is wanted in. It has to attend before it asks again.
    pub(super) fn next(&self, worker: u32) -> Option<Arc<Gathering<Purpose>>> {
        self.gatherings.next(worker as usize)
    }

    /// Whether a team may want a worker that has nothing else to do.
    pub(super) fn may_want(&self, worker: u32) -> bool {
        self.gatherings.want(worker as usize) || (self.waiting > 0 && !self.memberships.of(WorkerId(worker)).is_empty())
    }

    /// A task is about to go into a tree.
    pub(super) fn note_pushed(&mut self, slot: &Slot) {
        self.waiting += u64::from(is_parallel(slot));
    }

    /// A task has come out of a tree.
    pub(super) fn note_pulled(&mut self, slot: &Slot) {
        self.waiting -= u64::from(is_parallel(slot));
    }

    /// Whether any parallel task is in a tree.
    pub(super) fn any_waits(&self) -> bool {
        self.waiting > 0
    }

    /// The members of a combined worker.
    fn team(&self, combined: WorkerId) -> &[WorkerId] {
        self.memberships.team(combined)
    }
}

fn is_parallel(slot: &Slot) -> bool {
    slot.head().width.load(Relaxed) > 1
}

impl Engine<'_> {
    /// Pulls a parallel task for a combined worker that this one is a member of, and calls its team. Whether there was one.
    pub(super) fn gather(&mut self, worker: u32) -> bool {
        let memberships = Arc::clone(&self.teams.memberships);
        for combined in memberships.of(WorkerId(worker)) {
            let Some(slot) = self.pull_for_team_in_turn(worker, *combined) else { continue };
            self.teams.note_pulled(slot);
            self.stirred += 1;
            let task = task_of(slot.head());
            let number = memberships.number(*combined);
            let length = self.desk.lengths.team_nanos(self.desk.lengths.row(task), number);
            self.desk.progress.reach(task, Stage::Taken);
            self.tell(Event::Pulled { task: TaskId(task).submitted(), worker: WorkerId(worker) });
            let team = memberships.team(*combined);
            let members = team.iter().map(|member| member.0 as usize).collect();
            let (slot, by, came) = (slot.index(), worker, AtomicUsize::new(0));
            let purpose = Purpose { task, slot, combined: *combined, by, length, came };
            team.iter().for_each(|member| self.desk.expect_team(member.0, length));
            self.teams.gatherings.enlist(&Arc::new(Gathering::new(members, purpose)));
            for member in team.iter().filter(|member| member.0 != worker) {
                self.desk.wake(*member);
            }
            self.settle_notes();
            return true;
        }
        self.settle_notes();
        false
    }

    /// Looks for a task for the worker alone, or for a team that it is in; the two take turns.
    pub(super) fn look(&mut self, worker: u32) -> Found {
        let teams_first = self.workers[worker as usize].teams_next;
        if !teams_first && let Some(slot) = self.pull(worker) {
            self.workers[worker as usize].teams_next = true;
            return Found::Alone(slot);
        }
        loop {
            if let Some(gathering) = self.teams.next(worker) {
                self.workers[worker as usize].teams_next = false;
                return Found::Together(gathering);
            }
            if !self.teams.any_waits() || !self.gather(worker) {
                break;
            }
        }
        if teams_first && let Some(slot) = self.pull(worker) { Found::Alone(slot) } else { Found::Nothing }
    }

    /// A worker without a task comes to a team, and waits for the others; the last to come begins.
    pub(super) fn attend(&mut self, worker: u32, gathering: &Gathering<Purpose>) {
        let Purpose { task, slot, combined, by, length, came } = &gathering.purpose;
        self.desk.joined_team(worker, *length);
        self.desk.book(worker, self.now.saturating_add(*length));
        let state = &mut self.workers[worker as usize];
        state.attends = true;
        if let Some(other) = state.put_off() {
            self.desk.wake(other);
            self.settle_notes();
        }
        self.pass_wake_on(worker);
        if worker != *by {
            self.tell(Event::Pulled { task: TaskId(*task).submitted(), worker: WorkerId(worker) });
        }
        let team = self.teams.team(*combined);
        if came.fetch_add(1, Relaxed) + 1 < team.len() {
            return;
        }
        let leader = team[0].0;
        let flight = self.new_flight(Flight::new(*task, *slot, leader).together(*combined));
        self.workers[leader as usize].flights.push(flight);
        match self.prices.fetch * self.desk.accesses(*task).len() as u64 {
            0 => self.fetch(flight),
            cost => self.occupy(leader, cost, Plan::Fetch(flight)),
        }
    }

    /// Who executes a flight: its worker, or the members of its team.
    pub(super) fn each_member(&mut self, flight: Flight, mut what: impl FnMut(&mut Self, WorkerId)) {
        let Some(combined) = flight.combined else { return what(self, WorkerId(flight.worker)) };
        let memberships = Arc::clone(&self.teams.memberships);
        memberships.team(combined).iter().for_each(|member| what(self, *member));
    }

    /// Nanoseconds that the kernel of a flight takes.
    pub(super) fn length_of(&self, flight: Flight) -> u64 {
        let row = self.desk.lengths.row(flight.task);
        match flight.combined {
            Some(combined) => self.desk.lengths.team_nanos(row, self.teams.memberships.number(combined)),
            None => self.desk.lengths.nanos(row, self.workers[flight.worker as usize].class),
        }
    }

    /// The members of a team may go: they look for work when what happens now is done.
    pub(super) fn dismiss(&mut self, flight: Flight) {
        self.each_member(flight, |engine, member| {
            let state = &mut engine.workers[member.0 as usize];
            state.attends = false;
            if member.0 != flight.worker {
                engine.desk.book(member.0, 0);
                engine.occupy(member.0, 0, Plan::Host(member.0));
            }
        });
    }
}
