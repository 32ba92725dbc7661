//! `perfmodel-select`: sorts tasks by what performance models know about them, so that components that decide by models
//! get only tasks with one, and models that need measurements get them.

use sched_core::*;

const PERFMODEL: &str = "perfmodel";
const CALIBRATOR: &str = "calibrator";
const NO_PERFMODEL: &str = "no-perfmodel";

/// Sends each task to one of three children, by its estimates on the workers below that can execute it.
///
/// A child without a worker that can execute the task is passed over, for one with such a worker. A task that the
/// `perfmodel` child refuses as [`Uncalibrated`](Refusal::Uncalibrated) goes to the `calibrator`. Other refusals are
/// forwarded: if the children never refuse, neither does this component.
///
/// The component in a slot must accept pushed tasks, so it has queues, as in `eager { each "worker" { fifo … } }`. A
/// pull is answered by asking the parents to push, and what arrives is sorted; if parents gave tasks to the puller
/// directly, a worker that pulls through one slot would take tasks that belong in another.
#[derive(Debug)]
pub struct PerfmodelSelect;

impl Build for PerfmodelSelect {
    const INFO: Info = Info::new(
        "perfmodel-select",
        Family::SpecialPurpose,
        "Sorts tasks by whether their performance models know how long they take.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .slots(
        const {
            &[
                Slot { name: PERFMODEL, doc: "tasks whose length is expected" },
                Slot { name: CALIBRATOR, doc: "tasks that a model needs to be measured" },
                Slot { name: NO_PERFMODEL, doc: "tasks without a model" },
            ]
        },
    )
    .forwards_push()
    .pushes_on_pull();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(PerfmodelSelect)
    }
}

/// The slot for `task`.
fn slot(node: Node<'_>, task: &Task) -> &'static str {
    match node.expected_below(task) {
        Estimate::Uncalibrated => CALIBRATOR,
        Estimate::Known(_) => PERFMODEL,
        Estimate::NoModel => NO_PERFMODEL,
    }
}

/// The child in slot `wanted`, or else in another slot, that has a worker which can execute `task`.
fn child(node: Node<'_>, wanted: &str, task: &Task) -> Option<Child> {
    let slots = [wanted, NO_PERFMODEL, PERFMODEL, CALIBRATOR];
    slots.into_iter().filter_map(|slot| node.slot(slot)).find(|child| node.child_can_execute(*child, task))
}

impl Component for PerfmodelSelect {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let Some(wanted) = child(node, slot(node, &task), &task) else {
            return Err(Refused::new(task, Refusal::NoWorker));
        };
        let Err(refused) = node.push_to(wanted, task) else { return Ok(()) };
        let measure = node.slot(CALIBRATOR).filter(|measure| *measure != wanted);
        match (refused.why, measure) {
            (Refusal::Uncalibrated, Some(measure)) => node.push_to(measure, refused.task),
            _ => Err(refused),
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
