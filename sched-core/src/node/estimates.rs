//! Which workers can execute a task, and what that is expected to cost.

use super::{Child, Node};
use crate::abi::wire::{NO_ID, REQUESTER};
use crate::estimate::Estimate;
use crate::task::Task;
use crate::workers::{MemoryNode, WorkerId};
use std::time::Duration;

impl Node<'_> {
    /// Whether any worker below, in the context, can execute `task`.
    #[inline]
    #[must_use]
    pub fn can_execute(&self, task: &Task) -> bool {
        self.raw.host().can_execute(self.raw.call(), NO_ID, task.raw())
    }

    /// Whether `worker` can execute `task`.
    #[inline]
    #[must_use]
    pub fn worker_can_execute(&self, worker: WorkerId, task: &Task) -> bool {
        self.raw.host().can_execute(self.raw.call(), worker.0, task.raw())
    }

    /// Whether the requesting worker can execute `task`; without one, whether any worker below in the context can.
    #[inline]
    #[must_use]
    pub fn requester_can_execute(&self, task: &Task) -> bool {
        self.raw.host().can_execute(self.raw.call(), REQUESTER, task.raw())
    }

    /// Whether any worker below a child can execute `task`.
    #[inline]
    #[must_use]
    pub fn child_can_execute(&self, child: Child, task: &Task) -> bool {
        self.raw.host().child_can_execute(self.raw.call(), child.0, task.raw())
    }

    /// Number of implementations of `task` for `worker`, numbered from 0.
    #[inline]
    #[must_use]
    pub fn implementations(&self, worker: WorkerId, task: &Task) -> u32 {
        self.raw.host().implementations(self.raw.call(), worker.0, task.raw())
    }

    /// Expected duration of `task` on `worker`, with the best implementation.
    #[inline]
    #[must_use]
    pub fn expected_length(&self, worker: WorkerId, task: &Task) -> Estimate {
        Estimate::from_wire(self.raw.host().expected_length(self.raw.call(), worker.0, task.raw(), NO_ID))
    }

    /// Expected duration of `task` on `worker`, with implementation number `implementation`.
    #[inline]
    #[must_use]
    pub fn expected_length_with(&self, worker: WorkerId, task: &Task, implementation: u32) -> Estimate {
        Estimate::from_wire(self.raw.host().expected_length(self.raw.call(), worker.0, task.raw(), implementation))
    }

    /// Expected duration of transferring the data of `task` to a memory node.
    #[inline]
    #[must_use]
    pub fn expected_transfer(&self, memory_node: MemoryNode, task: &Task) -> Duration {
        Duration::from_nanos(self.raw.host().expected_transfer(self.raw.call(), memory_node.0, task.raw()))
    }

    /// Expected energy in joules of `task` on `worker`, with the best implementation; `None` without a model.
    #[inline]
    #[must_use]
    pub fn expected_energy(&self, worker: WorkerId, task: &Task) -> Option<f64> {
        let joules = self.raw.host().expected_energy(self.raw.call(), worker.0, task.raw(), NO_ID);
        (!joules.is_nan()).then_some(joules)
    }

    /// Starts transferring the data of `task` to the memory node of the workers below; no effect if they have several.
    #[inline]
    pub fn prefetch(&self, task: &Task) {
        let place = self.place();
        if self.has_transfers() && place.memory_node != NO_ID {
            self.raw.host().prefetch(self.raw.call(), place.memory_node, task.raw());
        }
    }

    /// Starts transferring the data of `task` to a memory node.
    #[inline]
    pub fn prefetch_to(&self, memory_node: MemoryNode, task: &Task) {
        if self.has_transfers() {
            self.raw.host().prefetch(self.raw.call(), memory_node.0, task.raw());
        }
    }
}
