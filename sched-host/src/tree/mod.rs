//! The tree: components assembled from a plan, and every call into them.
//!
//! The tree knows neither threads nor data. A back end ([`Services`]) gives it time, sleeping workers and models; the
//! [ledger] knows who holds each task; the [gate] lets calls in, and keeps them out while the tree is repaired.
//!
//! A component that fails does not stop a run: see [`fault`] for what is noted, `hop` for how calls pass through a
//! quarantined node, and [`ledger`] for how its tasks are taken back.

mod call;
pub mod fault;
pub mod gate;
mod hop;
pub mod ledger;
mod node;
mod push_pull;
pub mod services;

pub use fault::{Fault, FaultKind};
pub use ledger::{Ledger, NodeId, Phase, Slot};
pub use push_pull::PushPull;
pub use services::Services;

use call::Call;
use gate::{Gate, Lane};
use node::{Place, TreeNode};
use sched_core::abi::ComponentObject;
use sched_core::abi::wire::{NO_ID, RawWorker, place};
use sched_core::{Arch, MemoryNode, Refusal, WorkerId, WorkerSet};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// One worker, as a tree needs to know it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerFacts {
    /// Its architecture.
    pub arch: Arch,
    /// The memory that it reaches without a transfer.
    pub memory_node: MemoryNode,
    /// Its speed relative to one CPU core.
    pub relative_speedup: f64,
}

impl WorkerFacts {
    /// A CPU core on memory node 0.
    pub const CPU: WorkerFacts = WorkerFacts { arch: Arch::CPU, memory_node: MemoryNode(0), relative_speedup: 1.0 };
}

/// One node of a tree to be: a built component and its neighbours.
pub struct Part {
    /// The component.
    pub component: ComponentObject,
    /// Its name.
    pub name: String,
    /// The plugin it came from.
    pub plugin: String,
    /// Name of the node, unique in the tree.
    pub path: String,
    /// What the node stands for in the topology, or nothing.
    pub object: String,
    /// Children by number, each with the slot that it fills (or nothing). Every child has a higher number than its parent.
    pub children: Vec<(NodeId, String)>,
    /// All workers below.
    pub workers: WorkerSet,
    /// The worker that the node stands for, if it is a leaf.
    pub worker: Option<WorkerId>,
    /// Pulls may pass the component by: it would only ask its parents.
    pub forwards_pull: bool,
}

/// A tree of components at work.
pub struct Tree {
    shared: Shared,
}

/// What hops need.
pub(crate) struct Shared {
    nodes: Box<[TreeNode]>,
    /// The leaf of each worker.
    leaves: Box<[Option<NodeId>]>,
    workers: Arc<[RawWorker]>,
    services: Arc<dyn Services>,
    ledger: Arc<Ledger>,
    gate: Gate,
    /// A node was quarantined, and its tasks were not yet taken back.
    repairs: AtomicBool,
}

/// How long a repair waits for calls that do not come back before it leaves the tasks of a failed node where they are,
/// until the next call ends.
const REPAIR_PATIENCE: Duration = Duration::from_millis(200);

