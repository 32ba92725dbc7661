//! A policy's tree without threads: tests push, pull, and put workers to sleep.

use crate::fake_services::FakeServices;
use sched_core::{Arch, MemoryNode, WorkerId};
use sched_host::plugin::Registry;
use sched_host::policy::{Group, Level, Machine, Policy, TreePlan, expand};
use sched_host::topology::WorkerDistances;
use sched_host::tree::{Claims, Ledger, NodeId, Part, Phase, SlotId, Tree, Unplaced, WorkerFacts};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

/// CPU workers of main memory, and CUDA workers with a memory node each.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    /// Number of CPU workers; they come first.
    pub cpus: u32,
    /// Number of CUDA workers.
    pub gpus: u32,
}

impl Machine for Mixed {
    fn workers(&self) -> usize {
        (self.cpus + self.gpus) as usize
    }

    fn arch(&self, worker: WorkerId) -> Arch {
        if worker.0 < self.cpus { Arch::CPU } else { Arch::CUDA }
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        if level == Level::CombinedWorker {
            return Vec::new();
        }
        let all = 0..self.cpus + self.gpus;
        let number = |worker: u32| match level {
            Level::Machine | Level::Numa | Level::Package | Level::L3 => 0,
            Level::Arch => u32::from(worker >= self.cpus),
            Level::MemoryNode => (worker + 1).saturating_sub(self.cpus),
            Level::Worker | Level::Core | Level::L2 | Level::CombinedWorker => worker,
        };
        let mut groups: Vec<Group> = Vec::new();
        for worker in all {
            let label = format!("{level} {}", number(worker));
            match groups.last_mut().filter(|group| group.label == label) {
                Some(group) => {
                    group.workers.insert(WorkerId(worker));
                }
                None => groups.push(Group { label, workers: [WorkerId(worker)].into_iter().collect() }),
            }
        }
        groups
    }
}

/// A tree and its tasks.
pub struct ByHand {
    tree: Tree,
    ledger: Arc<Ledger>,
    services: Arc<FakeServices<Duration>>,
    next: AtomicU32,
}

impl ByHand {
    /// The tree of a policy on a machine of at most 64 workers. All of them are awake.
    ///
    /// # Panics
    /// If the policy does not fit the machine or the registry.
    #[must_use]
    pub fn new(
        policy: &Policy,
        registry: &Registry,
        machine: &dyn Machine,
        distances: Option<WorkerDistances>,
    ) -> ByHand {
        let plan = expand(policy, &registry.catalogue(), machine).unwrap_or_else(|error| panic!("{error:?}"));
        let workers: Vec<WorkerFacts> = (0..machine.workers() as u32)
            .map(|worker| {
                let of = |group: &Group| group.workers.contains(WorkerId(worker));
                let memory_node = machine.groups(Level::MemoryNode).iter().position(of).unwrap_or(0);
                let arch = machine.arch(WorkerId(worker));
                WorkerFacts { arch, memory_node: MemoryNode(memory_node as u32), relative_speedup: 1.0 }
            })
            .collect();
        let services = FakeServices::expecting(workers.len(), Duration::from_millis(1)).with_distances(distances);
        let (services, ledger) = (Arc::new(services), Arc::new(Ledger::new()));
        let parts = parts(&plan, registry);
        let tree = Tree::assemble(parts, &workers, services.clone(), Arc::clone(&ledger), 0);
        ledger.grow();
        ByHand { tree, ledger, services, next: AtomicU32::new(0) }
    }

    /// Pushes a task for the workers of one architecture, as a worker or as the application.
    pub fn push(&self, arch: Arch, by: Option<u32>) -> u32 {
        let slot = self.ledger.slot(SlotId(self.next.fetch_add(1, Relaxed)));
        slot.set_phase(Phase::Waiting);
        slot.head().reset();
        slot.head().priority.store(0, Relaxed);
        slot.head().archs.store(1 << arch.number(), Relaxed);
        self.tree.push(slot, by.map(WorkerId), None);
        slot.id().0
    }

    /// Pulls a task as a worker.
    #[must_use]
    pub fn pull(&self, worker: u32) -> Option<u32> {
        self.tree.pull(WorkerId(worker)).map(|slot| slot.id().0)
    }

    /// Puts workers to sleep.
    pub fn sleep(&self, workers: impl IntoIterator<Item = u32>) {
        workers.into_iter().for_each(|worker| self.services.sleeping.insert(worker));
    }

    /// The workers woken since the last call.
    ///
    /// # Panics
    /// If another thread panicked.
    #[must_use]
    pub fn woken(&self) -> Vec<u32> {
        self.services.take_woken()
    }

    /// Number of tasks that the components at these paths store.
    #[must_use]
    pub fn tasks_at(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        self.tree.survey().iter().filter(|state| wanted(&state.node)).map(|state| state.tasks).sum()
    }

    /// Faults of components.
    #[must_use]
    pub fn faults(&self) -> Vec<sched_host::tree::Fault> {
        self.tree.faults()
    }
}

fn parts(plan: &TreePlan, registry: &Registry) -> Vec<Part> {
    let part = |node: &sched_host::policy::PlanNode| {
        let registered = registry.component(&node.info.name).expect("the plan was made with this registry");
        Part {
            component: Unplaced::new(registered.build(&node.params).expect("the parameters were checked"), None),
            name: node.info.name.clone(),
            plugin: node.plugin.clone(),
            params: node.params.clone(),
            path: node.path.clone(),
            object: node.place.clone(),
            children: node
                .children
                .iter()
                .map(|child| (NodeId::at(child.node.0), child.slot.clone().unwrap_or_default()))
                .collect(),
            workers: node.workers.clone(),
            workers_in_context: node.workers_in_context.clone(),
            sharing: None,
            worker: node.leaf_worker,
            claims: Claims::of(node),
            attended: true,
        }
    };
    plan.nodes.iter().map(part).collect()
}
