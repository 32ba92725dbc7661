//! Expected occupation of each worker, kept by the hooks before and after a kernel.
//!
//! Only tasks with an [expected length](sched_core::Task::predicted) are noted: for others, no clock is read.

use crossbeam::utils::CachePadded;
use sched_core::{Time, WorkerId};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Duration;

/// Expected occupation of all workers.
pub(crate) struct Times {
    workers: Box<[CachePadded<Book>]>,
}

/// Occupation of one worker. `start` and `length` are written by the worker itself, or by the leader of its team.
#[derive(Default)]
struct Book {
    /// Start of its current task in nanoseconds, if that has an expected length.
    start: AtomicU64,
    /// Expected length of its current task; 0 for none.
    length: AtomicU64,
    /// Sum of the expected lengths of parallel tasks whose teams wait for the worker.
    teams: AtomicU64,
}

impl Times {
    pub(crate) fn new(workers: usize) -> Times {
        Times { workers: (0..workers).map(|_| CachePadded::default()).collect() }
    }

    /// The hook before a kernel: a task of this expected length begins.
    pub(crate) fn pre_exec(&self, worker: WorkerId, now: Time, length: u64) {
        let book = &self.workers[worker.index()];
        book.start.store(now.as_nanos(), Relaxed);
        book.length.store(length, Relaxed);
    }

    /// The hook after a kernel: the task has ended.
    pub(crate) fn post_exec(&self, worker: WorkerId) {
        let book = &self.workers[worker.index()];
        book.length.store(0, Relaxed);
        book.start.store(0, Relaxed);
    }

    /// Notes that a team wants the worker, for a task of this expected length.
    pub(crate) fn expect_team(&self, worker: WorkerId, length: u64) {
        self.workers[worker.index()].teams.fetch_add(length, Relaxed);
    }

    /// Notes that the worker has joined the team.
    pub(crate) fn joined_team(&self, worker: WorkerId, length: u64) {
        self.workers[worker.index()].teams.fetch_sub(length, Relaxed);
    }

    /// Expected time when the worker is done with its current task, and with the teams that wait for it; in the past if
    /// there are none. `None` for a worker that does not exist.
    pub(crate) fn busy_until(&self, worker: WorkerId, now: impl FnOnce() -> Time) -> Option<Time> {
        let book = self.workers.get(worker.index())?;
        let end = Time::from_nanos(book.start.load(Relaxed).saturating_add(book.length.load(Relaxed)));
        Some(match book.teams.load(Relaxed) {
            0 => end,
            teams => end.max(now()) + Duration::from_nanos(teams),
        })
    }

    /// Start of its current task, if that has an expected length.
    pub(crate) fn since(&self, worker: WorkerId) -> Option<Time> {
        let book = &self.workers[worker.index()];
        (book.length.load(Relaxed) != 0).then(|| Time::from_nanos(book.start.load(Relaxed)))
    }
}

/// Expected occupation of a worker, according to expected lengths of tasks: `end` is `start` plus `length`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerExpectation {
    /// The worker.
    pub worker: u32,
    /// Start of its current task; now, if that has no expected length.
    pub start: Time,
    /// Expected length of that task and of everything that waits for this worker in leaves of trees and in teams.
    pub length: Duration,
    /// Expected time when the worker is free.
    pub end: Time,
}

impl Serialize for WorkerExpectation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Nanos {
            worker: u32,
            start_ns: u64,
            length_ns: u64,
            end_ns: u64,
        }
        let (start_ns, end_ns) = (self.start.as_nanos(), self.end.as_nanos());
        Nanos { worker: self.worker, start_ns, length_ns: end_ns.saturating_sub(start_ns), end_ns }
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_keep_start_length_and_end() {
        let times = Times::new(2);
        let busy =
            |now| times.busy_until(WorkerId(0), || Time::from_nanos(now)).expect("there is such a worker").as_nanos();
        assert_eq!((busy(5), times.since(WorkerId(0))), (0, None));
        times.pre_exec(WorkerId(0), Time::from_nanos(100), 40);
        assert_eq!((busy(110), times.since(WorkerId(0))), (140, Some(Time::from_nanos(100))));
        times.expect_team(WorkerId(0), 30);
        assert_eq!((busy(110), busy(150)), (170, 180), "a team waits for it, and it is late");
        times.post_exec(WorkerId(0));
        assert_eq!((busy(150), times.since(WorkerId(0))), (180, None));
        times.joined_team(WorkerId(0), 30);
        assert_eq!(busy(150), 0);
        let of = |worker| times.busy_until(WorkerId(worker), || unreachable!("nobody asks the time"));
        assert_eq!((of(1), of(2)), (Some(Time::ZERO), None), "there are two");
    }
}
