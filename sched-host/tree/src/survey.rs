//! State of a running tree.

use super::claims::Silence;
use super::fault::{Fault, FaultKind, task_count};
use std::fmt;

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

impl NodeState {
    /// Whether a stall may be due to the node: it holds tasks, refused some, passed nothing on, or failed.
    #[must_use]
    pub fn is_of_interest(&self) -> bool {
        self.tasks > 0 || self.refusals > 0 || self.quarantined || !self.silences.is_empty()
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}` ({} of {}", self.node, self.component, self.plugin)?;
        if !self.context.is_empty() {
            write!(f, ", context `{}`", self.context)?;
        }
        write!(f, ") holds {}", task_count(self.tasks))?;
        if let Some(why) = &self.last_refusal {
            let times = if self.refusals == 1 { "once".to_owned() } else { format!("{} times", self.refusals) };
            write!(f, ", refused {times}, last: {why}")?;
        }
        if self.quarantined {
            f.write_str(", is quarantined")?;
        }
        self.silences.iter().try_for_each(|silence| write!(f, ", {silence}"))?;
        self.facts.iter().try_for_each(|(name, value)| write!(f, ", {name}: {value}"))
    }
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
