//! `worker`: a leaf, which stands for one worker. It takes every task into the worker's own list and wakes the worker;
//! the worker pulls from that list first, then from above.

use crate::queue::{TaskQueue, expected_addition, load_here, nanos};
use sched_core::*;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::Duration;

/// The list of one worker, in order of priority, then of arrival.
#[derive(Debug)]
pub struct Simple {
    list: Mutex<List>,
    /// Number of tasks in `list`, written under its lock.
    len: AtomicUsize,
}

#[derive(Debug)]
struct List {
    queue: TaskQueue,
    /// When the worker should be done with the task that it took last. A worker comes for the next one when it is done,
    /// or nearly: each pull sets this anew, so that wrong predictions do not add up.
    busy_until: Time,
}

impl List {
    /// Nanoseconds of work that the worker has.
    fn ahead(&self, now: Time) -> u64 {
        nanos(self.busy_until.since(now)).saturating_add(self.queue.expected())
    }
}

impl Build for Simple {
    const INFO: Info = Info::new("worker", Family::Worker, "Hands tasks to one worker.").storage(Storage::Unbounded);

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Simple {
            list: Mutex::new(List { queue: TaskQueue::new(), busy_until: Time::ZERO }),
            len: AtomicUsize::new(0),
        })
    }
}

impl Simple {
    fn pop(&self, node: Node<'_>) -> Option<Task> {
        if self.len.load(Acquire) == 0 {
            return None;
        }
        let mut list = self.list.lock();
        let (task, place) = list.queue.pop(|_| true)?;
        self.len.store(list.queue.len(), Release);
        if task.predicted().is_some() {
            list.busy_until = node.now() + Duration::from_nanos(place.expected());
        }
        Some(task)
    }
}

impl Component for Simple {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.prefetch(&task);
        {
            let mut list = self.list.lock();
            let expected = expected_addition(&task, || list.ahead(node.now()));
            let priority = task.priority();
            list.queue.push(task, priority, expected);
            self.len.store(list.queue.len(), Release);
        }
        node.wake_one();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        if let Some(task) = self.pop(node) {
            return Some(task);
        }
        match node.pull_from_parents() {
            Some(task) => {
                if task.predicted().is_some() {
                    self.list.lock().busy_until = node.now() + Duration::from_nanos(expected_addition(&task, || 0));
                }
                Some(task)
            }
            // A parent may have pushed instead of giving.
            None => self.pop(node),
        }
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        let now = node.now();
        now + Duration::from_nanos(self.list.lock().ahead(now))
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        load_here(node, self.len.load(Relaxed))
    }

    fn drain(&self) -> Vec<Task> {
        self.len.store(0, Release);
        self.list.lock().queue.drain()
    }

    fn describe(&self, report: &mut Report) {
        let list = self.list.lock();
        report.fact("tasks", list.queue.len());
        report.fact("expected length", format_args!("{:?}", Duration::from_nanos(list.queue.expected())));
        report.fact("busy until", list.busy_until);
    }
}

#[cfg(test)]
mod tests;
