//! What happens in a simulation, as values, and who is told.

use crate::graph::{DataId, TaskId};
use crate::text::hash;
use sched_core::{MemoryNode, WorkerId};
use std::fmt;

/// Something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The application submitted a task.
    Submitted(TaskId),
    /// A task waits for nothing any more, and is pushed into the scheduler: by the worker that made it ready, or by the
    /// application.
    Pushed(TaskId, Option<WorkerId>),
    /// A worker got a task from the scheduler, and begins to fetch its data. Of a parallel task, each member of the team is
    /// told: one when it pulls the task, the others when they have come and wait.
    Pulled(TaskId, WorkerId),
    /// A worker begins to execute a task; or all members of a team do, each of which is told.
    Started(TaskId, WorkerId),
    /// A worker is done with a task; or all members of a team are.
    Ended(TaskId, WorkerId),
    /// A task without work ended by itself.
    Passed(TaskId),
    /// A worker found nothing to do and sleeps.
    Idle(WorkerId),
    /// A worker that slept is woken.
    Woken(WorkerId),
    /// Data begins to move.
    TransferStarted(Transfer),
    /// Data has moved.
    TransferEnded(Transfer),
}

/// Data on the move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// What moves.
    pub data: DataId,
    /// From where.
    pub from: MemoryNode,
    /// To where.
    pub to: MemoryNode,
    /// Why.
    pub why: Reason,
}

/// Why data moves; those that are more urgent go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// A worker waits for it.
    Demand,
    /// It is written home, so that its memory can be used for something else.
    Eviction,
    /// A task that will need it there is in a queue.
    Prefetch,
    /// It will not be used any more, and is written home.
    WontUse,
}

impl Reason {
    /// Its name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Demand => "demand",
            Reason::Eviction => "eviction",
            Reason::Prefetch => "prefetch",
            Reason::WontUse => "wont-use",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moved = |f: &mut fmt::Formatter<'_>, what: &str, of: &Transfer| {
            write!(f, "{what} data {} from {} to {} ({})", of.data.0, of.from.0, of.to.0, of.why.name())
        };
        match self {
            Event::Submitted(task) => write!(f, "submitted task {}", task.0),
            Event::Pushed(task, None) => write!(f, "pushed task {}", task.0),
            Event::Pushed(task, Some(by)) => write!(f, "pushed task {} by {by}", task.0),
            Event::Pulled(task, worker) => write!(f, "pulled task {} by {worker}", task.0),
            Event::Started(task, worker) => write!(f, "started task {} on {worker}", task.0),
            Event::Ended(task, worker) => write!(f, "ended task {} on {worker}", task.0),
            Event::Passed(task) => write!(f, "passed task {}", task.0),
            Event::Idle(worker) => write!(f, "idle {worker}"),
            Event::Woken(worker) => write!(f, "woken {worker}"),
            Event::TransferStarted(transfer) => moved(f, "transfer", transfer),
            Event::TransferEnded(transfer) => moved(f, "arrived", transfer),
        }
    }
}

/// Who is told what happens, in the order of time. Pictures and traces are made by observers.
pub trait Observer {
    /// `event` happens, `nanos` after the beginning.
    fn event(&mut self, nanos: u64, event: &Event);
}

/// Keeps all events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventLog {
    /// Nanoseconds since the beginning, and what happened then.
    pub events: Vec<(u64, Event)>,
}

impl Observer for EventLog {
    fn event(&mut self, nanos: u64, event: &Event) {
        self.events.push((nanos, *event));
    }
}

impl fmt::Display for EventLog {
    /// A line for each event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events.iter().try_for_each(|(nanos, event)| writeln!(f, "{nanos} {event}"))
    }
}

/// Folds all events into a number: two runs with the same number had, for all practical purposes, the same events in the
/// same order at the same times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(hash::FNV_1A_EMPTY)
    }
}

impl Digest {
    /// The number so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }

    fn fold(&mut self, word: u64) {
        self.0 = hash::fold(self.0, word);
    }
}

impl Observer for Digest {
    fn event(&mut self, nanos: u64, event: &Event) {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let moved = |of: &Transfer| pair(of.data.0, of.from.0 << 16 | of.to.0 << 8 | of.why as u32);
        let (kind, word) = match event {
            Event::Submitted(task) => (0, u64::from(task.0)),
            Event::Pushed(task, by) => (1, pair(task.0, by.map_or(u32::MAX, |worker| worker.0))),
            Event::Pulled(task, worker) => (2, pair(task.0, worker.0)),
            Event::Started(task, worker) => (3, pair(task.0, worker.0)),
            Event::Ended(task, worker) => (4, pair(task.0, worker.0)),
            Event::Passed(task) => (5, u64::from(task.0)),
            Event::Idle(worker) => (6, u64::from(worker.0)),
            Event::Woken(worker) => (7, u64::from(worker.0)),
            Event::TransferStarted(transfer) => (8, moved(transfer)),
            Event::TransferEnded(transfer) => (9, moved(transfer)),
        };
        self.fold(nanos << 4 | kind);
        self.fold(word);
    }
}
