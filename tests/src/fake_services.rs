//! A fake back end for trees under test: the test controls sleeping workers and time, and nothing is executed.

use sched_core::abi::TaskHead;
use sched_core::{Estimate, LogLevel, MemoryNode, SharedSet, Time, WorkerId};
use sched_host::topology::WorkerDistances;
use sched_host::tree::{LogLine, Services};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Expectations of a back end about tasks: none by default.
pub trait Expectations: Send + Sync {
    /// Expected duration of a task on a worker.
    fn length(&self, _worker: WorkerId, _task: &TaskHead) -> Estimate {
        Estimate::NoModel
    }

    /// Number shared by workers with equal expectations.
    fn speed_class(&self, worker: WorkerId) -> u32 {
        worker.0
    }

    /// Expected energy of a task on a worker, in joules.
    fn energy(&self, _worker: WorkerId, _task: &TaskHead) -> Option<f64> {
        None
    }

    /// Whether data is ever transferred.
    fn transfers(&self) -> bool {
        false
    }

    /// Expected duration of bringing a task's data to a memory node.
    fn transfer(&self, _memory_node: MemoryNode, _task: &TaskHead) -> Duration {
        Duration::ZERO
    }
}

impl Expectations for () {}

/// One duration for all tasks and workers.
impl Expectations for Duration {
    fn length(&self, _worker: WorkerId, _task: &TaskHead) -> Estimate {
        Estimate::Known(*self)
    }
}

/// An estimate for each worker, equal for all tasks; no model for further workers.
impl Expectations for Vec<Estimate> {
    fn length(&self, worker: WorkerId, _task: &TaskHead) -> Estimate {
        self.get(worker.0 as usize).copied().unwrap_or(Estimate::NoModel)
    }
}

/// A request of a tree to its back end.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// A worker was woken.
    Wake {
        /// The worker.
        worker: WorkerId,
        /// Whether it slept.
        slept: bool,
    },
    /// A component logged a line.
    Log {
        /// Its node.
        node: String,
        /// How important the line is.
        level: LogLevel,
        /// The text.
        line: String,
    },
}

/// A back end whose clock advances only when a test says so.
pub struct FakeServices<E = ()> {
    /// Expectations about tasks.
    pub expectations: E,
    /// Which workers sleep; tests put them in.
    pub sleeping: Arc<SharedSet>,
    nanos: AtomicU64,
    combined: Vec<Box<[WorkerId]>>,
    distances: Option<WorkerDistances>,
    busy_until: Option<Box<[AtomicU64]>>,
    requests: Mutex<Vec<Request>>,
}

impl FakeServices {
    /// A back end without expectations, with this number of workers, all awake.
    #[must_use]
    pub fn new(workers: usize) -> FakeServices {
        FakeServices::expecting(workers, ())
    }
}

impl<E: Expectations> FakeServices<E> {
    /// A back end with this number of workers, all awake.
    #[must_use]
    pub fn expecting(workers: usize, expectations: E) -> FakeServices<E> {
        FakeServices {
            expectations,
            sleeping: Arc::new(SharedSet::new(workers)),
            nanos: AtomicU64::new(0),
            combined: Vec::new(),
            distances: None,
            busy_until: None,
            requests: Mutex::default(),
        }
    }

    /// Members of each combined worker.
    #[must_use]
    pub fn with_combined(self, combined: Vec<Box<[WorkerId]>>) -> FakeServices<E> {
        FakeServices { combined, ..self }
    }

    /// Distances between workers, if known.
    #[must_use]
    pub fn with_distances(self, distances: Option<WorkerDistances>) -> FakeServices<E> {
        FakeServices { distances, ..self }
    }

    /// Enables busy times for this number of workers, initially 0.
    #[must_use]
    pub fn with_busy_times(self, workers: usize) -> FakeServices<E> {
        FakeServices { busy_until: Some((0..workers).map(|_| AtomicU64::new(0)).collect()), ..self }
    }

    /// Sets the time until which a worker is busy.
    ///
    /// # Panics
    /// Without [busy times](Self::with_busy_times) of the worker.
    pub fn set_busy_until(&self, worker: WorkerId, time: Time) {
        let times = self.busy_until.as_ref().expect("the test asked for busy times");
        times[worker.0 as usize].store(time.as_nanos(), Relaxed);
    }

    /// Advances the clock.
    pub fn advance(&self, nanos: u64) {
        self.nanos.fetch_add(nanos, Relaxed);
    }

    /// The requests since the last call, in order.
    ///
    /// # Panics
    /// If another thread panicked.
    #[must_use]
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().expect("nobody panics"))
    }

    /// The workers woken since requests were last taken, in order, asleep or not. Logged lines are dropped.
    ///
    /// # Panics
    /// If another thread panicked.
    #[must_use]
    pub fn take_woken(&self) -> Vec<u32> {
        let woken = |request| match request {
            Request::Wake { worker, .. } => Some(worker.0),
            Request::Log { .. } => None,
        };
        self.take_requests().into_iter().filter_map(woken).collect()
    }

    fn note(&self, request: Request) {
        self.requests.lock().expect("nobody panics").push(request);
    }
}

impl<E: Expectations> Services for FakeServices<E> {
    fn now(&self) -> Time {
        Time::from_nanos(self.nanos.load(Relaxed))
    }

    fn sleeping(&self) -> Arc<SharedSet> {
        Arc::clone(&self.sleeping)
    }

    fn wake(&self, worker: WorkerId) -> bool {
        let slept = self.sleeping.remove(worker.0);
        self.note(Request::Wake { worker, slept });
        slept
    }

    fn combined(&self) -> &[Box<[WorkerId]>] {
        &self.combined
    }

    fn busy_until(&self, worker: WorkerId) -> Option<Time> {
        let times = self.busy_until.as_ref()?;
        Some(Time::from_nanos(times[worker.0 as usize].load(Relaxed)))
    }

    fn worker_distance(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        self.distances.as_ref()?.between(one, other)
    }

    fn expected_length(&self, worker: WorkerId, task: &TaskHead, _implementation: Option<u32>) -> Estimate {
        self.expectations.length(worker, task)
    }

    fn speed_class(&self, worker: WorkerId) -> u32 {
        self.expectations.speed_class(worker)
    }

    fn expected_energy(&self, worker: WorkerId, task: &TaskHead, _implementation: Option<u32>) -> Option<f64> {
        self.expectations.energy(worker, task)
    }

    fn transfers(&self) -> bool {
        self.expectations.transfers()
    }

    fn expected_transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        self.expectations.transfer(memory_node, task)
    }

    fn log(&self, line: &LogLine<'_>) {
        self.note(Request::Log { node: line.node.to_owned(), level: line.level, line: line.text.to_owned() });
    }
}
