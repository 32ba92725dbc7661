//! `perfmodel-select`: sorts tasks by what performance models know of them, so that components that decide by models see
//! only tasks that have one, and models that need measurements get them.

use sched_core::*;

const PERFMODEL: &str = "perfmodel";
const CALIBRATOR: &str = "calibrator";
const NO_PERFMODEL: &str = "no-perfmodel";

/// Sends each task to one of three children, by its estimates on the workers below that can execute it.
///
/// A task that the `perfmodel` child refuses as [`Uncalibrated`](Refusal::Uncalibrated) goes to the `calibrator`.
///
/// What stands in a slot must take tasks that are pushed: it has queues, as in `eager { each "worker" { fifo … } }`. A
/// pull is answered by asking for pushes, and what comes is sorted; were it handed a task of the parents, the worker that
/// pulls through one slot would take tasks that belong in another.
#[derive(Debug)]
pub struct PerfmodelSelect;

impl Build for PerfmodelSelect {
    const INFO: Info = Info::new(
        "perfmodel-select",
        Family::SpecialPurpose,
        "Sorts tasks by whether their performance models know how long they take.",
    )
    .slots(
        const {
            &[
                Slot { name: PERFMODEL, doc: "tasks whose length is expected" },
                Slot { name: CALIBRATOR, doc: "tasks that a model needs to be measured" },
                Slot { name: NO_PERFMODEL, doc: "tasks without a model" },
            ]
        },
    );

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(PerfmodelSelect)
    }
}

/// The slot for `task`, or `None` when no worker below can execute it.
fn slot(node: Node<'_>, task: &Task) -> Option<&'static str> {
    let mut slot = None;
    for worker in node.each_worker_in_context().filter(|worker| node.worker_can_execute(*worker, task)) {
        match node.expected_length(worker, task) {
            Estimate::Uncalibrated => return Some(CALIBRATOR),
            Estimate::Known(_) => slot = Some(PERFMODEL),
            Estimate::NoModel => slot = slot.or(Some(NO_PERFMODEL)),
        }
    }
    slot
}

fn push_to_slot(node: Node<'_>, slot: &str, task: Task) -> Push {
    match node.slot(slot) {
        Some(child) => node.push_to(child, task),
        None => Err(Refused::new(task, Refusal::Full)),
    }
}

impl Component for PerfmodelSelect {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let Some(slot) = slot(node, &task) else { return Err(Refused::new(task, Refusal::NoWorker)) };
        match push_to_slot(node, slot, task) {
            Err(Refused { task, why: Refusal::Uncalibrated }) if slot == PERFMODEL => {
                push_to_slot(node, CALIBRATOR, task)
            }
            answer => answer,
        }
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let _ = node.parents_can_push();
        None
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        node.slot(PERFMODEL).map_or_else(|| node.earliest_end_below(), |child| node.child_estimated_end(child))
    }
}

#[cfg(test)]
mod tests;
