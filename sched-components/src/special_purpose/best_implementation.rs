//! `best-implementation`: chooses the implementation of a task's codelet with the shortest expected duration where it
//! will run, and sets the task's expected duration. The task passes through, pushed or pulled.

use sched_core::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Chooses the implementation with the shortest expected duration.
///
/// An implementation whose model needs measurements goes first, so that it is measured. If no implementation has a
/// model, the first is chosen.
#[derive(Debug, Default)]
pub struct BestImplementation {
    /// The first codelets, as bits, of which the only worker below has one implementation: there is nothing to choose.
    single: AtomicU64,
}

impl Build for BestImplementation {
    const INFO: Info = Info::new(
        "best-implementation",
        Family::SpecialPurpose,
        "Chooses the implementation with the shortest expected duration.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .forwards_push()
    .end_is_noted();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(BestImplementation::default())
    }
}

impl BestImplementation {
    /// Chooses for the requesting worker if it is below, or else for the first that can execute `task`.
    fn choose(&self, node: Node<'_>, task: &mut Task) {
        let bit = 1_u64.checked_shl(task.codelet()).unwrap_or(0);
        if self.single.load(Relaxed) & bit != 0 && task.predicted().is_some() {
            return;
        }
        let able = |worker: &WorkerId| node.worker_can_execute(*worker, task);
        let asks = node.requester().filter(|worker| node.has_in_context(*worker)).filter(able);
        let Some(worker) = asks.or_else(|| node.each_worker_in_context().find(able)) else { return };
        let count = node.implementations(worker, task);
        // Of all contexts that share the node.
        if count <= 1 && node.count_in_context() == 1 && node.workers().len() == 1 {
            self.single.fetch_or(bit, Relaxed);
        }
        if count <= 1 && task.predicted().is_some() {
            return;
        }
        let (implementation, length) = shortest(node, worker, task, count);
        task.set_implementation(Some(implementation));
        task.set_predicted(length);
        let memory_node = length.and_then(|_| node.memory_node(worker));
        let transfer = memory_node.map(|memory_node| node.expected_transfer(memory_node, task));
        task.set_predicted_transfer(transfer);
    }
}

fn shortest(node: Node<'_>, worker: WorkerId, task: &Task, count: u32) -> (u32, Option<Duration>) {
    let mut best: (u32, Option<Duration>) = (0, None);
    for implementation in 0..count {
        match node.expected_length_with(worker, task, implementation) {
            Estimate::Uncalibrated => return (implementation, None),
            Estimate::Known(length) if best.1.is_none_or(|known| length < known) => {
                best = (implementation, Some(length));
            }
            Estimate::Known(_) | Estimate::NoModel => {}
        }
    }
    best
}

impl Component for BestImplementation {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        self.choose(node, &mut task);
        node.push_to(Child(0), task)
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let mut task = node.pull_from_parents()?;
        self.choose(node, &mut task);
        Some(task)
    }

    fn notify_change_workers(&self, _node: Node<'_>) {
        self.single.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests;
