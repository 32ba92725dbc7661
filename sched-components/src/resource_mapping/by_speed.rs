//! The order in which eager components offer tasks to their children: the fastest first.

use sched_core::*;
use std::sync::OnceLock;

/// The children of a node in groups of equal speed ([`Node::child_relative_speedup`]), the fastest group first.
///
/// A slow child gets a task only while all faster ones have enough to do. With plain round-robin, a machine with 9
/// cores and 3 GPUs takes two to eight times as long for a Cholesky factorisation, because a core delays the
/// factorisation whenever it takes a task on the critical path.
#[derive(Debug, Default)]
pub(super) struct BySpeed {
    /// Computed on first use: children and speeds do not change during a tree's life.
    groups: OnceLock<Box<[Box<[Child]>]>>,
}

impl BySpeed {
    /// Every child once, the fastest first; within a group, the child of the requesting worker, then the others in
    /// turn, starting with `next`. Without `next` those of a group come as in the policy.
    pub(super) fn order(&self, node: Node<'_>, next: Option<Child>) -> impl Iterator<Item = Child> {
        let favourite = next
            .and_then(|_| node.requester())
            .and_then(|worker| node.children().find(|to| node.child_has_worker(*to, worker)));
        let next = next.unwrap_or(Child(0));
        let groups = self.groups.get_or_init(|| sorted(node));
        groups.iter().flat_map(move |group| {
            let (before, from) = group.split_at(group.partition_point(|child| *child < next));
            let others = from.iter().chain(before).copied().filter(move |child| Some(*child) != favourite);
            favourite.filter(|child| group.contains(child)).into_iter().chain(others)
        })
    }
}

fn sorted(node: Node<'_>) -> Box<[Box<[Child]>]> {
    let speed = |child: &Child| node.child_relative_speedup(*child);
    let mut children: Vec<Child> = node.children().collect();
    children.sort_by(|one, other| speed(other).total_cmp(&speed(one)));
    children.chunk_by(|one, other| speed(one) == speed(other)).map(Box::from).collect()
}
