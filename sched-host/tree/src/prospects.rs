//! Prospects of a task below each child: [`HostProspects`]. A component that compares many children asks once, instead
//! of once for each worker and quantity.

use super::LiveTree;
use super::assembly::TreeEnv;
use super::ledger::NodeId;
use super::node::{TreeNode, head, record};
use super::services::{CostPlace, ExpectedCost};
use sched_core::abi::extension::{HostProspectRuns, HostProspects, RawProspect, RawProspectRun};
use sched_core::abi::std_types::RSliceMut;
use sched_core::abi::wire::{CallRef, place};
use sched_core::abi::{RawTask, TaskHead};
use sched_core::{Estimate, MemoryNode, WorkerId, WorkerSet};
use std::sync::atomic::Ordering::Relaxed;

pub(super) static PROSPECTS: HostProspects = HostProspects { below, here };
pub(super) static RUNS: HostProspectRuns = HostProspectRuns { below: runs_below };

/// Workers below a node with the same prospects for any task.
pub(super) struct WorkerGroup {
    /// A representative.
    first: WorkerId,
    count: u32,
    kind: Kind,
}

/// Properties shared by workers with the same prospects.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    class: u32,
    memory_node: u32,
    arch: u32,
    /// Number of members of a combined worker; 0 for a simple one.
    members: usize,
}

/// Workers below a node, grouped by prospects.
pub(super) fn worker_groups(below: &WorkerSet, env: &TreeEnv) -> Box<[WorkerGroup]> {
    let mut found: Vec<WorkerGroup> = Vec::new();
    for worker in below.iter() {
        let Some(facts) = env.workers.get(worker.index()) else { continue };
        let kind = Kind {
            class: env.services.speed_class(worker),
            memory_node: facts.memory_node,
            arch: facts.arch,
            members: env.teams.of(worker).map_or(0, <[WorkerId]>::len),
        };
        match found.iter_mut().find(|other| other.kind == kind) {
            Some(other) => other.count += 1,
            None => found.push(WorkerGroup { first: worker, count: 1, kind }),
        }
    }
    found.into()
}

/// Computes [`TreeNode::first_equals`] of `node`.
pub(super) fn first_equals(node: &TreeNode, nodes: &[TreeNode]) -> Box<[NodeId]> {
    let below = |child: &NodeId| nodes[child.index()].worker_groups.iter().map(|workers| (workers.count, workers.kind));
    let mut firsts: Vec<NodeId> = Vec::new();
    let first = |child: &NodeId| match firsts.iter().find(|first| below(first).eq(below(child))) {
        Some(first) => *first,
        None => {
            firsts.push(*child);
            *child
        }
    };
    node.children.iter().map(first).collect()
}

/// Neighbouring children with the same prospects for any task.
pub(super) struct EqualRun {
    first: NodeId,
    count: u32,
}

/// The kinds of workers below all [runs](EqualRun) of a node, for back ends that know the costs of a task on all of
/// them at once.
pub(super) struct RunPlaces {
    /// A worker of each group below each run.
    at: Box<[CostPlace]>,
    /// These groups.
    groups: Box<[PlacedGroup]>,
}

/// Like workers below a run.
struct PlacedGroup {
    /// Number of the run.
    run: usize,
    /// The bit of their architecture.
    arch: u32,
    count: u32,
}

/// Maximum number of groups that a back end is asked about at once.
const MOST_PLACES: usize = 16;

impl RunPlaces {
    /// Those of `node`, if it has no combined workers and few groups.
    pub(super) fn of(node: &TreeNode, nodes: &[TreeNode]) -> Option<RunPlaces> {
        let of_run = |run: &EqualRun| &nodes[run.first.index()].worker_groups;
        let groups =
            || node.equal_runs.iter().enumerate().flat_map(|(run, of)| of_run(of).iter().map(move |it| (run, it)));
        let place = |(_, workers): (usize, &WorkerGroup)| CostPlace {
            worker: workers.first,
            memory_node: MemoryNode(workers.kind.memory_node),
        };
        let placed = |(run, workers): (usize, &WorkerGroup)| PlacedGroup {
            run,
            arch: 1 << workers.kind.arch,
            count: workers.count,
        };
        let at: Box<[CostPlace]> = groups().map(place).collect();
        let few = node.teams.is_none() && at.len() <= MOST_PLACES;
        few.then(|| RunPlaces { at, groups: groups().map(placed).collect() })
    }

