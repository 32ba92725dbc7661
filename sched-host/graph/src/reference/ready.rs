//! Tasks in the order in which static schedulers plan them.

use super::Problem;
use crate::TaskId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Which of two equally urgent tasks comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ties {
    /// The lower-numbered one.
    #[default]
    Lower,
    /// The higher-numbered one.
    Higher,
}

/// The tasks of which all that they wait for is planned, most urgent first.
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

    /// The most urgent one. Those that waited for it alone are ready from then on.
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
