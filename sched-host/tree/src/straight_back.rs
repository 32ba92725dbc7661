//! A task that comes straight back: a worker that has pushed it, and pulls, gets that task.
//!
//! Where the components of a tree are declared to do so ([`newest_comes_back`](sched_core::Info::newest_comes_back)),
//! both calls may be saved: the worker goes on with the task, which never enters the tree. Most tasks of a graph are
//! made ready by the worker that executes them next, so this is most of what queues for each worker are called for.
//!
//! That holds while no task has a priority. Once one was pushed that has, every task is: the tree may have a more
//! urgent one for the worker. Parallel tasks are pushed, for combined workers to be seen.
//!
//! The question is asked outside the [gate](sched_sync::gate). A tree that is exchanged meanwhile makes no difference:
//! the worker has its task as if it had pulled it just before.

use super::assembly::LiveTree;
use super::node::TreeNode;
use super::{Slot, Tree};
use sched_core::Arch;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// What is known of a context's tree outside the gate; in a cache line that is seldom written.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct StraightBack {
    /// Whether the tree gives a worker what it pushed last, and no task has a priority.
    is_on: AtomicBool,
}

impl StraightBack {
    /// Notes which kind of tree the context has from now on.
    pub(super) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Relaxed);
    }
}

/// Whether a worker of such a tree gets from its next pull what it has pushed: its leaf is passed by, and asks the root
/// alone, which declares it.
pub(super) fn comes_straight_back(nodes: &[TreeNode], leaves_for: &[Box<[super::NodeId]>]) -> bool {
    let declares = |node: &TreeNode| node.newest_comes_back && node.post.is_none() && node.shared.is_none();
    let asks_root = |leaves: &[super::NodeId]| match leaves {
        [] => true,
        [leaf] => match &nodes[leaf.index()].sources[..] {
            [source] => nodes[leaf.index()].is_passed_by() && source.parent.index() == 0,
            _ => false,
        },
        _ => false,
    };
    nodes.first().is_some_and(declares) && leaves_for.iter().all(|leaves| asks_root(leaves))
}

impl Tree {
    /// Whether the next pull of a worker of this architecture would give `slot`, if the worker pushed that now. The
    /// task is that of the caller, which serves no other context. If so, the worker may go on with it and save both
    /// calls.
    #[inline]
    #[must_use]
    pub fn comes_straight_back(&self, slot: &Slot, arch: Arch) -> bool {
        let head = slot.head();
        self.env.straight_back.is_on.load(Relaxed)
            && head.archs.load(Relaxed) & 1 << arch.number() != 0
            && head.priority.load(Relaxed) == 0
            && head.width.load(Relaxed) <= 1
    }
}

impl LiveTree {
    /// Notes the priority of a task that is pushed.
    #[inline]
    pub(super) fn note_priority(&self, slot: &Slot) {
        if self.comes_straight_back && slot.head().priority.load(Relaxed) != 0 {
            self.straight_back.set(false);
        }
    }
}
