//! The machine that a policy is laid over.

use super::level::Level;
use sched_core::{Arch, WorkerId, WorkerSet};

/// Some workers that belong together at a level of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// What to call it: `worker 3`, `numa 1`.
    pub label: String,
    /// Its workers, at least one.
    pub workers: WorkerSet,
}

/// The workers of a machine and how they are grouped.
pub trait Machine {
    /// Number of workers; they are numbered from 0.
    fn workers(&self) -> usize;

    /// Architecture of a worker.
    fn arch(&self, worker: WorkerId) -> Arch;

    /// The groups of a level, in order, disjoint. A worker that has no place at this level is in none of them.
    fn groups(&self, level: Level) -> Vec<Group>;
}

/// A machine of CPU workers only, a core each, with one memory node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlatMachine {
    /// Number of workers.
    pub workers: usize,
}

impl Machine for FlatMachine {
    fn workers(&self) -> usize {
        self.workers
    }

    fn arch(&self, _: WorkerId) -> Arch {
        Arch::CPU
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        let workers = WorkerSet::first(u32::try_from(self.workers).unwrap_or(u32::MAX));
        match level {
            Level::Worker | Level::Core | Level::L2 => workers
                .iter()
                .map(|worker| Group { label: format!("{level} {}", worker.0), workers: [worker].into_iter().collect() })
                .collect(),
            _ if workers.is_empty() => Vec::new(),
            Level::Machine => vec![Group { label: "machine".to_owned(), workers }],
            Level::Arch => vec![Group { label: Arch::CPU.to_string(), workers }],
            Level::MemoryNode | Level::Numa | Level::Package | Level::L3 => {
                vec![Group { label: format!("{level} 0"), workers }]
            }
        }
    }
}
