//! The simulated machine: workers, memory nodes, links, overheads, and the execution times of kernels.
//!
//! A platform is read from KDL text (see [`parse`](Platform::parse) for the language), shipped with the program
//! ([`library`]), or made from the performance directory of a StarPU installation.

mod bound;
mod bus;
mod draw;
mod from_topology;
mod kernels;
mod layout;
mod library;
mod machine;
mod parse;
mod power;
mod problem;
mod remarks;
mod routes;
mod starpu;
#[cfg(test)]
mod tests;

pub use from_topology::{DeviceFigures, MachineFigures};
pub use kernels::{KernelTime, Kernels, Parallel, Sized};
pub use layout::Layout;
pub(crate) use library::is_path;
pub use library::{ShippedPlatform, find, library};
pub use power::Power;
pub use starpu::{STARPU_OVERHEADS, StarpuError};

use kernels::Work;
use sched_core::{Arch, ArchSet, MemoryNode, WorkerId, WorkerSet};
use sched_graph::{Task, TaskGraph, Where};
use sched_machine::topology::CombinedSizes;
use sched_tree::WorkerFacts;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of memory nodes of a platform: each has a bit in a word.
pub const MAX_MEMORIES: usize = 64;

/// Maximum number of workers of a platform.
pub const MAX_WORKERS: usize = 65_536;

/// A machine to simulate.
#[derive(Clone, PartialEq, Debug)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// The comment above it, which gives the origin of its figures.
    pub doc: String,
    /// Kinds of workers.
    pub classes: Vec<WorkerClass>,
    /// The workers, by [`WorkerId`].
    pub workers: Vec<Worker>,
    /// The memory nodes, by [`MemoryNode`]. Node 0 has all data at the beginning, unless the graph gives another one.
    pub memories: Vec<Memory>,
    /// The links.
    pub links: Vec<Link>,
    /// The routes between memory nodes: row by source, column by destination.
    pub routes: Vec<Route>,
    /// How simultaneous transfers share a link.
    pub sharing: Sharing,
    /// Costs other than those of kernels and transfers.
    pub overheads: Overheads,
    /// Execution times of tasks on each class of workers.
    pub kernels: Kernels,
    /// Sizes of the combined workers that its CPU workers offer; see [`combined_workers`](Platform::combined_workers).
    pub combined_sizes: CombinedSizes,
    /// Files that could not be used, or lines of them, with the reasons. Tasks of their kinds have no length.
    pub left_out: Vec<String>,
    /// What was assumed where measurements are missing, one sentence each.
    pub assumed: Vec<String>,
    /// The levels of a machine that hwloc described; `None` elsewhere.
    pub layout: Option<Layout>,
    /// The number by which tasks name each worker, where it is not the worker's own: on a cluster as one machine, that
    /// on its node. Empty elsewhere.
    pub names: Vec<WorkerId>,
}

/// A class of workers, which are all equally fast.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerClass {
    /// Its name, unique in the platform.
    pub name: String,
    /// Architecture.
    pub arch: Arch,
    /// Speed of such a worker relative to a CPU core, for components that use it.
    pub speed: f64,
    /// Maximum number of tasks in flight: a worker with 1 fetches data, executes, and fetches again; an accelerator
    /// with 2 fetches the data of one task while it executes another.
    pub pipeline: usize,
    /// Power of such a worker.
    pub power: Power,
}

/// One worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worker {
    /// Its class, by place in [`Platform::classes`].
    pub class: usize,
    /// The memory node that it accesses without a transfer.
    pub memory: MemoryNode,
    /// The processor package that it belongs to, if given.
    pub package: Option<u32>,
}

/// A memory node.
#[derive(Clone, PartialEq, Debug)]
pub struct Memory {
    /// Its name, unique in the platform.
    pub name: String,
    /// Capacity in bytes; `None` if unlimited.
    pub capacity: Option<u64>,
    /// Whether allocations there cost [`Overheads::allocation`].
    pub device: bool,
    /// Whether workers spend the time of copies from it and to it that are made ahead: there is no copy engine.
    pub copied_by_workers: bool,
}

/// How simultaneous transfers share the bandwidth of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sharing {
    /// Evenly.
    #[default]
    Even,
    /// In proportion to 1/latency of their routes, as in SimGrid with the settings that StarPU writes into its platform
    /// files (`network/weight-S` is 0): a transfer over a long route gets less.
    ByLatency,
}