    /// Answers [`runs_below`] for a task that is not restricted. Returns whether the back end knows all costs at once.
    fn answer(&self, answers: &Answers<'_>, runs: &[EqualRun], into: &mut [RawProspectRun]) -> bool {
        let mut costs = [ExpectedCost::UNKNOWN; MOST_PLACES];
        let costs = &mut costs[..self.at.len()];
        if !answers.tree.services.expected_costs(answers.head, &self.at, answers.with_energy, costs) {
            return false;
        }
        // Field by field: the processor would wait for a whole one that is put together elsewhere and copied.
        for (run, RawProspectRun { count, prospect }) in runs.iter().zip(&mut *into) {
            *count = run.count;
            *prospect = RawProspect::NONE;
        }
        let archs = answers.head.archs.load(Relaxed);
        for (workers, cost) in self.groups.iter().zip(costs).filter(|(workers, _)| archs & workers.arch != 0) {
            let found = &mut into[workers.run].prospect;
            found.able += workers.count;
            if cost.length < found.length {
                (found.length, found.energy) = (cost.length, cost.energy);
            }
            if answers.moves {
                found.transfer = found.transfer.saturating_add(cost.transfer.saturating_mul(u64::from(workers.count)));
            }
        }
        for RawProspectRun { prospect, .. } in &mut into[..runs.len()] {
            if prospect.able > 1 {
                prospect.transfer /= u64::from(prospect.able);
            }
        }
        true
    }
}

/// Computes [`TreeNode::equal_runs`] from [`TreeNode::first_equals`].
pub(super) fn equal_runs(first_equals: &[NodeId]) -> Box<[EqualRun]> {
    let runs = first_equals.chunk_by(|one, other| one == other);
    runs.map(|run| EqualRun { first: run[0], count: run.len() as u32 }).collect()
}

extern "C" fn below(
    call: CallRef<'_>,
    node: u32,
    first: u32,
    task: RawTask,
    with_energy: bool,
    mut into: RSliceMut<'_, RawProspect>,
) {
    let tree = record(call).tree;
    let (Some(head), Some(node)) = (head(task), tree.nodes.get(node as usize)) else { return };
    let moves = node.place().raw().flags & place::NO_TRANSFERS == 0;
    let mut answers = Answers { tree, head, moves, with_energy, length: None, transfer: None };
    if head.restriction() != 0 {
        return restricted_below(&mut answers, node, first, into.as_mut_slice());
    }
    let mut last = (None, RawProspect::NONE);
    for (first_equal, prospect) in
        node.first_equals.get(first as usize..).unwrap_or(&[]).iter().zip(into.as_mut_slice())
    {
        // Most children equal the one before.
        if Some(*first_equal) != last.0 {
            last = (Some(*first_equal), answers.of(&tree.nodes[first_equal.index()].worker_groups));
        }
        *prospect = last.1;
    }
}

extern "C" fn runs_below(
    call: CallRef<'_>,
    node: u32,
    task: RawTask,
    with_energy: bool,
    mut into: RSliceMut<'_, RawProspectRun>,
) -> u32 {
    let tree = record(call).tree;
    let (Some(head), Some(node)) = (head(task), tree.nodes.get(node as usize)) else { return 0 };
    let into = into.as_mut_slice();
    if head.restriction() != 0 || node.equal_runs.len() > into.len() {
        return 0;
    }
    let moves = node.place().raw().flags & place::NO_TRANSFERS == 0;
    let mut answers = Answers { tree, head, moves, with_energy, length: None, transfer: None };
    if node.run_places.as_ref().is_some_and(|places| places.answer(&answers, &node.equal_runs, into)) {
        return node.equal_runs.len() as u32;
    }
    for (run, found) in node.equal_runs.iter().zip(into) {
        let prospect = answers.of(&tree.nodes[run.first.index()].worker_groups);
        *found = RawProspectRun { count: run.count, prospect };
    }
    node.equal_runs.len() as u32
}

/// [`below`] for a task that is restricted to some workers, which groups of like workers do not tell apart.
#[cold]
fn restricted_below(answers: &mut Answers<'_>, node: &TreeNode, first: u32, into: &mut [RawProspect]) {
    for (child, prospect) in node.children.iter().skip(first as usize).zip(into) {
        *prospect = answers.of(&answers.tree.able_alone(&answers.tree.nodes[child.index()], answers.head));
    }
}

