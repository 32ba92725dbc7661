//! `user-choice`: sends each task to the child that the application chose.

use sched_core::*;

/// Sends a task to the child whose number the application set ([`Task::sched_data`], 0 if it set none), counted from 0
/// in the order of the policy. It hands the task back with [`NoWorker`](Refusal::NoWorker) if there is no such child or
/// the child has no worker that can execute it, and with the child's reason if the child refuses it.
///
/// A pull asks the flow control above to push, since its tasks may be meant for other children: tasks meant for the
/// child that pulls are below when the pull ends. A child that is a worker, or passes tasks on to one, is pushed to; a
/// child that leaves tasks above until its workers pull them (`eager` directly above workers) needs a queue in between.
///
/// Its place is the root, with a queue at the top of each branch: the host then holds back tasks for which the choice
/// names a child without a suitable worker. Below a queue, such a task would block those behind it.
#[derive(Debug, Default)]
pub struct UserChoice;

impl Build for UserChoice {
    const INFO: Info =
        Info::new("user-choice", Family::ResourceMapping, "Gives each task to the child that the application chose.")
            .package(env!("CARGO_PKG_NAME"))
            .forwards_push()
            .end_is_noted()
            .pushes_on_pull();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(UserChoice)
    }
}

impl Component for UserChoice {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let chosen = u32::try_from(task.sched_data()).ok().map(Child);
        match chosen.filter(|child| child.0 < node.children().len() as u32) {
            Some(child) if node.child_can_execute(child, &task) => node.push_to(child, task),
            _ => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let _ = node.parents_can_push();
        None
    }
}

#[cfg(test)]
mod tests;
