//! Static schedules: processor, start and end of each task.

use super::{Problem, ProcessorId};
use crate::{TaskGraph, TaskId, Where};

/// Processor, start and end of a task.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Placement {
    /// The processor.
    pub processor: ProcessorId,
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
}

/// Placements of all tasks of a [`Problem`].
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    placements: Vec<Placement>,
}

/// Reason why a schedule cannot be carried out.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The number of placements differs from the number of tasks.
    #[error("{placements} tasks are planned, and there are {tasks}")]
    Count {
        /// Number of placements.
        placements: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// A task runs where it cannot, or not for its execution time there.
    #[error("task {} takes {expected} s on processor {}, and is planned from {} s to {} s", task.0, at.processor.0, at.start, at.end)]
    Length {
        /// The task.
        task: TaskId,
        /// Its placement.
        at: Placement,
        /// Its execution time there.
        expected: f64,
    },
    /// A task begins before the data that it waits for has arrived.
    #[error("task {} begins at {start} s, and what task {} hands to it comes at {comes} s", task.0, before.0)]
    TooEarly {
        /// The task.
        task: TaskId,
        /// Its start.
        start: f64,
        /// The task that it waits for.
        before: TaskId,
        /// Arrival of its data.
        comes: f64,
    },
    /// A processor runs two tasks at once.
    #[error("processor {} runs tasks {} and {} at once", processor.0, first.0, second.0)]
    Overlap {
        /// The processor.
        processor: ProcessorId,
        /// The task that begins first.
        first: TaskId,
        /// The other one.
        second: TaskId,
    },
}

impl Schedule {
    /// The schedule with these placements, task by task.
    #[must_use]
    pub fn new(placements: Vec<Placement>) -> Schedule {
        Schedule { placements }
    }

    /// Placements of all tasks, in the order of their ids.
    #[must_use]
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// End of the last task in seconds.
    #[must_use]
    pub fn makespan(&self) -> f64 {
        self.placements.iter().map(|placement| placement.end).fold(0.0, f64::max)
    }

    /// `graph` with each task restricted to its processor, as the worker of that number, and with priorities in the
    /// order of the planned starts. Simulated with a policy that follows both, it shows what the schedule takes with
    /// all that it leaves out.
    ///
    /// # Panics
    /// If the schedule is one of another graph.
    #[must_use]
    pub fn pinned(&self, graph: &TaskGraph) -> TaskGraph {
        assert_eq!(graph.tasks.len(), self.placements.len(), "the schedule is one of this graph");
        let mut pinned = graph.clone();
        let mut order: Vec<usize> = (0..self.placements.len()).collect();
        order.sort_by(|a, b| self.placements[*b].start.total_cmp(&self.placements[*a].start).then(b.cmp(a)));
        for (priority, task) in (0..).zip(order) {
            pinned.tasks[task].priority = priority;
            if graph.kind_of(&graph.tasks[task]).runs {
                let only = Where::worker(self.placements[task].processor.0);
                pinned.tasks[task].only = Some(only.into());
            }
        }
        pinned
    }

