//! The back end of real runs: time, sleeping workers, models and transfers, as trees ask for them.

use super::capture::Capture;
use super::device::LinkedDevices;
use super::memory::Memories;
use super::parallel::combined::arch_and_size;
use super::task::codelets::Codelets;
use super::worker::times::Times;
use sched_core::abi::TaskHead;
use sched_core::{Arch, Estimate, MemoryNode, SharedSet, Time, WorkerId};
use sched_machine::topology::WorkerDistances;
use sched_sync::sleep::Sleep;
use sched_trace::{Event, Recorder};
use sched_tree::{Services, TreeObserver, WorkerFacts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The back end of trees whose workers are threads.
pub(crate) struct ThreadBackend {
    pub(crate) began: Instant,
    pub(crate) sleep: Sleep,
    pub(crate) times: Times,
    /// Architecture of each simple worker.
    archs: Vec<Arch>,
    /// Members of each combined worker.
    combined: Box<[Box<[WorkerId]>]>,
    distances: WorkerDistances,
    /// Codelets by number.
    pub(crate) codelets: Arc<Codelets>,
    /// Present if events are recorded.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// Present if the graph of the program is captured.
    pub(crate) capture: Option<Capture>,
    /// Whether somebody follows the starts and ends of tasks: the recorder, the capture of the graph, or a component.
    pub(crate) is_followed: AtomicBool,
    /// Whether a component does.
    pub(crate) is_heard: AtomicBool,
    /// Present if there are several memory nodes.
    pub(crate) memories: Option<Arc<Memories>>,
}

/// Those who follow submissions and tasks on behalf of the program.
pub(crate) struct Followers {
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) capture: Option<Capture>,
}

impl ThreadBackend {
    pub(crate) fn new(
        workers: &[WorkerFacts],
        combined: &[Box<[WorkerId]>],
        distances: WorkerDistances,
        followers: Followers,
        memories: Option<LinkedDevices>,
    ) -> ThreadBackend {
        let Followers { recorder, capture } = followers;
        let began = Instant::now();
        let memories =
            memories.map(|(bus, devices)| Arc::new(Memories::new(workers, devices, bus, recorder.clone(), began)));
        ThreadBackend {
            began,
            sleep: Sleep::new(workers.len()),
            times: Times::new(workers.len()),
            combined: combined.into(),
            archs: workers.iter().map(|worker| worker.arch).collect(),
            distances,
            codelets: Arc::new(Codelets::new(recorder.is_some())),
            is_followed: AtomicBool::new(recorder.is_some() || capture.is_some()),
            is_heard: AtomicBool::new(false),
            recorder,
            capture,
            memories,
        }
    }

    /// The members of a combined worker; `None` for a simple one.
    pub(crate) fn members(&self, worker: WorkerId) -> Option<&[WorkerId]> {
        let team = worker.index().checked_sub(self.archs.len())?;
        self.combined.get(team).map(|members| &**members)
    }

    /// The architecture of a worker, simple or combined, and its size.
    pub(crate) fn arch_and_size(&self, worker: WorkerId) -> Option<(Arch, u16)> {
        arch_and_size(worker, &self.archs, &self.combined)
    }

    /// Records an event at the current time, if events are recorded.
    #[inline]
    pub(crate) fn record(&self, by: Option<WorkerId>, event: impl FnOnce() -> Event) {
        if self.recorder.is_some() {
            self.record_at(self.now().as_nanos(), by, event);
        }
    }

    /// [`record`](Self::record), of a moment in the past.
    pub(crate) fn record_at(&self, nanos: u64, by: Option<WorkerId>, event: impl FnOnce() -> Event) {
        if let Some(recorder) = &self.recorder {
            recorder.note(nanos, by, event());
        }
    }
}

impl Services for ThreadBackend {
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn sleeping(&self) -> Arc<SharedSet> {
        Arc::clone(self.sleep.sleeping())
    }

    fn wake(&self, worker: WorkerId) -> bool {
        self.sleep.wake(worker.index())
    }

    fn combined(&self) -> &[Box<[WorkerId]>] {
        &self.combined
    }

    fn busy_until(&self, worker: WorkerId) -> Option<Time> {
        self.times.busy_until(worker, || self.now())
    }

    fn worker_distance(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        self.distances.between(one, other)
    }

    fn memory_capacity(&self, memory_node: MemoryNode) -> Option<u64> {
        Some(self.memories.as_ref()?.device(memory_node)?.arena.limit())
    }

    fn implementations(&self, arch: Arch, task: &TaskHead) -> u32 {
        let facts = self.codelets.get(task.codelet.load(Relaxed));
        facts.map_or(0, |facts| facts.count(arch))
    }

    fn expected_length(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Estimate {
        let Some((arch, size)) = self.arch_and_size(worker) else { return Estimate::NoModel };
        let facts = self.codelets.get(task.codelet.load(Relaxed));
        let footprint = task.footprint.load(Relaxed);
        facts.map_or(Estimate::NoModel, |facts| facts.expected_length(arch, size, implementation, footprint))
    }

    fn speed_class(&self, worker: WorkerId) -> u32 {
        self.arch_and_size(worker).map_or(u32::MAX, |(arch, size)| u32::from(size) << 8 | u32::from(arch.number()))
    }

    fn expected_energy(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Option<f64> {
        let (arch, size) = self.arch_and_size(worker)?;
        let facts = self.codelets.get(task.codelet.load(Relaxed))?;
        facts.expected_energy(arch, size, implementation, task.footprint.load(Relaxed))
    }

    fn expected_transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        self.memories.as_ref().map_or(Duration::ZERO, |memories| memories.expected_transfer(memory_node, task))
    }

    fn transfers(&self) -> bool {
        self.memories.is_some()
    }

    fn prefetch(&self, memory_node: MemoryNode, task: &TaskHead) {
        if let Some(memories) = &self.memories {
            memories.prefetch(memory_node, task);
        }
    }

    fn report_executions(&self) {
        self.is_heard.store(true, Relaxed);
        self.is_followed.store(true, Relaxed);
    }

    fn tree_observer(&self) -> Option<Arc<dyn TreeObserver>> {
        self.recorder.clone().map(|recorder| recorder as Arc<dyn TreeObserver>)
    }
}
