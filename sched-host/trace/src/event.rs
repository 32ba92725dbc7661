//! What happens in a run or a simulation, as values.

use sched_core::{MemoryNode, Refusal, TaskId, WorkerId};
use sched_graph::DataId;
use sched_memory::Reason;
use sched_tree::WitnessedNode;
use std::fmt;

/// Something that happened. The runtime and the simulator report it in these words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The application submitted a task.
    Submitted {
        /// The task.
        task: TaskId,
    },
    /// A task waits for nothing any more, and is pushed into the scheduler.
    Ready {
        /// The task.
        task: TaskId,
        /// The worker that made it ready by ending another one; `None` for the application.
        by: Option<WorkerId>,
    },
    /// A worker got a task from the scheduler, and begins to fetch its data. Each member of a team reports a parallel task:
    /// one when it pulls the task, the others when they have joined and wait.
    Pulled {
        /// The task.
        task: TaskId,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker begins to execute a task. All members of a team report a parallel task.
    Started {
        /// The task.
        task: TaskId,
        /// The worker.
        worker: WorkerId,
        /// Its codelet.
        codelet: CodeletId,
    },
    /// A worker is done with a task. All members of a team report a parallel task.
    Ended {
        /// The task.
        task: TaskId,
        /// The worker.
        worker: WorkerId,
    },
    /// A task without work ended, on no worker.
    Passed {
        /// The task.
        task: TaskId,
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
        task: TaskId,
        /// The node, by place in [`Trace::nodes`](super::Trace::nodes).
        node: WitnessedNode,
        /// Why.
        why: Refusal,
    },
    /// A node of the scheduler stores a task now.
    Held {
        /// The task.
        task: TaskId,
        /// The node, by place in [`Trace::nodes`](super::Trace::nodes).
        node: WitnessedNode,
    },
    /// The number of tasks that a node of the scheduler stores has changed.
    QueueLength {
        /// The node, by place in [`Trace::nodes`](super::Trace::nodes).
        node: WitnessedNode,
        /// Tasks.
        length: u32,
    },
}

/// A codelet in a trace: its place in [`Trace::codelets`](super::Trace::codelets).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CodeletId(pub u32);

impl CodeletId {
    /// Its place in [`Trace::codelets`](super::Trace::codelets).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Data on the move between two memories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// What moves.
    pub data: DataId,
    /// From where, by place in [`Trace::memories`](super::Trace::memories).
    pub from: MemoryNode,
    /// To where, likewise.
    pub to: MemoryNode,
    /// Number of bytes.
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

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Submitted { task } => write!(f, "submitted {task}"),
            Event::Ready { task, by: None } => write!(f, "pushed {task}"),
            Event::Ready { task, by: Some(by) } => write!(f, "pushed {task} by {by}"),
            Event::Pulled { task, worker } => write!(f, "pulled {task} by {worker}"),
            Event::Started { task, worker, .. } => write!(f, "started {task} on {worker}"),
            Event::Ended { task, worker } => write!(f, "ended {task} on {worker}"),
            Event::Passed { task } => write!(f, "passed {task}"),
            Event::Idle { worker } => write!(f, "idle {worker}"),
            Event::Woken { worker } => write!(f, "woken {worker}"),
            Event::TransferStarted(transfer) => write!(f, "transfer {transfer}"),
            Event::TransferEnded(transfer) => write!(f, "arrived {transfer}"),
            Event::Refused { task, node, why } => write!(f, "refused {task} by node {} ({why})", node.0),
            Event::Held { task, node } => write!(f, "held {task} by node {}", node.0),
            Event::QueueLength { node, length } => write!(f, "length {length} of node {}", node.0),
        }
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data {} from {} to {} ({})", self.data.0, self.from.0, self.to.0, self.why.name())
    }
}

impl fmt::Display for Stamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.nanos, self.event)
    }
}
