//! The simulation's services for trees: the virtual clock, sleeping workers, execution times, and transfers.
//!
//! A tree calls them while the engine waits for it to return, so its requests are noted here, and the engine serves
//! them afterwards.

use super::ahead::Progress;
use super::copies::Copies;
use super::lengths::{Lengths, NEVER, Row};
use super::noise::Luck;
use super::platform::{Platform, Worker};
use super::power::Draws;
use super::specs::{Accesses, Spec, Specs};
use parking_lot::Mutex;
use sched_core::abi::TaskHead;
use sched_core::{Estimate, MemoryNode, Passage, Route, SharedSet, Time, WorkerId, WorkerSet};
use sched_graph::{Dependencies, TaskGraph, TaskId};
use sched_tree::{CostPlace, ExpectedCost, Services, TreeObserver};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// See the [module](self).
pub(super) struct SimBackend {
    now: AtomicU64,
    sleeping: Arc<SharedSet>,
    /// Expected end of the tasks that each worker has pulled, in nanoseconds; 0 if it has none.
    busy: Box<[AtomicU64]>,
    /// Expected length of the parallel tasks whose teams wait for each worker, in nanoseconds.
    teams: Box<[AtomicU64]>,
    /// The members of each combined worker.
    combined: Box<[Box<[WorkerId]>]>,
    pub(super) lengths: Lengths,
    /// What kernels take instead, if they do not take what schedulers expect.
    pub(super) luck: Option<Luck>,
    pub(super) draws: Draws,
    pub(super) graph: Arc<TaskGraph>,
    pub(super) specs: Specs,
    pub(super) dependencies: Arc<Dependencies>,
    pub(super) progress: Progress,
    /// Whether components see submitted tasks before they are ready: only if all tasks are pushed into one tree.
    pub(super) foresees: bool,
    pub(super) platform: Arc<Platform>,
    /// Where copies of data are; `None` if there is only one memory node.
    pub(super) copies: Option<Arc<Copies>>,
    /// The workers for which tasks are that did not fit into the memory of another; `has_handed_on` tells whether
    /// there are any.
    handed_on: Mutex<BTreeMap<TaskId, WorkerSet>>,
    has_handed_on: AtomicBool,
    notes: Mutex<Notes>,
    /// Whether `notes` has any.
    noted: AtomicBool,
    pub(super) tree_observer: Option<Arc<dyn TreeObserver>>,
    /// Whether components hear of the execution of tasks.
    pub(super) is_followed: AtomicBool,
}

/// Requests of trees to the engine.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) woken: Vec<WorkerId>,
    pub(super) prefetch: Vec<Prefetch>,
}

/// Request to bring the data of a task to a memory node.
pub(super) struct Prefetch {
    pub(super) memory: MemoryNode,
    pub(super) task: TaskId,
}

impl SimBackend {
    pub(super) fn new(
        graph: Arc<TaskGraph>,
        specs: Specs,
        dependencies: Arc<Dependencies>,
        platform: Arc<Platform>,
        lengths: Lengths,
        combined: Vec<Box<[WorkerId]>>,
    ) -> SimBackend {
        let copies = || Arc::new(Copies::new(Arc::clone(&graph), Arc::clone(&platform)));
        let copies = (platform.memories.len() > 1).then(copies);
        SimBackend {
            now: AtomicU64::new(0),
            sleeping: Arc::new(SharedSet::new(platform.workers.len())),
            busy: platform.workers.iter().map(|_| AtomicU64::new(0)).collect(),
            teams: platform.workers.iter().map(|_| AtomicU64::new(0)).collect(),
            combined: combined.into(),
            lengths,
            luck: None,
            draws: Draws::new(&graph, &platform),
            progress: Progress::new(graph.tasks.len()),
            dependencies,
            foresees: true,
            specs,
            graph,
            platform,
            copies,
            handed_on: Mutex::default(),
            has_handed_on: AtomicBool::new(false),
            notes: Mutex::default(),
            noted: AtomicBool::new(false),
            tree_observer: None,
            is_followed: AtomicBool::new(false),
        }
    }

    pub(super) fn set_now(&self, now: u64) {
        self.now.store(now, Relaxed);
    }

    /// Sets the expected end of a worker's tasks.
    pub(super) fn book(&self, worker: WorkerId, nanos: u64) {
        self.busy[worker.index()].store(nanos, Relaxed);
    }

    /// Expected end of a worker's tasks.
    pub(super) fn busy_until_nanos(&self, worker: WorkerId) -> u64 {
        self.busy[worker.index()].load(Relaxed)
    }

