//! Ready queue of the static schedulers.

use super::Problem;
use crate::TaskId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Order of two equally urgent tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ties {
    /// The one with the lower id comes first.
    #[default]
    Lower,
    /// The one with the higher id comes first.
    Higher,
}

/// Tasks whose predecessors are all placed, most urgent first.
pub(super) struct Ready<'p> {
    problem: &'p Problem,
    urgency: &'p [f64],
    ties: Ties,
    left: Vec<usize>,
    queue: BinaryHeap<Urgent>,
}

struct Urgent {
    urgency: f64,
    ties: Ties,
    task: TaskId,
}

impl<'p> Ready<'p> {
    pub(super) fn new(problem: &'p Problem, urgency: &'p [f64], ties: Ties) -> Ready<'p> {
        let left: Vec<usize> = problem.tasks().map(|task| problem.before(task).len()).collect();
        let first = problem.tasks().filter(|task| left[task.index()] == 0);
        let queue = first.map(|task| Urgent { urgency: urgency[task.index()], ties, task }).collect();
        Ready { problem, urgency, ties, left, queue }
    }

    /// Removes the most urgent task. Tasks that waited for it alone become ready.
    pub(super) fn pop(&mut self) -> Option<TaskId> {
        let task = self.queue.pop()?.task;
        for edge in self.problem.after(task) {
            let at = edge.task.index();
            self.left[at] -= 1;
            if self.left[at] == 0 {
                self.queue.push(Urgent { urgency: self.urgency[at], ties: self.ties, task: edge.task });
            }
        }
        Some(task)
    }
}

impl Ord for Urgent {
    fn cmp(&self, other: &Urgent) -> Ordering {
        let lower = other.task.cmp(&self.task);
        let ties = if self.ties == Ties::Lower { lower } else { lower.reverse() };
        self.urgency.total_cmp(&other.urgency).then(ties)
    }
}

impl PartialOrd for Urgent {
    fn partial_cmp(&self, other: &Urgent) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Urgent {
    fn eq(&self, other: &Urgent) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Urgent {}
