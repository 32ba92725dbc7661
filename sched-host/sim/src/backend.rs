//! What the tree asks of a simulation: the virtual clock, sleeping workers, lengths, and transfers.
//!
//! The tree may call while the engine waits for it to return, so what it changes is noted here, and the engine does it
//! afterwards.

use super::ahead::Progress;
use super::lengths::{Lengths, NEVER};
use super::memory::Replicas;
use super::platform::Platform;
use super::power::Draws;
use parking_lot::Mutex;
use sched_core::abi::TaskHead;
use sched_core::{Estimate, MemoryNode, SharedSet, Time, WorkerId};
use sched_graph::{Access, Dependencies, TaskGraph};
use sched_tree::{Services, TreeObserver};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// See the [module](self).
pub(super) struct SimBackend {
    now: AtomicU64,
    sleeping: Arc<SharedSet>,
    /// When each worker should be done with the tasks that it has pulled, in nanoseconds; 0 when it has none.
    busy: Box<[AtomicU64]>,
    /// How long the parallel tasks should take whose teams wait for each worker, in nanoseconds.
    teams: Box<[AtomicU64]>,
    /// The members of each combined worker.
    combined: Box<[Box<[WorkerId]>]>,
    pub(super) lengths: Lengths,
    pub(super) draws: Draws,
    pub(super) graph: Arc<TaskGraph>,
    pub(super) dependencies: Arc<Dependencies>,
    pub(super) progress: Progress,
    /// Whether components are told of tasks to come: only where all of them come to the same tree.
    pub(super) foresees: bool,
    pub(super) platform: Arc<Platform>,
    /// Where data is; `None` where there is one memory only.
    pub(super) replicas: Option<Mutex<Replicas>>,
    notes: Mutex<Notes>,
    /// Something is in `notes`.
    noted: AtomicU64,
    pub(super) tree_observer: Option<Arc<dyn TreeObserver>>,
}

/// What the engine is to do.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) woken: Vec<WorkerId>,
    /// Memory and task.
    pub(super) prefetch: Vec<(u32, u32)>,
}

impl SimBackend {
    pub(super) fn new(
        graph: Arc<TaskGraph>,
        dependencies: Arc<Dependencies>,
        platform: Arc<Platform>,
        lengths: Lengths,
        combined: Vec<Box<[WorkerId]>>,
    ) -> SimBackend {
        let replicas = (platform.memories.len() > 1).then(|| {
            let capacities: Vec<Option<u64>> = platform.memories.iter().map(|memory| memory.capacity).collect();
            Mutex::new(Replicas::new(graph.data.iter().map(|datum| (datum.bytes, datum.home.0)), &capacities))
        });
        SimBackend {
            now: AtomicU64::new(0),
            sleeping: Arc::new(SharedSet::new(platform.workers.len())),
            busy: platform.workers.iter().map(|_| AtomicU64::new(0)).collect(),
            teams: platform.workers.iter().map(|_| AtomicU64::new(0)).collect(),
            combined: combined.into(),
            lengths,
            draws: Draws::new(&graph, &platform),
            progress: Progress::new(graph.tasks.len()),
            dependencies,
            foresees: true,
            graph,
            platform,
            replicas,
            notes: Mutex::default(),
            noted: AtomicU64::new(0),
            tree_observer: None,
        }
    }

    pub(super) fn set_now(&self, now: u64) {
        self.now.store(now, Relaxed);
    }

    /// Notes when a worker should be done.
    pub(super) fn book(&self, worker: u32, nanos: u64) {
        self.busy[worker as usize].store(nanos, Relaxed);
    }

    /// When a worker should be done.
    pub(super) fn busy_until_nanos(&self, worker: u32) -> u64 {
        self.busy[worker as usize].load(Relaxed)
    }

    /// The worker is wanted in a team for a task of this length.
    pub(super) fn expect_team(&self, worker: u32, nanos: u64) {
        self.teams[worker as usize].fetch_add(nanos, Relaxed);
    }

    /// It has come.
    pub(super) fn joined_team(&self, worker: u32, nanos: u64) {
        self.teams[worker as usize].fetch_sub(nanos, Relaxed);
    }

    /// From now on the worker may be woken.
    pub(super) fn fall_asleep(&self, worker: u32) {
        self.sleeping.insert(worker);
    }

    /// The worker is awake by itself.
    pub(super) fn get_up(&self, worker: u32) {
        if self.sleeping.contains(worker) {
            self.sleeping.remove(worker);
        }
    }

    /// The first worker that sleeps and `suits`.
    pub(super) fn find_sleeper(&self, suits: impl Fn(u32) -> bool) -> Option<u32> {
        self.sleeping.iter().find(|sleeper| suits(*sleeper))
    }

    /// Whether there are notes.
    pub(super) fn has_notes(&self) -> bool {
        self.noted.load(Relaxed) != 0
    }

