//! The groups of a level of the machine, with the workers of each.

use super::{Expansion, Reach};
use crate::level::Level;
use crate::machine::Group;
use sched_core::{Arch, WorkerId, WorkerSet};
use std::collections::HashMap;
use std::rc::Rc;

/// The groups of a level.
pub(super) struct LevelGroups {
    pub(super) all: Vec<Group>,
    /// Numbers of the groups of each worker, and of each member of a combined one.
    pub(super) of_worker: HashMap<WorkerId, Vec<usize>>,
}

impl Expansion<'_> {
    pub(super) fn combined(&self) -> &[WorkerSet] {
        self.combined.get_or_init(|| self.machine.combined())
    }

    /// Index of a combined worker; `None` for a simple one.
    pub(super) fn combined_number(&self, worker: WorkerId) -> Option<usize> {
        (worker.0 as usize).checked_sub(self.archs.len())
    }

    /// The simple workers of a set, including the members of its combined workers.
    pub(super) fn simple(&self, workers: &WorkerSet) -> WorkerSet {
        let mut simple = WorkerSet::new();
        for worker in workers.iter() {
            match self.combined_number(worker) {
                None => drop(simple.insert(worker)),
                Some(number) => simple.union_with(&self.combined()[number]),
            }
        }
        simple
    }

    /// Whether `outer` contains the workers `inner`. A set contains a combined worker that is an element, or all of
    /// whose members are.
    pub(super) fn encloses(&self, outer: &WorkerSet, inner: &WorkerSet) -> bool {
        let has_combined = |workers: &WorkerSet| workers.iter().any(|worker| self.combined_number(worker).is_some());
        inner.is_subset(outer) || (has_combined(inner) && !has_combined(outer) && self.simple(inner).is_subset(outer))
    }

    /// The workers of a set, and the members of those that are combined.
    pub(super) fn with_members(&self, workers: &WorkerSet) -> WorkerSet {
        let mut all = self.simple(workers);
        all.union_with(workers);
        all
    }

    /// The groups that have a worker in common with `workers`, in their order: all that enclose it, or are enclosed.
    pub(super) fn near(&self, groups: &LevelGroups, workers: &WorkerSet) -> Vec<usize> {
        let all = self.with_members(workers);
        let mut near: Vec<usize> =
            all.iter().filter_map(|worker| groups.of_worker.get(&worker)).flatten().copied().collect();
        near.sort_unstable();
        near.dedup();
        near
    }

    /// The groups of a level within `reach`, restricted to workers of `arch`; empty groups are dropped.
    pub(super) fn groups(&mut self, level: Level, arch: Option<Arch>, reach: Reach) -> Rc<LevelGroups> {
        if let Some(groups) = self.groups.get(&(level, arch, reach)) {
            return Rc::clone(groups);
        }
        let machine = if reach == Reach::Machine { self.machine.whole().unwrap_or(self.machine) } else { self.machine };
        let mut groups = machine.groups(level);
        if let Some(arch) = arch {
            let first = self.archs.len();
            let combined = if level == Level::CombinedWorker { self.combined().len() } else { 0 };
            let combined = (first..first + combined).map(|number| WorkerId(number as u32));
            let of_arch: WorkerSet =
                self.all_of(arch).chain(combined.filter(|worker| self.arch(*worker) == Some(arch))).collect();
            groups.iter_mut().for_each(|group| group.workers.intersect_with(&of_arch));
        }
        groups.retain(|group| !group.workers.is_empty());
        let mut of_worker: HashMap<WorkerId, Vec<usize>> = HashMap::new();
        for (number, group) in groups.iter().enumerate() {
            self.with_members(&group.workers)
                .iter()
                .for_each(|worker| of_worker.entry(worker).or_default().push(number));
        }
        let groups = Rc::new(LevelGroups { all: groups, of_worker });
        self.groups.insert((level, arch, reach), Rc::clone(&groups));
        groups
    }

    /// The architecture of a worker; of a combined one, that of its members.
    pub(super) fn arch(&self, worker: WorkerId) -> Option<Arch> {
        let worker = match self.combined_number(worker) {
            None => worker,
            Some(number) => self.combined().get(number)?.iter().next()?,
        };
        self.archs.get(worker.0 as usize).copied()
    }

    /// The workers of an architecture that the policy is laid over.
    pub(super) fn workers_of(&self, arch: Arch) -> impl Iterator<Item = WorkerId> {
        self.all_of(arch).filter(|worker| self.present.contains(*worker))
    }

    fn all_of(&self, arch: Arch) -> impl Iterator<Item = WorkerId> {
        let all = self.archs.iter().enumerate();
        all.filter(move |(_, found)| **found == arch).map(|(worker, _)| WorkerId(worker as u32))
    }
}
