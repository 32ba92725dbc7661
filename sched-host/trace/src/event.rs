//! Events of runs and simulations.

use sched_core::{MemoryNode, Refusal, TaskId, WorkerId};
use sched_graph::{ContextId, DataId};
use sched_memory::Reason;
use sched_tree::{NoteKind, ObservedNode};
use std::fmt;

/// An event of a run or a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The application submitted a task.
    Submitted {
        /// The task.
        task: TaskId,
    },
    /// A task became ready and is pushed into the scheduler.
    Ready {
        /// The task.
        task: TaskId,
        /// The worker that made it ready by ending another task; `None` for the application.
        by: Option<WorkerId>,
    },
    /// A worker pulled a task from the scheduler and begins to fetch its data. Of a parallel task each member of the
    /// team has this event: one when it pulls the task, the others when they have joined and wait.
    Pulled {
        /// The task.
        task: TaskId,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker begins to execute a task. Of a parallel task each member of the team has this event.
    Started {
        /// The task.
        task: TaskId,
        /// The worker.
        worker: WorkerId,
        /// Its codelet.
        codelet: CodeletId,
    },
    /// A worker has executed a task. Of a parallel task each member of the team has this event.
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
    /// A worker found no task and goes to sleep.
    Idle {
        /// The worker.
        worker: WorkerId,
    },
    /// A sleeping worker was woken.
    Woken {
        /// The worker.
        worker: WorkerId,
    },
    /// The hypervisor moved a worker to another context.
    Moved {
        /// The worker.
        worker: WorkerId,
        /// The context that it left: its place in [`Trace::contexts`](super::Trace::contexts). `None` if it serves its
        /// earlier contexts as well.
        from: Option<ContextId>,
        /// The context that it serves from now on, likewise.
        to: ContextId,
    },
    /// A transfer begins.
    TransferStarted(Transfer),
    /// A transfer has ended.
    TransferEnded(Transfer),
    /// A rank begins to send a message to another.
    Sent(RankMessage),
    /// A message has arrived at its rank.
    Received(RankMessage),
    /// A node of the scheduler refused a task.
    Refused {
        /// The task.
        task: TaskId,
        /// The node: its place in [`Trace::nodes`](super::Trace::nodes).
        node: ObservedNode,
        /// Reason of the refusal.
        why: Refusal,
    },
    /// A node of the scheduler stores a task now.
    Held {
        /// The task.
        task: TaskId,
        /// The node: its place in [`Trace::nodes`](super::Trace::nodes).
        node: ObservedNode,
    },
    /// A node of the scheduler wrote a line to the log, or a fault of it was seen for the first time.
    Noted {
        /// The remark: its key in [`Trace::notes`](super::Trace::notes).
        note: NoteId,
    },
    /// The number of tasks that a node of the scheduler stores has changed.
    QueueLength {
        /// The node: its place in [`Trace::nodes`](super::Trace::nodes).
        node: ObservedNode,
        /// Number of tasks.
        length: u32,
    },
}

/// A remark in a trace: its key in [`Trace::notes`](super::Trace::notes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NoteId(pub u32);

/// A remark about a node of the scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The node: its place in [`Trace::nodes`](super::Trace::nodes).
    pub node: ObservedNode,
    /// Kind of the remark.
    pub kind: NoteKind,
    /// The line of the log, or what the fault is.
    pub text: String,
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

/// A transfer of data between two memory nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The data.
    pub data: DataId,
    /// Source: its place in [`Trace::memories`](super::Trace::memories).
    pub from: MemoryNode,
    /// Destination, likewise.
    pub to: MemoryNode,
    /// Number of bytes.
    pub bytes: u64,
    /// Reason of the transfer.
    pub why: Reason,
}

/// A message from one rank of a cluster to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RankMessage {
    /// The data; `None` if the message only tells that a task has ended.
    pub data: Option<DataId>,
    /// The sender: its place in [`Trace::ranks`](super::Trace::ranks).
    pub from: u32,
    /// The receiver, likewise.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u64,
}

/// An event with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamped {
    /// Time in nanoseconds since the first submission.
    pub nanos: u64,
    /// The event.
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
            Event::Moved { worker, from: None, to } => write!(f, "lent {worker} to context {}", to.0),
            Event::Moved { worker, from: Some(from), to } => {
                write!(f, "moved {worker} from context {} to {}", from.0, to.0)
            }
            Event::TransferStarted(transfer) => write!(f, "transfer {transfer}"),
            Event::TransferEnded(transfer) => write!(f, "arrived {transfer}"),
            Event::Sent(message) => write!(f, "sends {message}"),
            Event::Received(message) => write!(f, "received {message}"),
            Event::Refused { task, node, why } => write!(f, "refused {task} by node {} ({why})", node.0),
            Event::Noted { note } => write!(f, "remark {}", note.0),
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

impl fmt::Display for RankMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.data {
            Some(data) => write!(f, "data {}", data.0)?,
            None => f.write_str("an end")?,
        }
        write!(f, " from rank {} to rank {}", self.from, self.to)
    }
}

impl fmt::Display for Stamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.nanos, self.event)
    }
}
