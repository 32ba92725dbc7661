//! What a tree needs of the back end that drives it.

use super::observer::TreeObserver;
use sched_core::abi::TaskHead;
use sched_core::{Arch, ArchSet, Estimate, LogLevel, MemoryNode, SharedSet, Time, WorkerId};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The back end of a tree: threads and a wall clock, or an event queue and a virtual one. None of its methods calls a
/// component.
pub trait Services: Send + Sync {
    /// The time of the run.
    fn now(&self) -> Time;

    /// Which workers sleep. A tree asks for the set once, and then looks at it whenever there is work.
    fn sleeping(&self) -> Arc<SharedSet>;

    /// Wakes `worker`. Whether it slept.
    fn wake(&self, worker: WorkerId) -> bool;

    /// The members of each combined worker, two simple workers at least. Combined workers are numbered on from the simple
    /// ones. It does not change.
    fn combined(&self) -> &[Box<[WorkerId]>] {
        &[]
    }

    /// When a simple worker should be done with what it executes now, past when that is nothing of an expected length;
    /// `None` when no such books are kept: leaves then guess.
    fn busy_until(&self, worker: WorkerId) -> Option<Time> {
        let _ = worker;
        None
    }

    /// How far apart two workers are on the machine, as
    /// [`Node::worker_distance`](sched_core::Node::worker_distance) says it; `None` for what is not known.
    fn worker_distance(&self, _one: WorkerId, _other: WorkerId) -> Option<u32> {
        None
    }

    /// Number of implementations for an architecture of a task's codelet.
    fn implementations(&self, arch: Arch, task: &TaskHead) -> u32 {
        u32::from(ArchSet::from_bits(task.archs.load(Relaxed)).contains(arch))
    }

    /// Expected duration of a task on `worker`, with one implementation or the best one.
    fn expected_length(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Estimate {
        let _ = (worker, task, implementation);
        Estimate::NoModel
    }

    /// A number that workers share for which every task is expected to take equally long, and to cost as much energy: one
    /// of them is asked for all. Unless a back end says otherwise, none are alike. It does not change.
    fn speed_class(&self, worker: WorkerId) -> u32 {
        worker.0
    }

    /// Expected duration of bringing a task's data to a memory node.
    fn expected_transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        let _ = (memory_node, task);
        Duration::ZERO
    }

    /// Expected energy in joules, where a model knows.
    fn expected_energy(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Option<f64> {
        let _ = (worker, task, implementation);
        None
    }

    /// Whether data is ever transferred. If not, [`prefetch`](Self::prefetch) is not called.
    fn transfers(&self) -> bool {
        false
    }

    /// Begins to bring a task's data to a memory node.
    fn prefetch(&self, memory_node: MemoryNode, task: &TaskHead) {
        let _ = (memory_node, task);
    }

    /// The observer of where tasks are in a tree, if there is one. Asked once for each tree.
    fn tree_observer(&self) -> Option<Arc<dyn TreeObserver>> {
        None
    }

    /// Notes a component's words.
    fn log(&self, node: &str, level: LogLevel, line: &str) {
        match level {
            LogLevel::Error => tracing::error!(node, "{line}"),
            LogLevel::Warn => tracing::warn!(node, "{line}"),
            LogLevel::Info => tracing::info!(node, "{line}"),
            LogLevel::Debug => tracing::debug!(node, "{line}"),
        }
    }
}