impl Sharing {
    /// Weight of a transfer over a route of this latency in nanoseconds, relative to other transfers.
    pub(super) fn weight(self, latency: u64) -> f64 {
        match self {
            Sharing::Even => 1.0,
            Sharing::ByLatency => 1e3 / latency.max(1) as f64,
        }
    }
}

/// A link in one direction. Simultaneous transfers share its bandwidth.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Bandwidth in bytes per nanosecond (GB/s).
    pub bandwidth: f64,
}

/// The route from one memory node to another.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Route {
    /// The links, by place in [`Platform::links`]. A link that is passed twice is listed twice. Empty if there is no
    /// route.
    pub links: Vec<usize>,
    /// Latency in nanoseconds.
    pub latency: u64,
    /// Expected cost of a transfer, for schedulers.
    pub expected: TransferCost,
}

/// Expected cost of transfers over a [`Route`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TransferCost {
    /// Latency in nanoseconds.
    pub latency: u64,
    /// Nanoseconds per byte.
    pub per_byte: f64,
}

impl TransferCost {
    /// Expected length of a transfer of this size in nanoseconds.
    #[must_use]
    pub fn nanos(self, bytes: u64) -> u64 {
        self.latency.saturating_add((bytes as f64 * self.per_byte) as u64)
    }
}

/// Costs other than those of kernels and transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overheads {
    /// The application submits a task.
    pub submission: Duration,
    /// A ready task is pushed into the scheduler, by the thread that made it ready.
    pub push: Duration,
    /// A worker requests one piece of data of a task.
    pub fetch: Duration,
    /// A kernel is queued on a worker whose pipeline is deeper than 1; hidden while another kernel runs.
    pub kernel_queueing: Duration,
    /// A transfer is queued.
    pub transfer_queueing: Duration,
    /// Memory for one piece of data is allocated on a device. The machine makes one allocation at a time.
    pub allocation: Duration,
    /// A sleeping worker is woken.
    pub wake_up: Duration,
    /// Whether transfers take no time. The costs that schedulers expect stay.
    pub free_transfers: bool,
}

/// The costs of a platform that apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Costs {
    /// All of them.
    #[default]
    Default,
    /// Only transfers.
    NoOverhead,
    /// None: transfers take no time, although schedulers expect their costs.
    NoTransfer,
}

