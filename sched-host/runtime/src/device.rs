//! Devices: workers that are no cores.
//!
//! A device is driven by its [driver](sched_core::driver), a plugin. It has a worker and a memory node of its own,
//! numbered after those of the cores, so policies see it as they see devices of simulated machines. The thread of its
//! worker keeps a [pipeline](worker): the inputs of the next task are copied while a kernel runs.
//!
//! Devices hold [arrays and matrices](crate::ArrayHandle) of [plain](bytemuck::Pod) values. The coherence of their
//! copies is that of memory nodes; [`storage`](crate::data::storage) asks the driver where a node is a device's.
//!
//! When a device is lost, the tasks on it fail, and so does what only its memory held. Its worker remains in the tree
//! and hands every task that it pulls to the other workers, so the run goes on with what is left.

pub(crate) mod access;
pub(crate) mod arena;
pub(crate) mod choice;
pub(crate) mod codelet;
pub(crate) mod kernels;
pub(crate) mod links;
pub(crate) mod machine;
pub(crate) mod needs;
pub(crate) mod scratch;
pub(crate) mod worker;

use crate::device::arena::Arena;
use crate::device::choice::ChosenDevice;
use crate::device::scratch::{Scratch, Status};
use parking_lot::Mutex;
use sched_core::abi::driver::OpenedDriver;
use sched_core::driver::{DeviceInfo, DeviceNumber, DriverError, DriverErrorKind, HostMemory, Order, SpanId, Token};
use sched_core::{MemoryNode, WorkerId};
use sched_model::Bus;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// The queue for kernels.
pub(crate) const KERNELS: u32 = 0;

/// A device of a runtime.
pub(crate) struct Device {
    /// Name of its driver.
    pub(crate) kind: String,
    pub(crate) number: DeviceNumber,
    pub(crate) info: DeviceInfo,
    pub(crate) driver: Arc<OpenedDriver>,
    pub(crate) worker: WorkerId,
    pub(crate) node: MemoryNode,
    pub(crate) arena: Arena,
    is_lost: AtomicBool,
    /// Whether its driver does not measure what others than the host put into queues.
    lacks_spans: AtomicBool,
    /// Whether its driver gains nothing by memory that is pinned.
    lacks_pinning: AtomicBool,
    /// What its worker has just launched.
    launched: Mutex<Launched>,
    pub(crate) scratch: Scratch,
}

/// What a task has put into the queue of a device.
#[derive(Default)]
pub(crate) struct Launched {
    /// Its end; `None` if there is nothing to wait for.
    pub(crate) token: Option<Token>,
    /// Whether the driver measures its time: not that of a library's work if it has no spans.
    pub(crate) is_measured: bool,
    /// What a library says of its work.
    pub(crate) status: Option<Status>,
}

/// The links between all memory nodes, and the devices among these.
pub(crate) type LinkedDevices = (Bus, Box<[Arc<Device>]>);

/// A device of a runtime, for reports.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceStats {
    /// Name by which it is chosen: `opencl:0`.
    pub name: String,
    /// Name of the model.
    pub model: String,
    /// Its worker.
    pub worker: u32,
    /// Its memory node.
    pub memory_node: u32,
    /// Bytes of its memory that the runtime may use.
    pub memory: u64,
    /// Bytes that are allocated on it, used or kept for reuse.
    pub allocated: u64,
    /// Number of replicas that were evicted to make room.
    pub evictions: u64,
    /// Number of times that a task waited for room until data was copied.
    pub waits_for_room: u64,
    /// Whether it does not work any more.
    pub lost: bool,
}

impl Device {
    pub(crate) fn new(chosen: ChosenDevice, limit: Option<u64>, worker: WorkerId, node: MemoryNode) -> Device {
        let ChosenDevice { kind, number, info, driver, .. } = chosen;
        let arena = Arena::new(limit.unwrap_or(info.memory).min(info.memory));
        Device {
            kind,
            number,
            info,
            driver,
            worker,
            node,
            arena,
            is_lost: AtomicBool::new(false),
            lacks_spans: AtomicBool::new(false),
            lacks_pinning: AtomicBool::new(false),
            launched: Mutex::default(),
            scratch: Scratch::default(),
        }
    }