impl Tree {
    /// Puts parts together; part 0 is the root. `seed` seeds the randomness of every node.
    ///
    /// # Panics
    /// When a child's number is not that of a later part: plans are checked before.
    #[must_use]
    pub fn assemble(
        parts: Vec<Part>,
        workers: &[WorkerFacts],
        services: Arc<dyn Services>,
        ledger: Arc<Ledger>,
        seed: u64,
    ) -> Tree {
        let raw_workers: Arc<[RawWorker]> = workers
            .iter()
            .map(|worker| RawWorker {
                arch: u32::from(worker.arch.number()),
                memory_node: worker.memory_node.0,
                relative_speedup: worker.relative_speedup,
            })
            .collect();
        let mut parents = vec![Vec::new(); parts.len()];
        let mut slots = vec![String::new(); parts.len()];
        for (id, part) in parts.iter().enumerate() {
            for (number, (child, slot)) in part.children.iter().enumerate() {
                assert!(*child as usize > id, "a child comes after its parent");
                parents[*child as usize].push((id as NodeId, number as u32));
                slots[*child as usize].clone_from(slot);
            }
        }
        let places: Arc<[Place]> = parts
            .iter()
            .enumerate()
            .map(|(id, part)| {
                Place::new(&part.path, &part.object, &slots[id], part.workers.words(), |raw| {
                    raw.id = id as NodeId;
                    raw.children = part.children.len() as u32;
                    raw.parents = parents[id].len() as u32;
                    raw.worker = part.worker.map_or(NO_ID, |worker| worker.0);
                    let below = || part.workers.iter().filter_map(|worker| workers.get(worker.0 as usize));
                    raw.relative_speedup = below().map(|worker| worker.relative_speedup).sum();
                    if let Some(first) = below().next() {
                        if below().all(|worker| worker.arch == first.arch) {
                            raw.flags |= place::HOMOGENEOUS;
                        }
                        if below().all(|worker| worker.memory_node == first.memory_node) {
                            raw.flags |= place::SINGLE_MEMORY_NODE;
                            raw.memory_node = first.memory_node.0;
                        }
                    }
                    if part.worker.is_some() {
                        raw.flags |= place::LEAF;
                    }
                    if !services.transfers() {
                        raw.flags |= place::NO_TRANSFERS;
                    }
                })
            })
            .collect();
        // Whom a pull really asks: parents come first, so theirs are known.
        let mut sources: Vec<Vec<(NodeId, u32)>> = Vec::with_capacity(parts.len());
        for above in &parents {
            let asked = |(parent, number): &(NodeId, u32)| match parts[*parent as usize].forwards_pull {
                true => sources[*parent as usize].clone(),
                false => vec![(*parent, *number)],
            };
            let asked = above.iter().flat_map(asked).collect();
            sources.push(asked);
        }
        let mut leaves = vec![None; workers.len()];
        let nodes = parts
            .into_iter()
            .zip(parents)
            .zip(sources)
            .enumerate()
            .map(|(id, ((part, parents), sources))| {
                if let Some(leaf) = part.worker.and_then(|worker| leaves.get_mut(worker.0 as usize)) {
                    *leaf = Some(id as NodeId);
                }
                let children = part.children.iter().map(|(child, _)| *child).collect();
                let (places, workers) = (Arc::clone(&places), Arc::clone(&raw_workers));
                TreeNode::new(
                    id as NodeId,
                    part.component,
                    part.name,
                    part.plugin,
                    children,
                    parents.into(),
                    sources.into(),
                    places,
                    workers,
                    seed,
                )
            })
            .collect();
        let gate = Gate::new(workers.len(), APPLICATION_LANES);
        let (leaves, repairs) = (leaves.into(), AtomicBool::new(false));
        Tree { shared: Shared { nodes, leaves, workers: raw_workers, services, ledger, gate, repairs } }
    }

    /// Pushes a ready task into the root. A task that the root refuses waits in the fallback store.
    ///
    /// With `deferred`, the requester says that it will pull right after: the first wake is then not done but noted
    /// there, for it to do if it pulls another task.
    pub fn push(&self, slot: &Slot, requester: Option<WorkerId>, deferred: Option<&Cell<Option<WorkerId>>>) {
        let shared = &self.shared;
        {
            let _inside = shared.gate.enter(lane_of(requester));
            let archs = slot.head().archs.load(Relaxed);
            let mut call = Call::new(shared, requester, archs);
            let can_execute = requester.is_some_and(|worker| shared.can_execute(worker, slot));
            call.deferred = deferred.filter(|_| can_execute).map(|deferred| (slot.index(), deferred));
            slot.set_phase(Phase::InTree(0));
            let answer = shared.hop_push(&call, 0, 0, slot.handle());
            if let Some(slot) = Slot::of(answer.refused) {
                shared.ledger.fall_back(slot);
            }
        }
        self.repair_if_needed();
    }