impl Overheads {
    /// The overheads that apply with `costs`.
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
    /// The platform with these costs only.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Platform {
        self.overheads = self.overheads.with(costs);
        self
    }

    /// The class of a worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn class(&self, worker: WorkerId) -> &WorkerClass {
        &self.classes[self.workers[worker.index()].class]
    }

    /// Execution time of a task of `graph` on the workers of a class, if it can run there: from the graph if it gives
    /// that of their architecture, else from the times of kernels. If the graph gives that of other architectures only,
    /// the kernel must be named here, or the operations of the task be known and a speed for every kernel: another time
    /// that applies to every kernel does not tell that a task can run.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn length(&self, graph: &TaskGraph, task: &Task, class: usize) -> Option<Duration> {
        let kind = &graph.kind_of(task).name;
        let given = task.lengths.get(self.classes[class].arch);
        if given.is_some() {
            return given;
        }
        let time = self.kernels.get(kind, class)?;
        if !task.lengths.is_empty() && !self.kernels.is_set(kind, class) && !matches!(time, KernelTime::Rate { .. }) {
            return None;
        }
        time.nanos(work_of(graph, task)).map(Duration::from_nanos)
    }

    /// Execution time of a task of `graph` on `size` workers of a class together, if they can execute it. If the graph
    /// gives the time on one worker, only [`Parallel::Amdahl`] gives that on several.
    ///
    /// # Panics
    /// If there is no such class.
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

    /// The platform with teams of CPU workers for tasks of every kind without a rule of its own: a fraction `share` of
    /// a task, from 0 to 1, is divided among the members ([`Parallel::Amdahl`]).
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

    /// Number of workers of each class.
    #[must_use]
    pub fn workers_by_class(&self) -> Vec<u32> {
        let count = |class| self.workers.iter().filter(|worker| worker.class == class).count() as u32;
        (0..self.classes.len()).map(count).collect()
    }

    /// The architectures that can execute a task of `graph`, with these numbers of workers of the classes. Trees know
    /// architectures only, so one can if each of its workers can.
    pub(crate) fn able(&self, graph: &TaskGraph, task: &Task, workers_by_class: &[u32]) -> ArchSet {
        let with_workers = || (0..self.classes.len()).filter(|class| workers_by_class[*class] > 0);
        let arch = |class: usize| self.classes[class].arch;
        let without: ArchSet =
            with_workers().filter(|class| self.length(graph, task, *class).is_none()).map(arch).collect();
        with_workers().map(arch).filter(|arch| !without.contains(*arch)).collect()
    }

    /// For each class, the numbers of its workers that can execute a task: 1, and the sizes of combined workers if
    /// kernels are parallel.
    fn team_sizes(&self) -> Vec<BTreeSet<u16>> {
        let mut sizes = vec![BTreeSet::from([1]); self.classes.len()];
        if self.kernels.has_parallel() {
            for team in self.combined_members() {
                for member in &team {
                    sizes[self.workers[member.index()].class].insert(u16::try_from(team.len()).unwrap_or(u16::MAX));
                }
            }
        }
        sizes
    }

    /// All memory nodes.
    pub fn memory_nodes(&self) -> impl Iterator<Item = MemoryNode> + use<> {
        (0..self.memories.len() as u32).map(MemoryNode)
    }

    /// The route from one memory node to another.
    ///
    /// # Panics
    /// If there are no such nodes.
    #[must_use]
    pub fn route(&self, from: MemoryNode, to: MemoryNode) -> &Route {
        &self.routes[from.index() * self.memories.len() + to.index()]
    }

    /// Length of a transfer of `bytes` bytes in nanoseconds that schedulers expect.
    ///
    /// # Panics
    /// If there are no such nodes.
    #[must_use]
    pub fn expected_transfer(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64 {
        self.route(from, to).expected.nanos(bytes)
    }

    /// Facts about the workers for a tree.
    #[must_use]
    pub fn worker_facts(&self) -> Vec<WorkerFacts> {
        let facts = |worker: &Worker| WorkerFacts {
            arch: self.classes[worker.class].arch,
            memory_node: worker.memory,
            relative_speedup: self.classes[worker.class].speed,
        };
        self.workers.iter().map(facts).collect()
    }

    /// Whether `places` allow a worker.
    pub(crate) fn allows(&self, places: &Where, worker: WorkerId) -> bool {
        let name = self.names.get(worker.index()).copied().unwrap_or(worker);
        places.allows(name, self.class(worker).arch)
    }

    /// The places that a restricted task with these architectures may still run at, as
    /// [`Where::remaining`](sched_graph::Where::remaining) has them; `None` if the task is not restricted, or has none.
    pub(crate) fn remaining(&self, task: &Task, archs: ArchSet) -> Option<(ArchSet, Option<WorkerSet>)> {
        let places = task.only.as_deref()?;
        let arch = |worker: &Worker| self.classes[worker.class].arch;
        let machine = (0..).map(WorkerId).zip(self.workers.iter().map(arch));
        Where::remaining(std::iter::once(places), archs, machine)
    }

    /// Architectures of its workers.
    #[must_use]
    pub fn archs(&self) -> ArchSet {
        self.workers.iter().map(|worker| self.classes[worker.class].arch).collect()
    }

    /// A machine of `workers` CPU workers with one memory node, where tasks take the time that the graph gives, or
    /// `length`.
    #[must_use]
    pub fn flat(workers: usize, length: Duration) -> Platform {
        let class =
            WorkerClass { name: "cpu".to_owned(), arch: Arch::CPU, speed: 1.0, pipeline: 1, power: Power::default() };
        let memory = Memory { name: "ram".to_owned(), capacity: None, device: false, copied_by_workers: false };
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
            sharing: Sharing::default(),
            overheads: Overheads::default(),
            kernels,
            combined_sizes: CombinedSizes::default(),
            left_out: Vec::new(),
            assumed: Vec::new(),
            layout: None,
            names: Vec::new(),
        }
    }
}

fn work_of(graph: &TaskGraph, task: &Task) -> Work {
    Work { bytes: graph.bytes_of(task), flops: task.flops, footprint: task.footprint }
}
