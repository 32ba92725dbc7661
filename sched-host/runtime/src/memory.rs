//! Memory nodes of a runtime with several: their workers, their replicas, and transfers between them.
//!
//! Absent from a runtime with one memory node.

pub(crate) mod advice;
pub(crate) mod hints;

use self::hints::{Hint, Hints};
use super::core::{Core, TaskPlace};
use super::data::replicas::{Copies, Errand};
use super::data::{DataHeader, Places};
use super::device::Device;
use super::task::job::Job;
use super::task::record::TaskKey;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use sched_core::abi::TaskHead;
use sched_core::driver::{DriverError, DriverErrorKind};
use sched_core::{MemoryNode, WorkerId};
use sched_graph::AccessMode;
use sched_model::Bus;
use sched_trace::{Event, Recorder, Transfer};
use sched_tree::{Phase, SlotId, WorkerFacts};
use serde::Serialize;
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// See the [module](self).
pub(crate) struct Memories {
    /// The memory node of each worker.
    of_worker: Box<[MemoryNode]>,
    nodes: usize,
    /// Devices, whose nodes come after those of the host.
    devices: Box<[Arc<Device>]>,
    bus: Bus,
    /// Transfers, indexed by source, then by destination.
    moved: Box<[CachePadded<Moved>]>,
    /// Bytes of replicas on each node.
    resident: Box<[AtomicU64]>,
    /// Requests to fetch data to each node ahead of its tasks.
    hints: Box<[Hints]>,
    /// Held by the thread that follows the hints of a node while it has handles to data that has parts.
    fetching: Box<[Mutex<()>]>,
    core: OnceLock<Weak<Core>>,
    recorder: Option<Arc<Recorder>>,
    began: Instant,
}

/// Transfers from one memory node to another.
#[derive(Default)]
struct Moved {
    count: AtomicU64,
    bytes: AtomicU64,
}

/// Transfers from one memory node to another since the start of the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TransferStats {
    /// Source memory node.
    pub from: u32,
    /// Destination memory node.
    pub to: u32,
    /// Number of copies: of replicas, arrays, matrices and parts.
    pub count: u64,
    /// Bytes copied, by registered size.
    pub bytes: u64,
}

/// A memory node of a runtime.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryNodeStats {
    /// Its number.
    pub node: u32,
    /// Its workers.
    pub workers: Vec<u32>,
    /// Bytes of the replicas on it, of arrays and matrices too, valid or not, by registered size.
    pub replica_bytes: u64,
}

impl Memories {
    /// Creates the memory nodes of these workers, with transfer times from `bus`.
    pub(crate) fn new(
        workers: &[WorkerFacts],
        devices: Box<[Arc<Device>]>,
        bus: Bus,
        recorder: Option<Arc<Recorder>>,
        began: Instant,
    ) -> Memories {
        let of_worker: Box<[MemoryNode]> = workers.iter().map(|worker| worker.memory_node).collect();
        let nodes = of_worker.iter().max().map_or(1, |last| last.index() + 1);
        Memories {
            of_worker,
            nodes,
            devices,
            bus,
            moved: (0..nodes * nodes).map(|_| CachePadded::default()).collect(),
            resident: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            hints: (0..nodes).map(|_| Hints::default()).collect(),
            fetching: (0..nodes).map(|_| Mutex::default()).collect(),
            core: OnceLock::new(),
            recorder,
            began,
        }
    }

    /// Sets the runtime that owns the tasks.
    pub(crate) fn serve(&self, core: &Arc<Core>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Number of memory nodes, including those without workers in between.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The devices, in order of their nodes.
    pub(crate) fn devices(&self) -> &[Arc<Device>] {
        &self.devices
    }

    /// Number of the first node that is a device's; that of all nodes without devices.
    pub(crate) fn first_of_devices(&self) -> usize {
        self.nodes - self.devices.len()
    }

    /// The device whose memory a node is.
    #[inline]
    pub(crate) fn device(&self, node: MemoryNode) -> Option<&Arc<Device>> {
        self.devices.get(node.index().checked_sub(self.first_of_devices())?)
    }

    /// The device that a worker drives.
    pub(crate) fn device_of(&self, worker: WorkerId) -> Option<&Arc<Device>> {
        self.device(self.node_of(worker))
    }

    /// Nodes whose devices are lost, as bits.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.devices.iter().filter(|device| device.is_lost());
        lost.fold(0, |bits, device| bits | 1 << device.node.0)
    }

