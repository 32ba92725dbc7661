//! Scheduling problems: tasks and processors.

use crate::{Flows, Task, TaskGraph, TaskId};
use sched_core::{Arch, WorkerId};

/// A processor, which runs one task at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// Architecture.
    pub arch: Arch,
    /// Place: data is not moved between processors in the same place.
    pub place: u32,
}

/// A processor of a [`Problem`], by its place in the list of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessorId(pub u32);

impl ProcessorId {
    /// Its place in the list of processors.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Transfer times between any two places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Links {
    /// Latency of a transfer in seconds.
    pub latency: f64,
    /// Seconds per byte: the inverse of the bandwidth.
    pub per_byte: f64,
}

impl Links {
    /// Transfers that take no time.
    pub const FREE: Links = Links { latency: 0.0, per_byte: 0.0 };

    /// Transfer time of `bytes` bytes in seconds. 0 bytes take no time: tasks that only wait for each other move
    /// nothing.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        if bytes > 0.0 { self.latency + self.per_byte * bytes } else { 0.0 }
    }
}

/// Pairs of processors over which static schedulers take the mean transfer time of their ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MeanOver {
    /// All pairs of two different processors, as Topcuoglu, Hariri and Wu do.
    #[default]
    Different,
    /// All unordered pairs, and each processor with itself, where a transfer takes no time. Some later implementations
    /// do so and get other ranks: with two processors a transfer counts one third, with four six tenths.
    All,
}

/// One end of a dependency, with the bytes that are handed over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edge {
    /// The other task.
    pub task: TaskId,
    /// Bytes that one task hands to the other; 0 if one only waits.
    pub bytes: f64,
}

/// Tasks with an execution time on each processor, and the bytes that they hand to each other. Each task waits for
/// tasks with lower ids only.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(super) processors: Vec<Processor>,
    /// Seconds of each task on each processor, task by task; infinite where it cannot run.
    seconds: Vec<f64>,
    before: Vec<Vec<Edge>>,
    after: Vec<Vec<Edge>>,
    links: Links,
    /// Fraction of the pairs in [`MeanOver`] whose processors are in different places.
    apart: f64,
}

/// A task that can run on none of the processors.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("task {number} ({what}) can run on none of the processors")]
pub struct Unrunnable {
    /// Its number, from 0.
    pub number: usize,
    /// Its name or kind.
    pub what: String,
}

impl Problem {
    /// The tasks of `graph` on these processors, where `seconds` gives the execution time of a task on an architecture,
    /// or `None` if it cannot run there. Processors are workers in the order of their numbers. Tasks of kinds without
    /// work take no time anywhere.
    ///
    /// # Errors
    /// The first task that can run nowhere.
    pub fn of(
        graph: &TaskGraph,
        processors: &[Processor],
        links: Links,
        seconds: impl Fn(&Task, Arch) -> Option<f64>,
    ) -> Result<Problem, Unrunnable> {
        let (dependencies, flows) = (graph.dependencies(), Flows::of(graph));
        let mut table = Vec::with_capacity(graph.tasks.len() * processors.len());
        let mut edges = Vec::new();
        for (number, task) in graph.tasks.iter().enumerate() {
            let first = table.len();
            table.extend((0..).map(WorkerId).zip(processors).map(|(worker, Processor { arch, .. })| {
                match graph.kind_of(task).runs {
                    true if task.is_allowed_on(worker, *arch) => seconds(task, *arch).unwrap_or(f64::INFINITY),
                    true => f64::INFINITY,
                    false => 0.0,
                }
            }));
            if table[first..].iter().all(|seconds| seconds.is_infinite()) {
                let what = task.name.as_deref().unwrap_or(&graph.kind_of(task).name).to_owned();
                return Err(Unrunnable { number, what });
            }
            let id = TaskId(number as u32);
            let flows = flows.to(id).iter().map(|(from, bytes)| (*from, id, *bytes as f64));
            let waits = dependencies.predecessors(id).iter().map(|from| (*from, id, 0.0));
            edges.extend(flows.chain(waits));
        }
        Ok(Problem::new(processors.to_vec(), table, &edges, links))
    }

    /// Tasks with these `seconds` on each of the `processors`, task by task, infinite where a task cannot run. An edge
    /// is the task that hands data over, the one that waits for it, and the number of bytes.
    ///
    /// # Panics
    /// If there is no processor, the table does not fit, a time is negative or not a number, or an edge does not lead
    /// to a task with a higher id.
    #[must_use]
    pub fn new(
        processors: Vec<Processor>,
        seconds: Vec<f64>,
        edges: &[(TaskId, TaskId, f64)],
        links: Links,
    ) -> Problem {
        assert!(!processors.is_empty(), "somebody must run the tasks");
        assert!(seconds.len().is_multiple_of(processors.len()), "each task has a length on each processor");
        assert!(seconds.iter().all(|seconds| *seconds >= 0.0), "a task takes some time");
        let tasks = seconds.len() / processors.len();
        let (mut before, mut after) = (vec![Vec::<Edge>::new(); tasks], vec![Vec::new(); tasks]);
        for (from, to, bytes) in edges {
            assert!(from < to && to.index() < tasks, "edge {} → {} of {tasks} tasks", from.0, to.0);
            let before = &mut before[to.index()];
            match before.iter_mut().find(|edge| edge.task == *from) {
                Some(edge) => edge.bytes += bytes,
                None => before.push(Edge { task: *from, bytes: *bytes }),
            }
        }
        for (to, edges) in (0..).map(TaskId).zip(&before) {
            for edge in edges {
                after[edge.task.index()].push(Edge { task: to, bytes: edge.bytes });
            }
        }
        Problem { processors, seconds, before, after, links, apart: 0.0 }.mean_over(MeanOver::Different)
    }

