//! Components put together: what stands behind the gate of a [`Tree`](super::Tree), and is exchanged as a whole.

use super::Part;
use super::books;
use super::call::Call;
use super::fallback::Fallback;
use super::fault::Fault;
use super::ledger::{Ledger, NodeId, Phase, Slot};
use super::lookahead::{Foresight, Lookahead};
use super::node::{Place, TreeNode};
use super::observer::Observed;
use super::prospects;
use super::services::Services;
use super::survey::NodeState;
use super::teams::Teams;
use sched_core::abi::wire::{NO_ID, RawWorker, place};
use sched_core::{Refusal, SharedSet, WorkerId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// What all trees of one context have in common: workers, back end, ledger and seed.
pub(super) struct TreeEnv {
    /// Each worker, simple or combined.
    pub(super) workers: Arc<[RawWorker]>,
    pub(super) teams: Arc<Teams>,
    pub(super) services: Arc<dyn Services>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) fallback: Arc<Fallback>,
    /// What components are told of tasks to come, if anything.
    pub(super) lookahead: Option<Arc<dyn Lookahead>>,
    /// Seeds the randomness of every node.
    pub(super) seed: u64,
}

/// A tree, and what hops need. One without nodes gives nothing, and keeps what it is given in the fallback store.
pub(crate) struct Shared {
    pub(super) nodes: Box<[TreeNode]>,
    /// The first of its nodes' numbers among those of all trees.
    pub(super) first: NodeId,
    /// The leaf of each worker, simple or combined.
    pub(super) leaves: Box<[Option<NodeId>]>,
    /// For each simple worker: its leaf, and those of the combined workers that it is a member of.
    pub(super) leaves_for: Box<[Box<[NodeId]>]>,
    pub(super) teams: Arc<Teams>,
    /// Each worker, simple or combined.
    pub(super) workers: Arc<[RawWorker]>,
    pub(super) services: Arc<dyn Services>,
    /// Which workers sleep.
    pub(super) sleeping: Arc<SharedSet>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) fallback: Arc<Fallback>,
    /// A node was quarantined, and its tasks were not yet taken back.
    pub(super) repairs: AtomicBool,
    /// What components are told of tasks to come, if anything.
    pub(super) foresight: Option<Arc<Foresight>>,
    /// Sees where tasks are, if anybody wants to know.
    pub(super) observed: Option<Observed>,
}

