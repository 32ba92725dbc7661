//! One task of a graph.

use super::{Access, AccessMode, DataId, Lengths};
use smallvec::SmallVec;

/// A kind of task in a graph: its place in [`TaskGraph::kinds`](super::TaskGraph::kinds).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KindId(pub u32);

impl KindId {
    /// Its place in [`TaskGraph::kinds`](super::TaskGraph::kinds).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A kind of task: what the runtime has a codelet for, and performance models know by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Its name, which performance models and platforms know it by.
    pub name: String,
    /// Whether such tasks do anything. One that does not has no codelet: it ends as soon as it could begin, on no
    /// worker, and only orders others.
    pub runs: bool,
}

/// A task in a graph: its place in [`TaskGraph::tasks`](super::TaskGraph::tasks), that is in the order of submission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

impl TaskId {
    /// Its place in [`TaskGraph::tasks`](super::TaskGraph::tasks).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Identity of the task when a back end has submitted all tasks of the graph: components, traces and messages count
    /// submissions from 1.
    #[must_use]
    pub const fn submitted(self) -> sched_core::TaskId {
        sched_core::TaskId::new(self.0 as u64 + 1)
    }

    /// The task that has this identity once it is [`submitted`](Self::submitted), if a graph can have it.
    #[must_use]
    pub fn of_submitted(task: sched_core::TaskId) -> Option<TaskId> {
        task.sequence().checked_sub(1)?.try_into().ok().map(TaskId)
    }
}

/// A task.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Its kind.
    pub kind: KindId,
    /// How urgent it is: larger is more urgent.
    pub priority: i32,
    /// The scheduling context that it is submitted to: 0 is the default one; others are numbered in the order in which a
    /// simulation gets them (`Simulation::context`).
    pub context: u16,
    /// What performance models know a task of these sizes by, where the graph says so.
    pub footprint: Option<u32>,
    /// What pictures and messages call it, if it has a name of its own.
    pub name: Option<Box<str>>,
    /// Floating-point operations; 0 where nobody counted.
    pub flops: f64,
    /// How long it takes, where the graph says so.
    pub lengths: Lengths,
    /// Its arguments.
    pub accesses: SmallVec<[Access; 4]>,
    /// Tasks submitted before it that it waits for, beside those that its accesses make it wait for.
    pub after: SmallVec<[TaskId; 2]>,
}

impl Task {
    /// A task of this kind without accesses, of priority 0.
    #[must_use]
    pub fn new(kind: KindId) -> Task {
        Task {
            kind,
            priority: 0,
            context: 0,
            footprint: None,
            name: None,
            flops: 0.0,
            lengths: Lengths::default(),
            accesses: SmallVec::new(),
            after: SmallVec::new(),
        }
    }

    /// The same with one more argument.
    #[must_use]
    pub fn access(mut self, data: DataId, mode: AccessMode) -> Task {
        self.accesses.push(Access { data, mode });
        self
    }

    /// The same, waiting for one more task, which was submitted before.
    #[must_use]
    pub fn after(mut self, task: TaskId) -> Task {
        self.after.push(task);
        self
    }

    /// The same, submitted to this [context](Self::context).
    #[must_use]
    pub fn in_context(mut self, context: u16) -> Task {
        self.context = context;
        self
    }

    /// The same with a name of its own.
    #[must_use]
    pub fn named(mut self, name: impl Into<Box<str>>) -> Task {
        self.name = Some(name.into());
        self
    }
}
