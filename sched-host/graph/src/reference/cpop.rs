//! CPOP.

use super::heft::soonest_end;
use super::ready::{Ready, Ties};
use super::schedule::PartialSchedule;
use super::{Problem, ProcessorId, Schedule};
use crate::TaskId;

/// Critical Path On a Processor (Topcuoglu, Hariri and Wu, 2002): all tasks of the critical path go to the processor
/// that runs them fastest; the others, in the order of the longest chain through them, where they end first.
///
/// In a graph with several entry tasks the critical path begins with the most urgent of them.
#[must_use]
pub fn cpop(problem: &Problem) -> Schedule {
    let (up, down) = (problem.upward_ranks(), problem.downward_ranks());
    let urgency: Vec<f64> = up.iter().zip(&down).map(|(up, down)| up + down).collect();
    let path = critical_path(problem, &urgency);
    let on_path =
        |processor: ProcessorId| -> f64 { path.iter().map(|task| problem.seconds_on(*task, processor)).sum() };
    let processors = problem.processors().filter(|processor| on_path(*processor).is_finite());
    // `None` if no processor can run all of them: then each goes where it ends first.
    let of_path = processors.min_by(|a, b| on_path(*a).total_cmp(&on_path(*b)));
    let mut is_on_path = vec![false; problem.n_tasks()];
    for task in &path {
        is_on_path[task.index()] = true;
    }

    let mut plan = PartialSchedule::new(problem);
    let mut queue = Ready::new(problem, &urgency, Ties::Lower);
    while let Some(task) = queue.pop() {
        let at = match of_path {
            Some(processor) if is_on_path[task.index()] => plan.earliest(task, processor),
            _ => soonest_end(&plan, problem, task, |_| 0.0),
        };
        plan.place(task, at);
    }
    plan.done()
}

/// The path from the most urgent entry task to the most urgent successor, and so on.
fn critical_path(problem: &Problem, urgency: &[f64]) -> Vec<TaskId> {
    // Of equals the lowest id: `max_by` would take the last.
    let most = |tasks: &mut dyn Iterator<Item = TaskId>| {
        let of = |task: TaskId| urgency[task.index()];
        tasks.reduce(|best, task| if of(task) > of(best) * (1.0 + 1e-12) { task } else { best })
    };
    let mut path = Vec::new();
    let mut next = most(&mut problem.tasks().filter(|task| problem.before(*task).is_empty()));
    while let Some(task) = next {
        path.push(task);
        next = most(&mut problem.after(task).iter().map(|edge| edge.task));
    }
    path
}
