//! What is to be expected of a task below each child: [`HostProspects`], so that who compares many children asks once for
//! many, and not once for each worker and each thing.

use super::Shared;
use super::assembly::Ground;
use super::ledger::NodeId;
use super::node::{head, record};
use sched_core::abi::extension::{HostProspects, RawProspect};
use sched_core::abi::std_types::RSliceMut;
use sched_core::abi::wire::{CallRef, place};
use sched_core::abi::{RawTask, TaskHead};
use sched_core::{Estimate, MemoryNode, WorkerId, WorkerSet};
use smallvec::SmallVec;

pub(super) static PROSPECTS: HostProspects = HostProspects { below };

/// Workers below a node of which the same is to be expected, whatever the task.
pub(super) struct Alike {
    /// One for all.
    first: WorkerId,
    count: u32,
    class: u32,
    memory_node: u32,
}

/// The workers below a node, by the first of those that are alike.
pub(super) fn alike(below: &WorkerSet, ground: &Ground) -> SmallVec<[Alike; 1]> {
    let size = |worker| ground.teams.of(worker).map(<[WorkerId]>::len);
    let mut found: SmallVec<[Alike; 1]> = SmallVec::new();
    for worker in below.iter() {
        let Some(facts) = ground.workers.get(worker.0 as usize) else { continue };
        let class = ground.services.speed_class(worker);
        let same = |other: &&mut Alike| {
            other.class == class
                && other.memory_node == facts.memory_node
                && ground.workers[other.first.0 as usize].arch == facts.arch
                && size(other.first) == size(worker)
        };
        match found.iter_mut().find(same) {
            Some(other) => other.count += 1,
            None => found.push(Alike { first: worker, count: 1, class, memory_node: facts.memory_node }),
        }
    }
    found
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
    let children = node.children.get(first as usize..).unwrap_or(&[]);
    for (child, prospect) in children.iter().zip(into.as_mut_slice()) {
        *prospect = answers.of(&tree.nodes[*child as usize].alike);
    }
}

/// What a task is to expect of the workers that were looked at last: neighbours are mostly alike, or in one memory node.
struct Answers<'a> {
    tree: &'a Shared,
    head: &'a TaskHead,
    moves: bool,
    with_energy: bool,
    /// By class, as it is passed to components.
    length: Option<(u32, u64)>,
    /// Nanoseconds, by memory node.
    transfer: Option<(u32, u64)>,
}

impl Answers<'_> {
    #[inline]
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

    #[inline]
    fn length(&mut self, workers: &Alike) -> u64 {
        match self.length {
            Some((class, length)) if class == workers.class => length,
            _ => {
                let length = match self.tree.services.expected_length(workers.first, self.head, None) {
                    known @ Estimate::Known(_) => known.to_wire(),
                    Estimate::Uncalibrated | Estimate::NoModel => RawProspect::NONE.length,
                };
                self.length = Some((workers.class, length));
                length
            }
        }
    }

    #[inline]
    fn transfer(&mut self, workers: &Alike) -> u64 {
        match self.transfer {
            Some((memory_node, transfer)) if memory_node == workers.memory_node => transfer,
            _ => {
                let length = self.tree.services.expected_transfer(MemoryNode(workers.memory_node), self.head);
                let transfer = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
                self.transfer = Some((workers.memory_node, transfer));
                transfer
            }
        }
    }
}
