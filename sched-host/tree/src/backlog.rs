//! What is queued for a worker in the trees of other contexts.
//!
//! Contexts may share workers, which then serve them in turn. A tree that compares ends must know what a worker has to
//! do for the others, or two contexts both take it for idle. So nodes keep the expected length of their queues where
//! other trees can read it, and the ledger, which all trees of a runtime share, lists these counters by worker. The
//! list is not read for a worker that one tree has alone.

use super::ledger::{NodeId, NodeNumber};
use super::node::TreeNode;
use parking_lot::RwLock;
use sched_core::WorkerId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Expected length in nanoseconds of the tasks queued at a node. It has a cache line of its own, since each worker
/// writes those of its leaves.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Queued(AtomicU64);

impl Queued {
    #[inline]
    pub(super) fn nanos(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(super) fn set(&self, nanos: u64) {
        self.0.store(nanos, Relaxed);
    }
}

/// The queues of one tree.
struct Backlog {
    /// Number of the tree's first node.
    tree: NodeNumber,
    /// Queues in which tasks for a worker wait, by worker.
    by_worker: Box<[Vec<Arc<Queued>>]>,
}

/// The queues of all trees that share a ledger.
#[derive(Default)]
pub(super) struct Backlogs {
    /// Number of trees with queues for a worker, by worker. Trees of one ledger have the same workers.
    serving: OnceLock<Box<[AtomicU32]>>,
    trees: RwLock<Vec<Backlog>>,
}

impl Backlogs {
    /// Adds a tree, whose first node has this number. `leaves_for` are the leaves of each worker, alone or in a team.
    pub(super) fn add(&self, tree: NodeNumber, nodes: &[TreeNode], leaves_for: &[Box<[NodeId]>]) {
        let queue = |node: &NodeId| Arc::clone(&nodes[node.index()].queued);
        let mut by_worker: Box<[Vec<_>]> = leaves_for.iter().map(|leaves| leaves.iter().map(queue).collect()).collect();
        for node in nodes.iter().filter(|node| node.place().leaf_worker().is_none()) {
            if let Some((worker, _)) = &node.straight {
                by_worker[worker.index()].push(Arc::clone(&node.queued));
            }
        }
        let serving = self.serving.get_or_init(|| by_worker.iter().map(|_| AtomicU32::new(0)).collect());
        let mut trees = self.trees.write();
        for (count, _) in serving.iter().zip(&by_worker).filter(|(_, queues)| !queues.is_empty()) {
            count.fetch_add(1, Relaxed);
        }
        trees.push(Backlog { tree, by_worker });
    }

    /// Removes a tree.
    pub(super) fn remove(&self, tree: NodeNumber) {
        let mut trees = self.trees.write();
        let serving = self.serving.get().map_or(&[][..], |serving| serving);
        for gone in trees.extract_if(.., |backlog| backlog.tree == tree) {
            for (count, _) in serving.iter().zip(&gone.by_worker).filter(|(_, queues)| !queues.is_empty()) {
                count.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Expected length in nanoseconds of what is queued for a worker in all trees but one.
    #[inline]
    pub(super) fn of_others(&self, tree: NodeNumber, worker: WorkerId) -> u64 {
        let count = self.serving.get().and_then(|serving| serving.get(worker.index()));
        if count.is_none_or(|count| count.load(Relaxed) < 2) { 0 } else { self.sum_of_others(tree, worker) }
    }

    #[cold]
    fn sum_of_others(&self, tree: NodeNumber, worker: WorkerId) -> u64 {
        let trees = self.trees.read();
        let (own, others): (Vec<&Backlog>, Vec<&Backlog>) = trees.iter().partition(|backlog| backlog.tree == tree);
        let of = |backlogs: Vec<&'_ Backlog>| {
            let queues = backlogs.into_iter().filter_map(|backlog| backlog.by_worker.get(worker.index())).flatten();
            queues.map(Arc::as_ptr).collect::<Vec<_>>()
        };
        // A queue that trees share is one.
        let mut seen = of(own);
        let queues = others.iter().filter_map(|backlog| backlog.by_worker.get(worker.index())).flatten();
        let mut sum = 0_u64;
        for queued in queues {
            if !seen.contains(&Arc::as_ptr(queued)) {
                seen.push(Arc::as_ptr(queued));
                sum = sum.saturating_add(queued.nanos());
            }
        }
        sum
    }
}
