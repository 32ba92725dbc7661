//! The kinds of tasks whose length all models know.

use sched_core::{Node, Task};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Number of kinds that are remembered at once, a power of two.
const KINDS: usize = 64;

/// See the [module](self). A model that knows the length of a kind of tasks goes on to know it, and each question costs
/// more than all else that is done for a short task here. Another kind may take the place of one.
#[derive(Debug)]
pub(super) struct KnownKinds {
    /// The key of a kind, or 0.
    kinds: [AtomicU64; KINDS],
    /// Number of workers below. A context that has only some of them may know more kinds than others.
    workers: AtomicU32,
}

impl KnownKinds {
    pub(super) fn new() -> KnownKinds {
        KnownKinds { kinds: [const { AtomicU64::new(0) }; KINDS], workers: AtomicU32::new(0) }
    }

    /// Forgets all, since the workers below are others now.
    pub(super) fn forget(&self, node: Node<'_>) {
        self.workers.store(node.workers().len() as u32, Relaxed);
        self.kinds.iter().for_each(|kind| kind.store(0, Relaxed));
    }

    /// Whether the kind of `task` is known to be known, or else what its length is found out to be by `ask`: whether it
    /// is known.
    pub(super) fn have(&self, node: Node<'_>, task: &Task, ask: impl FnOnce() -> bool) -> bool {
        let archs = task.open_archs();
        // A restricted task can be executed by some workers only.
        if archs.is_empty() || node.count_in_context() != self.workers.load(Relaxed) {
            return ask();
        }
        let of = u64::from(archs.bits()) << 32 | u64::from(task.codelet());
        let key = of.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ task.footprint();
        let kind = &self.kinds[(key ^ key >> 32) as usize % KINDS];
        if kind.load(Relaxed) == key && key != 0 {
            return true;
        }
        let known = ask();
        if known && key != 0 {
            kind.store(key, Relaxed);
        }
        known
    }
}
