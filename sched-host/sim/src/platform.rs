//! The machine that a simulation runs on: workers, memories, links, what things cost, and how long kernels take.
//!
//! A platform is a KDL text (see [`parse`](Platform::parse) for the language), one of those that come with the program
//! ([`library`]), or taken from the performance directory of a StarPU installation.

mod bus;
mod draw;
mod from_topology;
mod kernels;
mod library;
mod machine;
mod parse;
mod power;
mod routes;
mod starpu;
#[cfg(test)]
mod tests;

pub use kernels::{KernelTime, Kernels, Parallel, Sized};
pub use library::{ShippedPlatform, find, library};
pub use power::Power;
pub use starpu::{STARPU_OVERHEADS, StarpuError};

use kernels::Work;
use sched_core::{Arch, MemoryNode, WorkerId};
use sched_graph::bound::{BoundError, Bounds, Pool, bounds, team_bounds};
use sched_graph::{Dependencies, Task, TaskGraph};
use sched_machine::topology::CombinedSizes;
use sched_tree::WorkerFacts;
use std::collections::BTreeSet;
use std::time::Duration;

/// Memories of one platform at most: each has its bit in a word.
pub const MAX_MEMORIES: usize = 64;

/// Workers of one platform at most.
pub const MAX_WORKERS: usize = 65_536;

/// A machine to simulate.
#[derive(Clone, PartialEq, Debug)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// The comment above it, which says where its figures come from.
    pub doc: String,
    /// Kinds of workers.
    pub classes: Vec<WorkerClass>,
    /// The workers, by their numbers.
    pub workers: Vec<Worker>,
    /// The memories, by their numbers. Number 0 is where data is in the beginning, unless a graph says otherwise.
    pub memories: Vec<Memory>,
    /// The links.
    pub links: Vec<Link>,
    /// How to get from one memory to another: row by source, column by destination.
    pub routes: Vec<Route>,
    /// What is paid beside kernels and transfers.
    pub overheads: Overheads,
    /// How long tasks take on each class of workers.
    pub kernels: Kernels,
    /// Which sizes of combined workers its CPU workers offer; see [`combined_workers`](Platform::combined_workers).
    pub combined_sizes: CombinedSizes,
}

/// A kind of workers: all of them are equally fast.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerClass {
    /// Its name, unique in the platform.
    pub name: String,
    /// The architecture.
    pub arch: Arch,
    /// How fast such a worker is beside one CPU core, for components that go by that.
    pub speed: f64,
    /// Tasks in flight: 1 for a worker that fetches data, executes, and fetches again; an accelerator with 2 fetches the
    /// data of one task while it executes another.
    pub pipeline: usize,
    /// What such a worker draws.
    pub power: Power,
}

/// One worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worker {
    /// Its class, by place in [`Platform::classes`].
    pub class: usize,
    /// The memory that it reaches without a transfer.
    pub memory: MemoryNode,
    /// The processor package that it belongs to, if that is said.
    pub package: Option<u32>,
}

/// One memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Memory {
    /// Its name, unique in the platform.
    pub name: String,
    /// How many bytes it holds; `None` where that is never too few.
    pub capacity: Option<u64>,
    /// Whether [`Overheads::allocation`] is paid for memory there.
    pub device: bool,
}

/// A link, in one direction: what is sent over it at the same time shares its bandwidth.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Bytes in a nanosecond, which is GB/s.
    pub bandwidth: f64,
}

/// The way from one memory to another.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Route {
    /// The links, by place in [`Platform::links`]. One that is passed twice is there twice. Without links there is no way.
    pub links: Vec<usize>,
    /// Time before the first byte arrives, in nanoseconds.
    pub latency: u64,
    /// What schedulers are told to expect: latency in nanoseconds, and nanoseconds for each byte.
    pub expected: (u64, f64),
}

