//! HEFT.

use super::ready::{Ready, Ties};
use super::schedule::PartialSchedule;
use super::{Placement, Problem, ProcessorId, Schedule};
use crate::TaskId;

/// Heterogeneous Earliest Finish Time, with insertion (Topcuoglu, Hariri and Wu, 2002): tasks in the order of their
/// upward rank, each where it ends first, in a gap between others if it fits.
///
/// Of tasks of equal rank the one with the lower id comes first; of processors on which a task ends at the same time
/// the one with the lower id gets it.
#[must_use]
pub fn heft(problem: &Problem) -> Schedule {
    heft_with(problem, Ties::Lower)
}

/// [`heft`] with a given order of tasks of equal rank. Published makespans use either.
#[must_use]
pub fn heft_with(problem: &Problem, ties: Ties) -> Schedule {
    let ranks = problem.upward_ranks();
    let mut plan = PartialSchedule::new(problem);
    // A rank is larger than those behind it unless neither takes time, so ready tasks come by rank.
    let mut queue = Ready::new(problem, &ranks, ties);
    while let Some(task) = queue.pop() {
        let at = soonest_end(&plan, problem, task, |_| 0.0);
        plan.place(task, at);
    }
    plan.done()
}

/// Placement of `task` whose end plus the penalty `added` for its processor is least.
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
