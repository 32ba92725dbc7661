//! Teams gather: how the members of a combined worker come together for a parallel task, without deadlock.
//!
//! # Protocol
//!
//! A parallel task waits in the leaf of a combined worker until a member comes by and pulls it. That member makes a
//! [`Gathering`] of it, and [enlists](Gatherings::enlist) it: the gathering is appended to the list of every member, under
//! one lock for all lists. Before a worker looks for anything else, it takes the gathering at the front of its list (having
//! executed one task of its own since the last, if there was one), and stays with it to the end:
//!
//! - the first member ([`Gathering::lead`]) waits until the others have come, runs the task, and dismisses them;
//! - the others ([`Gathering::follow`]) say that they have come, and park until they are dismissed.
//!
//! *Two teams come in the same order for all who are in both.* Whoever enlists holds the lock until the gathering is in all
//! lists, so gatherings have one order, in which every list has its own.
//!
//! *There is no deadlock.* Of the gatherings that are not over, take the first in that order. None of its members is in
//! another one, since a worker attends its list in order; each executes a task that ends, or looks for work and finds the
//! gathering. So all come, the task runs, and the gathering is over. Nobody holds one gathering while waiting for another.
//!
//! *No member sleeps through it.* Who enlists wakes each member afterwards ([`sleep`](crate::sleep) is the protocol), by clearing its
//! bit, set or not: a member that sets its bit later sees the gathering in its second look; one that did before is woken.
//!
//! A worker waits for its team while there may be other tasks: a member that gathers is lost to others for as long as the
//! slowest member is busy. That is the price of running together, and why a policy that has good reason sends a task to a
//! combined worker.

use crate::primitives::{AtomicUsize, Condvar, Mutex, Ordering::*, lock};
use crossbeam::utils::CachePadded;
use std::collections::VecDeque;
use std::sync::Arc;

#[cfg(all(test, loom))]
mod models;

/// The gatherings that each worker is wanted at, in the order that they have for everybody.
pub struct Gatherings<T> {
    /// Held while one is appended to its lists.
    order: Mutex<()>,
    lists: Box<[CachePadded<List<T>>]>,
}

struct List<T> {
    waiting: Mutex<VecDeque<Arc<Gathering<T>>>>,
    /// Number of entries in `waiting`, written under its lock: a look at an empty list takes none.
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

    /// Whether a worker is wanted at a gathering.
    pub fn want(&self, worker: usize) -> bool {
        self.lists[worker].len.load(Acquire) != 0
    }

    /// The next gathering of a worker. It has to attend it before it asks again.
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

/// Some workers who come together for a task.
pub struct Gathering<T> {
    /// What for.
    pub purpose: T,
    /// The workers, each once; the first leads.
    members: Box<[usize]>,
    state: Mutex<State>,
    /// All have come, or may go.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Members who have come, the leader not counted.
    came: usize,
    over: bool,
}

impl<T> Gathering<T> {
    /// One of these members, which nobody has come to yet.
    pub fn new(members: Box<[usize]>, purpose: T) -> Gathering<T> {
        Gathering { purpose, members, state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    /// Whether `worker` is the one to [lead](Self::lead); the others [follow](Self::follow).
    pub fn is_led_by(&self, worker: usize) -> bool {
        self.members.first() == Some(&worker)
    }

    /// The leader has come: waits for the others. They go when the result is dropped.
    pub fn lead(&self) -> Leading<'_, T> {
        let mut state = lock(&self.state);
        while state.came + 1 < self.members.len() {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(state);
        Leading { gathering: self }
    }

    /// Another member has come: waits until it may go.
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