/// What is paid beside kernels and transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overheads {
    /// The application submits a task.
    pub submission: Duration,
    /// A task that has become ready is pushed into the scheduler, by who made it ready.
    pub push: Duration,
    /// A worker begins to fetch one piece of data of a task.
    pub fetch: Duration,
    /// A kernel is queued on a worker whose pipeline is deeper than 1; hidden while another one runs.
    pub kernel_queueing: Duration,
    /// A transfer is queued.
    pub transfer_queueing: Duration,
    /// Memory is allocated on a device, for one piece of data. One allocation at a time on the whole machine.
    pub allocation: Duration,
    /// A worker that sleeps is woken.
    pub wake_up: Duration,
    /// Data moves in no time. What schedulers are told to expect stays.
    pub free_transfers: bool,
}

/// Which of the costs of a platform are paid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Costs {
    /// All of them.
    #[default]
    Default,
    /// Transfers only.
    NoOverhead,
    /// None: data moves in no time, although schedulers are told to expect what transfers would take.
    NoTransfer,
}

impl Overheads {
    /// Those of them that are paid.
    #[must_use]
    pub fn with(self, costs: Costs) -> Overheads {
        match costs {
            Costs::Default => self,
            Costs::NoOverhead => Overheads { free_transfers: self.free_transfers, ..Overheads::default() },
            Costs::NoTransfer => Overheads { free_transfers: true, ..Overheads::default() },
        }
    }
}

