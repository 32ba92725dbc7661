//! HEFT.

use super::ready::{Ready, Ties};
use super::schedule::Plan;
use super::{Placement, Problem, Schedule};

/// Heterogeneous Earliest Finish Time, with insertion (Topcuoglu, Hariri and Wu, 2002): tasks by their upward rank, each
/// where it ends first, in a gap between others if it fits.
///
/// Of tasks of the same rank the lower-numbered one comes first; of processors on which a task ends at the same time the
/// lower-numbered one gets it.
#[must_use]
pub fn heft(problem: &Problem) -> Schedule {
    heft_with(problem, Ties::Lower)
}

/// [`heft`], where the caller says which of tasks of the same rank comes first. Some published makespans come from one
/// order, and some from the other.
#[must_use]
pub fn heft_with(problem: &Problem, ties: Ties) -> Schedule {
    let ranks = problem.upward_ranks();
    let mut plan = Plan::new(problem);
    // A rank is larger than those behind it, unless neither takes time: what is ready comes by its rank.
    let mut queue = Ready::new(problem, &ranks, ties);
    while let Some(task) = queue.pop() {
        let at = soonest_end(&plan, problem, task, |_| 0.0);
        plan.place(task, at);
    }
    plan.done()
}

/// The placement of `task` that ends soonest, with what is `added` on each processor.
pub(super) fn soonest_end(plan: &Plan<'_>, problem: &Problem, task: usize, added: impl Fn(usize) -> f64) -> Placement {
    let able = (0..problem.n_processors()).filter(|processor| problem.seconds(task)[*processor].is_finite());
    let placements = able.map(|processor| plan.earliest(task, processor));
    placements
        .min_by(|a, b| (a.end + added(a.processor)).total_cmp(&(b.end + added(b.processor))))
        .expect("each task can run somewhere")
}
