//! Services of a back end that a tree needs.

use super::observer::TreeObserver;
use sched_core::abi::TaskHead;
use sched_core::{Arch, ArchSet, Estimate, LogLevel, MemoryNode, Route, SharedSet, Time, WorkerId};
use std::sync::Arc;
use std::time::Duration;

/// The back end of a tree: threads and a wall clock, or an event queue and a virtual clock. None of the methods calls a
/// component.
pub trait Services: Send + Sync {
    /// Current time of the run.
    fn now(&self) -> Time;

    /// Set of sleeping workers. A tree asks for it once, and reads it whenever there is work.
    fn sleeping(&self) -> Arc<SharedSet>;

    /// Wakes `worker`. Returns whether it slept.
    fn wake(&self, worker: WorkerId) -> bool;

    /// Members of each combined worker, at least two simple workers. Combined workers are numbered after the simple
    /// ones. Constant.
    fn combined(&self) -> &[Box<[WorkerId]>] {
        &[]
    }

    /// Expected time when a simple worker is done with its current task; in the past if that has no expected length.
    /// `None` if expected ends are not kept, when leaves estimate them, and for a worker that does not exist.
    fn busy_until(&self, worker: WorkerId) -> Option<Time> {
        let _ = worker;
        None
    }

    /// [`busy_until`](Self::busy_until) of many workers, in nanoseconds. Returns false if expected ends are not kept.
    fn busy_until_each(&self, workers: &[WorkerId], ends: &mut [u64]) -> bool {
        workers.iter().zip(ends).all(|(worker, end)| {
            let busy = self.busy_until(*worker);
            *end = busy.map_or(0, Time::as_nanos);
            busy.is_some()
        })
    }

    /// Distance between two workers on the machine, as defined by
    /// [`Node::worker_distance`](sched_core::Node::worker_distance); `None` if unknown.
    fn worker_distance(&self, _one: WorkerId, _other: WorkerId) -> Option<u32> {
        None
    }

    /// The route of transfers between two memory nodes, which may not exist; `None` if unknown. Constant.
    fn route(&self, _from: MemoryNode, _to: MemoryNode) -> Option<Route> {
        None
    }

    /// Bytes that a memory node, which may not exist, has for data; `None` if that is not limited or not known.
    /// Constant.
    fn memory_capacity(&self, _memory_node: MemoryNode) -> Option<u64> {
        None
    }

    /// Number of implementations of a task's codelet for an architecture.
    fn implementations(&self, arch: Arch, task: &TaskHead) -> u32 {
        u32::from(ArchSet::from_bits(task.all_archs()).contains(arch))
    }

    /// Expected duration of a task on `worker`, with one implementation or the best one.
    fn expected_length(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Estimate {
        let _ = (worker, task, implementation);
        Estimate::NoModel
    }

    /// Class of workers for which every task has the same expected length and energy: one of them is asked for all. By
    /// default each worker has its own class. Constant.
    fn speed_class(&self, worker: WorkerId) -> u32 {
        worker.0
    }

    /// Expected time to transfer a task's data to a memory node.
    fn expected_transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        let _ = (memory_node, task);
        Duration::ZERO
    }

    /// Expected energy in joules, if a model knows it.
    fn expected_energy(&self, worker: WorkerId, task: &TaskHead, implementation: Option<u32>) -> Option<f64> {
        let _ = (worker, task, implementation);
        None
    }

    /// Expected costs of a task on workers of different kinds: what [`expected_length`](Self::expected_length),
    /// [`expected_transfer`](Self::expected_transfer) and, if requested, [`expected_energy`](Self::expected_energy) say
    /// of each. Returns false if these are to be called; a back end that answers them at once implements this.
    fn expected_costs(&self, task: &TaskHead, at: &[CostPlace], with_energy: bool, costs: &mut [ExpectedCost]) -> bool {
        let _ = (task, at, with_energy, costs);
        false
    }

    /// Whether data is ever transferred. If not, [`prefetch`](Self::prefetch) is not called.
    fn transfers(&self) -> bool {
        false
    }

    /// Starts to fetch a task's data to a memory node.
    fn prefetch(&self, memory_node: MemoryNode, task: &TaskHead) {
        let _ = (memory_node, task);
    }

    /// Called when a tree has components that hear of the execution of tasks: from now on the back end calls
    /// [`Tree::note_execution`](super::Tree::note_execution).
    fn report_executions(&self) {}

    /// Observer of tasks in a tree, if any. Asked once for each tree.
    fn tree_observer(&self) -> Option<Arc<dyn TreeObserver>> {
        None
    }

    /// Logs a line of a component: by default as an event of `tracing`, with the target [`LogLine::TARGET`].
    fn log(&self, line: &LogLine<'_>) {
        line.emit();
    }
}

/// Where a task may run: a worker, and the memory node that it uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostPlace {
    /// A simple worker or a combined one.
    pub worker: WorkerId,
    /// Its memory node, or that of its first member.
    pub memory_node: MemoryNode,
}

/// Expected costs of a task at one place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExpectedCost {
    /// Length in nanoseconds; [`u64::MAX`] if no model knows it.
    pub length: u64,
    /// Length of its transfers in nanoseconds.
    pub transfer: u64,
    /// Energy in joules; NaN if no model knows it, or it was not requested.
    pub energy: f64,
}

impl ExpectedCost {
    /// Nothing is known, and nothing is transferred.
    pub const UNKNOWN: ExpectedCost = ExpectedCost { length: u64::MAX, transfer: 0, energy: f64::NAN };
}

/// A line that a component wrote to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogLine<'a> {
    /// The node, by its path in the tree.
    pub node: &'a str,
    /// The component in it.
    pub component: &'a str,
    /// The plugin it came from.
    pub plugin: &'a str,
    /// Severity.
    pub level: LogLevel,
    /// The line.
    pub text: &'a str,
}

impl LogLine<'_> {
    /// Target of the events of components; they have fields `node`, `component` and `plugin`.
    pub const TARGET: &'static str = "sched::component";

    fn emit(&self) {
        let LogLine { node, component, plugin, level, text } = self;
        match level {
            LogLevel::Error => tracing::error!(target: LogLine::TARGET, node, component, plugin, "{text}"),
            LogLevel::Warn => tracing::warn!(target: LogLine::TARGET, node, component, plugin, "{text}"),
            LogLevel::Info => tracing::info!(target: LogLine::TARGET, node, component, plugin, "{text}"),
            LogLevel::Debug => tracing::debug!(target: LogLine::TARGET, node, component, plugin, "{text}"),
        }
    }
}
