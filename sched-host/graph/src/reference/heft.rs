//! HEFT.

use super::ready::{Ready, Ties};
use super::schedule::PartialSchedule;
use super::{Placement, Problem, ProcessorId, Schedule};
use crate::TaskId;

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
    let mut plan = PartialSchedule::new(problem);
    // A rank is larger than those behind it, unless neither takes time: what is ready comes by its rank.
    let mut queue = Ready::new(problem, &ranks, ties);
    while let Some(task) = queue.pop() {
        let at = soonest_end(&plan, problem, task, |_| 0.0);
        plan.place(task, at);
    }
    plan.done()
}

/// The placement of `task` that ends soonest, with what is `added` on each processor.
pub(super) fn soonest_end(
    plan: &PartialSchedule<'_>,
    problem: &Problem,
    task: TaskId,
    added: impl Fn(ProcessorId) -> f64,
) -> Placement {
    let placements = problem.able(task).map(|processor| plan.earliest(task, processor));
    placements
        .min_by(|a, b| (a.end + added(a.processor)).total_cmp(&(b.end + added(b.processor))))
        .expect("each task can run somewhere")
}
