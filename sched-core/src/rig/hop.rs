//! The hops that the component made during the calls.

use crate::component::Refusal;
use crate::node::{Child, Parent};
use crate::task::TaskId;
use crate::workers::{MemoryNode, WorkerId};

/// One hop of the component under test to a fake neighbour, with the answer; or a prefetch, a service that is recorded
/// as well.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Hop {
    /// A push to a child.
    PushTo {
        /// The child.
        child: Child,
        /// The task.
        task: TaskId,
        /// `None` if the child accepted it.
        refused: Option<Refusal>,
    },
    /// A pull from a parent.
    PullFrom {
        /// The parent; `None` for each in order.
        parent: Option<Parent>,
        /// The task that it got.
        task: Option<TaskId>,
    },
    /// A notification of the parents that there is room.
    ParentsCanPush {
        /// Whether one sent a task.
        sent: bool,
    },
    /// A notification of children that there is work.
    ChildCanPull {
        /// The child; `None` for each in order.
        child: Option<Child>,
        /// The worker that was woken.
        woke: Option<WorkerId>,
    },
    /// A wake of workers below.
    Wake {
        /// The workers that slept until then.
        woke: Vec<WorkerId>,
    },
    /// A query for when a child runs out of work.
    EstimatedEnd(Child),
    /// A query for the load of a child.
    EstimatedLoad(Child),
    /// A prefetch of a task's data to a memory node.
    Prefetch(TaskId, MemoryNode),
}