impl Platform {
    /// The same with these costs only.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Platform {
        self.overheads = self.overheads.with(costs);
        self
    }

    /// The class of a worker.
    ///
    /// # Panics
    /// When there is no such worker.
    #[must_use]
    pub fn class(&self, worker: WorkerId) -> &WorkerClass {
        &self.classes[self.workers[worker.0 as usize].class]
    }

    /// How long a task of `graph` takes on the workers of a class, if it can run there: as the graph says, or else as the
    /// times of kernels say.
    ///
    /// # Panics
    /// When there is no such class.
    #[must_use]
    pub fn length(&self, graph: &TaskGraph, task: &Task, class: usize) -> Option<Duration> {
        if !task.lengths.is_empty() {
            return task.lengths.get(self.classes[class].arch);
        }
        let nanos = self.kernels.get(&graph.kind_of(task).name, class)?.nanos(work_of(graph, task))?;
        Some(Duration::from_nanos(nanos))
    }

    /// How long a task of `graph` takes when so many workers of a class execute it together, if they can. Where the graph says
    /// how long it takes on one worker, only [`Parallel::Amdahl`] says how long it takes on several.
    ///
    /// # Panics
    /// When there is no such class.
    #[must_use]
    pub fn team_length(&self, graph: &TaskGraph, task: &Task, class: usize, size: u16) -> Option<Duration> {
        let alone = self.length(graph, task, class);
        if size <= 1 {
            return alone;
        }
        let parallel = self.kernels.parallel(&graph.kind_of(task).name, class)?;
        if !task.lengths.is_empty() && matches!(parallel, Parallel::Sizes(_)) {
            return None;
        }
        let alone = alone.map(|alone| u64::try_from(alone.as_nanos()).unwrap_or(u64::MAX));
        parallel.nanos(alone, size, work_of(graph, task)).map(Duration::from_nanos)
    }

    /// The same, where teams of CPU workers execute tasks of every kind of which nothing else is said: `share` of a task, from
    /// 0 to 1, is divided among the members ([`Parallel::Amdahl`]).
    #[must_use]
    pub fn with_parallel(mut self, share: f64) -> Platform {
        let kinds: Vec<String> = self.kernels.kinds().chain([Kernels::ANY]).map(str::to_owned).collect();
        for (class, _) in self.classes.iter().enumerate().filter(|(_, class)| class.arch == Arch::CPU) {
            for kind in &kinds {
                if self.kernels.parallel(kind, class).is_none() {
                    self.kernels.set_parallel(kind, class, Parallel::Amdahl { share, most: u16::MAX });
                }
            }
        }
        self
    }

    /// How many workers there are of each class.
    #[must_use]
    pub fn workers_by_class(&self) -> Vec<u32> {
        let count = |class| self.workers.iter().filter(|worker| worker.class == class).count() as u32;
        (0..self.classes.len()).map(count).collect()
    }

    /// Lower bounds of the makespan of `graph`.
    ///
    /// # Errors
    /// When a task can run nowhere, or the linear program is not solved.
    pub fn bounds(&self, graph: &TaskGraph, dependencies: &Dependencies) -> Result<Bounds, BoundError> {
        let pools: Vec<Pool> = self.workers_by_class().into_iter().map(|workers| Pool { workers }).collect();
        let runs = |task: &Task| graph.kind_of(task).runs;
        let seconds =
            |task: &Task, class, size| self.team_length(graph, task, class, size).map(|length| length.as_secs_f64());
        let sizes = self.team_sizes();
        if sizes.iter().all(|sizes| sizes.len() == 1) {
            return bounds(
                graph,
                dependencies,
                &pools,
                |task, class| {
                    if runs(task) { seconds(task, class, 1) } else { Some(0.0) }
                },
            );
        }
        let least = |task: &Task, class: usize, of: fn(f64, u16) -> f64| {
            let each = sizes[class].iter().filter_map(|size| Some(of(seconds(task, class, *size)?, *size)));
            if runs(task) { each.reduce(f64::min) } else { Some(0.0) }
        };
        let work = |task: &Task, class| least(task, class, |seconds, size| seconds * f64::from(size));
        team_bounds(graph, dependencies, &pools, work, |task, class| least(task, class, |seconds, _| seconds))
    }

    /// For each class, how many of its workers can execute a task, alone or with others: 1, and the sizes of combined workers
    /// where kernels are parallel.
    fn team_sizes(&self) -> Vec<BTreeSet<u16>> {
        let mut sizes = vec![BTreeSet::from([1]); self.classes.len()];
        if self.kernels.has_parallel() {
            for team in self.combined_members() {
                for member in &team {
                    sizes[self.workers[member.0 as usize].class].insert(u16::try_from(team.len()).unwrap_or(u16::MAX));
                }
            }
        }
        sizes
    }

    /// The way from one memory to another.
    ///
    /// # Panics
    /// When there are no such memories.
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> &Route {
        &self.routes[from * self.memories.len() + to]
    }

    /// Nanoseconds that schedulers are told to expect for a transfer of so many bytes.
    #[must_use]
    pub fn expected_transfer(&self, from: usize, to: usize, bytes: u64) -> u64 {
        let (latency, per_byte) = self.route(from, to).expected;
        latency.saturating_add((bytes as f64 * per_byte) as u64)
    }

    /// The workers, as a tree needs to know them.
    #[must_use]
    pub fn worker_facts(&self) -> Vec<WorkerFacts> {
        let facts = |worker: &Worker| WorkerFacts {
            arch: self.classes[worker.class].arch,
            memory_node: worker.memory,
            relative_speedup: self.classes[worker.class].speed,
        };
        self.workers.iter().map(facts).collect()
    }

    /// Architectures of its workers.
    #[must_use]
    pub fn archs(&self) -> sched_core::ArchSet {
        self.workers.iter().map(|worker| self.classes[worker.class].arch).collect()
    }

    /// A machine of so many CPU workers with one memory, on which kernels take what the graph says, or `length`.
    #[must_use]
    pub fn flat(workers: usize, length: Duration) -> Platform {
        let class =
            WorkerClass { name: "cpu".to_owned(), arch: Arch::CPU, speed: 1.0, pipeline: 1, power: Power::default() };
        let memory = Memory { name: "ram".to_owned(), capacity: None, device: false };
        let mut kernels = Kernels::default();
        kernels.set(Kernels::ANY, 0, KernelTime::Fixed(length));
        Platform {
            name: format!("flat-{workers}"),
            doc: String::new(),
            classes: vec![class],
            workers: vec![Worker { class: 0, memory: MemoryNode(0), package: Some(0) }; workers],
            memories: vec![memory],
            links: Vec::new(),
            routes: vec![Route::default()],
            overheads: Overheads::default(),
            kernels,
            combined_sizes: CombinedSizes::default(),
        }
    }
}

fn work_of(graph: &TaskGraph, task: &Task) -> Work {
    Work { bytes: graph.bytes_of(task), flops: task.flops, footprint: task.footprint }
}
