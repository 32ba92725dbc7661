//! `eager-calibration`: gives a task to a child whose workers still have to measure it, and stores none.

use super::completion::least_loaded;
use sched_core::*;

/// Gives a task to the first child with a worker whose performance model of the task is
/// [uncalibrated](Estimate::Uncalibrated). If all workers of the child have one architecture, it also chooses the first
/// implementation that needs measuring.
///
/// A child that is a worker is pushed to, because another worker's execution would measure something else. If all
/// children that should measure are full, the task is handed back as [`Full`](Refusal::Full). If nothing is left to
/// measure, because models were completed while the task waited above or because no worker below needed it, the task
/// goes to the child with the least load (that of the requesting worker, of several): handed back, it would wait
/// forever.
#[derive(Debug, Default)]
pub struct EagerCalibration;

impl Build for EagerCalibration {
    const INFO: Info = Info::new(
        "eager-calibration",
        Family::ResourceMapping,
        "Gives each task to the first child that still has to measure it.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .forwards_pull()
    .forwards_push()
    .end_is_noted();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(EagerCalibration)
    }
}

/// A worker of `child` that still has to measure `task`.
fn measures(node: Node<'_>, child: Child, task: &Task) -> Option<WorkerId> {
    node.each_child_worker_in_context(child).find(|worker| {
        node.worker_can_execute(*worker, task) && node.expected_length(*worker, task) == Estimate::Uncalibrated
    })
}

/// The implementation that `worker` should measure, where it means the same to all workers of `child`.
fn implementation(node: Node<'_>, child: Child, worker: WorkerId, task: &Task) -> Option<u32> {
    if node.each_child_worker_in_context(child).any(|other| node.arch(other) != node.arch(worker)) {
        return None;
    }
    let uncalibrated = |number: &u32| node.expected_length_with(worker, task, *number) == Estimate::Uncalibrated;
    (0..node.implementations(worker, task)).find(uncalibrated)
}

impl Component for EagerCalibration {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        if !node.can_execute(&task) {
            return Err(Refused::new(task, Refusal::NoWorker));
        }
        let chosen = task.implementation();
        let known = node.expected_below(&task) != Estimate::Uncalibrated;
        // The model may be completed meanwhile.
        let mut measured = true;
        for child in node.children().filter(|_| !known) {
            let Some(worker) = measures(node, child, &task) else { continue };
            measured = false;
            task.set_implementation(implementation(node, child, worker, &task));
            match node.push_to(child, task) {
                Ok(()) => return Ok(()),
                Err(refused) => task = refused.task,
            }
            task.set_implementation(chosen);
        }
        match least_loaded(node, &task).filter(|_| measured) {
            Some(child) => node.push_to(child, task),
            None => Err(Refused::new(task, Refusal::Full)),
        }
    }
}

#[cfg(test)]
mod tests;
