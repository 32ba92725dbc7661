//! State of a running tree.

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
    /// Description by the component itself.
    pub facts: Vec<(String, String)>,
}
