//! The machine that a policy is laid over.

use super::level::Level;
use sched_core::{Arch, WorkerId, WorkerSet};
use sched_machine::topology::combined::aligned;
use sched_machine::topology::{self, BindingPlan, CombinedSizes, Level as Kind, Topology};
use sched_text as text;
use std::collections::{BTreeMap, HashMap};

/// The workers of one object of a level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Name: `worker 3`, `numa 1`.
    pub label: String,
    /// Its workers, at least one.
    pub workers: WorkerSet,
}

/// The workers of a machine and how they are grouped.
pub trait Machine {
    /// Number of workers; they are numbered from 0.
    fn workers(&self) -> usize;

    /// The workers that a policy is laid over; all by default.
    fn present(&self) -> WorkerSet {
        WorkerSet::first(u32::try_from(self.workers()).unwrap_or(u32::MAX))
    }

    /// The machine that [`present`](Self::present) is a part of, if there is more: what contexts share covers all of
    /// it.
    fn whole(&self) -> Option<&dyn Machine> {
        None
    }

    /// Architecture of a worker.
    fn arch(&self, worker: WorkerId) -> Arch;

    /// The groups of a level: ordered and disjoint. A worker outside every object of the level is in none of them.
    ///
    /// Each group of [`Level::CombinedWorker`] is one combined worker: [`combined_groups`] makes them from
    /// [`combined`](Self::combined).
    fn groups(&self, level: Level) -> Vec<Group>;

    /// Whether the machine has objects of this level, not substitutes.
    fn has(&self, level: Level) -> bool {
        !self.groups(level).is_empty()
    }

    /// The members of each combined worker, at least two. Combined workers are numbered after the workers.
    fn combined(&self) -> Vec<WorkerSet> {
        Vec::new()
    }
}

/// A subset of a machine's workers: those of a scheduling context. They keep their numbers.
#[derive(Clone, Copy)]
pub struct SomeWorkers<'a> {
    /// The machine.
    pub machine: &'a dyn Machine,
    /// The workers.
    pub workers: &'a WorkerSet,
}

impl Machine for SomeWorkers<'_> {
    fn workers(&self) -> usize {
        self.machine.workers()
    }

    fn present(&self) -> WorkerSet {
        let mut present = self.machine.present();
        present.intersect_with(self.workers);
        present
    }

    fn whole(&self) -> Option<&dyn Machine> {
        Some(self.machine.whole().unwrap_or(self.machine))
    }

    fn arch(&self, worker: WorkerId) -> Arch {
        self.machine.arch(worker)
    }

    fn combined(&self) -> Vec<WorkerSet> {
        self.machine.combined()
    }

    fn has(&self, level: Level) -> bool {
        self.machine.has(level)
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        let mut groups = self.machine.groups(level);
        if level == Level::CombinedWorker {
            // A combined worker is present if all its members are.
            let mut teams = self.machine.combined().into_iter();
            groups.retain(|_| teams.next().is_some_and(|team| team.iter().all(|member| self.workers.contains(member))));
            return groups;
        }
        groups.iter_mut().for_each(|group| group.workers.intersect_with(self.workers));
        groups.retain(|group| !group.workers.is_empty());
        groups
    }
}

/// Groups of [`Level::CombinedWorker`]: one for each combined worker of `machine`, in order.
#[must_use]
pub fn combined_groups(machine: &dyn Machine) -> Vec<Group> {
    let first = u32::try_from(machine.workers()).unwrap_or(u32::MAX);
    let group = |(members, number): (WorkerSet, u32)| Group {
        label: format!("{} {}", Level::CombinedWorker, text::ranges(members.iter().map(|member| member.0))),
        workers: [WorkerId(number)].into_iter().collect(),
    };
    machine.combined().into_iter().zip(first..).map(group).collect()
}

fn set_of(members: &[usize]) -> WorkerSet {
    members.iter().map(|member| WorkerId(*member as u32)).collect()
}

