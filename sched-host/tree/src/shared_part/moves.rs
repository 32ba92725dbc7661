//! What becomes of shared parts, and of their tasks, when a tree is exchanged or a component fails.

use super::View;
use crate::LiveTree;
use crate::fallback::Fallback;
use crate::ledger::{NodeId, NodeNumber, Phase, Slot};
use crate::node::TreeNode;
use crate::swap::SwapError;
use sched_core::abi::RawTask;
use sched_core::{WorkerId, WorkerSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// A node of a tree that is taken down, whose component stays for others.
#[derive(Clone, Copy)]
pub(crate) struct Staying {
    pub(crate) old: NodeId,
    /// Its node in the next tree, if that has it.
    pub(crate) new: Option<NodeId>,
}

/// What becomes of the tasks of components that stay.
pub(crate) struct Moves {
    pub(crate) staying: Vec<Staying>,
    /// Each task with the number of its node, and of its next one.
    tasks: Vec<(&'static Slot, NodeNumber, NodeNumber)>,
    /// Workers of other contexts that have more tasks in reach, with the store of their context.
    woken: Vec<(Arc<Fallback>, WorkerSet)>,
}

impl LiveTree {
    /// Plans what becomes of shared parts when `next` takes the place of this tree. The caller is alone here, and no
    /// other tree is exchanged; calls of other trees go on.
    ///
    /// # Errors
    /// Some task would be in reach of no worker, or calls of other trees may be inside a part that failed.
    pub(crate) fn plan_shared(&self, next: &LiveTree) -> Result<Moves, SwapError> {
        let mut moves = Moves { staying: Vec::new(), tasks: Vec::new(), woken: Vec::new() };
        for node in &self.nodes {
            let Some(part) = &node.shared else { continue };
            if part.is_left(self.first) {
                return Err(SwapError::Failing { part: part.name().to_owned() });
            }
            if node.is_quarantined() || part.has_failed() {
                continue;
            }
            let is_it = |other: &&TreeNode| other.shared.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, part));
            let heir = next.nodes.iter().find(is_it);
            let others: Vec<_> =
                part.views_but(self.first).into_iter().filter(|view| view.tree != next.first).collect();
            if heir.is_none() && others.is_empty() {
                continue;
            }
            moves.staying.push(Staying { old: node.id, new: heir.map(|heir| heir.id) });
            let mut stranded = 0;
            for slot in self.ledger.held_by(&node.number.alone()) {
                let head = slot.head();
                let reaches = |view: &&Arc<View>| view.workers.iter().any(|worker| self.fits(worker.0, head));
                let heir = heir.filter(|heir| next.some_fits(heir, head));
                match (heir, others.iter().find(reaches)) {
                    (Some(heir), _) => moves.tasks.push((slot, node.number, heir.number)),
                    (None, Some(view)) => {
                        moves.tasks.push((slot, node.number, view.number));
                        moves.woken.push((Arc::clone(&view.fallback), view.workers.clone()));
                    }
                    (None, None) => stranded += 1,
                }
            }
            if stranded > 0 {
                let part = part.name().to_owned();
                return Err(SwapError::Stranded { part, tasks: stranded });
            }
        }
        Ok(moves)
    }

    /// Takes the views of this tree away from shared parts.
    pub(crate) fn leave_shared(&self) {
        for part in self.nodes.iter().filter_map(|node| node.shared.as_ref()) {
            part.leave(self.first);
        }
    }

    /// Quarantines the views of shared components that failed in whichever tree, and takes back their tasks if this is
    /// the last tree to do so. The caller is alone.
    pub(crate) fn see_failures(&self) {
        for node in &self.nodes {
            let Some(part) = node.shared.as_ref().filter(|part| part.has_failed()) else { continue };
            node.set_quarantined();
            self.has_failures.store(true, Relaxed);
            node.queued.set(0);
            for view in part.seal(self.first) {
                let number = view.number.alone();
                for slot in self.ledger.held_by(&number) {
                    if slot.take_from(&number, Phase::Fallback) {
                        node.health.rehomed.fetch_add(1, Relaxed);
                        let fits = |worker| self.fits(worker, slot.head());
                        let here = view.workers.iter().any(|worker| fits(worker.0));
                        let elsewhere = || part.store_elsewhere(view.tree, |worker| fits(worker.0));
                        let store = if here { None } else { elsewhere() };
                        store.unwrap_or_else(|| Arc::clone(&view.fallback)).put(slot);
                    }
                }
            }
        }
    }

    /// Takes a task past `node`, which failed and holds it in the ledger. Returns whether the call still has it.
    ///
    /// What the view of a failed part holds is what was left in the component, for the tree that seals the last view:
    /// that takes it back while calls of other trees go on. So the ledger says that the call has the task, and no node.
    pub(crate) fn takes_along(&self, node: &TreeNode, task: RawTask) -> bool {
        let in_hand = self.first.of(NodeId::at(self.nodes.len()));
        node.shared.is_none() || Slot::of(task).is_some_and(|slot| slot.pass(task, node.number, in_hand))
    }

    /// The store for a task that `node`, or the worker that got it, cannot execute: that of another context which has a
    /// part in common with this one, if no worker of this one can execute the task.
    pub(crate) fn store_for(&self, node: &TreeNode, slot: &Slot) -> Arc<Fallback> {
        let fits = |worker: WorkerId| self.fits(worker.0, slot.head());
        let elsewhere = || {
            let parts = std::iter::once(node).chain(&self.nodes).filter_map(|node| node.shared.as_ref());
            parts.into_iter().find_map(|part| part.store_elsewhere(self.first, fits))
        };
        let here = self.nodes.first().is_some_and(|root| root.workers_in_context().any(fits));
        let store = if here { None } else { elsewhere() };
        store.unwrap_or_else(|| Arc::clone(&self.fallback))
    }
}

impl Moves {
    /// Notes the tasks at their next nodes. A task that another tree takes meanwhile stays where that tree has it.
    pub(crate) fn make(&self) {
        self.tasks.iter().for_each(|(slot, from, to)| slot.move_with(*from, *to));
    }

    /// Notes the tasks that the failed tree `next` got at their nodes in `old` again, with those that it pushed.
    pub(crate) fn undo(&self, next: &LiveTree, old: &LiveTree) {
        for Staying { old: id, new } in &self.staying {
            let Some(new) = new.map(|new| next.first.of(new)) else { continue };
            for slot in next.ledger.held_by(&new.alone()) {
                slot.move_with(new, old.first.of(*id));
            }
        }
    }

    /// Wakes the workers of other contexts that have more tasks in reach.
    pub(crate) fn wake_others(&self) {
        self.woken.iter().for_each(|(fallback, workers)| fallback.wake(workers));
    }
}
