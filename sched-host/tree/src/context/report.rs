//! What the trees of several contexts report, context by context.

use crate::{Fault, NodeState, Tree};

/// What components did wrong in contexts with these names and trees. Faults name their context, unless its name here is
/// empty: that is for reports where there is only one.
#[must_use]
pub fn faults_of<'a>(contexts: impl IntoIterator<Item = (String, &'a Tree)>) -> Vec<Fault> {
    let of = |(name, tree): (String, &'a Tree)| {
        tree.faults().into_iter().map(move |fault| Fault { context: name.clone(), ..fault })
    };
    contexts.into_iter().flat_map(of).collect()
}

/// Where the tasks of contexts with these names and trees are now. Names are used as in [`faults_of`].
#[must_use]
pub fn survey_of<'a>(contexts: impl IntoIterator<Item = (String, &'a Tree)>) -> Vec<NodeState> {
    let of = |(name, tree): (String, &'a Tree)| {
        tree.survey().into_iter().map(move |state| NodeState { context: name.clone(), ..state })
    };
    contexts.into_iter().flat_map(of).collect()
}
