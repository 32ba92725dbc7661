//! Observers of tasks in a tree, from which traces are recorded.

use super::LiveTree;
use super::call::Call;
use super::ledger::{Phase, Slot};
use super::node::TreeNode;
use super::services::Services;
use sched_core::abi::RawTask;
use sched_core::{LogLevel, Refusal, TaskId, WorkerId};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A node as an observer knows it: its index among the nodes of all observed trees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObservedNode(pub u32);

impl ObservedNode {
    /// The index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Observes which node stores a task, and which one refuses it. A tree asks its [`Services`] once for an observer;
/// without one a hop costs one more branch, with one also a clock read.
pub trait TreeObserver: Send + Sync {
    /// Registers a tree of nodes with these paths. Returns the first node; the others follow it. A run may have several
    /// trees, whose nodes have distinct numbers.
    fn nodes(&self, paths: &[&str]) -> ObservedNode;

    /// A ready task was pushed into a tree, by this worker or by the application.
    fn ready(&self, nanos: u64, by: Option<WorkerId>, task: TaskId);

    /// A node stores a task.
    fn held(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode);

    /// A node refused a task.
    fn refused(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode, why: Refusal);

    /// A node wrote a line to the log, or a fault of it was seen for the first time.
    fn noted(&self, nanos: u64, by: Option<WorkerId>, node: ObservedNode, kind: NoteKind, text: &str);
}

/// Kind of a remark about a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum NoteKind {
    /// A fault, at its first occurrence.
    Fault,
    /// A line of the log.
    Log(LogLevel),
}

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoteKind::Fault => "fault",
            NoteKind::Log(LogLevel::Error) => "error",
            NoteKind::Log(LogLevel::Warn) => "warning",
            NoteKind::Log(LogLevel::Info) => "information",
            NoteKind::Log(LogLevel::Debug) => "detail",
        })
    }
}

/// The observer of one tree.
pub(super) struct Observed {
    observer: Arc<dyn TreeObserver>,
    /// The root.
    first: ObservedNode,
}

impl Observed {
    /// The observer of `services`, if any, for a tree of nodes with these paths.
    pub(super) fn of(services: &dyn Services, paths: &[&str]) -> Option<Observed> {
        let observer = services.tree_observer()?;
        let first = observer.nodes(paths);
        Some(Observed { observer, first })
    }

    fn node(&self, node: &TreeNode) -> ObservedNode {
        ObservedNode(self.first.0 + node.id.0)
    }

    #[cold]
    pub(super) fn ready(&self, tree: &LiveTree, by: Option<WorkerId>, slot: &Slot) {
        self.observer.ready(tree.services.now().as_nanos(), by, id(slot));
    }

    /// A push into `node` succeeded: the node stores the task, unless it passed the task on.
    #[cold]
    pub(super) fn taken(&self, call: &Call<'_>, node: &TreeNode, slot: &Slot) {
        if slot.phase() == Phase::InTree(node.number) {
            let now = call.tree.services.now().as_nanos();
            self.observer.held(now, call.requester, id(slot), self.node(node));
        }
    }

    #[cold]
    pub(super) fn refused(&self, call: &Call<'_>, node: &TreeNode, task: RawTask, why: u32) {
        let Some(slot) = Slot::of(task) else { return };
        let now = call.tree.services.now().as_nanos();
        self.observer.refused(now, call.requester, id(slot), self.node(node), Refusal::from_code(why));
    }
}

impl LiveTree {
    /// Reports a remark about a node to the observer, if there is one.
    #[cold]
    pub(super) fn note(&self, call: &Call<'_>, node: &TreeNode, kind: NoteKind, text: impl FnOnce() -> String) {
        if let Some(Observed { observer, first }) = &self.observed {
            let now = self.services.now().as_nanos();
            observer.noted(now, call.requester, ObservedNode(first.0 + node.id.0), kind, &text());
        }
    }
}

fn id(slot: &Slot) -> TaskId {
    TaskId::new(slot.head().sequence.load(Relaxed))
}