    /// Records that a team waits for the worker, for a task of this length.
    pub(super) fn expect_team(&self, worker: WorkerId, nanos: u64) {
        self.teams[worker.index()].fetch_add(nanos, Relaxed);
    }

    /// Records that the worker has joined that team.
    pub(super) fn joined_team(&self, worker: WorkerId, nanos: u64) {
        self.teams[worker.index()].fetch_sub(nanos, Relaxed);
    }

    /// Lets the worker be woken from now on.
    pub(super) fn fall_asleep(&self, worker: WorkerId) {
        self.sleeping.insert(worker.0);
    }

    /// Records that the worker is awake without having been woken.
    pub(super) fn get_up(&self, worker: WorkerId) {
        if self.sleeping.contains(worker.0) {
            self.sleeping.remove(worker.0);
        }
    }

    /// The first sleeping worker that `suits`.
    pub(super) fn find_sleeper(&self, suits: impl Fn(WorkerId) -> bool) -> Option<WorkerId> {
        self.sleeping.iter().map(WorkerId).find(|sleeper| suits(*sleeper))
    }

    /// Notes that a task is for these workers only, since it does not fit into the memory of the others.
    pub(super) fn note_handed_on(&self, task: TaskId, workers: WorkerSet) {
        self.handed_on.lock().insert(task, workers);
        self.has_handed_on.store(true, Relaxed);
    }

    /// Whether a task may be executed by a worker, as far as its restrictions and its data are known to tell.
    pub(super) fn is_allowed_on(&self, task: TaskId, worker: WorkerId) -> bool {
        self.graph.task(task).is_allowed_on(worker, self.platform.class(worker).arch)
            && (!self.has_handed_on.load(Relaxed)
                || self.handed_on.lock().get(&task).is_none_or(|workers| workers.contains(worker)))
    }

    /// Whether there are notes.
    pub(super) fn has_notes(&self) -> bool {
        self.noted.load(Relaxed)
    }

    /// Swaps the notes for `empty` ones.
    pub(super) fn take_notes(&self, empty: &mut Notes) {
        self.noted.store(false, Relaxed);
        std::mem::swap(&mut *self.notes.lock(), empty);
    }

    /// Whether there is this memory node: its number may come from a component.
    fn has_memory(&self, memory_node: MemoryNode) -> bool {
        memory_node.index() < self.platform.memories.len()
    }

    /// What is read of a task again and again.
    #[inline]
    pub(super) fn spec(&self, task: TaskId) -> &Spec {
        self.specs.get(task)
    }

    /// Data accesses of a task.
    #[inline]
    pub(super) fn accesses(&self, task: TaskId) -> Accesses<'_> {
        self.specs.accesses(task)
    }

    /// Expected nanoseconds until the data of a task is on a memory node.
    pub(super) fn transfer_nanos(&self, task: TaskId, memory_node: MemoryNode) -> u64 {
        let Some(copies) = &self.copies else { return 0 };
        let read = self.accesses(task).iter().filter(|access| access.mode.reads());
        read.map(|access| copies.nanos_to_each(access.data)(memory_node)).fold(0, u64::saturating_add)
    }
}

