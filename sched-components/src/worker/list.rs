//! What the two leaves have in common: the list of tasks that wait for one worker, simple or combined, in order of
//! priority, then of arrival.

use crate::queue::{TaskQueue, expected_addition, nanos};
use sched_core::*;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::Duration;

/// The tasks that a leaf keeps for its worker.
#[derive(Debug)]
pub(super) struct WaitingList {
    list: Mutex<List>,
    /// Number of tasks in `list`, written under its lock.
    len: AtomicUsize,
}

#[derive(Debug)]
struct List {
    queue: TaskQueue,
    /// When the worker should be done with the task that it took last: a guess, for a host that keeps no books of that. A
    /// worker comes for the next task when it is done, or nearly: each pull sets this anew, so that wrong predictions do
    /// not add up.
    busy_until: Time,
}

impl List {
    /// Nanoseconds of work that the worker has.
    fn ahead(&self, node: Node<'_>) -> u64 {
        let now = node.now();
        let busy_until = books(node).unwrap_or(self.busy_until);
        nanos(busy_until.since(now)).saturating_add(self.queue.expected())
    }
}

/// When the worker should be done with what it executes, as far as the host keeps books.
fn books(node: Node<'_>) -> Option<Time> {
    node.worker_busy_until(node.worker()?)
}

impl WaitingList {
    pub(super) fn new() -> WaitingList {
        WaitingList {
            list: Mutex::new(List { queue: TaskQueue::new(), busy_until: Time::ZERO }),
            len: AtomicUsize::new(0),
        }
    }

    /// Number of tasks.
    pub(super) fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Keeps `task`, and has its data fetched.
    pub(super) fn push(&self, node: Node<'_>, task: Task) {
        node.prefetch(&task);
        let mut list = self.list.lock();
        let expected = expected_addition(&task, || list.ahead(node));
        let priority = task.priority();
        list.queue.push(task, priority, expected);
        self.len.store(list.queue.len(), Release);
        if expected > 0 {
            node.note_queued(Duration::from_nanos(list.queue.expected()));
        }
    }

    /// The first task.
    fn pop(&self, node: Node<'_>) -> Option<Task> {
        if self.len.load(Acquire) == 0 {
            return None;
        }
        let mut list = self.list.lock();
        let (task, place) = list.queue.pop(|_| true)?;
        self.len.store(list.queue.len(), Release);
        if place.expected() > 0 {
            node.note_queued(Duration::from_nanos(list.queue.expected()));
        }
        if task.predicted().is_some() && books(node).is_none() {
            list.busy_until = node.now() + Duration::from_nanos(place.expected());
        }
        Some(task)
    }

    /// The first task, or one from above.
    pub(super) fn pull(&self, node: Node<'_>) -> Option<Task> {
        if let Some(task) = self.pop(node) {
            return Some(task);
        }
        match node.pull_from_parents() {
            Some(task) => {
                if task.predicted().is_some() && books(node).is_none() {
                    self.list.lock().busy_until = node.now() + Duration::from_nanos(expected_addition(&task, || 0));
                }
                Some(task)
            }
            // A parent may have pushed instead of giving.
            None => self.pop(node),
        }
    }

    /// When the worker will have done what it executes and what waits for it: in every leaf that is for it, if the host
    /// keeps books, or else here.
    pub(super) fn estimated_end(&self, node: Node<'_>) -> Time {
        let known = node.worker().and_then(|worker| node.worker_free_at(worker));
        known.unwrap_or_else(|| {
            let ahead = self.list.lock().ahead(node);
            node.now() + Duration::from_nanos(ahead)
        })
    }

    pub(super) fn drain(&self) -> Vec<Task> {
        self.len.store(0, Release);
        self.list.lock().queue.drain()
    }

    pub(super) fn describe(&self, report: &mut Report) {
        let list = self.list.lock();
        report.fact("tasks", list.queue.len());
        report.fact("expected length", format_args!("{:?}", Duration::from_nanos(list.queue.expected())));
    }
}