    /// A task for `worker`, which owns it now, or `None` when there is none that it can execute.
    pub fn pull(&self, worker: WorkerId) -> Option<&'static Slot> {
        let shared = &self.shared;
        let leaf = shared.leaves.get(worker.0 as usize).copied().flatten();
        let pulled = leaf.and_then(|leaf| {
            let _inside = shared.gate.enter(Lane::Owned(worker.0 as usize));
            let call = Call::new(shared, Some(worker), u32::MAX);
            let node = &shared.nodes[leaf as usize];
            let task = if node.is_quarantined() {
                shared.hop_pull(&call, node, None)
            } else {
                node.with(&call, |component, raw| component.pull_task(raw, NO_ID))
            };
            let slot = Slot::of(task)?;
            if !shared.can_execute(worker, slot) {
                let held_by = if let Phase::InTree(node) = slot.phase() { node } else { leaf };
                shared.nodes[held_by as usize].health.wrong_worker.fetch_add(1, Relaxed);
                shared.ledger.fall_back(slot);
                return None;
            }
            Some(slot)
        });
        self.repair_if_needed();
        let slot = pulled.or_else(|| shared.ledger.take_fallback(|slot| shared.can_execute(worker, slot)))?;
        slot.set_phase(Phase::Running);
        Some(slot)
    }

    fn repair_if_needed(&self) {
        if self.shared.repairs.load(Acquire) {
            self.repair();
        }
    }

    /// Takes back what quarantined nodes hold. The caller is not inside the tree.
    #[cold]
    fn repair(&self) {
        let shared = &self.shared;
        let began = Instant::now();
        let Some(_closed) = shared.gate.close_until(|| began.elapsed() > REPAIR_PATIENCE) else { return };
        shared.repairs.store(false, Release);
        for node in shared.nodes.iter().filter(|node| node.is_quarantined()) {
            let count = shared.ledger.revoke(|held_by| held_by == node.id);
            node.health.rehomed.fetch_add(count, Relaxed);
        }
    }

    /// What components did wrong so far, in order of their nodes.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let lost = self.shared.ledger.lost_by();
        self.shared.nodes.iter().flat_map(|node| node.faults(lost.get(&node.id).copied().unwrap_or(0))).collect()
    }

    /// Where every task sits now, and why; see [`NodeState`].
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        let shared = &self.shared;
        let mut held: BTreeMap<NodeId, u64> = BTreeMap::new();
        for slot in shared.ledger.slots() {
            if let Phase::InTree(node) = slot.phase() {
                *held.entry(node).or_insert(0) += 1;
            }
        }
        // Components are asked about themselves only when nobody is inside: one that hangs may hold its own lock.
        let began = Instant::now();
        let quiet = shared.gate.close_until(|| began.elapsed() > REPAIR_PATIENCE);
        let call = Call::new(shared, None, u32::MAX);
        let states = shared.nodes.iter().map(|node| {
            let facts = if quiet.is_some() && !node.is_quarantined() {
                let facts = node.with(&call, |component, raw| component.describe(raw));
                facts.into_iter().map(|fact| (fact.0.to_string(), fact.1.to_string())).collect()
            } else {
                Vec::new()
            };
            let code = node.health.last_refusal.load(Relaxed);
            NodeState {
                node: node.place().path().to_owned(),
                component: node.component_name.clone(),
                plugin: node.plugin.clone(),
                tasks: held.get(&node.id).copied().unwrap_or(0),
                refusals: node.health.refusals.load(Relaxed),
                last_refusal: (code != 0).then(|| Refusal::from_code(code).to_string()),
                quarantined: node.is_quarantined(),
                facts,
            }
        });
        let states = states.collect();
        drop(quiet);
        // One may have failed when it was asked.
        self.repair_if_needed();
        states
    }
}

impl Shared {
    fn can_execute(&self, worker: WorkerId, slot: &Slot) -> bool {
        self.workers
            .get(worker.0 as usize)
            .is_some_and(|worker| slot.head().archs.load(Relaxed) & 1 << worker.arch != 0)
    }
}

impl Drop for Tree {
    /// What components still hold is nobody's any more: their dropping it is no fault.
    fn drop(&mut self) {
        for slot in self.shared.ledger.slots() {
            if matches!(slot.phase(), Phase::InTree(_)) {
                slot.renew(Phase::Waiting);
            }
        }
    }
}

/// Where tasks sit at one node, and what it says about itself.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct NodeState {
    /// The node, by its path in the tree.
    pub node: String,
    /// The component in it.
    pub component: String,
    /// The plugin it came from.
    pub plugin: String,
    /// Tasks that it holds.
    pub tasks: u64,
    /// Tasks that it refused so far.
    pub refusals: u64,
    /// Why it last refused one.
    pub last_refusal: Option<String>,
    /// Whether it failed, and calls pass through it.
    pub quarantined: bool,
    /// What the component says about itself.
    pub facts: Vec<(String, String)>,
}

/// Gate lanes of threads that are not workers.
const APPLICATION_LANES: usize = 8;

/// The way in for a worker, or for a thread that is none.
fn lane_of(requester: Option<WorkerId>) -> Lane {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARED: usize = NEXT.fetch_add(1, Relaxed);
    }
    match requester {
        Some(worker) => Lane::Owned(worker.0 as usize),
        None => Lane::Shared(SHARED.with(|number| *number)),
    }
}
