//! What a component asks of its node with each task, asked once.

use sched_core::*;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Facts of a node that change only when the workers below do. Asking the host is a call each time, and it would be asked
/// with every task.
#[derive(Debug, Default)]
pub(crate) struct Facts(AtomicU64);

/// A copy of them.
#[derive(Clone, Copy)]
pub(crate) struct Known(u64);

/// They are known.
const KNOWN: u64 = 1;
/// Data of tasks that are here is worth fetching.
const PREFETCHES: u64 = 1 << 1;
/// Where all workers below are simple ones of one architecture, its bit is in the upper half.
const ARCHS_SHIFT: u32 = 32;

impl Facts {
    #[inline]
    pub(crate) fn of(&self, node: Node<'_>) -> Known {
        let bits = self.0.load(Relaxed);
        Known(if bits == 0 { self.ask(node) } else { bits })
    }

    #[cold]
    fn ask(&self, node: Node<'_>) -> u64 {
        let mut bits = KNOWN;
        if node.has_transfers() && node.single_memory_node().is_some() {
            bits |= PREFETCHES;
        }
        let is_simple = |worker: WorkerId| node.members(worker).eq([worker]);
        if node.is_homogeneous()
            && let Some(arch) = node.each_worker_in_context().next().and_then(|worker| node.arch(worker))
            && node.each_worker_in_context().all(is_simple)
        {
            bits |= u64::from(ArchSet::EMPTY.with(arch).bits()) << ARCHS_SHIFT;
        }
        self.0.store(bits, Relaxed);
        bits
    }

    /// The workers below have changed.
    pub(crate) fn forget(&self) {
        self.0.store(0, Relaxed);
    }
}

impl Known {
    /// Whether a task that comes should have its data fetched.
    #[inline]
    pub(crate) fn prefetches(self) -> bool {
        self.0 & PREFETCHES != 0
    }

    /// The architecture of all workers below, where a task that has it can be executed by each of them; else none.
    #[inline]
    pub(crate) fn archs(self) -> ArchSet {
        ArchSet::from_bits((self.0 >> ARCHS_SHIFT) as u32)
    }
}
