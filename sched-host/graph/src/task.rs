//! Tasks of a graph, and their kinds.

use super::{Access, AccessMode, DataId, Lengths, Where};
use sched_core::{Arch, WorkerId};
use smallvec::SmallVec;

/// A kind of task in a graph: its place in [`TaskGraph::kinds`](super::TaskGraph::kinds).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KindId(pub u32);

impl KindId {
    /// Its place in [`TaskGraph::kinds`](super::TaskGraph::kinds).
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A kind of task. The runtime has a codelet for each, and performance models know them by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Name, by which performance models and platforms know it.
    pub name: String,
    /// Whether its tasks do any work. Tasks without work have no codelet: they end as soon as they are ready, on no
    /// worker, and only order others.
    pub runs: bool,
}

/// A scheduling context of a run or a simulation. 0 is the default context; others count in the order in which they are
/// added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ContextId(pub u16);

impl ContextId {
    /// The context that every run and simulation has.
    pub const DEFAULT: ContextId = ContextId(0);

    /// Its number as an index of lists by context.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A task in a graph: its place in [`TaskGraph::tasks`](super::TaskGraph::tasks), which is in the order of submission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

impl TaskId {
    /// Its place in [`TaskGraph::tasks`](super::TaskGraph::tasks).
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Identity of the task when a back end has submitted all tasks of the graph: components, traces and messages count
    /// submissions from 1.
    #[inline]
    #[must_use]
    pub const fn submitted(self) -> sched_core::TaskId {
        sched_core::TaskId::new(self.0 as u64 + 1)
    }

    /// The task that has this identity once it is [`submitted`](Self::submitted), if a graph can have it.
    #[inline]
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
    /// Priority: larger is more urgent.
    pub priority: i32,
    /// Scheduling context that it is submitted to, in the order in which contexts are added to a simulation
    /// (`Simulation::context`).
    pub context: ContextId,
    /// The only workers that may execute it; `None` for all that can.
    pub only: Option<Box<Where>>,
    /// A number for the scheduler, whose meaning depends on its components; 0 for none.
    pub sched_data: u64,
    /// Footprint under which performance models know a task of these sizes, if the graph gives it.
    pub footprint: Option<u32>,
    /// Name in pictures and messages, if it has one of its own.
    pub name: Option<Box<str>>,
    /// Number of floating-point operations; 0 if unknown.
    pub flops: f64,
    /// Execution times, if the graph gives them.
    pub lengths: Lengths,
    /// Data accesses.
    pub accesses: SmallVec<[Access; 4]>,
    /// Earlier tasks that it waits for in addition to those that its accesses imply.
    pub after: SmallVec<[TaskId; 2]>,
}

impl Task {
    /// A task of this kind without accesses, of priority 0.
    #[must_use]
    pub fn new(kind: KindId) -> Task {
        Task {
            kind,
            priority: 0,
            context: ContextId::DEFAULT,
            only: None,
            sched_data: 0,
            footprint: None,
            name: None,
            flops: 0.0,
            lengths: Lengths::default(),
            accesses: SmallVec::new(),
            after: SmallVec::new(),
        }
    }

    /// Adds a data access.
    #[inline]
    #[must_use]
    pub fn access(mut self, data: DataId, mode: AccessMode) -> Task {
        self.accesses.push(Access { data, mode });
        self
    }

    /// Adds an earlier task to wait for.
    #[inline]
    #[must_use]
    pub fn after(mut self, task: TaskId) -> Task {
        self.after.push(task);
        self
    }

    /// Sets the [context](Self::context).
    #[inline]
    #[must_use]
    pub fn in_context(mut self, context: ContextId) -> Task {
        self.context = context;
        self
    }

    /// Restricts execution to these places.
    #[inline]
    #[must_use]
    pub fn only_on(mut self, places: Where) -> Task {
        self.only = Some(Box::new(places));
        self
    }

    /// Whether the task is not restricted to other workers than this one.
    #[inline]
    #[must_use]
    pub fn is_allowed_on(&self, worker: WorkerId, arch: Arch) -> bool {
        self.only.as_ref().is_none_or(|places| places.allows(worker, arch))
    }

    /// Sets the number for the scheduler.
    #[inline]
    #[must_use]
    pub fn with_sched_data(mut self, data: u64) -> Task {
        self.sched_data = data;
        self
    }

    /// Sets the name.
    #[inline]
    #[must_use]
    pub fn named(mut self, name: impl Into<Box<str>>) -> Task {
        self.name = Some(name.into());
        self
    }
}