    /// Sets the pairs over which the mean of transfer times is taken.
    #[must_use]
    pub fn mean_over(mut self, pairs: MeanOver) -> Problem {
        let n = self.processors.len() as f64;
        let count = match pairs {
            MeanOver::Different => n * (n - 1.0) / 2.0,
            MeanOver::All => n * (n + 1.0) / 2.0,
        };
        let places = self.processors.iter().map(|processor| processor.place);
        let pairs = places.clone().enumerate().flat_map(|(at, a)| places.clone().skip(at + 1).map(move |b| a != b));
        self.apart = pairs.filter(|apart| *apart).count() as f64 / count.max(1.0);
        self
    }

    /// Number of tasks.
    #[must_use]
    pub fn n_tasks(&self) -> usize {
        self.before.len()
    }

    /// All tasks, in their order.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = TaskId> + use<> {
        (0..self.n_tasks() as u32).map(TaskId)
    }

    /// Number of processors.
    #[must_use]
    pub fn n_processors(&self) -> usize {
        self.processors.len()
    }

    /// All processors, in their order.
    pub fn processors(&self) -> impl Iterator<Item = ProcessorId> + use<> {
        (0..self.n_processors() as u32).map(ProcessorId)
    }

    /// Processors that can run `task`.
    pub(super) fn able(&self, task: TaskId) -> impl Iterator<Item = ProcessorId> + '_ {
        self.processors().filter(move |processor| self.seconds_on(task, *processor).is_finite())
    }

    /// Execution time of `task` in seconds on each processor; infinite where it cannot run.
    ///
    /// # Panics
    /// If there is no such task. The other methods that take a task panic likewise.
    #[must_use]
    pub fn seconds(&self, task: TaskId) -> &[f64] {
        &self.seconds[task.index() * self.processors.len()..(task.index() + 1) * self.processors.len()]
    }

    /// Execution time of `task` in seconds on `processor`; infinite if it cannot run there.
    #[must_use]
    pub fn seconds_on(&self, task: TaskId, processor: ProcessorId) -> f64 {
        self.seconds(task)[processor.index()]
    }

    /// Tasks that `task` waits for.
    #[must_use]
    pub fn before(&self, task: TaskId) -> &[Edge] {
        &self.before[task.index()]
    }

    /// Tasks that wait for `task`.
    #[must_use]
    pub fn after(&self, task: TaskId) -> &[Edge] {
        &self.after[task.index()]
    }

    /// Transfer time of `bytes` bytes in seconds from one processor to another.
    #[must_use]
    pub fn transfer(&self, bytes: f64, from: ProcessorId, to: ProcessorId) -> f64 {
        let place = |processor: ProcessorId| self.processors[processor.index()].place;
        if place(from) == place(to) { 0.0 } else { self.links.seconds(bytes) }
    }

    /// Mean transfer time over the pairs of processors set by [`mean_over`](Self::mean_over).
    #[must_use]
    pub fn mean_transfer(&self, bytes: f64) -> f64 {
        self.apart * self.links.seconds(bytes)
    }

    /// Mean execution time of `task` in seconds over the processors that can run it.
    #[must_use]
    pub fn mean_seconds(&self, task: TaskId) -> f64 {
        let (sum, count) = self
            .seconds(task)
            .iter()
            .filter(|seconds| seconds.is_finite())
            .fold((0.0, 0.0), |(sum, count), seconds| (sum + seconds, count + 1.0));
        sum / count
    }

    /// Critical path in seconds: the longest chain of tasks, each where it is fastest, without transfers. No schedule
    /// is shorter.
    #[must_use]
    pub fn critical_path(&self) -> f64 {
        let fastest = |task| self.seconds(task).iter().copied().fold(f64::INFINITY, f64::min);
        self.chains(fastest, |_| 0.0).into_iter().fold(0.0, f64::max)
    }

    /// HEFT's upward rank of each task: the longest chain that begins with it, with mean execution and transfer times.
    #[must_use]
    pub fn upward_ranks(&self) -> Vec<f64> {
        self.chains(|task| self.mean_seconds(task), |bytes| self.mean_transfer(bytes))
    }

    /// HEFT's downward rank of each task: the longest chain that ends before it, with mean execution and transfer
    /// times.
    #[must_use]
    pub fn downward_ranks(&self) -> Vec<f64> {
        let mut ranks = vec![0.0f64; self.n_tasks()];
        for task in self.tasks() {
            let chains = self
                .before(task)
                .iter()
                .map(|edge| ranks[edge.task.index()] + self.mean_seconds(edge.task) + self.mean_transfer(edge.bytes));
            ranks[task.index()] = chains.fold(0.0, f64::max);
        }
        ranks
    }

    fn chains(&self, length: impl Fn(TaskId) -> f64, transfer: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut longest = vec![0.0f64; self.n_tasks()];
        for task in self.tasks().rev() {
            let behind = self.after(task).iter().map(|edge| transfer(edge.bytes) + longest[edge.task.index()]);
            longest[task.index()] = length(task) + behind.fold(0.0, f64::max);
        }
        longest
    }
}
