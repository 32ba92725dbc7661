//! The common part of the two leaves: the list of tasks that wait for one worker, simple or combined, ordered by
//! priority, then by arrival.

use crate::queue::{TaskQueue, expected_addition, nanos};
use sched_core::*;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::Duration;

/// The tasks that a leaf stores for its worker.
#[derive(Debug)]
pub(super) struct WaitingList {
    list: Mutex<List>,
    /// Number of tasks in `list`, written under its lock.
    len: AtomicUsize,
}

#[derive(Debug)]
struct List {
    queue: TaskQueue,
    /// When the worker is expected to finish the last task that it took: an estimate for hosts that keep no records of
    /// it. A worker pulls the next task when it is done, or nearly so; each pull sets this anew, so that prediction
    /// errors do not accumulate.
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

/// The expected end of what the worker executes, if the host keeps records.
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

    /// Stores `task` and prefetches its data.
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

    /// When the worker finishes its current task and all queued ones: in every leaf for this worker if the host keeps
    /// records, or else in this leaf.
    pub(super) fn estimated_end(&self, node: Node<'_>) -> Time {
        let known = node.worker().and_then(|worker| node.worker_free_at(worker));
        known.unwrap_or_else(|| {
            let ahead = self.list.lock().ahead(node);
            node.now() + Duration::from_nanos(ahead)
        })
    }

    pub(super) fn drain(&self) -> Vec<Task> {
        let mut list = self.list.lock();
        self.len.store(0, Release);
        list.queue.drain()
    }

    pub(super) fn describe(&self, report: &mut Report) {
        let list = self.list.lock();
        report.fact("tasks", list.queue.len());
        report.fact("expected length", format_args!("{:?}", Duration::from_nanos(list.queue.expected())));
    }
}
