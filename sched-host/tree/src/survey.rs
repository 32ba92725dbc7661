//! State of a running tree.

use super::claims::Silence;
use super::fault::{Fault, FaultKind};

/// State of one node, including its own description.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct NodeState {
    /// The context that the tree schedules for; empty if there is only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The node, by its path in the tree.
    pub node: String,
    /// The component in it.
    pub component: String,
    /// The plugin it came from.
    pub plugin: String,
    /// Number of tasks that it holds.
    pub tasks: u64,
    /// Number of refusals so far.
    pub refusals: u64,
    /// Reason of the last refusal.
    pub last_refusal: Option<String>,
    /// Whether it failed, so that calls pass through it.
    pub quarantined: bool,
    /// Methods that passed nothing on although somebody waited for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<Silence>,
    /// Description by the component itself.
    pub facts: Vec<(String, String)>,
}

/// The node that a stall is probably due to, and why: one that does not do what it declares, or else the one that most
/// often passed nothing on although somebody waited for it. `None` if nothing speaks against any node: then the tasks
/// are where they are.
#[must_use]
pub fn suspect<'a>(nodes: &'a [NodeState], faults: &[Fault]) -> Option<(&'a NodeState, String)> {
    let lies = |node: &&NodeState| {
        let of_node = faults.iter().filter(|fault| (&fault.context, &fault.node) == (&node.context, &node.node));
        of_node.into_iter().any(|fault| matches!(fault.kind, FaultKind::Declaration { .. }))
    };
    if let Some(liar) = nodes.iter().find(lies) {
        return Some((liar, "it does not do what it declares".to_owned()));
    }
    let silences = nodes.iter().flat_map(|node| node.silences.iter().map(move |silence| (node, silence)));
    silences.max_by_key(|(_, silence)| silence.count).map(|(node, silence)| (node, silence.to_string()))
}
