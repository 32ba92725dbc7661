//! What a simulation found.

use sched_tree::Fault;
use std::time::Duration;

/// What a simulation found. Times are virtual.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// From the first submission to the end of the last task.
    pub makespan: Duration,
    /// Number of tasks.
    pub tasks: usize,
    /// Floating-point operations of all tasks, as far as the graph says.
    pub flops: f64,
    /// The longest chain of tasks that wait for each other, each executed where it is fastest, without transfers: no
    /// schedule can be shorter.
    pub critical_path: Duration,
    /// Joules that the workers took, those that had nothing to do included; `None` where the platform does not say what all
    /// that executed a task draw.
    pub energy: Option<f64>,
    /// What each worker did.
    pub workers: Vec<WorkerStats>,
    /// What each link carried.
    pub links: Vec<LinkStats>,
    /// How full each memory was.
    pub memories: Vec<MemoryStats>,
    /// Number of transfers.
    pub transfers: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Steps of the simulation.
    pub events: u64,
    /// How each context did, the default one first.
    pub contexts: Vec<ContextStats>,
    /// What components did wrong.
    pub faults: Vec<Fault>,
}

impl Outcome {
    /// Floating-point operations in a nanosecond, if the graph says how many there are.
    #[must_use]
    pub fn gflops(&self) -> Option<f64> {
        (self.flops > 0.0 && !self.makespan.is_zero()).then(|| self.flops / self.makespan.as_nanos() as f64)
    }
}

/// How one scheduling context did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContextStats {
    /// Its name.
    pub name: String,
    /// Its policy at the beginning.
    pub policy: String,
    /// The policies that took its place.
    pub swaps: Vec<Swapped>,
    /// Its workers at the end.
    pub workers: Vec<u32>,
    /// Number of tasks.
    pub tasks: u64,
    /// From the submission of its first task to the end of its last.
    pub makespan: Duration,
}

/// A policy took the place of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swapped {
    /// The new one.
    pub policy: String,
    /// When.
    pub at: Duration,
    /// How many tasks of the context had ended.
    pub after_tasks: u64,
}

/// What one worker did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerStats {
    /// Its number.
    pub id: u32,
    /// Its class.
    pub class: String,
    /// Tasks that it executed, alone or as the first member of a team.
    pub tasks: u64,
    /// Time in kernels, alone or with a team.
    pub busy: Duration,
    /// The rest of the makespan.
    pub idle: Duration,
}

/// What one link carried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkStats {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// How full one memory was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryStats {
    /// Its name.
    pub name: String,
    /// Most bytes in use at any moment.
    pub peak: u64,
}
