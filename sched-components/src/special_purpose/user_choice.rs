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
/// Its place is the root, with a queue at the top of each branch: tasks for which the choice names a child without a
/// suitable worker are then executed by any worker that can. Below a queue, such a task blocks those behind it, and the
/// report of the stalled run has the last wrong choice of either kind.
#[derive(Debug, Default)]
pub struct UserChoice {
    wrong: Mutex<Wrong>,
}

/// The last choices that could not be followed.
#[derive(Debug, Default)]
struct Wrong {
    /// A number that is no child's, and the number of children.
    no_child: Option<(u64, u32)>,
    /// A child without a worker that could execute the task.
    unable: Option<Child>,
}

impl Build for UserChoice {
    const INFO: Info =
        Info::new("user-choice", Family::ResourceMapping, "Gives each task to the child that the application chose.")
            .package(env!("CARGO_PKG_NAME"))
            .forwards_push()
            .end_is_noted()
            .pushes_on_pull();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(UserChoice::default())
    }
}

impl Component for UserChoice {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let (number, children) = (task.sched_data(), node.children().len() as u32);
        match u32::try_from(number).ok().filter(|number| *number < children).map(Child) {
            Some(child) if node.child_can_execute(child, &task) => return node.push_to(child, task),
            Some(child) => self.wrong.lock().unable = Some(child),
            None => self.wrong.lock().no_child = Some((number, children)),
        }
        Err(Refused::new(task, Refusal::NoWorker))
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let _ = node.parents_can_push();
        None
    }

    fn describe(&self, report: &mut Report) {
        let wrong = self.wrong.lock();
        if let Some((number, children)) = wrong.no_child {
            let last = children.saturating_sub(1);
            report.fact("last choice of no child", format!("{number}, where the children are 0 to {last}"));
        }
        if let Some(child) = wrong.unable {
            report.fact("last choice of a child without a worker that can execute the task", child.0);
        }
    }
}

#[cfg(test)]
mod tests;
