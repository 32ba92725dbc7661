//! Observers of tasks in a tree, from which traces are recorded.

use super::LiveTree;
use super::call::Call;
use super::ledger::{NodeId, Phase, Slot};
use super::node::TreeNode;
use super::services::Services;
use sched_core::abi::RawTask;
use sched_core::abi::extension::RawProspect;
use sched_core::{Estimate, LogLevel, Refusal, TaskId, WorkerId};
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

    /// Whether [`chose`](Self::chose) is called for a task: each call asks for the prospects of all children.
    fn wants_choices(&self, task: TaskId) -> bool {
        let _ = task;
        false
    }

    /// A node whose children have different workers pushes a task to one of them.
    fn chose(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, choice: Choice) {
        let _ = (nanos, by, task, choice);
    }
}

/// A node pushes a task to one of its children: what it can know of each at that moment, whether or not it asks.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// Name of the component at the node.
    pub component: String,
    /// The node.
    pub from: ObservedNode,
    /// Place of the chosen child among `children`.
    pub chosen: usize,
    /// All children, in order.
    pub children: Vec<Alternative>,
}

/// A child that a task could be pushed to.
#[derive(Clone, PartialEq, Debug)]
pub struct Alternative {
    /// The child.
    pub node: ObservedNode,
    /// The workers below.
    pub workers: Vec<WorkerId>,
    /// Whether any of them can execute the task.
    pub is_able: bool,
    /// When the child expects to have done what it has, in nanoseconds.
    pub free_at: u64,
    /// Expected length of the transfers of the task's data, in nanoseconds.
    pub transfer: u64,
    /// Expected length of the task on the best worker, in nanoseconds; `None` if unknown.
    pub length: Option<u64>,
    /// Expected energy there, in joules.
    pub energy: Option<f64>,
}

impl Alternative {
    /// When the task would end there, in nanoseconds, if it is pushed at `now`: it starts when the child is free and
    /// the data is there, which is transferred meanwhile. `None` if its length is unknown.
    #[must_use]
    pub fn end(&self, now: u64) -> Option<u64> {
        let start = self.free_at.max(now).max(now.saturating_add(self.transfer));
        Some(start.saturating_add(self.length?))
    }
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

    /// A push into `node` succeeded, or `node` reports work: it stores the task, unless it passed the task on.
    #[cold]
    pub(super) fn taken(&self, call: &Call<'_>, node: &TreeNode, slot: &Slot) {
        if slot.phase() == Phase::InTree(node.number) && call.note_stored(slot, node.id) {
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
    /// Reports that the component of `from` pushes a task to the child `to`, if the observer wants to know.
    #[cold]
    #[inline(never)]
    pub(super) fn note_choice(&self, call: &Call<'_>, from: NodeId, to: NodeId, slot: &Slot) {
        let Some(observed) = &self.observed else { return };
        let (from, task) = (&self.nodes[from.index()], id(slot));
        if !observed.observer.wants_choices(task) || !self.chooses_workers(from) {
            return;
        }
        let Some(chosen) = from.children.iter().position(|child| *child == to) else { return };
        let alternative = |child: &NodeId| {
            let below = &self.nodes[child.index()];
            let RawProspect { able, length, transfer, energy } = self.prospect_below(from, below, slot.head());
            Alternative {
                node: observed.node(below),
                workers: below.workers_in_context().collect(),
                is_able: able > 0,
                free_at: self.hop_estimated_end(call, *child),
                transfer,
                length: Estimate::from_wire(length).known().map(|length| length.as_nanos() as u64),
                energy: (!energy.is_nan()).then_some(energy),
            }
        };
        let children = from.children.iter().map(alternative).collect();
        let choice = Choice { component: from.origin.component.clone(), from: observed.node(from), chosen, children };
        observed.observer.chose(self.services.now().as_nanos(), call.requester, task, choice);
        call.forget_time();
    }

    /// Whether the children of a node have different workers below.
    fn chooses_workers(&self, node: &TreeNode) -> bool {
        let below = |child: &NodeId| &self.nodes[child.index()].place().raw().workers_in_context;
        node.children.windows(2).any(|pair| below(&pair[0]) != below(&pair[1]))
    }

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
