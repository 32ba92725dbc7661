//! The memory nodes of a runtime that has several: whose they are, what is on them, and what it takes to bring data there.
//!
//! A runtime with one memory node has none of this.

pub(crate) mod hints;

use self::hints::Hints;
use super::core::{Core, TaskPlace};
use super::data::replicas::{Copies, Errand};
use super::data::{DataHeader, Places};
use super::task::codelet::Job;
use super::task::record::TaskKey;
use crossbeam::utils::CachePadded;
use sched_core::abi::TaskHead;
use sched_core::{MemoryNode, WorkerId};
use sched_model::Bus;
use sched_trace::{Event, Recorder, Transfer};
use sched_tree::WorkerFacts;
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
    bus: Bus,
    /// Transfers by where they came from, and then by where they went.
    moved: Box<[CachePadded<Moved>]>,
    /// Bytes of replicas on each node.
    resident: Box<[AtomicU64]>,
    /// What to bring to each node ahead of its tasks.
    hints: Box<[Hints]>,
    core: OnceLock<Weak<Core>>,
    recorder: Option<Arc<Recorder>>,
    began: Instant,
}

/// What went from one memory node to another.
#[derive(Default)]
struct Moved {
    count: AtomicU64,
    bytes: AtomicU64,
}

/// What went from one memory node to another since the runtime began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TransferStats {
    /// From which memory node.
    pub from: u32,
    /// To which.
    pub to: u32,
    /// How many replicas were copied.
    pub count: u64,
    /// Their bytes, as they were registered.
    pub bytes: u64,
}

/// A memory node of a runtime.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryNodeStats {
    /// Its number.
    pub node: u32,
    /// Its workers.
    pub workers: Vec<u32>,
    /// Bytes of the replicas that are there now, valid or not, as they were registered.
    pub replica_bytes: u64,
}

impl Memories {
    /// For workers on several memory nodes, and what transfers between these take.
    pub(crate) fn new(workers: &[WorkerFacts], bus: Bus, recorder: Option<Arc<Recorder>>, began: Instant) -> Memories {
        let of_worker: Box<[MemoryNode]> = workers.iter().map(|worker| worker.memory_node).collect();
        let nodes = of_worker.iter().max().map_or(1, |last| last.index() + 1);
        Memories {
            of_worker,
            nodes,
            bus,
            moved: (0..nodes * nodes).map(|_| CachePadded::default()).collect(),
            resident: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            hints: (0..nodes).map(|_| Hints::default()).collect(),
            core: OnceLock::new(),
            recorder,
            began,
        }
    }

