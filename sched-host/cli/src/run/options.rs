//! The options that every workload has.

use crate::contexts::ContextOptions;
use crate::energy::CounterOptions;
use crate::format::FormatOptions;
use crate::hints::POLICY;
use crate::machine::WorkerOption;
use crate::pictures::{MOST_EVENTS, Pictures};
use crate::policy::PolicyOptions;
use crate::start::start_all;
use crate::values::{SeedOption, positive, seconds};
use sched_machine::energy::{EnergyError, EnergyMeter};
use sched_machine::topology::Topology;
use sched_model::{Fingerprint, ModelError, Models, Store, default_directory};
use sched_runtime::{Runtime, StartError};
use sched_tree::plugin::Registry;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// With which policies and workers, how often, and how to say it.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Options {
    #[command(flatten)]
    policies: PolicyOptions,

    #[command(flatten)]
    pub(super) contexts: ContextOptions,

    /// Swap to this policy when half of the tasks have ended, in each context
    #[arg(long, value_name = "POLICY", value_parser = POLICY, hide_possible_values = true)]
    pub(super) swap_to: Option<String>,

    /// Runs of each policy; more than one make a table too [default: 1, or 5 where policies are compared]
    #[arg(long, short, value_name = "N", value_parser = positive, conflicts_with_all = ["contexts", "swap_to"])]
    repeat: Option<usize>,

    #[command(flatten)]
    workers: WorkerOption,

    /// Number of memory nodes, as if the machine had them: workers are dealt out among them, tiles are copied between them,
    /// and policies go by where they are [default: one for each NUMA node that has workers]
    #[arg(long, value_name = "N", value_parser = positive)]
    memory_nodes: Option<usize>,

    #[command(flatten)]
    seed: SeedOption,

    /// Leave it to the system on which hardware thread each worker runs
    #[arg(long)]
    no_bind: bool,

    /// Give up as stalled when nothing has moved for this time, and report where every task sits
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    quiet_period: Duration,

    /// Store what is measured of the tasks' durations, for later runs to go by; see `sched model`
    ///
    /// Schedulers that decide by expected durations always go by what is stored, and what the run itself measures.
    #[arg(long)]
    pub(super) calibrate: bool,

    /// Directory of the performance models [default: $SCHED_MODEL_DIR, or sched/models in the user's data directory]
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,

    /// Say how many joules the processors take while the tasks run, by the counters that `sched model energy` lists: all that
    /// their packages take, idle power and other programs included
    #[arg(long, conflicts_with_all = ["contexts", "swap_to"])]
    energy: bool,

    #[command(flatten)]
    counters: CounterOptions,

    #[command(flatten)]
    pub(super) pictures: Pictures,

    #[command(flatten)]
    pub(super) format: FormatOptions,
}

impl Options {
    /// The policies, at least one.
    pub(super) fn policies(&self) -> miette::Result<Vec<String>> {
        self.policies.several()
    }

    /// Seed of the matrix, and of whatever components leave to chance.
    pub(super) fn seed(&self) -> u64 {
        self.seed.seed
    }

    /// How many workers there will be.
    pub(super) fn worker_count(&self, topology: &Topology) -> usize {
        self.workers.count(topology)
    }

    /// Runs of each of `policies` policies.
    pub(super) fn rounds(&self, policies: usize) -> usize {
        self.repeat.unwrap_or(if policies > 1 { 5 } else { 1 })
    }

    /// Whether contexts are to be seen at work.
    pub(super) fn has_contexts(&self) -> bool {
        !self.contexts.contexts.is_empty() || self.swap_to.is_some()
    }

    /// What reads the energy counters, if they are asked for.
    ///
    /// # Errors
    /// When there are none, or this user may not read them.
    pub(super) fn meter(&self) -> Result<Option<EnergyMeter>, EnergyError> {
        self.energy.then(|| self.counters.open()).transpose()
    }

    /// Where performance models are stored.
    ///
    /// # Errors
    /// When neither the command line nor the environment says so.
    pub(super) fn model_directory(&self) -> Result<PathBuf, ModelError> {
        self.models.clone().map_or_else(|| default_directory(|name| std::env::var(name).ok()), Ok)
    }

    /// The performance models that a run goes by: each begins with what is stored.
    fn models(&self, topology: &Topology) -> Models {
        let Ok(directory) = self.model_directory() else { return Models::in_memory() };
        let models = Models::with_store(Store::new(directory, Fingerprint::of_this_machine(topology)));
        if self.calibrate { models } else { models.read_only() }
    }

    /// Starts a runtime.
    pub(super) fn start(
        &self,
        registry: &Arc<Registry>,
        topology: &Topology,
        policy: &str,
    ) -> Result<Runtime, StartError> {
        let mut builder = Runtime::builder()
            .registry(Arc::clone(registry))
            .policy(policy)
            .workers(self.worker_count(topology))
            .topology(topology.clone())
            .bind(!self.no_bind)
            .seed(self.seed())
            .quiet_period(self.quiet_period)
            .models(Arc::new(self.models(topology)));
        if let Some(nodes) = self.memory_nodes {
            builder = builder.memory_nodes(nodes);
        }
        if self.pictures.wanted() { builder.trace(MOST_EVENTS).build() } else { builder.build() }
    }

    /// Starts a runtime with each policy, before anything runs, and gives back what did not go as planned.
    ///
    /// # Errors
    /// All policies with which none starts.
    pub(super) fn try_all(
        &self,
        policies: &[String],
        registry: &Arc<Registry>,
        topology: &Topology,
    ) -> miette::Result<Vec<String>> {
        start_all(policies, |policy| self.start(registry, topology, policy))
    }
}
