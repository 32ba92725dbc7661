//! What components offer beyond the interface of all: to hear of the execution of tasks, and to hand on what they have
//! learnt.

use super::LiveTree;
use super::attendance::{Inside, Method};
use super::call::Call;
use super::ledger::{NodeId, Slot};
use super::node::TreeNode;
use super::{Tree, lane_of};
use sched_core::WorkerId;
use sched_core::abi::ComponentObject;
use sched_core::abi::extension::{ComponentExecution, ComponentState, Named, RawExecution, RawExtension};
use sched_core::abi::std_types::RStr;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

/// The extensions of a component that the host uses.
#[derive(Default)]
pub(super) struct Offered {
    execution: Option<Table<ComponentExecution>>,
    state: Option<Table<ComponentState>>,
}

/// A table that a component offers, and the pointer that its functions get. It is used as long as the component is
/// there: both are in one node, and move to another one together.
pub(super) struct Table<T: 'static> {
    pub(super) extension: RawExtension,
    pub(super) table: &'static T,
}

// SAFETY: the pointer leads to a component, whose methods any thread may call; the host does not read through it.
unsafe impl<T: Sync> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Table<T> {}

impl<T: Named> Table<T> {
    pub(super) fn of(component: &ComponentObject) -> Option<Table<T>> {
        let extension = component.extension(RStr::from(T::NAME)).into_option()?;
        // SAFETY: the extension was requested by the name of its type, and layouts were compared when the plugin was
        // loaded.
        Some(Table { extension, table: unsafe { extension.table::<T>() } })
    }
}

impl Offered {
    /// What a component offers. It is asked about executions only if it declares that it hears of them.
    pub(super) fn by(component: &ComponentObject, hears_tasks: bool) -> Offered {
        let execution = if hears_tasks { Table::of(component) } else { None };
        Offered { execution, state: Table::of(component) }
    }

    pub(super) fn hears_tasks(&self) -> bool {
        self.execution.is_some()
    }
}

/// The end of an execution, for those who hear of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskEnd {
    /// Time from the start to the end.
    pub length: Duration,
    /// Energy in joules, if known.
    pub energy: Option<f64>,
    /// Whether the task failed.
    pub failed: bool,
}

impl Tree {
    /// Notifies components above `worker`, simple or combined, that it starts a task of this tree, or with `end` that
    /// it has ended one. `thread` is the worker whose thread this is.
    #[cold]
    pub fn note_execution(&self, slot: &Slot, worker: WorkerId, thread: WorkerId, end: Option<TaskEnd>) {
        let repairs = self.live.inside(lane_of(Some(thread)), |live| {
            live.note_execution(slot, worker, thread, end);
            live.repairs.load(Acquire)
        });
        if repairs {
            self.repair();
        }
    }
}

impl LiveTree {
    fn note_execution(&self, slot: &Slot, worker: WorkerId, thread: WorkerId, end: Option<TaskEnd>) {
        if self.listeners.is_empty() {
            return;
        }
        let head = slot.head();
        let execution = RawExecution {
            task: head.sequence.load(Relaxed),
            footprint: head.footprint.load(Relaxed),
            predicted: head.predicted.load(Relaxed),
            length: end.map_or(0, |end| u64::try_from(end.length.as_nanos()).unwrap_or(u64::MAX)),
            energy: end.and_then(|end| end.energy).unwrap_or(f64::NAN),
            codelet: head.codelet.load(Relaxed),
            worker: worker.0,
            priority: head.priority.load(Relaxed),
            failed: u32::from(end.is_some_and(|end| end.failed)),
        };
        // Components know the workers of their context only.
        let requester = Some(thread).filter(|thread| self.leaf(*thread).is_some());
        let call = Call::new(self, requester, u32::MAX);
        for node in self.listeners.iter().map(|id| &self.nodes[id.index()]) {
            let Some(Table { extension, table }) = &node.offered.execution else { continue };
            if self.is_passed_by(node) || !node.workers_in_context().any(|below| below == worker) {
                continue;
            }
            let (method, notify) = match end {
                None => (Method::TaskStarted, table.started),
                Some(_) => (Method::TaskEnded, table.ended),
            };
            let _inside = node.post.as_ref().map(|post| Inside::new(post, method));
            node.with(&call, |_, raw| notify(extension.as_ptr(), raw, &execution));
        }
    }

    /// Whether calls pass the component of a node by. That of a shared part may have failed in another tree: what it
    /// offers beyond the interface of all is called directly, without a look at that.
    fn is_passed_by(&self, node: &TreeNode) -> bool {
        if !node.is_quarantined() && node.shared.as_ref().is_some_and(|part| part.has_failed()) {
            self.quarantine(node);
        }
        node.is_quarantined()
    }

    /// The nodes whose components hear of executions.
    pub(super) fn find_listeners(nodes: &[TreeNode]) -> Box<[NodeId]> {
        nodes.iter().filter(|node| node.offered.hears_tasks()).map(|node| node.id).collect()
    }

    /// What the component of a node leaves to its successor. The caller is alone.
    pub(super) fn export(&self, node: &TreeNode) -> Option<Vec<u8>> {
        let Table { extension, table } = node.offered.state.as_ref().filter(|_| !self.is_passed_by(node))?;
        let call = Call::new(self, None, u32::MAX);
        let state = node.with(&call, |_, raw| (table.export)(extension.as_ptr(), raw));
        self.quarantine_if_late(node, Method::Export);
        state.into_option().map(|state| state.as_slice().to_vec())
    }

    /// Hands what a predecessor left to the component of a node. The caller is alone.
    pub(super) fn import(&self, node: &TreeNode, state: &[u8]) {
        let Some(Table { extension, table }) = node.offered.state.as_ref().filter(|_| !self.is_passed_by(node)) else {
            return;
        };
        let call = Call::new(self, None, u32::MAX);
        node.with(&call, |_, raw| (table.import)(extension.as_ptr(), raw, state.into()));
        self.quarantine_if_late(node, Method::Import);
    }

    /// Lets calls pass a component by that did not come back from this one in time: it may hold a lock.
    pub(super) fn quarantine_if_late(&self, node: &TreeNode, method: Method) {
        if node.post.as_ref().is_some_and(|post| post.given_up() == Some(method)) {
            self.quarantine(node);
        }
    }
}
