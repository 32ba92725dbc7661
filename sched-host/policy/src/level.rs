//! The levels of a machine that `each` goes over.

use std::fmt;

/// A level of the machine: the kind of group that `each` repeats over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// One worker.
    Worker,
    /// The workers that share a memory node: those of the main memory, or those of one accelerator.
    MemoryNode,
    /// The workers of one architecture.
    Arch,
    /// All workers.
    Machine,
    /// The workers of one NUMA node.
    Numa,
    /// The workers of one processor package (socket).
    Package,
    /// The workers that share a level-3 cache.
    L3,
    /// The workers that share a level-2 cache.
    L2,
    /// The workers of one core: several where hardware threads are workers.
    Core,
    /// One combined worker: several workers that execute parallel tasks together. A worker may be a member of several.
    CombinedWorker,
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 10] = [
        Level::Worker,
        Level::MemoryNode,
        Level::Arch,
        Level::Machine,
        Level::Numa,
        Level::Package,
        Level::L3,
        Level::L2,
        Level::Core,
        Level::CombinedWorker,
    ];

    /// Its name in a policy.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::Worker => "worker",
            Level::MemoryNode => "memory-node",
            Level::Arch => "arch",
            Level::Machine => "machine",
            Level::Numa => "numa",
            Level::Package => "package",
            Level::L3 => "l3",
            Level::L2 => "l2",
            Level::Core => "core",
            Level::CombinedWorker => "combined-worker",
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
