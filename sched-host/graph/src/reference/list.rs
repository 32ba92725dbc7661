//! List scheduling.

use super::{Placement, Problem, Schedule};
use crate::TaskId;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A list schedule: an idle processor begins the most urgent ready task that it can run. Nothing is planned ahead, so a
/// runtime with one ready queue does the same.
///
/// A task is ready when all tasks that it waits for have ended; its data is then transferred while the processor waits.
/// Of tasks of equal `urgency` the one with the lower id comes first, and of idle processors the one that ends the task
/// first.
///
/// # Panics
/// If the number of urgencies differs from the number of tasks.
#[must_use]
pub fn list_schedule(problem: &Problem, urgency: &[f64]) -> Schedule {
    assert_eq!(urgency.len(), problem.n_tasks(), "each task has an urgency");
    let mut order: Vec<TaskId> = problem.tasks().collect();
    order.sort_by(|a, b| urgency[b.index()].total_cmp(&urgency[a.index()]));
    let mut place = vec![0; urgency.len()];
    for (at, task) in order.iter().enumerate() {
        place[task.index()] = at;
    }

    let mut left: Vec<usize> = problem.tasks().map(|task| problem.before(task).len()).collect();
    // By place in the order of urgency.
    let mut ready: BTreeSet<usize> =
        problem.tasks().map(TaskId::index).filter(|task| left[*task] == 0).map(|task| place[task]).collect();
    let mut list = List::new(problem);
    loop {
        let begun: Vec<usize> = ready.iter().copied().filter(|at| list.begin(order[*at])).collect();
        for at in begun {
            ready.remove(&at);
        }
        let ended = list.end_next();
        if ended.is_empty() {
            return list.done();
        }
        for edge in ended.into_iter().flat_map(|task| problem.after(task)) {
            let at = edge.task.index();
            left[at] -= 1;
            if left[at] == 0 {
                ready.insert(place[at]);
            }
        }
    }
}

/// A list schedule that grows with time.
struct List<'p> {
    problem: &'p Problem,
    placements: Vec<Option<Placement>>,
    idle: Vec<bool>,
    ends: BinaryHeap<Reverse<End>>,
    now: f64,
}

impl<'p> List<'p> {
    fn new(problem: &'p Problem) -> List<'p> {
        let (placements, idle) = (vec![None; problem.n_tasks()], vec![true; problem.n_processors()]);
        List { problem, placements, idle, ends: BinaryHeap::new(), now: 0.0 }
    }

    /// Begins a ready task now, if an idle processor can run it. Returns whether one could.
    fn begin(&mut self, task: TaskId) -> bool {
        let placement = self.soonest(task);
        if let Some(placement) = placement {
            self.placements[task.index()] = Some(placement);
            self.idle[placement.processor.index()] = false;
            self.ends.push(Reverse(End { at: placement.end, task }));
        }
        placement.is_some()
    }

    /// Placement of a ready task on the idle processor that ends it first, if any can run it.
    fn soonest(&self, task: TaskId) -> Option<Placement> {
        let able = self.problem.able(task).filter(|processor| self.idle[processor.index()]);
        let at = able.map(|processor| {
            let comes = self.problem.before(task).iter().map(|edge| {
                let from = self.placements[edge.task.index()].expect("what a ready task waited for has ended");
                // Data is transferred when the task is begun, not before.
                self.now + self.problem.transfer(edge.bytes, from.processor, processor)
            });
            let start = comes.fold(self.now, f64::max);
            Placement { processor, start, end: start + self.problem.seconds_on(task, processor) }
        });
        at.min_by(|a, b| a.end.total_cmp(&b.end))
    }

    /// Advances to the end of the next tasks and returns them; none if nothing runs any more.
    fn end_next(&mut self) -> Vec<TaskId> {
        let Some(Reverse(first)) = self.ends.pop() else { return Vec::new() };
        self.now = first.at;
        let mut ended = vec![first.task];
        while let Some(Reverse(next)) = self.ends.peek()
            && next.at <= self.now
        {
            ended.push(next.task);
            self.ends.pop();
        }
        for task in &ended {
            let placement = self.placements[task.index()].expect("it was begun");
            self.idle[placement.processor.index()] = true;
        }
        ended
    }

    fn done(self) -> Schedule {
        let placements = self.placements.into_iter().map(|placement| placement.expect("every task becomes ready"));
        Schedule::new(placements.collect())
    }
}

/// End of a task.
#[derive(PartialEq)]
struct End {
    at: f64,
    task: TaskId,
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