impl LiveTree {
    /// The prospect of a task below a child of `node`, as components get it.
    pub(super) fn prospect_below(&self, node: &TreeNode, child: &TreeNode, head: &TaskHead) -> RawProspect {
        let moves = node.place().raw().flags & place::NO_TRANSFERS == 0;
        let mut answers = Answers { tree: self, head, moves, with_energy: true, length: None, transfer: None };
        match head.restriction() {
            0 => answers.of(&child.worker_groups),
            _ => answers.of(&self.able_alone(child, head)),
        }
    }

    /// The workers below a node that can execute a task, each as a group of its own.
    fn able_alone(&self, node: &TreeNode, head: &TaskHead) -> Vec<WorkerGroup> {
        let able = node.workers_in_context().filter(|worker| self.fits(worker.0, head));
        let alone = able.map(|worker| {
            let facts = self.workers[worker.index()];
            let class = self.services.speed_class(worker);
            let members = self.teams.of(worker).map_or(0, <[WorkerId]>::len);
            let kind = Kind { class, memory_node: facts.memory_node, arch: facts.arch, members };
            WorkerGroup { first: worker, count: 1, kind }
        });
        alone.collect()
    }
}

extern "C" fn here(call: CallRef<'_>, node: u32, task: RawTask) -> u64 {
    let tree = record(call).tree;
    let mut least = Estimate::NoModel.to_wire();
    let (Some(head), Some(node)) = (head(task), tree.nodes.get(node as usize)) else { return least };
    let alone = (head.restriction() != 0).then(|| tree.able_alone(node, head));
    let groups = alone.as_deref().unwrap_or(&node.worker_groups);
    for workers in groups.iter().filter(|workers| tree.fits(workers.first.0, head)) {
        match tree.services.expected_length(workers.first, head, None) {
            Estimate::Uncalibrated => return Estimate::Uncalibrated.to_wire(),
            // An unknown value is longer than any known one.
            known => least = least.min(known.to_wire()),
        }
    }
    least
}

/// Prospects of a task, with a cache: neighbours mostly have the same prospects, or share a memory node.
struct Answers<'a> {
    tree: &'a LiveTree,
    head: &'a TaskHead,
    moves: bool,
    with_energy: bool,
    /// By class, encoded as for components.
    length: Option<(u32, u64)>,
    /// Nanoseconds, by memory node.
    transfer: Option<(u32, u64)>,
}

impl Answers<'_> {
    fn of(&mut self, workers: &[WorkerGroup]) -> RawProspect {
        let mut found = RawProspect::NONE;
        let mut best = None;
        for workers in workers.iter().filter(|workers| self.tree.fits(workers.first.0, self.head)) {
            found.able += workers.count;
            let length = self.length(workers);
            // An unknown value is longer than any known one.
            if length < found.length {
                found.length = length;
                best = Some(workers.first);
            }
            if self.moves {
                let transfer = self.transfer(workers).saturating_mul(u64::from(workers.count));
                found.transfer = found.transfer.saturating_add(transfer);
            }
        }
        if found.able > 1 {
            found.transfer /= u64::from(found.able);
        }
        if let Some(best) = best.filter(|_| self.with_energy) {
            found.energy = self.tree.services.expected_energy(best, self.head, None).unwrap_or(f64::NAN);
        }
        found
    }

    fn length(&mut self, workers: &WorkerGroup) -> u64 {
        match self.length {
            Some((class, length)) if class == workers.kind.class => length,
            _ => {
                let length = match self.tree.services.expected_length(workers.first, self.head, None) {
                    known @ Estimate::Known(_) => known.to_wire(),
                    Estimate::Uncalibrated | Estimate::NoModel => RawProspect::NONE.length,
                };
                self.length = Some((workers.kind.class, length));
                length
            }
        }
    }

    fn transfer(&mut self, workers: &WorkerGroup) -> u64 {
        match self.transfer {
            Some((memory_node, transfer)) if memory_node == workers.kind.memory_node => transfer,
            _ => {
                let length = self.tree.services.expected_transfer(MemoryNode(workers.kind.memory_node), self.head);
                let transfer = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
                self.transfer = Some((workers.kind.memory_node, transfer));
                transfer
            }
        }
    }
}
