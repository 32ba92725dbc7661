//! Which workers are below, and what they are.

use super::{Child, Node, some_id};
use crate::abi::extension::{HostTeams, WorkerDistance, offered};
use crate::abi::wire::place;
use crate::workers::{Arch, MemoryNode, WorkerId, WorkerSet, members};

impl Node<'_> {
    /// All workers below.
    #[must_use]
    pub fn workers(&self) -> WorkerSet {
        WorkerSet::from_words(&self.place().workers)
    }

    /// The workers below that the scheduling context has now.
    #[must_use]
    pub fn workers_in_context(&self) -> WorkerSet {
        WorkerSet::from_words(&self.place().workers_in_context)
    }

    /// The members of [`workers_in_context`](Self::workers_in_context), in order. Does not allocate.
    pub fn each_worker_in_context(&self) -> impl Iterator<Item = WorkerId> {
        members(&self.place().workers_in_context)
    }

    /// Number of workers below that the scheduling context has now. Does not allocate.
    #[must_use]
    pub fn count_in_context(&self) -> u32 {
        self.place().workers_in_context.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether `worker` is below and in the scheduling context now. Does not allocate.
    #[must_use]
    pub fn has_in_context(&self, worker: WorkerId) -> bool {
        contains(&self.place().workers_in_context, worker)
    }

    /// All workers below a child.
    #[must_use]
    pub fn child_workers(&self, child: Child) -> WorkerSet {
        self.child_place(child).map_or_else(WorkerSet::new, |place| WorkerSet::from_words(&place.workers))
    }

    /// The workers below a child that the scheduling context has now, in order. Does not allocate.
    pub fn each_child_worker_in_context(&self, child: Child) -> impl Iterator<Item = WorkerId> {
        members(self.child_place(child).map_or(&[], |place| &place.workers_in_context))
    }

    /// Whether `worker` is below a child. Does not allocate.
    #[must_use]
    pub fn child_has_worker(&self, child: Child, worker: WorkerId) -> bool {
        self.child_place(child).is_some_and(|place| contains(&place.workers, worker))
    }

    /// The worker that a child stands for, if the child is a worker.
    #[must_use]
    pub fn child_worker(&self, child: Child) -> Option<WorkerId> {
        some_id(self.child_place(child)?.worker).map(WorkerId)
    }

    /// The worker that this node stands for, if it is a leaf.
    #[must_use]
    pub fn worker(&self) -> Option<WorkerId> {
        some_id(self.place().worker).map(WorkerId)
    }

    /// The simple workers that a combined worker is made of, in order of their ranks; for a simple worker, itself. None for
    /// a worker that does not exist. (Since 1.1: with an older host every worker is a simple one.)
    pub fn members(&self, worker: WorkerId) -> impl Iterator<Item = WorkerId> {
        let table = offered::<HostTeams>(self.raw.host());
        let call = self.raw.call();
        let size = table.map_or(1, |table| (table.size)(call, worker.0));
        (0..size).filter_map(move |rank| match table {
            Some(table) => some_id((table.member)(call, worker.0, rank)).map(WorkerId),
            None => Some(worker),
        })
    }

    /// The architecture of a worker, if there is such a worker.
    #[must_use]
    pub fn arch(&self, worker: WorkerId) -> Option<Arch> {
        let worker = self.raw.host().worker(worker.0).into_option()?;
        Arch::new(u8::try_from(worker.arch).ok()?)
    }

    /// The memory node of a worker, if there is such a worker.
    #[must_use]
    pub fn memory_node(&self, worker: WorkerId) -> Option<MemoryNode> {
        Some(MemoryNode(self.raw.host().worker(worker.0).into_option()?.memory_node))
    }

    /// Whether all workers below have one architecture.
    #[must_use]
    pub fn is_homogeneous(&self) -> bool {
        self.place().flags & place::HOMOGENEOUS != 0
    }

    /// The memory node of all workers below, if they share one.
    #[must_use]
    pub fn single_memory_node(&self) -> Option<MemoryNode> {
        some_id(self.place().memory_node).map(MemoryNode)
    }

    /// Whether data is ever moved between memory nodes. Where it is not, [`expected_transfer`](Self::expected_transfer) is
    /// none for every task, and need not be asked. (Since 1.1: an older host says that it is.)
    #[must_use]
    pub fn has_transfers(&self) -> bool {
        self.place().flags & place::NO_TRANSFERS == 0
    }

    /// How far apart two workers are on the machine: 0 on the same processing unit, and the more the less they share (core,
    /// caches, package, memory node). Only the order means something: numbers differ from one machine to another, so they
    /// are compared, and nothing is computed with them. Between three workers, the two larger of the three distances are
    /// equal.
    ///
    /// `None` where the host does not know, for one or for both: for workers that stand nowhere in its topology, and in
    /// hosts of before 1.1.
    #[must_use]
    pub fn worker_distance(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        let table = offered::<WorkerDistance>(self.raw.host())?;
        some_id((table.between)(self.raw.call(), self.id(), one.0, other.0))
    }

    /// Sum of the relative speeds of the workers below that the context has now; a CPU core counts 1. A combined worker
    /// counts as its members, and each of these once, whatever stands for it.
    #[must_use]
    pub fn relative_speedup(&self) -> f64 {
        self.place().relative_speedup
    }

    /// The same below a child.
    #[must_use]
    pub fn child_relative_speedup(&self, child: Child) -> f64 {
        self.child_place(child).map_or(0.0, |place| place.relative_speedup)
    }
}

fn contains(words: &[u64], worker: WorkerId) -> bool {
    words.get((worker.0 / 64) as usize).is_some_and(|word| word & (1 << (worker.0 % 64)) != 0)
}
