//! What happens, in the words that both back ends share.

use crate::sim::Reason;
use sched_core::{Refusal, WorkerId};

/// Something that happened. Tasks are named by their order of submission, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The application submitted a task.
    Submitted {
        /// The task.
        task: u64,
    },
    /// A task waits for nothing any more, and is pushed into the scheduler.
    Ready {
        /// The task.
        task: u64,
        /// The worker that made it ready by ending another one; `None` for the application.
        by: Option<WorkerId>,
    },
    /// A worker got a task from the scheduler, and begins to fetch its data.
    Pulled {
        /// The task.
        task: u64,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker begins to execute a task.
    Started {
        /// The task.
        task: u64,
        /// The worker.
        worker: WorkerId,
        /// Its codelet, by place in [`Trace::codelets`](super::Trace::codelets).
        codelet: u32,
    },
    /// A worker is done with a task.
    Ended {
        /// The task.
        task: u64,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker found nothing to do.
    Idle {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker that slept was woken.
    Woken {
        /// The worker.
        worker: WorkerId,
    },
    /// Data begins to move.
    TransferStarted(Transfer),
    /// Data has moved.
    TransferEnded(Transfer),
    /// A node of the scheduler refused a task.
    Refused {
        /// The task.
        task: u64,
        /// The node, by place in [`Trace::nodes`](super::Trace::nodes).
        node: u32,
        /// Why.
        why: Refusal,
    },
    /// A node of the scheduler stores a task now.
    Held {
        /// The task.
        task: u64,
        /// The node, by place in [`Trace::nodes`](super::Trace::nodes).
        node: u32,
    },
    /// A node of the scheduler stores so many tasks from now on.
    QueueLength {
        /// The node, by place in [`Trace::nodes`](super::Trace::nodes).
        node: u32,
        /// Tasks.
        length: u32,
    },
}

/// Data on the move between two memories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// What moves.
    pub data: u32,
    /// From where, by place in [`Trace::memories`](super::Trace::memories).
    pub from: u32,
    /// To where, likewise.
    pub to: u32,
    /// How many bytes.
    pub bytes: u64,
    /// Why.
    pub why: Reason,
}

/// An event, and when it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamped {
    /// Nanoseconds since the first submission.
    pub nanos: u64,
    /// What happened.
    pub event: Event,
}
