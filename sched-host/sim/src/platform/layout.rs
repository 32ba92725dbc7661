//! The parts of a machine that hwloc described.

use sched_core::{WorkerId, WorkerSet};
use sched_machine::topology::{BindingPlan, CombinedWorker, Topology};
use sched_policy::{BoundMachine, Group, Level, Machine as _};
use std::collections::{BTreeMap, BTreeSet};

/// What a topology knows of a machine and the description of a platform cannot say: the workers of each package, cache
/// and core, and the combined workers. A policy has the same tree where it is drawn, run and simulated.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    groups: BTreeMap<Level, Vec<Group>>,
    /// Levels that have objects of their own, not substitutes.
    real: BTreeSet<Level>,
    combined: Vec<CombinedWorker>,
}

impl Layout {
    const LEVELS: [Level; 5] = [Level::Numa, Level::Package, Level::L3, Level::L2, Level::Core];

    pub(super) fn new(topology: &Topology, plan: &BindingPlan) -> Layout {
        let machine = BoundMachine::new(topology, plan);
        Layout {
            groups: Layout::LEVELS.map(|level| (level, machine.groups(level))).into(),
            real: Layout::LEVELS.into_iter().filter(|level| machine.has(*level)).collect(),
            combined: plan.combined().to_vec(),
        }
    }

    /// What offers these combined workers, on a machine that is described otherwise.
    pub(crate) fn with_combined(combined: Vec<CombinedWorker>) -> Layout {
        Layout { groups: BTreeMap::new(), real: BTreeSet::new(), combined }
    }

    /// The groups of a level; `None` if the platform knows them.
    pub(super) fn groups(&self, level: Level) -> Option<&[Group]> {
        self.groups.get(&level).map(Vec::as_slice)
    }

    /// Whether the machine has objects of this level; `None` if the platform knows that.
    pub(super) fn has(&self, level: Level) -> Option<bool> {
        self.groups.contains_key(&level).then(|| self.real.contains(&level))
    }

    pub(super) fn combined(&self) -> &[CombinedWorker] {
        &self.combined
    }

    /// Leaves out all but the first `count` workers.
    pub(super) fn keep(&mut self, count: usize) {
        let kept = |worker: &WorkerId| worker.index() < count;
        for groups in self.groups.values_mut() {
            for group in groups.iter_mut() {
                group.workers = group.workers.iter().filter(kept).collect::<WorkerSet>();
            }
            groups.retain(|group| !group.workers.is_empty());
        }
        self.combined.retain(|combined| combined.members.iter().all(|member| *member < count));
    }
}
