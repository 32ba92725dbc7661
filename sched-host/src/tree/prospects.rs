//! What is to be expected of a task below a child: [`HostProspects`], so that who compares many children asks once for
//! each, and not once for each worker and each thing.

use super::ledger::NodeId;
use super::node::{head, record};
use sched_core::abi::RawTask;
use sched_core::abi::extension::{HostProspects, RawProspect};
use sched_core::abi::wire::{CallRef, place};
use sched_core::{Estimate, MemoryNode, WorkerId};

pub(super) static PROSPECTS: HostProspects = HostProspects { below, here };

extern "C" fn below(call: CallRef<'_>, node: NodeId, child: u32, task: RawTask, with_energy: bool) -> RawProspect {
    let tree = record(call).tree;
    let no_model = Estimate::NoModel.to_wire();
    let mut found = RawProspect { able: 0, length: no_model, transfer: 0, energy: f64::NAN };
    let target = tree.nodes.get(node as usize).and_then(|node| node.children.get(child as usize));
    let (Some(head), Some(target)) = (head(task), target) else { return found };
    let node = &tree.nodes[*target as usize];
    let target = node.place().raw();
    let services = &*tree.services;
    let moves = target.flags & place::NO_TRANSFERS == 0;
    let mut best = None;
    // Workers of one memory node mostly stand side by side.
    let mut last = None;
    for number in node.words.clone() {
        let (first, mut left) = (number as u32 * 64, target.workers_in_context[number]);
        while left != 0 {
            let worker = WorkerId(first + left.trailing_zeros());
            left &= left - 1;
            if !tree.fits(worker.0, head) {
                continue;
            }
            found.able += 1;
            let estimate = services.expected_length(worker, head, None);
            let length = estimate.to_wire();
            if matches!(estimate, Estimate::Known(_)) && length < found.length {
                found.length = length;
                best = Some(worker);
            }
            if moves {
                let memory_node = tree.workers[worker.0 as usize].memory_node;
                let transfer = match last {
                    Some((of, transfer)) if of == memory_node => transfer,
                    _ => {
                        let length = services.expected_transfer(MemoryNode(memory_node), head);
                        u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
                    }
                };
                last = Some((memory_node, transfer));
                found.transfer = found.transfer.saturating_add(transfer);
            }
        }
    }
    if found.able > 1 {
        found.transfer /= u64::from(found.able);
    }
    if let Some(best) = best.filter(|_| with_energy) {
        found.energy = services.expected_energy(best, head, None).unwrap_or(f64::NAN);
    }
    found
}

extern "C" fn here(call: CallRef<'_>, node: NodeId, task: RawTask) -> u64 {
    let tree = record(call).tree;
    let (Some(head), Some(node)) = (head(task), tree.nodes.get(node as usize)) else {
        return Estimate::NoModel.to_wire();
    };
    let below = &node.place().raw().workers_in_context;
    let mut least = Estimate::NoModel.to_wire();
    for number in node.words.clone() {
        let (first, mut left) = (number as u32 * 64, below[number]);
        while left != 0 {
            let worker = WorkerId(first + left.trailing_zeros());
            left &= left - 1;
            if !tree.fits(worker.0, head) {
                continue;
            }
            match tree.services.expected_length(worker, head, None) {
                Estimate::Uncalibrated => return Estimate::Uncalibrated.to_wire(),
                // What is not known is longer than all that is.
                known => least = least.min(known.to_wire()),
            }
        }
    }
    least
}