    /// Checks that the schedule can be carried out.
    ///
    /// # Errors
    /// All violations. Differences below a millionth of the makespan are ignored.
    pub fn check(&self, problem: &Problem) -> Result<(), Vec<Violation>> {
        let (placements, tasks) = (self.placements.len(), problem.n_tasks());
        if placements != tasks {
            return Err(vec![Violation::Count { placements, tasks }]);
        }
        let slack = 1e-6 * self.makespan();
        let mut found = Vec::new();
        for (task, at) in problem.tasks().zip(&self.placements) {
            let expected = problem.seconds_on(task, at.processor);
            // An infinite time never fits.
            let fits = (at.end - at.start - expected).abs() <= slack;
            if !fits {
                found.push(Violation::Length { task, at: *at, expected });
            }
            for edge in problem.before(task) {
                let from = self.placements[edge.task.index()];
                let comes = from.end + problem.transfer(edge.bytes, from.processor, at.processor);
                if at.start < comes - slack {
                    found.push(Violation::TooEarly { task, start: at.start, before: edge.task, comes });
                }
            }
        }
        let mut order: Vec<TaskId> = problem.tasks().collect();
        let at = |task: TaskId| self.placements[task.index()];
        order.sort_by(|a, b| {
            let (a, b) = (at(*a), at(*b));
            (a.processor.cmp(&b.processor)).then(a.start.total_cmp(&b.start)).then(a.end.total_cmp(&b.end))
        });
        for pair in order.windows(2) {
            let (first, second) = (at(pair[0]), at(pair[1]));
            if first.processor == second.processor && second.start < first.end - slack {
                found.push(Violation::Overlap { processor: first.processor, first: pair[0], second: pair[1] });
            }
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

/// A schedule that grows task by task.
pub(super) struct PartialSchedule<'p> {
    problem: &'p Problem,
    placements: Vec<Option<Placement>>,
    /// Busy intervals of each processor, by their start.
    busy: Vec<Vec<(f64, f64)>>,
    /// The same, where those without a gap between them are one: what takes time is looked for between these.
    blocks: Vec<Vec<(f64, f64)>>,
}

impl<'p> PartialSchedule<'p> {
    pub(super) fn new(problem: &'p Problem) -> PartialSchedule<'p> {
        let busy = vec![Vec::new(); problem.n_processors()];
        let blocks = busy.clone();
        PartialSchedule { problem, placements: vec![None; problem.n_tasks()], busy, blocks }
    }

    /// Time at which the data of `task` has arrived at `processor`. All tasks that it waits for are placed.
    pub(super) fn ready(&self, task: TaskId, processor: ProcessorId) -> f64 {
        let comes = self.problem.before(task).iter().map(|edge| {
            let from = self.placements[edge.task.index()].expect("what a task waits for is planned before it");
            from.end + self.problem.transfer(edge.bytes, from.processor, processor)
        });
        comes.fold(0.0, f64::max)
    }

    /// Placement of `task` on `processor`: in the earliest gap that fits, or at the end.
    pub(super) fn earliest(&self, task: TaskId, processor: ProcessorId) -> Placement {
        let length = self.problem.seconds_on(task, processor);
        let mut start = self.ready(task, processor);
        // Intervals that end before cannot be in the way.
        let busy = if length > 0.0 { &self.blocks } else { &self.busy };
        let busy = &busy[processor.index()];
        let from = busy.partition_point(|(_, end)| *end <= start);
        for (begins, ends) in &busy[from..] {
            if start + length <= *begins {
                break;
            }
            start = start.max(*ends);
        }
        Placement { processor, start, end: start + length }
    }

    pub(super) fn place(&mut self, task: TaskId, at: Placement) {
        self.placements[task.index()] = Some(at);
        let busy = &mut self.busy[at.processor.index()];
        // Behind tasks of no length that begin at the same time.
        let place = busy.partition_point(|(start, end)| (*start, *end) <= (at.start, at.end));
        busy.insert(place, (at.start, at.end));
        let blocks = &mut self.blocks[at.processor.index()];
        let next = blocks.partition_point(|(start, _)| *start < at.start);
        let (mut block, mut first, mut end) = ((at.start, at.end), next, next);
        if let Some(before) = next.checked_sub(1).filter(|before| blocks[*before].1 >= at.start) {
            block = (blocks[before].0, blocks[before].1.max(at.end));
            first = before;
        }
        if let Some((_, ends)) = blocks.get(next).filter(|(start, _)| *start <= block.1) {
            block.1 = block.1.max(*ends);
            end = next + 1;
        }
        blocks.splice(first..end, [block]);
    }

    pub(super) fn done(self) -> Schedule {
        let placements = self.placements.into_iter().map(|placement| placement.expect("every task is planned"));
        Schedule::new(placements.collect())
    }
}
