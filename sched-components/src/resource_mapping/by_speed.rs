//! Children in the order in which those who give tasks away eagerly offer them.

use sched_core::*;
use std::sync::OnceLock;

/// The children of a node, those of equal speed ([`Node::child_relative_speedup`]) together, the fastest first.
///
/// A slow child then gets a task while all faster ones have enough to do. Offered in turn alone, a machine of 9 cores and
/// 3 GPUs takes two to eight times as long for a Cholesky factorisation, which cores delay whenever they take a task that
/// its critical path needs.
#[derive(Debug, Default)]
pub(super) struct BySpeed {
    /// Made when first asked: children and speeds do not change while a tree lives.
    alike: OnceLock<Box<[Box<[Child]>]>>,
}

impl BySpeed {
    /// Every child once: the fastest first; of equally fast ones that of the worker that asks, then the others in turn,
    /// beginning with `next`.
    pub(super) fn order(&self, node: Node<'_>, next: Child) -> impl Iterator<Item = Child> {
        let favourite =
            node.requester().and_then(|worker| node.children().find(|to| node.child_has_worker(*to, worker)));
        let alike = self.alike.get_or_init(|| sorted(node));
        alike.iter().flat_map(move |alike| {
            let (before, from) = alike.split_at(alike.partition_point(|child| *child < next));
            let others = from.iter().chain(before).copied().filter(move |child| Some(*child) != favourite);
            favourite.filter(|child| alike.contains(child)).into_iter().chain(others)
        })
    }
}

fn sorted(node: Node<'_>) -> Box<[Box<[Child]>]> {
    let speed = |child: &Child| node.child_relative_speedup(*child);
    let mut children: Vec<Child> = node.children().collect();
    children.sort_by(|one, other| speed(other).total_cmp(&speed(one)));
    children.chunk_by(|one, other| speed(one) == speed(other)).map(Box::from).collect()
}
