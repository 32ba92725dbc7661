//! The machine that a policy is laid over.

use super::level::Level;
use crate::topology::{self, BindingPlan, Topology};
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

/// The workers of a binding plan on a machine that hwloc explored.
#[derive(Clone, Copy, Debug)]
pub struct BoundMachine<'a> {
    topology: &'a Topology,
    plan: &'a BindingPlan,
}

impl<'a> BoundMachine<'a> {
    /// The workers of `plan` on the machine that it was made for.
    #[must_use]
    pub fn new(topology: &'a Topology, plan: &'a BindingPlan) -> BoundMachine<'a> {
        BoundMachine { topology, plan }
    }

    /// Workers by a number that some of them share.
    fn by(&self, level: Level, number: impl Fn(&topology::WorkerBinding) -> Option<u32>) -> Vec<Group> {
        let mut groups: Vec<(u32, WorkerSet)> = Vec::new();
        for worker in self.plan.workers() {
            let Some(number) = number(worker) else { continue };
            let at = groups.binary_search_by_key(&number, |group| group.0).unwrap_or_else(|at| {
                groups.insert(at, (number, WorkerSet::new()));
                at
            });
            groups[at].1.insert(WorkerId(worker.worker as u32));
        }
        groups.into_iter().map(|(number, workers)| Group { label: format!("{level} {number}"), workers }).collect()
    }

    /// Workers by the object of the topology that holds their processing unit.
    fn within(&self, level: Level, kind: topology::Level) -> Vec<Group> {
        self.by(level, |worker| self.topology.containing(kind, worker.pu).first().map(|object| object.index()))
    }
}

impl Machine for BoundMachine<'_> {
    fn workers(&self) -> usize {
        self.plan.workers().len()
    }

    fn arch(&self, _: WorkerId) -> Arch {
        Arch::CPU
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        match level {
            Level::Machine | Level::Arch => FlatMachine { workers: self.workers() }.groups(level),
            Level::Worker => self.by(level, |worker| Some(worker.worker as u32)),
            Level::MemoryNode => self.by(level, |worker| Some(worker.numa.unwrap_or(0))),
            Level::Numa => self.within(level, topology::Level::Numa),
            Level::Package => self.within(level, topology::Level::Package),
            Level::L3 => self.within(level, topology::Level::L3),
            Level::L2 => self.within(level, topology::Level::L2),
            Level::Core => self.within(level, topology::Level::Core),
        }
    }
}
