//! Task graphs.

use super::{DataId, Datum, Dependencies, Kind, KindId, Task, TaskId};

/// The kinds, data and tasks that an application would submit.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TaskGraph {
    /// Name.
    pub name: String,
    /// Kinds of tasks.
    pub kinds: Vec<Kind>,
    /// All data.
    pub data: Vec<Datum>,
    /// The tasks, in the order of their submission. Each waits for earlier ones only.
    pub tasks: Vec<Task>,
    /// Hints that data will not be used any more, in the order of submission.
    pub wont_use: Vec<WontUse>,
}

/// Hint of the application that data will not be used any more once the tasks submitted so far have ended: it need not
/// stay near any worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WontUse {
    /// Number of tasks submitted before the hint.
    pub submitted: u32,
    /// The data.
    pub data: DataId,
}

impl TaskGraph {
    /// A graph of this name, without tasks.
    #[inline]
    #[must_use]
    pub fn new(name: impl Into<String>) -> TaskGraph {
        TaskGraph { name: name.into(), ..TaskGraph::default() }
    }

    /// Adds a kind of tasks.
    ///
    /// # Panics
    /// If there are 2³² kinds.
    #[inline]
    pub fn add_kind(&mut self, name: impl Into<String>) -> KindId {
        let id = KindId(next(self.kinds.len()));
        self.kinds.push(Kind { name: name.into(), runs: true });
        id
    }

    /// Adds data.
    ///
    /// # Panics
    /// If there are 2³² pieces of data.
    #[inline]
    pub fn add_data(&mut self, datum: Datum) -> DataId {
        let id = DataId(next(self.data.len()));
        self.data.push(datum);
        id
    }

    /// Submits a task.
    ///
    /// # Panics
    /// If it names a kind, data or a task that was not added before, or there are 2³² tasks.
    pub fn add_task(&mut self, task: Task) -> TaskId {
        assert!(task.kind.index() < self.kinds.len(), "the kind of a task is added before it");
        assert!(
            task.accesses.iter().all(|access| access.data.index() < self.data.len()),
            "data is added before the tasks that access it"
        );
        let id = TaskId(next(self.tasks.len()));
        assert!(task.after.iter().all(|before| *before < id), "a task waits for earlier tasks only");
        self.tasks.push(task);
        id
    }

    /// Dependencies that follow from the accesses and from [`Task::after`].
    #[inline]
    #[must_use]
    pub fn dependencies(&self) -> Dependencies {
        Dependencies::of(self)
    }

    /// Ids of all tasks, in the order of submission.
    #[inline]
    pub fn ids(&self) -> impl ExactSizeIterator<Item = TaskId> + DoubleEndedIterator + use<> {
        (0..self.tasks.len() as u32).map(TaskId)
    }

    /// The task with this id.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// The kind of `task`.
    ///
    /// # Panics
    /// If it is of another graph.
    #[inline]
    #[must_use]
    pub fn kind_of(&self, task: &Task) -> &Kind {
        &self.kinds[task.kind.index()]
    }

    /// Number of floating-point operations of all tasks.
    #[inline]
    #[must_use]
    pub fn flops(&self) -> f64 {
        // The sum of nothing is -0.
        self.tasks.iter().map(|task| task.flops).sum::<f64>() + 0.0
    }

    /// Bytes of all data that `task` accesses.
    ///
    /// # Panics
    /// If it is of another graph.
    #[inline]
    #[must_use]
    pub fn bytes_of(&self, task: &Task) -> u64 {
        let bytes = task.accesses.iter().map(|access| self.data[access.data.index()].bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes of all data.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.data.iter().fold(0, |sum, datum| sum.saturating_add(datum.bytes))
    }
}

fn next(len: usize) -> u32 {
    u32::try_from(len).expect("a graph of 2³² parts does not fit into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_tasks_stay_small() {
        let with_edges = size_of::<Task>() + 2 * size_of::<u32>() + 2 * 3 * size_of::<TaskId>();
        assert!(with_edges <= 200, "{with_edges} bytes");
    }

    #[test]
    #[should_panic(expected = "earlier tasks only")]
    fn a_task_cannot_wait_for_a_later_one() {
        let mut graph = TaskGraph::new("backward");
        let kind = graph.add_kind("k");
        graph.add_task(Task::new(kind).after(TaskId(1)));
    }
}
