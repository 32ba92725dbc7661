//! Gatherings of teams: how the members of a combined worker come together for a parallel task, without deadlock.
//!
//! # Protocol
//!
//! A parallel task waits in the leaf of a combined worker until a member pulls it. That member makes a [`Gathering`]
//! of the task and [enlists](Gatherings::enlist) it: the gathering is appended to the list of every member, under one
//! lock for all lists. Before a worker looks for other work, it takes the gathering at the front of its list (after
//! one task of its own since the last gathering, if there was one), and stays with it to the end:
//!
//! - the first member ([`Gathering::lead`]) waits until the others have come, runs the task, and dismisses them;
//! - the others ([`Gathering::follow`]) report that they have come, and park until they are dismissed.
//!
//! *Two teams come in the same order for all workers that are in both.* A member that enlists holds the lock until the
//! gathering is in all lists, so gatherings have one order, and every list is in that order.
//!
//! *There is no deadlock.* Of the gatherings that are not over, take the first in that order. None of its members is
//! in another one, since a worker attends its list in order; each executes a task that ends, or looks for work and
//! finds the gathering. So all come, the task runs, and the gathering is over. No worker holds one gathering while it
//! waits for another.
//!
//! *No member sleeps through it.* A member that enlists wakes each other member afterwards ([`sleep`](crate::sleep) is
//! the protocol) by clearing its bit, set or not: a member that sets its bit later sees the gathering in its second
//! look; one that set it before is woken.
//!
//! A worker waits for its team although there may be other tasks: until the slowest member comes, the members that
//! wait do nothing. That is the price of running together, and why only a policy that has good reason sends a task to
//! a combined worker.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicUsize, Condvar, Mutex, Ordering::*, lock};
use crossbeam::utils::CachePadded;
use std::collections::VecDeque;
use std::sync::Arc;

/// The gatherings that each worker has to attend, in one order for all workers.
pub struct Gatherings<T> {
    /// Held while a gathering is appended to its lists.
    order: Mutex<()>,
    lists: Box<[CachePadded<List<T>>]>,
}

struct List<T> {
    waiting: Mutex<VecDeque<Arc<Gathering<T>>>>,
    /// Number of entries in `waiting`, written under its lock, so that reading an empty list takes no lock.
    len: AtomicUsize,
}

impl<T> Gatherings<T> {
    /// Empty lists for this number of workers.
    pub fn new(workers: usize) -> Gatherings<T> {
        let list = || List { waiting: Mutex::new(VecDeque::new()), len: AtomicUsize::new(0) };
        Gatherings { order: Mutex::new(()), lists: (0..workers).map(|_| CachePadded::new(list())).collect() }
    }

    /// Appends a gathering to the lists of its members. The caller wakes them afterwards.
    pub fn enlist(&self, gathering: &Arc<Gathering<T>>) {
        let order = lock(&self.order);
        for member in &gathering.members {
            let list = &self.lists[*member];
            let mut waiting = lock(&list.waiting);
            waiting.push_back(Arc::clone(gathering));
            list.len.store(waiting.len(), Release);
        }
        drop(order);
    }

    /// Whether a worker has a gathering to attend.
    pub fn want(&self, worker: usize) -> bool {
        self.lists[worker].len.load(Acquire) != 0
    }

    /// The next gathering of a worker, which has to attend it before it asks again.
    pub fn next(&self, worker: usize) -> Option<Arc<Gathering<T>>> {
        if !self.want(worker) {
            return None;
        }
        let list = &self.lists[worker];
        let mut waiting = lock(&list.waiting);
        let next = waiting.pop_front();
        list.len.store(waiting.len(), Release);
        next
    }
}

/// Workers that come together for a task.
pub struct Gathering<T> {
    /// What the gathering is for.
    pub purpose: T,
    /// The workers, each once; the first leads.
    members: Box<[usize]>,
    state: Mutex<State>,
    /// Notified when all have come, and when they may go.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of members that have come, without the leader.
    came: usize,
    over: bool,
}

impl<T> Gathering<T> {
    /// A gathering of these members, none of whom has come yet.
    pub fn new(members: Box<[usize]>, purpose: T) -> Gathering<T> {
        Gathering { purpose, members, state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    /// Whether `worker` is the member that [leads](Self::lead); the others [follow](Self::follow).
    pub fn is_led_by(&self, worker: usize) -> bool {
        self.members.first() == Some(&worker)
    }

    /// Called by the leader: waits for the others. They go when the result is dropped.
    pub fn lead(&self) -> Leading<'_, T> {
        let mut state = lock(&self.state);
        while state.came + 1 < self.members.len() {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(state);
        Leading { gathering: self }
    }

    /// Called by another member: waits until it may go.
    pub fn follow(&self) {
        let mut state = lock(&self.state);
        state.came += 1;
        if state.came + 1 == self.members.len() {
            self.changed.notify_all();
        }
        while !state.over {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// All members are there; see [`Gathering::lead`].
pub struct Leading<'a, T> {
    gathering: &'a Gathering<T>,
}

impl<T> Drop for Leading<'_, T> {
    fn drop(&mut self) {
        lock(&self.gathering.state).over = true;
        self.gathering.changed.notify_all();
    }
}
