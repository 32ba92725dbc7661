//! When workers run out of work, and how much work is waiting.
//!
//! # Only tasks with a prediction count
//!
//! An end is a sum of [predictions](crate::Task::set_predicted). A task that nobody predicted adds nothing, neither
//! while it is queued nor while it is executed, even if a model knows how long it takes: of two children, the one with
//! a hundred such tasks ends as early as the one without any. So a component that chooses by ends must also set the
//! prediction of each task that it pushes; without that, it sends all tasks to one child. Where no model knows the
//! length, compare the [loads](crate::Node::child_load), which count tasks.

use super::{Child, Node, in_chunks, some_in_chunks};
use crate::abi::extension::{HostEnds, HostTeams, HostTimes, NO_TIME, offered};
use crate::estimate::{Time, nanos};
use crate::mutex::assert_none_held;
use crate::workers::WorkerId;
use std::time::Duration;

impl Node<'_> {
    /// *Hop.* The time at which the workers below a child run out of work, as far as that was
    /// [predicted](crate::Task::set_predicted): a task without a prediction adds nothing.
    #[inline]
    #[must_use]
    pub fn child_estimated_end(&self, child: Child) -> Time {
        assert_none_held("child_estimated_end");
        Time::from_nanos(self.raw.host().child_estimated_end(self.raw.call(), child.0))
    }

    /// *Hop.* Calls `each` with every child, in order, and the time at which its workers run out of work. Cheaper than
    /// one query per child. (Falls back to these with a host older than 1.1.)
    ///
    /// Only tasks with a [prediction](crate::Task::set_predicted) count. A component that chooses by ends sets it for
    /// each task that it pushes:
    ///
    /// ```
    /// # use sched_core::*;
    /// # fn push(node: Node<'_>, mut task: Task) -> Push {
    /// let mut best = None;
    /// node.ends_below(|child, end| {
    ///     if let Some(length) = node.child_worker(child).and_then(|worker| node.expected_length(worker, &task).known()) {
    ///         best = best.into_iter().chain([(end + length, child, length)]).min();
    ///     }
    /// });
    /// let Some((_, child, length)) = best else { return Err(Refused::new(task, Refusal::Uncalibrated)) };
    /// // Without this, the next task finds the same ends and goes to the same child.
    /// task.set_predicted(Some(length));
    /// node.push_to(child, task)
    /// # }
    /// ```
    #[inline]
    pub fn ends_below(&self, mut each: impl FnMut(Child, Time)) {
        let Some(table) = offered::<HostEnds>(self.raw.host()) else {
            return self.children().for_each(|child| each(child, self.child_estimated_end(child)));
        };
        let place = self.place();
        let ask = |first, ends: &mut [u64]| {
            assert_none_held("ends_below");
            (table.below)(self.raw.call(), place.id, first, ends.into());
        };
        in_chunks(place.children, 0, ask, |child, end| each(child, Time::from_nanos(end)));
    }

    /// *Hop.* [`ends_below`](Self::ends_below) for a component that need not know all ends: `each` returns how many of
    /// the next children it passes over. Where a thousand children are much the same, the first that is free is often
    /// as good as any:
    ///
    /// ```
    /// # use sched_core::*;
    /// /// The first child that is free now, or else the one that is free first.
    /// fn free_first(node: Node<'_>) -> Option<(Child, Time)> {
    ///     let (now, mut best) = (node.now(), None::<(Child, Time)>);
    ///     node.some_ends_below(|child, end| {
    ///         if best.is_none_or(|(_, first)| end < first) {
    ///             best = Some((child, end));
    ///         }
    ///         if end <= now { u32::MAX } else { 0 }
    ///     });
    ///     best
    /// }
    /// ```
    #[inline]
    pub fn some_ends_below(&self, mut each: impl FnMut(Child, Time) -> u32) {
        let Some(table) = offered::<HostEnds>(self.raw.host()) else {
            let mut children = self.children();
            while let Some(child) = children.next() {
                let passed = each(child, self.child_estimated_end(child));
                children.by_ref().take(passed as usize).for_each(drop);
            }
            return;
        };
        let place = self.place();
        let ask = |first, ends: &mut [u64]| {
            assert_none_held("some_ends_below");
            (table.below)(self.raw.call(), place.id, first, ends.into());
        };
        some_in_chunks(place.children, 0, ask, |child, end| each(child, Time::from_nanos(end)));
    }

    /// *Hop.* The earliest end among the children; now if there are none. Only tasks with a
    /// [prediction](crate::Task::set_predicted) count.
    #[inline]
    #[must_use]
    pub fn earliest_end_below(&self) -> Time {
        self.end_below_with_queued(Duration::ZERO)
    }

    /// *Hop.* The average end of the children; now if there are none. Only tasks with a
    /// [prediction](crate::Task::set_predicted) count.
    #[inline]
    #[must_use]
    pub fn average_end_below(&self) -> Time {
        let count = self.children().len() as u128;
        if count == 0 {
            return self.now();
        }
        let mut sum = 0_u128;
        self.ends_below(|_, end| sum += u128::from(end.as_nanos()));
        Time::from_nanos((sum / count) as u64)
    }

    /// *Hop.* The time at which the workers below would finish if tasks of total length `queued`, waiting here, filled
    /// them up evenly: the work of the workers beyond the earliest end, plus the queue, divided among all workers
    /// below. With an empty queue it is [`earliest_end_below`](Self::earliest_end_below).
    #[must_use]
    pub fn end_below_with_queued(&self, queued: Duration) -> Time {
        let (mut first, mut sum, mut count) = (Time::FAR, Duration::ZERO, 0);
        self.ends_below(|child, end| {
            first = first.min(end);
            if !queued.is_zero() {
                let mut add = |end: Time| {
                    sum = sum.saturating_add(end.since(Time::ZERO));
                    count += 1;
                };
                let workers = || self.each_child_worker_in_context(child);
                if workers().nth(1).is_none() {
                    add(end);
                } else {
                    // The end of a child with several workers is that of the first; the others may be busy for longer.
                    workers().for_each(|worker| add(self.worker_free_at(worker).map_or(end, |free| free.max(end))));
                }
            }
        });
        if self.children().len() == 0 {
            first = self.now();
        }
        if queued.is_zero() {
            return first;
        }
        let later = sum.saturating_sub(first.since(Time::ZERO).saturating_mul(count));
        first + queued.saturating_add(later) / self.count_in_context().max(1)
    }

    /// The expected end of what `worker` executes now. It lies in the past when the worker is idle or executes a task
    /// of unknown length. The host records the start of each task that has an [expected length](crate::Task::predicted)
    /// just before it runs, and discards the record when it ends. A combined worker is done when its last member is.
    ///
    /// `None` when the host keeps no such records, and for a worker that does not exist. (Since 1.1; an older host
    /// keeps none.)
    #[inline]
    #[must_use]
    pub fn worker_busy_until(&self, worker: WorkerId) -> Option<Time> {
        let table = offered::<HostTimes>(self.raw.host())?;
        some_time((table.busy_until)(self.raw.call(), worker.0))
    }

    /// The expected time at which `worker` finishes its current task and all tasks queued for it: in its own leaf, and
    /// in those of the combined workers that it belongs to, as the leaves [report](Self::note_queued) them. Never
    /// earlier than now.
    ///
    /// `None` when the host keeps no such records, and for a worker that does not exist. (Since 1.1; an older host
    /// keeps none.)
    #[inline]
    #[must_use]
    pub fn worker_free_at(&self, worker: WorkerId) -> Option<Time> {
        let table = offered::<HostTimes>(self.raw.host())?;
        some_time((table.free_at)(self.raw.call(), worker.0))
    }

    /// Reports the total expected length of the tasks queued here, replacing the previous report: at a leaf, for
    /// [`worker_free_at`](Self::worker_free_at); elsewhere, for a component with
    /// [`end_is_noted`](crate::Info::end_is_noted). No effect with a host older than 1.1.
    #[inline]
    pub fn note_queued(&self, expected: Duration) {
        if let Some(table) = offered::<HostTimes>(self.raw.host()) {
            (table.note_queued)(self.raw.call(), self.id(), nanos(expected));
        }
    }

    /// *Hop.* The load of a child.
    #[inline]
    #[must_use]
    pub fn child_load(&self, child: Child) -> f64 {
        assert_none_held("child_load");
        self.raw.host().child_estimated_load(self.raw.call(), child.0)
    }

    /// *Hop.* The sum of the loads of the children.
    #[inline]
    #[must_use]
    pub fn load_below(&self) -> f64 {
        self.children().map(|child| self.child_load(child)).sum()
    }

    /// *Hop.* The sum of the loads of a combined worker's members, each in its own leaf; 0 for a simple worker, and
    /// with a host older than 1.1.
    #[inline]
    #[must_use]
    pub fn members_load(&self, worker: WorkerId) -> f64 {
        assert_none_held("members_load");
        offered::<HostTeams>(self.raw.host()).map_or(0.0, |table| (table.load)(self.raw.call(), worker.0))
    }
}

fn some_time(nanos: u64) -> Option<Time> {
    (nanos != NO_TIME).then(|| Time::from_nanos(nanos))
}
