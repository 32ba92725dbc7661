//! List scheduling.

use super::{Placement, Problem, Schedule};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A list schedule: whenever a processor is idle, it begins the most urgent ready task that it can run. Nothing is planned
/// ahead, so this is what a runtime with one list of ready tasks does.
///
/// A task is ready when all that it waits for has ended; its data is then moved, and the processor waits for it. Of tasks
/// of the same `urgency` the lower-numbered one comes first, and of idle processors the one that ends the task first.
///
/// # Panics
/// If there is no urgency for each task.
#[must_use]
pub fn list_schedule(problem: &Problem, urgency: &[f64]) -> Schedule {
    assert_eq!(urgency.len(), problem.n_tasks(), "each task has an urgency");
    let mut place = vec![0; urgency.len()];
    let mut order: Vec<usize> = (0..urgency.len()).collect();
    order.sort_by(|a, b| urgency[*b].total_cmp(&urgency[*a]));
    for (at, task) in order.iter().enumerate() {
        place[*task] = at;
    }

    let mut left: Vec<usize> = (0..problem.n_tasks()).map(|task| problem.before(task).len()).collect();
    // By their place in the order of urgency.
    let mut ready: BTreeSet<usize> =
        (0..problem.n_tasks()).filter(|task| left[*task] == 0).map(|task| place[task]).collect();
    let mut idle = vec![true; problem.n_processors()];
    let mut placements: Vec<Option<Placement>> = vec![None; problem.n_tasks()];
    let mut ends: BinaryHeap<Reverse<End>> = BinaryHeap::new();
    let mut now = 0.0f64;
    loop {
        let begun: Vec<usize> = ready
            .iter()
            .copied()
            .filter(|at| {
                let task = order[*at];
                let placement = soonest(problem, &placements, &idle, task, now);
                if let Some(placement) = placement {
                    placements[task] = Some(placement);
                    idle[placement.processor] = false;
                    ends.push(Reverse(End { at: placement.end, task }));
                }
                placement.is_some()
            })
            .collect();
        for at in begun {
            ready.remove(&at);
        }
        let Some(Reverse(end)) = ends.pop() else { break };
        now = end.at;
        let mut ended = vec![end.task];
        while let Some(Reverse(next)) = ends.peek()
            && next.at <= now
        {
            ended.push(next.task);
            ends.pop();
        }
        for task in ended {
            idle[placements[task].expect("it was begun").processor] = true;
            for edge in problem.after(task) {
                left[edge.task] -= 1;
                if left[edge.task] == 0 {
                    ready.insert(place[edge.task]);
                }
            }
        }
    }
    let placements = placements.into_iter().map(|placement| placement.expect("every task becomes ready"));
    Schedule::new(placements.collect())
}

/// The placement of a ready task on the idle processor that ends it first, if any can run it.
fn soonest(
    problem: &Problem,
    placements: &[Option<Placement>],
    idle: &[bool],
    task: usize,
    now: f64,
) -> Option<Placement> {
    let able = (0..idle.len()).filter(|processor| idle[*processor] && problem.seconds(task)[*processor].is_finite());
    let at = able.map(|processor| {
        let comes = problem.before(task).iter().map(|edge| {
            let from = placements[edge.task].expect("what a ready task waited for has ended");
            // Data is moved when the task is begun, not before.
            now + problem.transfer(edge.bytes, from.processor, processor)
        });
        let start = comes.fold(now, f64::max);
        Placement { processor, start, end: start + problem.seconds(task)[processor] }
    });
    at.min_by(|a, b| a.end.total_cmp(&b.end))
}

/// A task that ends.
#[derive(PartialEq)]
struct End {
    at: f64,
    task: usize,
}

impl Eq for End {}

impl Ord for End {
    fn cmp(&self, other: &End) -> std::cmp::Ordering {
        self.at.total_cmp(&other.at).then(self.task.cmp(&other.task))
    }
}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &End) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
