//! The workers below, and their properties.

use super::{Child, Node, some_id};
use crate::abi::extension::{HostTeams, WorkerDistance, offered};
use crate::abi::wire::place;
use crate::workers::{Arch, MemoryNode, WorkerId, WorkerSet, members};

impl Node<'_> {
    /// All workers below. In a part that [contexts share](crate::Component#parts-that-contexts-share), those of other
    /// contexts are among them.
    #[inline]
    #[must_use]
    pub fn workers(&self) -> WorkerSet {
        WorkerSet::from_words(&self.place().workers)
    }

    /// The workers below that are in the scheduling context now.
    #[inline]
    #[must_use]
    pub fn workers_in_context(&self) -> WorkerSet {
        WorkerSet::from_words(&self.place().workers_in_context)
    }

    /// The members of [`workers_in_context`](Self::workers_in_context), in order. Does not allocate.
    #[inline]
    pub fn each_worker_in_context(&self) -> impl Iterator<Item = WorkerId> {
        members(&self.place().workers_in_context)
    }

    /// Number of workers below that are in the scheduling context now. Does not allocate.
    #[inline]
    #[must_use]
    pub fn count_in_context(&self) -> u32 {
        self.place().workers_in_context.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether `worker` is below and in the scheduling context now. Does not allocate.
    #[inline]
    #[must_use]
    pub fn has_in_context(&self, worker: WorkerId) -> bool {
        contains(&self.place().workers_in_context, worker)
    }

    /// All workers below a child.
    #[inline]
    #[must_use]
    pub fn child_workers(&self, child: Child) -> WorkerSet {
        self.child_place(child).map_or_else(WorkerSet::new, |place| WorkerSet::from_words(&place.workers))
    }

    /// The workers below a child that are in the scheduling context now, in order. Does not allocate.
    #[inline]
    pub fn each_child_worker_in_context(&self, child: Child) -> impl Iterator<Item = WorkerId> {
        members(self.child_place(child).map_or(&[], |place| &place.workers_in_context))
    }

    /// Whether `worker` is below a child. Does not allocate.
    #[inline]
    #[must_use]
    pub fn child_has_worker(&self, child: Child, worker: WorkerId) -> bool {
        self.child_place(child).is_some_and(|place| contains(&place.workers, worker))
    }

    /// The worker that a child stands for, if the child is a worker.
    #[inline]
    #[must_use]
    pub fn child_worker(&self, child: Child) -> Option<WorkerId> {
        some_id(self.child_place(child)?.worker).map(WorkerId)
    }

    /// The worker that this node stands for, if it is a leaf.
    #[inline]
    #[must_use]
    pub fn worker(&self) -> Option<WorkerId> {
        some_id(self.place().worker).map(WorkerId)
    }

    /// The simple workers that make up a combined worker, in order of rank; for a simple worker, itself. Empty for a
    /// worker that does not exist. (Since 1.1; with an older host every worker is a simple one.)
    #[inline]
    pub fn members(&self, worker: WorkerId) -> impl Iterator<Item = WorkerId> {
        let table = offered::<HostTeams>(self.raw.host());
        let call = self.raw.call();
        let size = table.map_or(1, |table| (table.size)(call, worker.0));
        (0..size).filter_map(move |rank| match table {
            Some(table) => some_id((table.member)(call, worker.0, rank)).map(WorkerId),
            None => Some(worker),
        })
    }

    /// The architecture of a worker; `None` if there is no such worker.
    #[inline]
    #[must_use]
    pub fn arch(&self, worker: WorkerId) -> Option<Arch> {
        let worker = self.raw.host().worker(worker.0).into_option()?;
        Arch::new(u8::try_from(worker.arch).ok()?)
    }

    /// The memory node of a worker; `None` if there is no such worker.
    #[inline]
    #[must_use]
    pub fn memory_node(&self, worker: WorkerId) -> Option<MemoryNode> {
        Some(MemoryNode(self.raw.host().worker(worker.0).into_option()?.memory_node))
    }

    /// Whether all workers below have one architecture.
    #[inline]
    #[must_use]
    pub fn is_homogeneous(&self) -> bool {
        self.place().flags & place::HOMOGENEOUS != 0
    }

    /// The memory node of all workers below, if they share one.
    #[inline]
    #[must_use]
    pub fn single_memory_node(&self) -> Option<MemoryNode> {
        some_id(self.place().memory_node).map(MemoryNode)
    }

    /// Whether data is ever transferred between memory nodes. If not, [`expected_transfer`](Self::expected_transfer) is
    /// zero for every task and need not be called. (Since 1.1; true with an older host.)
    #[inline]
    #[must_use]
    pub fn has_transfers(&self) -> bool {
        self.place().flags & place::NO_TRANSFERS == 0
    }

    /// Distance of two workers in the machine: 0 on the same processing unit, larger the less they share (core, caches,
    /// package, memory node). Only the order is meaningful: figures differ between machines, so compare them and do not
    /// compute with them. Among three workers, the two largest of the three distances are equal.
    ///
    /// `None` if the host does not know one of their positions: for workers outside its topology, and with hosts older
    /// than 1.1.
    #[inline]
    #[must_use]
    pub fn worker_distance(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        let table = offered::<WorkerDistance>(self.raw.host())?;
        some_id((table.between)(self.raw.call(), self.id(), one.0, other.0))
    }

    /// Sum of the relative speeds of the workers below that are in the context now; a CPU core counts 1. A combined
    /// worker counts as its members, and each member counts once, even if several combined workers contain it.
    #[inline]
    #[must_use]
    pub fn relative_speedup(&self) -> f64 {
        self.place().relative_speedup
    }

    /// Sum of the relative speeds of the workers below a child; see [`relative_speedup`](Self::relative_speedup).
    #[inline]
    #[must_use]
    pub fn child_relative_speedup(&self, child: Child) -> f64 {
        self.child_place(child).map_or(0.0, |place| place.relative_speedup)
    }
}

fn contains(words: &[u64], worker: WorkerId) -> bool {
    words.get((worker.0 / 64) as usize).is_some_and(|word| word & (1 << (worker.0 % 64)) != 0)
}
