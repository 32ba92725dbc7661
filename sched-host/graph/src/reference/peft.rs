//! PEFT.

use super::heft::soonest_end;
use super::ready::{Ready, Ties};
use super::schedule::PartialSchedule;
use super::{Problem, Schedule};
use crate::TaskId;

/// Predict Earliest Finish Time (Arabnejad and Barbosa, 2014): tasks in the order of the mean of their row in a table
/// of optimistic costs, each where the sum of its end and its optimistic cost is least.
///
/// The optimistic cost of a task on a processor is the longest chain behind it, where each task of the chain runs where
/// its execution, the mean transfer to it and the rest of the chain take least time.
#[must_use]
pub fn peft(problem: &Problem) -> Schedule {
    let costs = optimistic_costs(problem);
    let p = problem.n_processors();
    let mean = |task: TaskId| {
        let able = problem.able(task).map(|processor| costs[task.index() * p + processor.index()]);
        let (sum, count) = able.fold((0.0, 0.0), |(sum, count), cost| (sum + cost, count + 1.0));
        sum / count
    };
    let ranks: Vec<f64> = problem.tasks().map(mean).collect();

    let mut plan = PartialSchedule::new(problem);
    let mut queue = Ready::new(problem, &ranks, Ties::Lower);
    while let Some(task) = queue.pop() {
        let at = soonest_end(&plan, problem, task, |processor| costs[task.index() * p + processor.index()]);
        plan.place(task, at);
    }
    plan.done()
}

/// Optimistic cost of each task on each processor, task by task.
fn optimistic_costs(problem: &Problem) -> Vec<f64> {
    let p = problem.n_processors();
    let mut costs = vec![0.0f64; problem.n_tasks() * p];
    for task in problem.tasks().rev() {
        for edge in problem.after(task) {
            let next = |on: usize| costs[edge.task.index() * p + on] + problem.seconds(edge.task)[on];
            let transfer = problem.mean_transfer(edge.bytes);
            // The best with a transfer is the same for all processors, which avoids p² steps.
            let elsewhere = (0..p).map(next).fold(f64::INFINITY, f64::min) + transfer;
            let chains: Vec<f64> = (0..p).map(|on| next(on).min(elsewhere)).collect();
            for (cost, chain) in costs[task.index() * p..(task.index() + 1) * p].iter_mut().zip(chains) {
                *cost = cost.max(chain);
            }
        }
    }
    costs
}