    /// The workers of a node.
    pub(crate) fn workers_of(&self, node: MemoryNode) -> Vec<usize> {
        (0..self.of_worker.len()).filter(|worker| self.of_worker[*worker] == node).collect()
    }

    /// The first node that has workers.
    pub(crate) fn first(&self) -> MemoryNode {
        self.of_worker.iter().copied().min().unwrap_or(MemoryNode(0))
    }

    /// The memory node of data that a thread registers, which may be a worker: what it has made is in the host's memory,
    /// also where it drives a device.
    pub(crate) fn of_new_data(&self, by: Option<WorkerId>) -> MemoryNode {
        by.map(|worker| self.node_of(worker))
            .filter(|node| self.device(*node).is_none())
            .unwrap_or_else(|| self.first())
    }

    /// The memory node of a worker.
    pub(crate) fn node_of(&self, worker: WorkerId) -> MemoryNode {
        self.of_worker[worker.index()]
    }

    /// Brings everything that a task needs to the node of `worker`, which is about to run it. It is the task's turn at
    /// all of it.
    ///
    /// # Errors
    /// The first copy from or to a device that failed.
    pub(crate) fn bring(&self, job: &dyn Job, worker: WorkerId) -> Result<(), DriverError> {
        let node = self.node_of(worker);
        let mut result = Ok(());
        job.visit(&mut |header, mode| match &header.places {
            Places::Replicated(copies) => {
                if mode.reads() || !copies.coherence().is_allocated(node) {
                    copies.bring(node, Errand::Demand(worker));
                }
            }
            Places::One(home) => {
                if mode.writes() {
                    home.settle(node);
                }
            }
            Places::Part(part) => {
                if result.is_ok() {
                    result = part.bring(Some(worker), mode.reads());
                }
            }
            Places::Lent(_) => {}
        });
        result
    }

    /// Expected time to bring the inputs of a task to `node`. The number comes from a component, so it may be invalid.
    pub(crate) fn expected_transfer(&self, node: MemoryNode, task: &TaskHead) -> Duration {
        let mut nanos = 0u64;
        self.visit_inputs(node, SlotId(task.record), task.sequence.load(Relaxed), |header, _| {
            nanos = nanos.saturating_add(self.cost(header, node));
        });
        Duration::from_nanos(nanos)
    }

    /// Requests that the data of a queued task, which is to run on `node`, is fetched ahead.
    pub(crate) fn prefetch(&self, node: MemoryNode, task: &TaskHead) {
        let key = TaskKey { slot: SlotId(task.record), sequence: task.sequence.load(Relaxed) };
        let mut is_any_missing = false;
        self.visit_inputs(node, key.slot, key.sequence, |header, _| {
            is_any_missing |= is_missing(header, node);
        });
        if is_any_missing {
            self.add_hint(node, Hint::Task(key));
        }
    }

    /// Adds a hint for `node`. Returns whether it was kept: not where no thread follows it, as there are no workers.
    pub(crate) fn add_hint(&self, node: MemoryNode, hint: Hint) -> bool {
        self.of_worker.contains(&node) && self.hints[node.index()].add(hint)
    }

    /// Follows the hints for `node` until the runtime stops.
    pub(crate) fn follow_hints(&self, node: MemoryNode) {
        while let Some(hint) = self.hints[node.index()].next() {
            match hint {
                Hint::Task(task) => self.fetch_inputs(node, task),
                Hint::Data { header, turn } => {
                    let fetch = || match &header.places {
                        // Only plain data can be on a device.
                        Places::Replicated(copies) if self.device(node).is_none() => copies.bring(node, Errand::Ahead),
                        Places::Part(part) => {
                            if let Err(why) = part.bring_ahead(node) {
                                tracing::warn!(data = header.id, node = node.0, "data is not copied ahead: {why}");
                            }
                        }
                        Places::Replicated(_) | Places::One(_) | Places::Lent(_) => {}
                    };
                    if let Err(payload) = catch_unwind(AssertUnwindSafe(fetch)) {
                        // The drop of a payload may panic in turn.
                        std::mem::forget(payload);
                        tracing::warn!(data = header.id, node = node.0, "the copying of data ahead of tasks panicked");
                    }
                    // First: afterwards the program may take the data back.
                    drop(header);
                    if let Some(core) = self.core.get().and_then(Weak::upgrade) {
                        core.end_access(turn);
                    }
                }
            }
        }
    }

