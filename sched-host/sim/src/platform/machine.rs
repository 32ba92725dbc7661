//! The platform as the machine that a policy is laid over.

use super::Platform;
use sched_core::{Arch, WorkerId, WorkerSet};
use sched_machine::topology::CombinedWorker;
use sched_machine::topology::combined::{Nest, combine_nest};
use sched_policy::{Group, Level, Machine, combined_groups};
use std::collections::BTreeMap;

impl Platform {
    /// The combined workers that it offers for parallel tasks, an enclosing one before those inside: all CPU workers
    /// together, those of each package, and those of each memory node. A group of more than two workers (or as
    /// [`combined_sizes`](Platform::combined_sizes) says) is halved, and the halves likewise. The rules are those for
    /// real machines; a machine that hwloc described offers those of its binding plan.
    ///
    /// ```
    /// use sched_sim::Platform;
    /// let platform = Platform::flat(4, std::time::Duration::from_millis(1));
    /// let members: Vec<Vec<usize>> = platform.combined_workers().into_iter().map(|team| team.members).collect();
    /// assert_eq!(members, [vec![0, 1, 2, 3], vec![0, 1], vec![2, 3]]);
    /// ```
    #[must_use]
    pub fn combined_workers(&self) -> Vec<CombinedWorker> {
        match &self.layout {
            Some(layout) => layout.combined().to_vec(),
            None => combine_nest(&self.nest(), self.combined_sizes),
        }
    }

    /// The members of each combined worker.
    pub(crate) fn combined_members(&self) -> Vec<Box<[WorkerId]>> {
        let members = |team: CombinedWorker| team.members.iter().map(|member| WorkerId(*member as u32)).collect();
        self.combined_workers().into_iter().map(members).collect()
    }

    /// The CPU workers, nested by package and by memory node.
    fn nest(&self) -> Nest {
        let cpus: Vec<usize> = (0..self.workers.len())
            .filter(|worker| self.classes[self.workers[*worker].class].arch == Arch::CPU)
            .collect();
        let single = |worker: &usize| Nest {
            title: format!("{} {worker}", Level::Worker),
            workers: vec![*worker],
            parts: Vec::new(),
        };
        let memories = |workers: &[usize]| -> Vec<Nest> {
            let parts = parted(workers, |worker| self.workers[worker].memory.0);
            let nest = |(memory, inside): (u32, Vec<usize>)| Nest {
                title: format!("{} {memory}", Level::MemoryNode),
                parts: inside.iter().map(single).collect(),
                workers: inside,
            };
            parts.into_iter().map(nest).collect()
        };
        let packages =
            parted(&cpus, |worker| self.workers[worker].package).into_iter().flat_map(|(package, inside)| {
                let parts = memories(&inside);
                match package {
                    Some(number) => {
                        vec![Nest { title: format!("{} {number}", Level::Package), workers: inside, parts }]
                    }
                    // Only the machine encloses these memory nodes.
                    None => parts,
                }
            });
        Nest { title: Level::Machine.to_string(), parts: packages.collect(), workers: cpus }
    }

    /// Workers grouped by `key`, in its order; those without a key are left out.
    fn by<K: Ord>(&self, key: impl Fn(usize) -> Option<K>, label: impl Fn(&K) -> String) -> Vec<Group> {
        let mut groups: BTreeMap<K, WorkerSet> = BTreeMap::new();
        for worker in 0..self.workers.len() {
            if let Some(key) = key(worker) {
                groups.entry(key).or_default().insert(WorkerId(worker as u32));
            }
        }
        groups.into_iter().map(|(key, workers)| Group { label: label(&key), workers }).collect()
    }
}

impl Machine for Platform {
    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn arch(&self, worker: WorkerId) -> Arch {
        self.class(worker).arch
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        if let Some(groups) = self.layout.as_ref().and_then(|layout| layout.groups(level)) {
            return groups.to_vec();
        }
        let numbered = |number: &u32| format!("{level} {number}");
        let arch = |worker: usize| self.classes[self.workers[worker].class].arch;
        // Accelerators belong to no processor level.
        let of_cpu = |worker: usize| arch(worker) == Arch::CPU;
        match level {
            Level::Machine => self.by(|_| Some(()), |()| level.to_string()),
            Level::Worker => self.by(|worker| Some(worker as u32), numbered),
            Level::Arch => self.by(|worker| Some(arch(worker)), Arch::to_string),
            Level::MemoryNode => self.by(|worker| Some(self.workers[worker].memory.0), numbered),
            Level::Numa | Level::L3 => {
                self.by(|worker| of_cpu(worker).then_some(self.workers[worker].memory.0), numbered)
            }
            Level::Package => self.by(|worker| self.workers[worker].package, numbered),
            Level::CombinedWorker => combined_groups(self),
            Level::L2 | Level::Core => self.by(|worker| of_cpu(worker).then_some(worker as u32), numbered),
        }
    }

    fn has(&self, level: Level) -> bool {
        let known = self.layout.as_ref().and_then(|layout| layout.has(level));
        known.unwrap_or_else(|| !self.groups(level).is_empty())
    }

    fn combined(&self) -> Vec<WorkerSet> {
        self.combined_members().iter().map(|members| members.iter().copied().collect()).collect()
    }
}

/// Workers grouped by `key`, in its order.
fn parted<K: Ord>(workers: &[usize], key: impl Fn(usize) -> K) -> BTreeMap<K, Vec<usize>> {
    let mut parts: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    workers.iter().for_each(|worker| parts.entry(key(*worker)).or_default().push(*worker));
    parts
}
