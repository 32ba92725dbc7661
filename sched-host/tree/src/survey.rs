//! What can be said of a tree at work.

/// Where tasks sit at one node, and what it says about itself.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct NodeState {
    /// The context that the tree schedules for; empty where there is but one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The node, by its path in the tree.
    pub node: String,
    /// The component in it.
    pub component: String,
    /// The plugin it came from.
    pub plugin: String,
    /// Tasks that it holds.
    pub tasks: u64,
    /// Tasks that it refused so far.
    pub refusals: u64,
    /// Why it last refused one.
    pub last_refusal: Option<String>,
    /// Whether it failed, and calls pass through it.
    pub quarantined: bool,
    /// What the component says about itself.
    pub facts: Vec<(String, String)>,
}
