//! Properties of a node that its component needs for every task, cached.

use sched_core::*;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Cache of the properties of a node that change only when the workers below do. Asking the host would cost a call for
/// each task.
#[derive(Debug, Default)]
pub(crate) struct Facts(AtomicU64);

/// A snapshot of the cached properties.
#[derive(Clone, Copy)]
pub(crate) struct Known(u64);

/// The properties are cached.
const KNOWN: u64 = 1;
/// Prefetching data for tasks here is worthwhile.
const PREFETCHES: u64 = 1 << 1;
/// Data may have to be moved for a task.
const TRANSFERS: u64 = 1 << 2;
/// If all workers below are simple ones of one architecture, its bit is in the upper half.
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
        if node.has_transfers() {
            bits |= TRANSFERS;
            if node.single_memory_node().is_some() {
                bits |= PREFETCHES;
            }
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

    /// Clears the cache because the workers below changed.
    pub(crate) fn forget(&self) {
        self.0.store(0, Relaxed);
    }
}

impl Known {
    /// Whether to prefetch the data of an arriving task.
    #[inline]
    pub(crate) fn prefetches(self) -> bool {
        self.0 & PREFETCHES != 0
    }

    /// Whether data may have to be moved for a task.
    #[inline]
    pub(crate) fn has_transfers(self) -> bool {
        self.0 & TRANSFERS != 0
    }

    /// The architecture of all workers below, if every one of them can execute a task that supports it; else none.
    #[inline]
    pub(crate) fn archs(self) -> ArchSet {
        ArchSet::from_bits((self.0 >> ARCHS_SHIFT) as u32)
    }
}
