//! When data gets memory: what a task reads when it is fetched, what it only writes when a worker takes the task.
//!
//! A worker takes its next task when it begins one. The machine makes one allocation at a time. Where a memory is
//! limited, tasks get all of their memory [when they are taken](super::evictions).

use super::{Entry, Execution};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook, Use};
use crate::resource_mapping::plan::schedule::refill;
use std::cmp::Reverse;

/// Memory that a task gets when it is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    /// Since when the task may be taken.
    since: u64,
    /// Nanoseconds of the allocations.
    length: u64,
}

impl Execution {
    /// Nothing is owed, and no lane has begun a task.
    pub(super) fn begin_allocations(&mut self, outlook: &Outlook) {
        refill(&mut self.owed, outlook.len(), None);
        self.promised = 0;
        refill(&mut self.began, outlook.lanes.len(), outlook.now);
        refill(&mut self.due, outlook.lanes.len(), outlook.now);
    }

    /// Whether a worker must take the task before what it uses gets memory.
    pub(super) fn waits_to_be_taken(&self, outlook: &Outlook, used: &Use, to: usize) -> bool {
        let is_there = self.allocated[used.data * outlook.memories + to];
        !used.reads && !is_there && !self.replicas.limits(to) && outlook.network.allocation(to) > 0
    }

    /// A piece of data gets memory when a worker takes the task.
    pub(super) fn owe(&mut self, outlook: &Outlook, task: usize, to: usize, now: u64) {
        let length = outlook.network.allocation(to);
        self.owed[task].get_or_insert(Owed { since: now, length: 0 }).length += length;
        self.promised += length;
    }

    /// When a task would have all of its memory, behind what others are owed.
    pub(super) fn memory_at(&self, outlook: &Outlook, task: usize, to: usize, now: u64) -> u64 {
        let is_missing = |used: &&Use| !self.allocated[used.data * outlook.memories + to];
        let length = outlook.network.allocation(to);
        let missing = if length == 0 { 0 } else { outlook.uses(task).iter().filter(is_missing).count() as u64 };
        if missing == 0 {
            return now;
        }
        outlook.network.allocated(&self.traffic, to, now) + self.promised + length * missing
    }

    /// Lets the worker of a lane take its next task, whose data is there, unless it has yet to begin the one before.
    /// Returns whether it did.
    pub(super) fn take(&mut self, outlook: &Outlook, task: usize, lane: usize, now: u64) -> bool {
        if self.owed[task].is_none() {
            return true;
        }
        let began = self.began[lane];
        if began > now {
            if std::mem::replace(&mut self.due[lane], began) != began {
                self.events.push(Reverse(Entry::take(began, lane)));
            }
            return false;
        }
        self.arrivals[task] = self.arrivals[task].max(self.allocate(outlook, task, lane, now));
        true
    }

    /// Lets the worker of a lane take a task while its data is on its way, if it is the next one.
    pub(super) fn take_ahead(&mut self, outlook: &Outlook, task: usize, lane: usize, now: u64) {
        let is_next = self.queues[lane].get(self.heads[lane]) == Some(&task);
        if self.owed[task].is_some() && is_next && self.began[lane] <= now {
            self.memory[task] = self.allocate(outlook, task, lane, now);
            if self.arrivals[task] != NEVER {
                self.arrivals[task] = self.arrivals[task].max(self.memory[task]);
            }
        }
    }

    /// When a task has its memory that the worker of a lane took when it began the one before, or later.
    pub(super) fn taken(&mut self, outlook: &Outlook, task: usize, lane: usize) -> u64 {
        let Some(Owed { since, .. }) = self.owed[task] else { return 0 };
        self.allocate(outlook, task, lane, since.max(self.began[lane]))
    }

    /// Allocates what is owed to a task. Returns when it is there.
    fn allocate(&mut self, outlook: &Outlook, task: usize, lane: usize, now: u64) -> u64 {
        let (to, mut at) = (outlook.lanes[lane].memory, now);
        for used in outlook.uses(task) {
            if !std::mem::replace(&mut self.allocated[used.data * outlook.memories + to], true) {
                at = outlook.network.allocate(&mut self.traffic, to, now);
            }
        }
        self.promised -= self.owed[task].take().map_or(0, |owed| owed.length);
        at
    }
}