    /// Fetches the inputs of a queued task, as far as they are there.
    fn fetch_inputs(&self, node: MemoryNode, task: TaskKey) {
        let fetching = self.fetching[node.index()].lock();
        let (mut parts, mut wanted): (SmallVec<[_; 4]>, SmallVec<[_; 4]>) = Default::default();
        self.visit_inputs(node, task.slot, task.sequence, |header, has_turn| match &header.places {
            // Whoever writes it later, in its turn, waits for the end of the copy.
            Places::Part(part) if has_turn => parts.extend(part.begin_ahead(node)),
            _ => wanted.extend(missing(header, node)),
        });
        for part in parts {
            match part.copy() {
                Err(error) if error.kind != DriverErrorKind::OutOfMemory => {
                    tracing::debug!(task = task.sequence, node = node.0, "its data is not copied ahead of it: {error}");
                }
                _ => {}
            }
        }
        // Before the program's code runs, which copies the others.
        drop(fetching);
        for (copies, version) in wanted {
            let bring = AssertUnwindSafe(move || copies.bring(node, Errand::Prefetch(version)));
            if let Err(payload) = catch_unwind(bring) {
                // The drop of a payload may panic in turn. The task itself will copy again, and fail if that fails.
                std::mem::forget(payload);
                tracing::warn!(task = task.sequence, node = node.0, "the copying of its data ahead of it panicked");
            }
        }
    }

    /// Waits until no thread has a handle to data that has parts, of those that fetch it ahead of tasks. For data whose
    /// tasks have ended, none takes another.
    pub(crate) fn wait_for_fetching(&self) {
        self.fetching.iter().for_each(|fetching| drop(fetching.lock()));
    }

    /// Stops the threads that follow hints.
    pub(crate) fn stop(&self) {
        self.hints.iter().for_each(Hints::stop);
    }

    /// Visits the inputs of a task that has not started, if `node` is valid; also passes whether it is the turn of the
    /// task, which stays so during the call.
    fn visit_inputs(&self, node: MemoryNode, slot: SlotId, sequence: u64, mut visit: impl FnMut(&DataHeader, bool)) {
        let Some(core) = self.core.get().and_then(Weak::upgrade).filter(|_| (node.index()) < self.nodes) else {
            return;
        };
        let TaskPlace { slot, record } = core.place(slot);
        // Under this lock, the thread that runs the task takes the job, and the next submission stores one.
        let body = record.body.lock();
        if slot.head().sequence.load(Relaxed) == sequence
            && let Some(job) = &body.job
        {
            // A task in the tree waits for nobody, but for those that it commutes with.
            let is_ready = matches!(slot.phase(), Phase::InTree(_));
            job.visit(&mut |header, mode| {
                if mode.reads() {
                    visit(header, is_ready && mode != AccessMode::Commute);
                }
            });
        }
    }

    /// Nanoseconds until data is on a node. Data that is not copied is read remotely, which takes at least as long.
    fn cost(&self, header: &DataHeader, node: MemoryNode) -> u64 {
        if let Places::Part(part) = &header.places {
            let nearest = |(bytes, valid)| self.sources(valid, node, bytes).map(|(_, nanos)| nanos).min().unwrap_or(0);
            return part.missing(node).into_iter().map(nearest).fold(0, u64::saturating_add);
        }
        let valid = header.places.valid();
        if valid == 0 || valid & 1 << node.0 != 0 {
            return 0;
        }
        self.sources(valid, node, header.bytes).map(|(_, nanos)| nanos).min().unwrap_or(0)
    }

    /// The node from which a transfer takes the shortest time, among those where data is `valid`.
    pub(crate) fn nearest(&self, valid: u64, node: MemoryNode, bytes: u64) -> Option<MemoryNode> {
        let valid = if self.devices.is_empty() { valid } else { valid & !self.lost() };
        self.sources(valid, node, bytes).min_by_key(|(_, nanos)| *nanos).map(|(from, _)| from)
    }

