//! Results of simulations.

use sched_core::WorkerId;
use sched_tree::Fault;
use sched_tree::hypervisor::Governance;
use std::time::Duration;

/// Result of a simulation. Times are virtual.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SimOutcome {
    /// Time from the first submission to the end of the last task.
    pub makespan: Duration,
    /// Number of tasks.
    pub tasks: usize,
    /// Floating-point operations of all tasks, as far as the graph gives them.
    pub flops: f64,
    /// Length of the critical path without transfers, with each task where it is fastest: a lower bound of the
    /// makespan.
    pub critical_path: Duration,
    /// Energy of all workers in joules, also while they are idle; `None` if the platform does not give the power of
    /// each worker that executed a task.
    pub energy: Option<f64>,
    /// Statistics of each worker.
    pub workers: Vec<WorkerStats>,
    /// Statistics of each link.
    pub links: Vec<LinkStats>,
    /// Statistics of each memory node.
    pub memories: Vec<MemoryStats>,
    /// Number of transfers.
    pub transfers: u64,
    /// Bytes of all transfers.
    pub bytes: u64,
    /// Number of actions of the engine.
    pub events: u64,
    /// Statistics of each context, the default one first.
    pub contexts: Vec<ContextStats>,
    /// Faults of components.
    pub faults: Vec<Fault>,
    /// What the hypervisor did, if there was one.
    pub governance: Option<Governance>,
}

impl SimOutcome {
    /// Billions of floating-point operations per second, if the graph gives their number.
    #[must_use]
    pub fn gflops(&self) -> Option<f64> {
        (self.flops > 0.0 && !self.makespan.is_zero()).then(|| self.flops / self.makespan.as_nanos() as f64)
    }
}

/// Statistics of a scheduling context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContextStats {
    /// Its name.
    pub name: String,
    /// Name of its policy at the beginning.
    pub policy: String,
    /// Swaps of its policy.
    pub swaps: Vec<Swapped>,
    /// Its workers at the end.
    pub workers: Vec<WorkerId>,
    /// Number of tasks.
    pub tasks: u64,
    /// Time from the submission of its first task to the end of its last one.
    pub makespan: Duration,
}

/// A swap of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swapped {
    /// Name of the new policy.
    pub policy: String,
    /// Time of the swap.
    pub at: Duration,
    /// Number of tasks of the context that had ended.
    pub after_tasks: u64,
}

/// Statistics of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerStats {
    /// The worker.
    pub id: WorkerId,
    /// Name of its class.
    pub class: String,
    /// Number of tasks that it executed, alone or as the first member of a team.
    pub tasks: u64,
    /// Time in kernels, alone or with a team.
    pub busy: Duration,
    /// The rest of the makespan.
    pub idle: Duration,
}

/// Statistics of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkStats {
    /// Its name.
    pub name: String,
    /// Bytes that it carried.
    pub bytes: u64,
}

/// Statistics of a memory node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryStats {
    /// Its name.
    pub name: String,
    /// Maximum number of bytes in use at any time.
    pub peak: u64,
}
