//! Reports of several contexts.

use crate::{Fault, NodeState, Tree};

/// Faults of components in contexts with these names and trees. Faults name their context; an empty name is for reports
/// with only one context.
#[must_use]
pub fn faults_of<'a>(contexts: impl IntoIterator<Item = (String, &'a Tree)>) -> Vec<Fault> {
    let of = |(name, tree): (String, &'a Tree)| {
        tree.faults().into_iter().map(move |fault| Fault { context: name.clone(), ..fault })
    };
    contexts.into_iter().flat_map(of).collect()
}

/// State of the nodes of contexts with these names and trees. Names are used as in [`faults_of`].
#[must_use]
pub fn survey_of<'a>(contexts: impl IntoIterator<Item = (String, &'a Tree)>) -> Vec<NodeState> {
    let of = |(name, tree): (String, &'a Tree)| {
        tree.survey().into_iter().map(move |state| NodeState { context: name.clone(), ..state })
    };
    contexts.into_iter().flat_map(of).collect()
}
