//! `perfmodel-select`: sorts tasks by what performance models know about them, so that components that decide by models
//! get only tasks with one, and models that need measurements get them.

mod known_kinds;

use known_kinds::KnownKinds;
use sched_core::*;
use std::sync::OnceLock;

const PERFMODEL: &str = "perfmodel";
const CALIBRATOR: &str = "calibrator";
const NO_PERFMODEL: &str = "no-perfmodel";

const UNMEASURED: &str = "unmeasured";

/// Sends each task to one of three children, by its estimates on the workers below that can execute it.
///
/// A child without a worker that can execute the task is passed over, for one with such a worker. A task that the
/// `perfmodel` child refuses as [`Uncalibrated`](Refusal::Uncalibrated) goes to the `calibrator`. Other refusals are
/// forwarded: if the children never refuse, neither does this component.
///
/// The component in a slot must accept pushed tasks, so it has queues, as in `eager { each "worker" { fifo … } }`. A
/// pull is answered by asking the parents to push, and what arrives is sorted; if parents gave tasks to the puller
/// directly, a worker that pulls through one slot would take tasks that belong in another. Tasks are sorted as soon as
/// a parent has them ([`Info::pushes_on_pull`]).
///
/// Models are asked until they know the length of a kind of tasks (of a codelet and footprint), and then not again.
///
/// With `unmeasured`, tasks that a model needs to be measured go to the `perfmodel` child too where all workers below are
/// equal and can execute them: whoever executes one measures it, and the calibrator has nothing to choose. For a child
/// that does not need lengths there, as [`Plan`](crate::resource_mapping::Plan) in a real run.
#[derive(Debug)]
pub struct PerfmodelSelect {
    unmeasured: bool,
    known: KnownKinds,
    slots: OnceLock<Slots>,
}

/// The children in the slots.
#[derive(Clone, Copy, Debug)]
struct Slots {
    perfmodel: Option<Child>,
    calibrator: Option<Child>,
    no_perfmodel: Option<Child>,
}

const UNMEASURED_DOC: &str = "on equal workers, tasks to be measured go to the `perfmodel` child too";

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
    .params(const { &[Param::bool(UNMEASURED, false, UNMEASURED_DOC)] })
    .forwards_push()
    .pushes_on_pull();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(PerfmodelSelect { unmeasured: params.bool(UNMEASURED)?, known: KnownKinds::new(), slots: OnceLock::new() })
    }
}

impl PerfmodelSelect {
    fn slots(&self, node: Node<'_>) -> Slots {
        *self.slots.get_or_init(|| Slots {
            perfmodel: node.slot(PERFMODEL),
            calibrator: node.slot(CALIBRATOR),
            no_perfmodel: node.slot(NO_PERFMODEL),
        })
    }

    /// The child for `task`, or else another, that has a worker which can execute it.
    fn child(&self, node: Node<'_>, task: &Task) -> Option<Child> {
        let Slots { perfmodel, calibrator, no_perfmodel } = self.slots(node);
        let mut other = no_perfmodel;
        let ask = || match node.expected_below(task) {
            Estimate::Known(_) => true,
            Estimate::Uncalibrated => {
                let are_equal = || node.is_homogeneous() && node.single_memory_node().is_some();
                // One that only some workers can execute would have the child choose, without a length.
                let is_for_all = || !task.open_archs().is_empty();
                other = if self.unmeasured && is_for_all() && are_equal() { perfmodel } else { calibrator };
                false
            }
            Estimate::NoModel => false,
        };
        let wanted = if self.known.have(node, task, ask) { perfmodel } else { other };
        let able = |child: &Child| node.child_can_execute(*child, task);
        [wanted, no_perfmodel, perfmodel, calibrator].into_iter().flatten().find(able)
    }
}

impl Component for PerfmodelSelect {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let Some(wanted) = self.child(node, &task) else {
            return Err(Refused::new(task, Refusal::NoWorker));
        };
        let Err(refused) = node.push_to(wanted, task) else { return Ok(()) };
        let measure = self.slots(node).calibrator.filter(|measure| *measure != wanted);
        match (refused.why, measure) {
            (Refusal::Uncalibrated, Some(measure)) => node.push_to(measure, refused.task),
            _ => Err(refused),
        }
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let _ = node.parents_can_push();
        None
    }

    fn notify_change_workers(&self, node: Node<'_>) {
        self.known.forget(node);
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        self.slots(node).perfmodel.map_or_else(|| node.earliest_end_below(), |child| node.child_estimated_end(child))
    }
}

#[cfg(test)]
mod tests;
