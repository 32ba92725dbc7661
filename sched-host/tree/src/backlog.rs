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

/// Counters of several nodes on one cache line. Nodes above the same single worker share a line, since who compares
/// ends reads all of them; workers do not, since each writes those of its leaves.
#[derive(Default)]
#[repr(align(64))]
struct Line([AtomicU64; LANES]);

/// Longest queue that is counted, about two years: a line of counters can be summed without overflow.
const LONGEST: u64 = u64::MAX / 256;

/// Number of counters on a cache line.
const LANES: usize = 8;

/// The last counter of a line, which no node has.
const ZERO: u8 = LANES as u8 - 1;

/// Expected length in nanoseconds of the tasks queued at a node.
#[derive(Clone, Default)]
pub(super) struct Queued {
    line: Arc<Line>,
    lane: u8,
}

impl Queued {
    #[inline]
    pub(super) fn nanos(&self) -> u64 {
        self.line.0[usize::from(self.lane)].load(Relaxed)
    }

    #[inline]
    pub(super) fn set(&self, nanos: u64) {
        self.line.0[usize::from(self.lane)].store(nanos.min(LONGEST), Relaxed);
    }

    /// The next counter on the cache line of this one; on a line of its own if this is the last.
    pub(super) fn beside(&self) -> Queued {
        match self.lane + 1 {
            lane if lane < ZERO => Queued { line: Arc::clone(&self.line), lane },
            _ => Queued::default(),
        }
    }

    fn is(&self, other: &Queued) -> bool {
        Arc::ptr_eq(&self.line, &other.line) && self.lane == other.lane
    }
}

/// Sum of several counters.
pub(super) struct QueuedSum {
    line: Arc<Line>,
    /// Counters on that line; the rest is [`ZERO`].
    lanes: [u8; 4],
    /// Further counters.
    others: Box<[Queued]>,
}

impl QueuedSum {
    /// The sum of these counters.
    pub(super) fn of<'a>(counters: impl Iterator<Item = &'a Queued>) -> QueuedSum {
        let counters: Vec<&Queued> = counters.collect();
        let line = counters.last().map_or_else(Arc::default, |last| Arc::clone(&last.line));
        let (mut lanes, mut others) = ([ZERO; 4], Vec::new());
        let mut free = lanes.iter_mut();
        for counter in counters {
            match (Arc::ptr_eq(&counter.line, &line)).then(|| free.next()).flatten() {
                Some(lane) => *lane = counter.lane,
                None => others.push(counter.clone()),
            }
        }
        QueuedSum { line, lanes, others: others.into() }
    }

    #[inline]
    pub(super) fn nanos(&self) -> u64 {
        // Without a loop, for the sake of components that compare a thousand sums.
        let of = |lane: u8| self.line.0[usize::from(lane) % LANES].load(Relaxed);
        let [a, b, c, d] = self.lanes;
        let sum = of(a) + of(b) + of(c) + of(d);
        if self.others.is_empty() {
            return sum;
        }
        self.others.iter().map(Queued::nanos).fold(sum, u64::saturating_add)
    }
}

/// The queues of one tree.
struct Backlog {
    /// Number of the tree's first node.
    tree: NodeNumber,
    /// Queues in which tasks for a worker wait, by worker.
    by_worker: Box<[Vec<Queued>]>,
}

/// The queues of all trees that share a ledger.
#[derive(Default)]
pub(super) struct Backlogs {
    /// Number of trees with queues for a worker, by worker. Trees of one ledger have the same workers.
    serving: OnceLock<Box<[AtomicU32]>>,
    trees: RwLock<Vec<Backlog>>,
    /// Number of trees.
    count: AtomicU32,
}

impl Backlogs {
    /// Adds a tree, whose first node has this number. `leaves_for` are the leaves of each worker, alone or in a team.
    pub(super) fn add(&self, tree: NodeNumber, nodes: &[TreeNode], leaves_for: &[Box<[NodeId]>]) {
        let queue = |node: &NodeId| nodes[node.index()].queued.clone();
        let mut by_worker: Box<[Vec<_>]> = leaves_for.iter().map(|leaves| leaves.iter().map(queue).collect()).collect();
        for node in nodes.iter().filter(|node| node.place().leaf_worker().is_none()) {
            if let Some((worker, _)) = &node.straight {
                by_worker[worker.index()].push(node.queued.clone());
            }
        }
        let serving = self.serving.get_or_init(|| by_worker.iter().map(|_| AtomicU32::new(0)).collect());
        let mut trees = self.trees.write();
        for (count, _) in serving.iter().zip(&by_worker).filter(|(_, queues)| !queues.is_empty()) {
            count.fetch_add(1, Relaxed);
        }
        trees.push(Backlog { tree, by_worker });
        self.count.store(trees.len() as u32, Relaxed);
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
        self.count.store(trees.len() as u32, Relaxed);
    }

    /// Whether there is one tree at most, so that nothing is queued in others.
    #[inline]
    pub(super) fn is_single(&self) -> bool {
        self.count.load(Relaxed) < 2
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
        let queues = |backlog| queues_of(backlog, worker);
        let own = || trees.iter().filter(|backlog| backlog.tree == tree).flat_map(queues);
        let others = || trees.iter().filter(|backlog| backlog.tree != tree).flat_map(queues);
        // A queue that trees share is one.
        let is_first =
            |(place, queued): &(usize, &Queued)| !own().chain(others().take(*place)).any(|before| before.is(queued));
        others().enumerate().filter(is_first).fold(0, |sum, (_, queued)| sum.saturating_add(queued.nanos()))
    }
}

/// The queues of a tree in which tasks for a worker wait.
fn queues_of(backlog: &Backlog, worker: WorkerId) -> &[Queued] {
    backlog.by_worker.get(worker.index()).map_or(&[], |queues| queues)
}
