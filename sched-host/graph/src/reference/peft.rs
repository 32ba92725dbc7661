//! PEFT.

use super::heft::soonest_end;
use super::ready::{Ready, Ties};
use super::schedule::Plan;
use super::{Problem, Schedule};

/// Predict Earliest Finish Time (Arabnejad and Barbosa, 2014): tasks by the mean of their row in a table of optimistic costs,
/// each where its end and the optimistic cost of what follows are least together.
///
/// The optimistic cost of a task on a processor is the longest chain behind it, where each task of the chain runs where it,
/// the mean transfer to it and the rest of the chain take least.
#[must_use]
pub fn peft(problem: &Problem) -> Schedule {
    let costs = optimistic_costs(problem);
    let p = problem.n_processors();
    let able = |task: usize| (0..p).filter(move |processor| problem.seconds(task)[*processor].is_finite());
    let mean = |task: usize| {
        let (sum, count) =
            able(task).fold((0.0, 0.0), |(sum, count), processor| (sum + costs[task * p + processor], count + 1.0));
        sum / count
    };
    let ranks: Vec<f64> = (0..problem.n_tasks()).map(mean).collect();

    let mut plan = Plan::new(problem);
    let mut queue = Ready::new(problem, &ranks, Ties::Lower);
    while let Some(task) = queue.pop() {
        let at = soonest_end(&plan, problem, task, |processor| costs[task * p + processor]);
        plan.place(task, at);
    }
    plan.done()
}

/// The optimistic cost of each task on each processor, task by task.
fn optimistic_costs(problem: &Problem) -> Vec<f64> {
    let p = problem.n_processors();
    let mut costs = vec![0.0f64; problem.n_tasks() * p];
    for task in (0..problem.n_tasks()).rev() {
        for edge in problem.after(task) {
            let next = |on: usize| costs[edge.task * p + on] + problem.seconds(edge.task)[on];
            let transfer = problem.mean_transfer(edge.bytes);
            // The best with a transfer is the same for all processors, so that this takes no time in p².
            let elsewhere = (0..p).map(next).fold(f64::INFINITY, f64::min) + transfer;
            let chains: Vec<f64> = (0..p).map(|on| next(on).min(elsewhere)).collect();
            for (cost, chain) in costs[task * p..(task + 1) * p].iter_mut().zip(chains) {
                *cost = cost.max(chain);
            }
        }
    }
    costs
}
