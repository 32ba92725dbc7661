//! The options that every workload has.

use crate::cli::values::{positive, seconds};
use crate::plugin::Registry;
use crate::runtime::{Runtime, StartError};
use crate::topology::{BindingPlan, Topology};
use std::sync::Arc;
use std::time::Duration;

/// With which policy and workers, and how to say it.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Options {
    /// The policy: a name that `sched policies` lists, or the path of a KDL file
    #[arg(long, short, value_name = "POLICY", default_value = "tree-eager", env = "SCHED_POLICY")]
    pub(super) policy: String,

    /// Number of workers [default: one for each hardware thread that may be used]
    #[arg(long, short, value_name = "N", value_parser = positive)]
    pub(super) workers: Option<usize>,

    /// Seed of generated data, and of whatever components leave to chance
    #[arg(long, value_name = "SEED", default_value_t = 42)]
    pub(super) seed: u64,

    /// Leave it to the system on which hardware thread each worker runs
    #[arg(long)]
    pub(super) no_bind: bool,

    /// Give up as stalled when nothing has moved for so long, and report where every task sits
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(super) quiet_period: Duration,

    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Options {
    /// How many workers there will be.
    pub(super) fn worker_count(&self, topology: &Topology) -> usize {
        self.workers.unwrap_or_else(|| BindingPlan::default_workers(topology))
    }

    pub(super) fn start(&self, registry: Arc<Registry>, topology: Topology) -> Result<Runtime, StartError> {
        Runtime::builder()
            .registry(registry)
            .policy(&self.policy)
            .workers(self.worker_count(&topology))
            .topology(topology)
            .bind(!self.no_bind)
            .seed(self.seed)
            .quiet_period(self.quiet_period)
            .build()
    }
}
