//! What is to be scheduled, and on what.

use crate::{Flows, Task, TaskGraph, TaskId};
use sched_core::Arch;

/// A processor: it runs one task at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// Its architecture.
    pub arch: Arch,
    /// Where it is: data need not be moved between processors in the same place.
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

/// How long data takes from one place to any other: a number of seconds and a number for each byte.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Links {
    /// Seconds that each transfer takes, however little is moved.
    pub latency: f64,
    /// Seconds for each byte.
    pub per_byte: f64,
}

impl Links {
    /// Transfers that take no time.
    pub const FREE: Links = Links { latency: 0.0, per_byte: 0.0 };

    /// Seconds that so many bytes take. Nothing takes no time: tasks that only wait for each other move nothing.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        if bytes > 0.0 { self.latency + self.per_byte * bytes } else { 0.0 }
    }
}

/// Over which pairs of processors the mean duration of a transfer is taken, for the ranks of static schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MeanOver {
    /// All pairs of two different processors, as Topcuoglu, Hariri and Wu do.
    #[default]
    Different,
    /// All unordered pairs, and each processor with itself, where a transfer takes no time. Some later implementations do
    /// so, and come to other ranks: with two processors a transfer counts a third, with four six tenths.
    All,
}

/// A task that another one waits for, or that waits for it, and what is handed over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edge {
    /// The other task.
    pub task: TaskId,
    /// Bytes that one hands to the other; 0 if one only waits.
    pub bytes: f64,
}

/// Tasks with a length on each processor, and what they hand to each other. Each task waits for lower-numbered ones only.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(super) processors: Vec<Processor>,
    /// Seconds of each task on each processor, task by task; infinite where it cannot run.
    seconds: Vec<f64>,
    before: Vec<Vec<Edge>>,
    after: Vec<Vec<Edge>>,
    links: Links,
    /// Of the pairs of processors that the mean is taken over, the part in different places.
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
    /// The tasks of `graph` on these processors, where `seconds` says how long a task takes on an architecture, if it can run
    /// there. Tasks of kinds that do nothing take no time anywhere.
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
            table.extend(processors.iter().map(|processor| match graph.kind_of(task).runs {
                true => seconds(task, processor.arch).unwrap_or(f64::INFINITY),
                false => 0.0,
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

    /// Tasks with these `seconds` on each of the `processors`, task by task, infinite where one cannot run; and with these
    /// `edges`: from which task to which, with how many bytes.
    ///
    /// # Panics
    /// If there is no processor, the table does not fit, a length is negative or no number, or an edge does not lead from a
    /// task to a higher-numbered one.
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

    /// The same with the mean of transfers taken over other pairs.
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

    /// The processors that can run `task`.
    pub(super) fn able(&self, task: TaskId) -> impl Iterator<Item = ProcessorId> + '_ {
        self.processors().filter(move |processor| self.seconds_on(task, *processor).is_finite())
    }

    /// Seconds that `task` takes on each processor; infinite where it cannot run.
    ///
    /// # Panics
    /// If there is no such task; so do the others that ask about one.
    #[must_use]
    pub fn seconds(&self, task: TaskId) -> &[f64] {
        &self.seconds[task.index() * self.processors.len()..(task.index() + 1) * self.processors.len()]
    }

    /// Seconds that `task` takes on `processor`; infinite if it cannot run there.
    #[must_use]
    pub fn seconds_on(&self, task: TaskId, processor: ProcessorId) -> f64 {
        self.seconds(task)[processor.index()]
    }

    /// What `task` waits for.
    #[must_use]
    pub fn before(&self, task: TaskId) -> &[Edge] {
        &self.before[task.index()]
    }

    /// What waits for `task`.
    #[must_use]
    pub fn after(&self, task: TaskId) -> &[Edge] {
        &self.after[task.index()]
    }

    /// Seconds that so many bytes take from one processor to another.
    #[must_use]
    pub fn transfer(&self, bytes: f64, from: ProcessorId, to: ProcessorId) -> f64 {
        let place = |processor: ProcessorId| self.processors[processor.index()].place;
        if place(from) == place(to) { 0.0 } else { self.links.seconds(bytes) }
    }

    /// Mean of that over all pairs of processors that [`mean_over`](Self::mean_over) says.
    #[must_use]
    pub fn mean_transfer(&self, bytes: f64) -> f64 {
        self.apart * self.links.seconds(bytes)
    }

    /// Mean seconds of `task` over the processors that can run it.
    #[must_use]
    pub fn mean_seconds(&self, task: TaskId) -> f64 {
        let (sum, count) = self
            .seconds(task)
            .iter()
            .filter(|seconds| seconds.is_finite())
            .fold((0.0, 0.0), |(sum, count), seconds| (sum + seconds, count + 1.0));
        sum / count
    }

    /// The longest chain of tasks, each where it is fastest, without transfers, in seconds: no schedule is shorter.
    #[must_use]
    pub fn critical_path(&self) -> f64 {
        let fastest = |task| self.seconds(task).iter().copied().fold(f64::INFINITY, f64::min);
        self.chains(fastest, |_| 0.0).into_iter().fold(0.0, f64::max)
    }

    /// HEFT's upward rank of each task: the longest chain that begins with it, with mean lengths and transfers.
    #[must_use]
    pub fn upward_ranks(&self) -> Vec<f64> {
        self.chains(|task| self.mean_seconds(task), |bytes| self.mean_transfer(bytes))
    }

    /// HEFT's downward rank of each task: the longest chain that ends before it, with mean lengths and transfers.
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