    /// Whether it does not work any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Acquire)
    }

    /// Passes an error on, and notes that the device is lost if that is the error.
    pub(crate) fn note<T>(&self, result: Result<T, DriverError>) -> Result<T, DriverError> {
        if let Err(error) = &result
            && error.kind == DriverErrorKind::Lost
            && !self.is_lost.swap(true, AcqRel)
        {
            tracing::error!("{} is lost: {error}; its worker takes no more tasks", self.name());
        }
        result
    }

    /// Name by which it is chosen.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.kind, self.number.0)
    }

    /// An order for a copy, in a queue of its own where there is one.
    pub(crate) fn copying(&self) -> Order<'static> {
        Order { queue: self.info.queues - 1, after: &[] }
    }

    /// Waits for the end of a copy that was started.
    pub(crate) fn finish(&self, started: Result<Token, DriverError>) -> Result<(), DriverError> {
        self.note(started.and_then(|token| self.driver.wait(self.number, token)).map(|_| ()))
    }

    /// Keeps memory of the host where it is, for faster copies. Returns whether it did.
    pub(crate) fn pin(&self, memory: HostMemory, bytes: u64) -> bool {
        if self.lacks_pinning.load(Relaxed) {
            return false;
        }
        match self.driver.pin(self.number, memory, bytes) {
            Ok(()) => true,
            Err(error) if error.kind == DriverErrorKind::Unsupported => {
                self.lacks_pinning.store(true, Relaxed);
                false
            }
            Err(error) => {
                tracing::debug!("{} copies from memory that is not pinned: {error}", self.name());
                false
            }
        }
    }

    /// Ends what [`pin`](Self::pin) began.
    pub(crate) fn unpin(&self, memory: HostMemory) {
        // What a lost device has pinned is of no use to it.
        let _ = self.driver.unpin(self.number, memory);
    }

    /// Begins to measure what a library puts into the queue for kernels; `None` if the driver cannot.
    pub(crate) fn begin_span(&self) -> Result<Option<SpanId>, DriverError> {
        if self.lacks_spans.load(Relaxed) {
            return Ok(None);
        }
        match self.driver.begin_span(self.number, KERNELS) {
            Err(error) if error.kind == DriverErrorKind::Unsupported => {
                self.lacks_spans.store(true, Relaxed);
                Ok(None)
            }
            begun => begun.map(Some),
        }
    }

    /// A token for what is in the queue for kernels, as the end of a span if one was begun.
    pub(crate) fn end_span(&self, span: Option<SpanId>) -> Result<Token, DriverError> {
        match span {
            Some(span) => self.driver.end_span(self.number, KERNELS, span),
            None => self.driver.mark(self.number, KERNELS),
        }
    }

    /// Notes what a task has launched: a kernel, or the work of a library.
    pub(crate) fn note_launched(&self, token: Token, is_measured: bool) {
        let mut launched = self.launched.lock();
        launched.token = Some(token);
        launched.is_measured = is_measured;
    }

    /// Notes what is to be done when the work of the task that is being launched has ended.
    pub(crate) fn note_status(&self, status: Status) {
        self.launched.lock().status = Some(status);
    }

    /// Takes what was noted.
    pub(crate) fn take_launched(&self) -> Launched {
        std::mem::take(&mut *self.launched.lock())
    }

    /// Its state, for reports.
    pub(crate) fn stats(&self) -> DeviceStats {
        DeviceStats {
            name: self.name(),
            model: self.info.name.clone(),
            worker: self.worker.0,
            memory_node: self.node.0,
            memory: self.arena.limit(),
            allocated: self.arena.allocated(),
            evictions: self.arena.evictions(),
            waits_for_room: self.arena.waits(),
            lost: self.is_lost(),
        }
    }
}

impl Drop for Device {
    /// The driver outlives the runtime: what was allocated is given back.
    fn drop(&mut self) {
        for buffer in self.arena.take_pooled().into_iter().chain(self.scratch.take()) {
            let _ = self.driver.free(self.number, buffer);
        }
    }
}
