//! A policy laid over a machine: one node for each component that will exist.

use sched_core::{ArchSet, ComponentInfo, Params, WorkerId, WorkerSet};
use sched_text::{SourceText, Span};
use std::ops::Index;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of a node in its [`TreePlan`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIndex(pub usize);

/// A policy laid over a machine: the components that `sched tree` draws and the tree is assembled from.
///
/// A directed acyclic graph: a shared node has several parents.
#[derive(Clone, Debug)]
pub struct TreePlan {
    /// Name of the policy.
    pub policy: String,
    /// The nodes, parents before children; the root is the first.
    pub nodes: Vec<PlanNode>,
    /// The text that spans of nodes point into.
    pub source: Option<SourceText>,
}

/// One component of a [`TreePlan`].
#[derive(Clone, Debug)]
pub struct PlanNode {
    /// Its number in the plan.
    pub id: NodeIndex,
    /// The component's description of itself; its name is `info.name`.
    pub info: Arc<ComponentInfo>,
    /// Name of the plugin that provides it.
    pub plugin: String,
    /// The plugin's file; `None` for a component that is compiled in.
    pub file: Option<PathBuf>,
    /// Every declared parameter with the value that the policy sets, or the default.
    pub params: Params,
    /// The children in the order of the policy (in the order that the component declares its slots).
    pub children: Vec<Child>,
    /// The parents, in the order of the plan; empty for the root.
    pub parents: Vec<NodeIndex>,
    /// All workers below it.
    pub workers: WorkerSet,
    /// Those of them that the policy is laid over. They are all, except below a part that contexts share.
    pub workers_in_context: WorkerSet,
    /// What it is in all contexts, if it is [shared between contexts](crate::Shared::between_contexts).
    pub between_contexts: Option<SharedNode>,
    /// Their architectures.
    pub archs: ArchSet,
    /// The worker that a leaf hands tasks to.
    pub leaf_worker: Option<WorkerId>,
    /// Part of the machine that the innermost enclosing `each` stands for: `worker 3`, `numa 1`; `machine` outside
    /// every `each`.
    pub place: String,
    /// Unique name: the path from the root or from the shared definition, such as `fifo/eager/worker 1/fifo`.
    pub path: String,
    /// Place of the component's name in the policy text.
    pub span: Span,
}

/// A component that contexts share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedNode {
    /// Name of the shared definition that it belongs to.
    pub part: String,
    /// Its name, unique among the components that contexts share.
    pub name: String,
    /// The definition as text, in one line.
    pub text: String,
}

/// A link from a node to one of its children.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Child {
    /// The child.
    pub node: NodeIndex,
    /// The slot it fills, of a parent with slots.
    pub slot: Option<String>,
}

impl PlanNode {
    /// Whether it is declared to store any number of tasks, so that it never refuses one.
    #[must_use]
    pub fn stores_any_number(&self) -> bool {
        self.info.stores && self.bounds().next().is_none()
    }

    /// The parameters whose value is not the default.
    pub fn changed_params(&self) -> impl Iterator<Item = (&str, &sched_core::Value)> {
        self.params.iter().filter(|(name, value)| self.info.param(name).is_none_or(|param| param.default != **value))
    }
}

impl TreePlan {
    /// The root, where tasks enter.
    ///
    /// # Panics
    /// If the plan is empty, which [`expand`](super::expand()) never returns.
    #[must_use]
    pub fn root(&self) -> &PlanNode {
        &self.nodes[0]
    }

    /// The leaf that hands tasks to `worker`.
    #[must_use]
    pub fn leaf(&self, worker: WorkerId) -> Option<&PlanNode> {
        self.nodes.iter().find(|node| node.leaf_worker == Some(worker))
    }

    /// The node of this path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&PlanNode> {
        self.nodes.iter().find(|node| node.path == path)
    }
}

impl Index<NodeIndex> for TreePlan {
    type Output = PlanNode;

    fn index(&self, index: NodeIndex) -> &PlanNode {
        &self.nodes[index.0]
    }
}