    /// The runtime whose tasks it is asked about.
    pub(crate) fn serve(&self, core: &Arc<Core>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Memory nodes, those in between without workers included.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The workers of a node.
    pub(crate) fn workers_of(&self, node: MemoryNode) -> Vec<usize> {
        (0..self.of_worker.len()).filter(|worker| self.of_worker[*worker] == node).collect()
    }

    /// The first node that has workers.
    pub(crate) fn first(&self) -> MemoryNode {
        self.of_worker.iter().copied().min().unwrap_or(MemoryNode(0))
    }

    /// The memory node of a worker.
    pub(crate) fn node_of(&self, worker: WorkerId) -> MemoryNode {
        self.of_worker[worker.index()]
    }

    /// Has everything where a task needs it that `worker` is about to run. It is the task's turn at all of it.
    pub(crate) fn bring(&self, job: &dyn Job, worker: WorkerId) {
        let node = self.node_of(worker);
        job.visit(&mut |header, mode| match &header.places {
            Places::Replicated(copies) => {
                if mode.reads() || !copies.coherence().is_allocated(node.0) {
                    copies.bring(node, Errand::Demand(worker));
                }
            }
            Places::One(home) => {
                if mode.writes() {
                    home.settle(node);
                }
            }
        });
    }

    /// How long it should take to bring what a task reads to `node`, a number that a component has said.
    pub(crate) fn expected_transfer(&self, node: MemoryNode, task: &TaskHead) -> Duration {
        let mut nanos = 0u64;
        self.visit_inputs(node, task.record, task.sequence.load(Relaxed), |header| {
            nanos = nanos.saturating_add(self.cost(header, node));
        });
        Duration::from_nanos(nanos)
    }

    /// A task that is to run on `node` is in a queue: its data is brought there meanwhile.
    pub(crate) fn prefetch(&self, node: MemoryNode, task: &TaskHead) {
        let key = TaskKey { slot: task.record, sequence: task.sequence.load(Relaxed) };
        let mut is_any_missing = false;
        self.visit_inputs(node, key.slot, key.sequence, |header| is_any_missing |= missing(header, node).is_some());
        if is_any_missing {
            self.hints[node.index()].add(key);
        }
    }

    /// Follows the hints for `node`, until the runtime stops.
    pub(crate) fn follow_hints(&self, node: MemoryNode) {
        while let Some(task) = self.hints[node.index()].next() {
            let mut wanted: SmallVec<[_; 4]> = SmallVec::new();
            self.visit_inputs(node, task.slot, task.sequence, |header| wanted.extend(missing(header, node)));
            for (copies, version) in wanted {
                let bring = AssertUnwindSafe(move || copies.bring(node, Errand::Prefetch(version)));
                if let Err(payload) = catch_unwind(bring) {
                    // The drop of a payload may panic in its turn. The task will try again itself, and fail if it must.
                    std::mem::forget(payload);
                    tracing::warn!(task = task.sequence, node = node.0, "the copying of its data ahead of it panicked");
                }
            }
        }
    }

    /// No hint is followed any more.
    pub(crate) fn stop(&self) {
        self.hints.iter().for_each(Hints::stop);
    }

    /// Visits what a task reads that has not been begun, if `node` is one of these.
    fn visit_inputs(&self, node: MemoryNode, slot: u32, sequence: u64, mut visit: impl FnMut(&DataHeader)) {
        let Some(core) = self.core.get().and_then(Weak::upgrade).filter(|_| (node.index()) < self.nodes) else {
            return;
        };
        let TaskPlace { slot, record } = core.place(slot);
        // Under this lock the job is taken by who runs the task, and put by who submits the next one here.
        let body = record.body.lock();
        if slot.head().sequence.load(Relaxed) == sequence
            && let Some(job) = &body.job
        {
            job.visit(&mut |header, mode| {
                if mode.reads() {
                    visit(header);
                }
            });
        }
    }

    /// Nanoseconds until data is on a node. What is not copied is read from afar, which takes as long at least.
    fn cost(&self, header: &DataHeader, node: MemoryNode) -> u64 {
        let valid = header.places.valid();
        if valid == 0 || valid & 1 << node.0 != 0 {
            return 0;
        }
        self.sources(valid, node, header.bytes).map(|(_, nanos)| nanos).min().unwrap_or(0)
    }

    /// The node from which it takes the shortest to bring data, of those where it is `valid`.
    pub(crate) fn nearest(&self, valid: u64, node: MemoryNode, bytes: u64) -> Option<MemoryNode> {
        self.sources(valid, node, bytes).min_by_key(|(_, nanos)| *nanos).map(|(from, _)| from)
    }

    /// Nodes where data is, and how long it takes from there to `node` in nanoseconds.
    fn sources(&self, valid: u64, node: MemoryNode, bytes: u64) -> impl Iterator<Item = (MemoryNode, u64)> {
        (0..self.nodes as u32).map(MemoryNode).filter(move |from| valid & 1 << from.0 != 0).map(move |from| {
            let micros = self.bus.transfer(from.index(), node.index(), bytes);
            (from, micros.map_or(u64::MAX, |micros| (micros * 1e3) as u64))
        })
    }

    /// How long so many bytes should take from one node to another, numbers that a component has said.
    pub(crate) fn transfer_nanos(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64 {
        if from == to || from.max(to).index() >= self.nodes {
            return 0;
        }
        self.sources(1 << from.0, to, bytes).map(|(_, nanos)| nanos).next().unwrap_or(0)
    }

    /// There is memory of a replica from now on.
    pub(crate) fn note_allocated(&self, node: MemoryNode, bytes: u64) {
        self.resident[node.index()].fetch_add(bytes, Relaxed);
    }

    /// The memory of a replica is given back.
    pub(crate) fn note_freed(&self, node: MemoryNode, bytes: u64) {
        self.resident[node.index()].fetch_sub(bytes, Relaxed);
    }

    /// A replica begins to be copied.
    pub(crate) fn note_transfer(&self, transfer: Transfer, by: Option<WorkerId>) -> Underway<'_> {
        self.record(by, Event::TransferStarted(transfer));
        Underway { memories: self, transfer, by }
    }

    fn record(&self, by: Option<WorkerId>, event: Event) {
        if let Some(recorder) = &self.recorder {
            recorder.note(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX), by, event);
        }
    }

    /// What was copied so far; nothing about pairs of nodes between which nothing was.
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

/// The replicas of data that is not on `node`, and its version.
fn missing(header: &DataHeader, node: MemoryNode) -> Option<(Arc<dyn Copies>, u32)> {
    let Places::Replicated(copies) = &header.places else { return None };
    let state = copies.coherence();
    (!state.is_valid(node.0)).then(|| (Arc::clone(copies), state.version()))
}

/// A replica that is being copied. In a trace the transfer ends when this is dropped, however it ends.
pub(crate) struct Underway<'a> {
    memories: &'a Memories,
    transfer: Transfer,
    by: Option<WorkerId>,
}

impl Underway<'_> {
    /// It was copied whole.
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