    /// Swaps the notes for `empty` ones.
    pub(super) fn take_notes(&self, empty: &mut Notes) {
        self.noted.store(0, Relaxed);
        std::mem::swap(&mut *self.notes.lock(), empty);
    }

    /// What a task accesses.
    pub(super) fn accesses(&self, task: u32) -> &[Access] {
        &self.graph.tasks[task as usize].accesses
    }

    /// The cheapest memory to get data from: number and expected nanoseconds.
    pub(super) fn source(&self, replicas: &Replicas, data: u32, to: u32) -> (u32, u64) {
        let (valid, bytes) = (replicas.valid(data), replicas.bytes(data));
        let mut best = (replicas.home(data), u64::MAX);
        let mut left = valid & !(1 << to);
        while left != 0 {
            let from = left.trailing_zeros();
            left &= left - 1;
            let cost = self.platform.expected_transfer(from as usize, to as usize, bytes);
            if cost < best.1 {
                best = (from, cost);
            }
        }
        best
    }
}

/// The task in a record.
pub(super) fn task_of(head: &TaskHead) -> u32 {
    head.sequence.load(Relaxed).wrapping_sub(1) as u32
}

impl Services for SimBackend {
    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    fn sleeping(&self) -> Arc<SharedSet> {
        Arc::clone(&self.sleeping)
    }

    fn wake(&self, worker: WorkerId) -> bool {
        let slept = self.sleeping.remove(worker.0);
        if slept {
            self.noted.store(1, Relaxed);
            self.notes.lock().woken.push(worker);
        }
        slept
    }

    fn combined(&self) -> &[Box<[WorkerId]>] {
        &self.combined
    }

    fn busy_until(&self, worker: WorkerId) -> Option<Time> {
        let busy = self.busy.get(worker.0 as usize)?.load(Relaxed);
        Some(match self.teams[worker.0 as usize].load(Relaxed) {
            0 => Time::from_nanos(busy),
            teams => Time::from_nanos(busy.max(self.now.load(Relaxed)).saturating_add(teams)),
        })
    }

    fn worker_distance(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        let workers = &self.platform.workers;
        let (a, b) = (workers.get(one.0 as usize)?, workers.get(other.0 as usize)?);
        Some(match (one == other, a.package == b.package, a.memory == b.memory) {
            (true, ..) => 0,
            (_, true, true) => 1,
            (_, true, false) => 2,
            _ => 3,
        })
    }

    fn expected_length(&self, worker: WorkerId, task: &TaskHead, _implementation: Option<u32>) -> Estimate {
        let row = task.codelet.load(Relaxed);
        let nanos = match (worker.0 as usize).checked_sub(self.platform.workers.len()) {
            None => self.lengths.nanos(row, self.platform.workers[worker.0 as usize].class),
            Some(team) if team < self.combined.len() => self.lengths.team_nanos(row, team),
            Some(_) => NEVER,
        };
        match nanos {
            NEVER => Estimate::NoModel,
            nanos => Estimate::Known(Duration::from_nanos(nanos)),
        }
    }

    fn speed_class(&self, worker: WorkerId) -> u32 {
        match (worker.0 as usize).checked_sub(self.platform.workers.len()) {
            None => self.platform.workers[worker.0 as usize].class as u32,
            Some(team) => (self.platform.classes.len() + team) as u32,
        }
    }

    fn expected_energy(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Option<f64> {
        let length = self.expected_length(worker, task, implementation).known()?;
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let workers = &self.platform.workers;
        let members = match (worker.0 as usize).checked_sub(workers.len()) {
            None => std::slice::from_ref(&worker),
            Some(team) => self.combined.get(team)?,
        };
        let task = &self.graph.tasks[task_of(task) as usize];
        let joules = members.iter().map(|member| self.draws.joules(task, workers[member.0 as usize].class, nanos));
        Some(joules.sum()).filter(|joules: &f64| !joules.is_nan())
    }

    fn expected_transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        let Some(replicas) = &self.replicas else { return Duration::ZERO };
        let replicas = replicas.lock();
        let read = self.accesses(task_of(task)).iter().filter(|access| access.mode.reads());
        let missing = read.filter(|access| !replicas.is_valid(access.data.0, memory_node.0));
        let nanos = missing.map(|access| self.source(&replicas, access.data.0, memory_node.0).1);
        Duration::from_nanos(nanos.fold(0, u64::saturating_add))
    }

    fn transfers(&self) -> bool {
        self.replicas.is_some()
    }

    fn prefetch(&self, memory_node: MemoryNode, task: &TaskHead) {
        self.noted.store(1, Relaxed);
        self.notes.lock().prefetch.push((memory_node.0, task_of(task)));
    }

    fn tree_observer(&self) -> Option<Arc<dyn TreeObserver>> {
        self.tree_observer.clone()
    }
}