    /// Nodes that hold the data, with the transfer time from there to `node` in nanoseconds.
    fn sources(&self, valid: u64, node: MemoryNode, bytes: u64) -> impl Iterator<Item = (MemoryNode, u64)> {
        (0..self.nodes as u32).map(MemoryNode).filter(move |from| valid & 1 << from.0 != 0).map(move |from| {
            let micros = self.bus.transfer(from.index(), node.index(), bytes);
            (from, micros.map_or(u64::MAX, |micros| (micros * 1e3) as u64))
        })
    }

    /// Expected time in nanoseconds to transfer `bytes` bytes. The nodes come from a component, so they may be invalid.
    pub(crate) fn transfer_nanos(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64 {
        if from == to || from.max(to).index() >= self.nodes {
            return 0;
        }
        self.sources(1 << from.0, to, bytes).map(|(_, nanos)| nanos).next().unwrap_or(0)
    }

    /// Counts the allocation of a replica.
    pub(crate) fn note_allocated(&self, node: MemoryNode, bytes: u64) {
        self.resident[node.index()].fetch_add(bytes, Relaxed);
    }

    /// Counts the release of a replica.
    pub(crate) fn note_freed(&self, node: MemoryNode, bytes: u64) {
        self.resident[node.index()].fetch_sub(bytes, Relaxed);
    }

    /// Records the start of a transfer.
    pub(crate) fn note_transfer(&self, transfer: Transfer, by: Option<WorkerId>) -> Underway<'_> {
        self.record(by, Event::TransferStarted(transfer));
        Underway { memories: self, transfer, by }
    }

    fn record(&self, by: Option<WorkerId>, event: Event) {
        if let Some(recorder) = &self.recorder {
            recorder.note(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX), by, event);
        }
    }

    /// Transfers so far. Pairs of nodes without any are omitted.
    pub(crate) fn transfers(&self) -> Vec<TransferStats> {
        let moved = self.moved.iter().enumerate().map(|(pair, moved)| TransferStats {
            from: (pair / self.nodes) as u32,
            to: (pair % self.nodes) as u32,
            count: moved.count.load(Relaxed),
            bytes: moved.bytes.load(Relaxed),
        });
        moved.filter(|moved| moved.count > 0).collect()
    }

    /// The nodes that have workers.
    pub(crate) fn stats(&self) -> Vec<MemoryNodeStats> {
        let stats = self.resident.iter().zip(0u32..).map(|(resident, node)| {
            let workers = self.workers_of(MemoryNode(node)).into_iter().map(|worker| worker as u32).collect();
            MemoryNodeStats { node, workers, replica_bytes: resident.load(Relaxed) }
        });
        stats.filter(|stats| !stats.workers.is_empty()).collect()
    }
}

/// Whether data that can be fetched is not on `node`.
fn is_missing(header: &DataHeader, node: MemoryNode) -> bool {
    match &header.places {
        Places::Part(part) => part.is_missing(node),
        _ => missing(header, node).is_some(),
    }
}

/// Replicas of data that is not on `node`, and its version.
fn missing(header: &DataHeader, node: MemoryNode) -> Option<(Arc<dyn Copies>, u32)> {
    let Places::Replicated(copies) = &header.places else { return None };
    let state = copies.coherence();
    (!state.is_valid(node)).then(|| (Arc::clone(copies), state.version()))
}

/// A transfer in progress. In a trace it ends when this is dropped, successful or not.
pub(crate) struct Underway<'a> {
    memories: &'a Memories,
    transfer: Transfer,
    by: Option<WorkerId>,
}

impl Underway<'_> {
    /// Counts the transfer as complete.
    pub(crate) fn arrived(self) {
        let Transfer { from, to, bytes, .. } = self.transfer;
        let moved = &self.memories.moved[from.index() * self.memories.nodes + to.index()];
        moved.count.fetch_add(1, Relaxed);
        moved.bytes.fetch_add(bytes, Relaxed);
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.memories.record(self.by, Event::TransferEnded(self.transfer));
    }
}