/// A machine of CPU workers, one for each core, with one memory node. It combines aligned groups of 2, 4, 8, … workers.
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
            Level::CombinedWorker => combined_groups(self),
        }
    }

    fn combined(&self) -> Vec<WorkerSet> {
        aligned(self.workers, CombinedSizes::default()).iter().map(|combined| set_of(&combined.members)).collect()
    }
}

/// The workers of a binding plan on a machine that hwloc explored.
///
/// Where the machine lacks a level, as synthetic and virtual machines do, another level replaces it, so that every
/// policy fits: the package for a level-3 cache, the core for a level-2 cache, the processing unit for a core, and the
/// whole machine for a NUMA node or a package.
#[derive(Clone, Copy, Debug)]
pub struct BoundMachine<'a> {
    topology: &'a Topology,
    plan: &'a BindingPlan,
}

impl<'a> BoundMachine<'a> {
    /// The workers of `plan` on its machine.
    #[must_use]
    pub fn new(topology: &'a Topology, plan: &'a BindingPlan) -> BoundMachine<'a> {
        BoundMachine { topology, plan }
    }

    /// Groups workers by a number.
    fn by(&self, level: Level, number: impl Fn(&topology::WorkerBinding) -> Option<u32>) -> Vec<Group> {
        let mut groups: BTreeMap<u32, WorkerSet> = BTreeMap::new();
        for worker in self.plan.workers() {
            let Some(number) = number(worker) else { continue };
            groups.entry(number).or_default().insert(WorkerId(worker.worker as u32));
        }
        groups.into_iter().map(|(number, workers)| Group { label: format!("{level} {number}"), workers }).collect()
    }

    /// Groups workers by the object of the topology that contains their processing unit; `None` without such objects.
    fn within(&self, level: Level, kind: Kind) -> Option<Vec<Group>> {
        let mut of_pu: HashMap<u32, u32> = HashMap::new();
        for object in self.topology.root().walk().filter(|object| object.level == kind) {
            object.pus.iter().for_each(|pu| _ = of_pu.entry(*pu).or_insert(object.index()));
        }
        Some(self.by(level, |worker| of_pu.get(&worker.pu).copied())).filter(|groups| !groups.is_empty())
    }

    /// All workers as the only group of a level.
    fn whole(&self, level: Level) -> Vec<Group> {
        self.by(level, |_| Some(0))
    }

    /// Each processing unit as a group of a level.
    fn each_pu(&self, level: Level) -> Vec<Group> {
        self.by(level, |worker| Some(worker.pu))
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
            Level::Numa => self.within(level, Kind::Numa).unwrap_or_else(|| self.whole(level)),
            Level::Package => self.within(level, Kind::Package).unwrap_or_else(|| self.whole(level)),
            Level::L3 => {
                let package = || self.within(level, Kind::Package);
                self.within(level, Kind::L3).or_else(package).unwrap_or_else(|| self.whole(level))
            }
            Level::L2 => {
                let core = || self.within(level, Kind::Core);
                self.within(level, Kind::L2).or_else(core).unwrap_or_else(|| self.each_pu(level))
            }
            Level::Core => self.within(level, Kind::Core).unwrap_or_else(|| self.each_pu(level)),
            Level::CombinedWorker => combined_groups(self),
        }
    }

    fn has(&self, level: Level) -> bool {
        let kind = match level {
            Level::Numa => Kind::Numa,
            Level::Package => Kind::Package,
            Level::L3 => Kind::L3,
            Level::L2 => Kind::L2,
            Level::Core => Kind::Core,
            Level::Machine | Level::MemoryNode | Level::Arch | Level::Worker | Level::CombinedWorker => {
                return !self.groups(level).is_empty();
            }
        };
        self.within(level, kind).is_some()
    }

    fn combined(&self) -> Vec<WorkerSet> {
        self.plan.combined().iter().map(|combined| set_of(&combined.members)).collect()
    }
}