/// The task in a record.
pub(super) fn task_of(head: &TaskHead) -> TaskId {
    TaskId(head.sequence.load(Relaxed).wrapping_sub(1) as u32)
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
            self.noted.store(true, Relaxed);
            self.notes.lock().woken.push(worker);
        }
        slept
    }

    fn combined(&self) -> &[Box<[WorkerId]>] {
        &self.combined
    }

    fn busy_until(&self, worker: WorkerId) -> Option<Time> {
        let busy = self.busy.get(worker.index())?.load(Relaxed);
        Some(match self.teams[worker.index()].load(Relaxed) {
            0 => Time::from_nanos(busy),
            teams => Time::from_nanos(busy.max(self.now.load(Relaxed)).saturating_add(teams)),
        })
    }

    fn busy_until_each(&self, workers: &[WorkerId], ends: &mut [u64]) -> bool {
        for (worker, end) in workers.iter().zip(&mut *ends) {
            let Some(busy) = self.busy.get(worker.index()) else { return false };
            *end = busy.load(Relaxed);
        }
        // Without combined workers there are no teams.
        if !self.combined.is_empty() {
            let now = self.now.load(Relaxed);
            for (worker, end) in workers.iter().zip(ends) {
                match self.teams[worker.index()].load(Relaxed) {
                    0 => {}
                    teams => *end = (*end).max(now).saturating_add(teams),
                }
            }
        }
        true
    }

    fn worker_distance(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        let workers = &self.platform.workers;
        let (a, b) = (workers.get(one.index())?, workers.get(other.index())?);
        Some(match (one == other, a.package == b.package, a.memory == b.memory) {
            (true, ..) => 0,
            (_, true, true) => 1,
            (_, true, false) => 2,
            _ => 3,
        })
    }

    fn route(&self, from: MemoryNode, to: MemoryNode) -> Option<Route> {
        if !self.has_memory(from) || !self.has_memory(to) {
            return None;
        }
        let (route, prices) = (self.platform.route(from, to), self.platform.overheads);
        let allocates = self.platform.memories[to.index()].device;
        let allocation = if allocates { prices.allocation } else { Duration::ZERO };
        if prices.free_transfers {
            return Some(Route { allocation, ..Route::default() });
        }
        let passage =
            |link: &usize| Passage { link: *link as u32, per_byte: 1.0 / self.platform.links[*link].bandwidth };
        Some(Route {
            latency: Duration::from_nanos(route.latency) + prices.transfer_queueing,
            allocation,
            links: route.links.iter().map(passage).collect(),
            weight: self.platform.sharing.weight(route.latency),
        })
    }

    fn memory_capacity(&self, memory_node: MemoryNode) -> Option<u64> {
        self.platform.memories.get(memory_node.index())?.capacity
    }

    fn expected_length(&self, worker: WorkerId, task: &TaskHead, _implementation: Option<u32>) -> Estimate {
        let row = Row(task.codelet.load(Relaxed));
        let nanos = match worker.index().checked_sub(self.platform.workers.len()) {
            None => self.lengths.nanos(row, self.platform.workers[worker.index()].class),
            Some(team) if team < self.combined.len() => self.lengths.team_nanos(row, team),
            Some(_) => NEVER,
        };
        match nanos {
            NEVER => Estimate::NoModel,
            nanos => Estimate::Known(Duration::from_nanos(nanos)),
        }
    }

    fn speed_class(&self, worker: WorkerId) -> u32 {
        match worker.index().checked_sub(self.platform.workers.len()) {
            None => self.platform.workers[worker.index()].class as u32,
            Some(team) => (self.platform.classes.len() + team) as u32,
        }
    }

    fn expected_energy(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Option<f64> {
        let length = self.expected_length(worker, task, implementation).known()?;
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let workers = &self.platform.workers;
        let members = match worker.index().checked_sub(workers.len()) {
            None => std::slice::from_ref(&worker),
            Some(team) => self.combined.get(team)?,
        };
        let kind = self.spec(task_of(task)).kind;
        let joules = members.iter().map(|member| self.draws.joules(kind, workers[member.index()].class, nanos));
        Some(joules.sum()).filter(|joules: &f64| !joules.is_nan())
    }

    fn expected_transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        match self.has_memory(memory_node) {
            true => Duration::from_nanos(self.transfer_nanos(task_of(task), memory_node)),
            false => Duration::ZERO,
        }
    }

    fn expected_costs(&self, task: &TaskHead, at: &[CostPlace], with_energy: bool, costs: &mut [ExpectedCost]) -> bool {
        let (row, id) = (Row(task.codelet.load(Relaxed)), task_of(task));
        for (CostPlace { worker, .. }, cost) in at.iter().zip(&mut *costs) {
            // Combined workers are asked about one by one.
            let Some(Worker { class, .. }) = self.platform.workers.get(worker.index()) else { return false };
            let nanos = self.lengths.nanos(row, *class);
            *cost = ExpectedCost { length: nanos, ..ExpectedCost::UNKNOWN };
            if with_energy && nanos != NEVER {
                cost.energy = self.draws.joules(self.spec(id).kind, *class, nanos);
            }
        }
        if let Some(copies) = &self.copies {
            for access in self.accesses(id).iter().filter(|access| access.mode.reads()) {
                let nanos_to = copies.nanos_to_each(access.data);
                for (CostPlace { memory_node, .. }, cost) in at.iter().zip(&mut *costs) {
                    cost.transfer = cost.transfer.saturating_add(nanos_to(*memory_node));
                }
            }
        }
        true
    }

    fn transfers(&self) -> bool {
        self.copies.is_some()
    }

    fn prefetch(&self, memory_node: MemoryNode, task: &TaskHead) {
        if !self.has_memory(memory_node) {
            return;
        }
        self.noted.store(true, Relaxed);
        self.notes.lock().prefetch.push(Prefetch { memory: memory_node, task: task_of(task) });
    }

    fn report_executions(&self) {
        self.is_followed.store(true, Relaxed);
    }

    fn tree_observer(&self) -> Option<Arc<dyn TreeObserver>> {
        self.tree_observer.clone()
    }
}