impl Shared {
    /// Puts parts together; part 0 is the root. `None` when all trees together would have too many nodes.
    ///
    /// # Panics
    /// When a child's number is not that of a later part: plans are checked before.
    pub(super) fn assemble(parts: Vec<Part>, env: &TreeEnv) -> Option<Shared> {
        let (seed, teams) = (env.seed, &env.teams);
        let first = env.ledger.take_numbers(parts.len() as u32, Arc::clone(&env.fallback))?;
        let paths: Vec<&str> = parts.iter().map(|part| part.path.as_str()).collect();
        let observed = Observed::of(&*env.services, &paths);
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
                    let simple = teams.simple(&part.workers);
                    let below = || simple.iter().filter_map(|worker| env.workers.get(worker.0 as usize));
                    raw.relative_speedup = below().map(|worker| worker.relative_speedup).sum();
                    if let Some(first) = below().next() {
                        if below().all(|worker| worker.arch == first.arch) {
                            raw.flags |= place::HOMOGENEOUS;
                        }
                        if below().all(|worker| worker.memory_node == first.memory_node) {
                            raw.flags |= place::SINGLE_MEMORY_NODE;
                            raw.memory_node = first.memory_node;
                        }
                    }
                    if part.worker.is_some() {
                        raw.flags |= place::LEAF;
                    }
                    if !env.services.transfers() {
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
        // Without them, leaves note at each pull until when their worker should be busy.
        let keeps_books = env.services.busy_until(WorkerId(0)).is_some();
        let mut leaves = vec![None; teams.count()];
        let mut leaves_for = vec![Vec::new(); teams.count_simple()];
        let mut nodes: Box<[TreeNode]> = parts
            .into_iter()
            .zip(parents)
            .zip(sources)
            .enumerate()
            .map(|(id, ((part, parents), sources))| {
                if let Some(leaf) = part.worker.and_then(|worker| leaves.get_mut(worker.0 as usize)) {
                    *leaf = Some(id as NodeId);
                    for member in teams.simple(&part.workers).iter() {
                        leaves_for[member.0 as usize].push(id as NodeId);
                    }
                }
                let alike = prospects::alike(&part.workers, env);
                let teams_below = teams.below(&part.workers, &env.workers);
                let children = part.children.iter().map(|(child, _)| *child).collect();
                let (places, workers) = (Arc::clone(&places), Arc::clone(&env.workers));
                TreeNode::new(
                    id as NodeId,
                    first + id as NodeId,
                    part.component,
                    part.name,
                    part.plugin,
                    part.empty_until_pushed && keeps_books,
                    part.end_is_noted && keeps_books,
                    children,
                    parents.into(),
                    sources.into(),
                    places,
                    workers,
                    alike,
                    teams_below,
                    seed,
                )
            })
            .collect();
        let foresight = env.lookahead.as_ref().map(|lookahead| Arc::new(Foresight::new(Arc::clone(lookahead))));
        // Children come later, so theirs are known.
        for id in (0..nodes.len()).rev() {
            nodes[id].straight = books::straight(&nodes[id], &nodes, &leaves_for);
            nodes[id].foresight.clone_from(&foresight);
            nodes[id].like = prospects::like(&nodes[id], &nodes);
        }
        Some(Shared {
            nodes,
            first,
            leaves: leaves.into(),
            leaves_for: leaves_for.into_iter().map(Vec::into_boxed_slice).collect(),
            teams: Arc::clone(teams),
            workers: Arc::clone(&env.workers),
            services: Arc::clone(&env.services),
            sleeping: env.services.sleeping(),
            ledger: Arc::clone(&env.ledger),
            fallback: Arc::clone(&env.fallback),
            repairs: AtomicBool::new(false),
            foresight,
            observed,
        })
    }

    /// Its nodes' numbers among those of all trees.
    pub(super) fn numbers(&self) -> Range<NodeId> {
        self.first..self.first + self.nodes.len() as NodeId
    }

    pub(super) fn can_execute(&self, worker: WorkerId, slot: &Slot) -> bool {
        self.fits(worker.0, slot.head())
    }

    /// The leaf of a worker, if it is one of this context's.
    #[inline]
    pub(super) fn leaf(&self, worker: WorkerId) -> Option<NodeId> {
        self.leaves.get(worker.0 as usize).copied().flatten()
    }

    /// Puts a task that the caller owns into the fallback store; handles to it become stale.
    pub(super) fn fall_back(&self, slot: &'static Slot) {
        slot.renew(Phase::Fallback);
        self.fallback.put(slot);
    }

    /// Workers have been added or removed, or the tree is new. The caller is alone.
    pub(super) fn notify_change_workers(&self) {
        let call = Call::new(self, None, u32::MAX);
        for node in &self.nodes {
            node.with(&call, |component, raw| component.notify_change_workers(raw));
        }
    }

    /// Takes back what quarantined nodes hold. The caller is alone.
    pub(super) fn repair(&self) {
        self.repairs.store(false, Release);
        for node in self.nodes.iter().filter(|node| node.is_quarantined()) {
            let numbers = node.number..node.number + 1;
            for slot in self.ledger.held_by(&numbers) {
                if slot.take_from(&numbers, Phase::Fallback) {
                    node.health.rehomed.fetch_add(1, Relaxed);
                    self.fallback.put(slot);
                }
            }
        }
    }

    /// What components did wrong so far, in order of their nodes.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let lost = self.ledger.lost_by(self.first);
        self.nodes.iter().flat_map(|node| node.faults(lost.get(&node.number).copied().unwrap_or(0))).collect()
    }

    /// Where every task sits. Components are asked about themselves only if the caller is alone: one that hangs may hold
    /// its own lock.
    pub(super) fn survey(&self, alone: bool) -> Vec<NodeState> {
        let mut held: BTreeMap<NodeId, u64> = BTreeMap::new();
        for slot in self.ledger.slots() {
            if let Phase::InTree(node) = slot.phase() {
                *held.entry(node).or_insert(0) += 1;
            }
        }
        let call = Call::new(self, None, u32::MAX);
        let states = self.nodes.iter().map(|node| {
            let facts = if alone && !node.is_quarantined() {
                let facts = node.with(&call, |component, raw| component.describe(raw));
                facts.into_iter().map(|fact| (fact.0.to_string(), fact.1.to_string())).collect()
            } else {
                Vec::new()
            };
            let code = node.health.last_refusal.load(Relaxed);
            NodeState {
                context: String::new(),
                node: node.place().path().to_owned(),
                component: node.component_name.clone(),
                plugin: node.plugin.clone(),
                tasks: held.get(&node.number).copied().unwrap_or(0),
                refusals: node.health.refusals.load(Relaxed),
                last_refusal: (code != 0).then(|| Refusal::from_code(code).to_string()),
                quarantined: node.is_quarantined(),
                facts,
            }
        });
        states.collect()
    }
}

impl Drop for Shared {
    /// What components still hold is nobody's any more: their dropping it is no fault.
    fn drop(&mut self) {
        let numbers = self.numbers();
        for slot in self.ledger.slots() {
            slot.take_from(&numbers, Phase::Waiting);
        }
        self.ledger.give_numbers_back(self.first);
    }
}
