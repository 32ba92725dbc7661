//! What is to be expected of a task below each child: [`HostProspects`], so that who compares many children asks once for
//! many, and not once for each worker and each thing.

use super::LiveTree;
use super::assembly::TreeEnv;
use super::ledger::NodeId;
use super::node::{TreeNode, head, record};
use sched_core::abi::extension::{HostProspects, RawProspect};
use sched_core::abi::std_types::RSliceMut;
use sched_core::abi::wire::{CallRef, NO_ID, place};
use sched_core::abi::{RawTask, TaskHead};
use sched_core::{Estimate, MemoryNode, WorkerId, WorkerSet};

pub(super) static PROSPECTS: HostProspects = HostProspects { below, here };

/// Workers below a node of which the same is to be expected, whatever the task.
pub(super) struct Alike {
    /// One for all.
    first: WorkerId,
    count: u32,
    kind: Kind,
}

/// What workers that are alike have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    class: u32,
    memory_node: u32,
    arch: u32,
    /// Members of a combined worker, 0 for a simple one.
    members: usize,
}

/// The workers below a node, by the first of those that are alike.
pub(super) fn alike(below: &WorkerSet, env: &TreeEnv) -> Box<[Alike]> {
    let mut found: Vec<Alike> = Vec::new();
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
            None => found.push(Alike { first: worker, count: 1, kind }),
        }
    }
    found.into()
}

/// What [`TreeNode::like`] is for `node`.
pub(super) fn like(node: &TreeNode, nodes: &[TreeNode]) -> Box<[NodeId]> {
    let below = |child: &NodeId| nodes[*child as usize].alike.iter().map(|workers| (workers.count, workers.kind));
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

extern "C" fn below(
    call: CallRef<'_>,
    node: NodeId,
    first: u32,
    task: RawTask,
    with_energy: bool,
    mut into: RSliceMut<'_, RawProspect>,
) {
    let tree = record(call).tree;
    let (Some(head), Some(node)) = (head(task), tree.nodes.get(node as usize)) else { return };
    let moves = node.place().raw().flags & place::NO_TRANSFERS == 0;
    let mut answers = Answers { tree, head, moves, with_energy, length: None, transfer: None };
    let mut last = (NO_ID, RawProspect::NONE);
    for (like, prospect) in node.like.get(first as usize..).unwrap_or(&[]).iter().zip(into.as_mut_slice()) {
        // Most children are like the one before.
        if *like != last.0 {
            last = (*like, answers.of(&tree.nodes[*like as usize].alike));
        }
        *prospect = last.1;
    }
}

extern "C" fn here(call: CallRef<'_>, node: NodeId, task: RawTask) -> u64 {
    let tree = record(call).tree;
    let mut least = Estimate::NoModel.to_wire();
    let (Some(head), Some(node)) = (head(task), tree.nodes.get(node as usize)) else { return least };
    for workers in node.alike.iter().filter(|workers| tree.fits(workers.first.0, head)) {
        match tree.services.expected_length(workers.first, head, None) {
            Estimate::Uncalibrated => return Estimate::Uncalibrated.to_wire(),
            // What is not known is longer than all that is.
            known => least = least.min(known.to_wire()),
        }
    }
    least
}

/// What is to be expected of a task, and what was asked last for that: neighbours are mostly alike, or in one memory node.
struct Answers<'a> {
    tree: &'a LiveTree,
    head: &'a TaskHead,
    moves: bool,
    with_energy: bool,
    /// By class, as it is passed to components.
    length: Option<(u32, u64)>,
    /// Nanoseconds, by memory node.
    transfer: Option<(u32, u64)>,
}

impl Answers<'_> {
    fn of(&mut self, workers: &[Alike]) -> RawProspect {
        let mut found = RawProspect::NONE;
        let mut best = None;
        for workers in workers.iter().filter(|workers| self.tree.fits(workers.first.0, self.head)) {
            found.able += workers.count;
            let length = self.length(workers);
            // What is not known is longer than all that is.
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

    fn length(&mut self, workers: &Alike) -> u64 {
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

    fn transfer(&mut self, workers: &Alike) -> u64 {
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
