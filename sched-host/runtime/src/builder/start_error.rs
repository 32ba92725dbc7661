//! Why a runtime did not start.

use crate::device::choice::DeviceError;
use sched_machine::topology::{BindingError, TopologyError};
use sched_text::Findings;
use sched_tree::plugin::RegistryError;

/// Maximum number of workers. With a few thousand more threads, the system runs out of memory mappings and kills a
/// process in which one of them panics.
pub(super) const MOST_WORKERS: usize = 8192;

/// Why a runtime did not start. No worker runs in that case.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum StartError {
    /// The policy was not found, is wrong, or does not fit the machine.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Policy(#[from] Findings),
    /// The requested components were not found.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Components(#[from] RegistryError),
    /// The machine could not be explored.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Topology(#[from] TopologyError),
    /// There is no processing unit to run on.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Binding(#[from] BindingError),
    /// The devices that were asked for cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Devices(#[from] DeviceError),
    /// There are more memory nodes than data can have replicas on.
    #[error("with the devices there are {found} memory nodes, expected at most {most}")]
    #[diagnostic(code(sched::start::memory_nodes), help("choose fewer devices"))]
    MemoryNodes {
        /// Number of memory nodes.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// The range of priorities is empty.
    #[error("priorities range from {min} to {max}, which is nothing")]
    #[diagnostic(code(sched::start::priorities), help("give the lower bound first"))]
    Priorities {
        /// The lower bound.
        min: i32,
        /// The upper bound.
        max: i32,
    },
    /// The quiet period is 0.
    #[error("the quiet period is 0, after which every run would be reported as stalled")]
    #[diagnostic(
        code(sched::start::quiet_period),
        help("give the time without progress after which a run has stalled; `Duration::MAX` means never")
    )]
    QuietPeriod,
    /// More workers were requested than any machine has hardware threads.
    #[error("{asked} workers were asked for, expected at most {MOST_WORKERS}")]
    #[diagnostic(
        code(sched::start::workers),
        help("more workers than hardware threads gain nothing; a simulation has machines of any size")
    )]
    TooManyWorkers {
        /// Number of workers requested.
        asked: usize,
    },
    /// The system refused to start a thread.
    #[error("a worker's thread could not be started: {0}")]
    #[diagnostic(help("ask for fewer workers, or raise the limit of threads"))]
    Thread(#[source] std::io::Error),
}

sched_text::debug_as_text!(StartError);
