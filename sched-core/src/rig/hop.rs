//! What the component did during the calls.

use crate::component::Refusal;
use crate::node::{Child, Parent};
use crate::task::TaskId;
use crate::workers::{MemoryNode, WorkerId};

/// One hop of the component under test to a fake neighbour, with the answer; or a prefetch, which is a service but tells
/// as much.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Hop {
    /// It pushed a task to a child.
    PushTo {
        /// The child.
        child: Child,
        /// The task.
        task: TaskId,
        /// `None` when the child took it.
        refused: Option<Refusal>,
    },
    /// It pulled from a parent.
    PullFrom {
        /// The parent, or `None` for each in order.
        parent: Option<Parent>,
        /// What it got.
        task: Option<TaskId>,
    },
    /// It told the parents that it has room.
    ParentsCanPush {
        /// Whether one sent something.
        sent: bool,
    },
    /// It told children that there is work.
    ChildCanPull {
        /// The child, or `None` for each in order.
        child: Option<Child>,
        /// The worker that was woken.
        woke: Option<WorkerId>,
    },
    /// It woke workers below.
    Wake {
        /// Those that slept until then.
        woke: Vec<WorkerId>,
    },
    /// It asked when a child will have nothing left to do.
    EstimatedEnd(Child),
    /// It asked for the load of a child.
    EstimatedLoad(Child),
    /// It had the data of a task brought to a memory node.
    Prefetch(TaskId, MemoryNode),
}
