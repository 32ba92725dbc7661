//! A task that comes straight back: a worker that has pushed it, and pulls, gets that task.
//!
//! Where the components of a tree are declared to do so ([`newest_comes_back`](sched_core::Info::newest_comes_back)),
//! both calls may be saved: the worker goes on with the task, which never enters the tree. Most tasks of a graph are
//! made ready by the worker that executes them next, so this is most of what queues for each worker are called for.
//!
//! That holds while no task has a priority. Once one was pushed that has, every task is: the tree may have a more
//! urgent one for the worker. Parallel tasks are pushed, for combined workers to be seen.
//!
//! A task that [waits at home](sched_core::Info::waits_at_home) may do so outside the tree as well: it would lie in the
//! queue of that worker until that pulls, or another one finds nothing else. Whoever can find it without the tree (see
//! [`at_home`](sched_sync::at_home)) need not push it. So does what a worker has made ready beside the task that it
//! goes on with, in a place where others find it ([`at_hand`](sched_sync::at_hand)).
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
    /// Whether tasks wait at home besides.
    at_home: AtomicBool,
}

impl StraightBack {
    /// Notes which kind of tree the context has from now on.
    pub(super) fn set(&self, saves: Saves) {
        self.is_on.store(saves.newest, Relaxed);
        self.at_home.store(saves.at_home, Relaxed);
    }
}

/// For which tasks a tree of this kind saves its calls.
#[derive(Clone, Copy, Default)]
pub(super) struct Saves {
    /// Those that a worker has pushed last.
    newest: bool,
    /// Those that are at home with a worker besides.
    at_home: bool,
}

impl Saves {
    /// For which tasks the tree of these nodes does.
    pub(super) fn by(nodes: &[TreeNode], leaves_for: &[Box<[super::NodeId]>]) -> Saves {
        let newest = comes_straight_back(nodes, leaves_for);
        Saves { newest, at_home: newest && nodes.first().is_some_and(|root| root.waits_at_home) }
    }
}

/// Whether a worker of such a tree gets from its next pull what it has pushed: its leaf is passed by, and asks the root
/// alone, which declares it.
fn comes_straight_back(nodes: &[TreeNode], leaves_for: &[Box<[super::NodeId]>]) -> bool {
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

    /// Whether a task without a priority that is at home with a worker, or nowhere and is made ready by that, may be
    /// kept for it, or for one that has nothing else to do, instead of being pushed.
    #[inline]
    #[must_use]
    pub fn waits_at_home(&self) -> bool {
        self.env.straight_back.at_home.load(Relaxed)
    }
}

impl LiveTree {
    /// Notes the priority of a task that is pushed.
    #[inline]
    pub(super) fn note_priority(&self, slot: &Slot) {
        if self.saves.newest && slot.head().priority.load(Relaxed) != 0 {
            self.straight_back.set(Saves::default());
        }
    }
}
