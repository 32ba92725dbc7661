//! A platform as the machine that a policy is laid over.

use super::Platform;
use crate::policy::{Group, Level, Machine};
use sched_core::{Arch, WorkerId, WorkerSet};
use std::collections::BTreeMap;

impl Platform {
    /// Workers by something that some of them share, in the order of `key`.
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
        let numbered = |number: &u32| format!("{level} {number}");
        let arch = |worker: usize| self.classes[self.workers[worker].class].arch;
        // Processor levels have no place for accelerators.
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
            // Simulated tasks run on one worker each.
            Level::CombinedWorker => Vec::new(),
            Level::L2 | Level::Core => self.by(|worker| of_cpu(worker).then_some(worker as u32), numbered),
        }
    }
}
