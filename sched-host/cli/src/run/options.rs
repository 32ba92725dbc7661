//! The options that every workload has.

use crate::contexts::{Wanted, wanted};
use crate::energy::CounterOptions;
use crate::pictures::{MOST_EVENTS, Pictures};
use crate::start::start_all;
use crate::values::{positive, seconds};
use sched_machine::energy::{EnergyError, EnergyMeter};
use sched_machine::topology::{BindingPlan, Topology};
use sched_model::{Fingerprint, ModelError, Models, Store, default_directory};
use sched_runtime::{Runtime, StartError};
use sched_tree::plugin::Registry;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// With which policies and workers, how often, and how to say it.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Options {
    /// The policy: a name that `sched policies` lists, or the path of a KDL file. Given several times, the policies are
    /// compared in one table: on the same matrix, in turn, each run with a runtime of its own
    #[arg(long = "policy", short, value_name = "POLICY", default_value = "tree-eager", env = "SCHED_POLICY")]
    pub(super) policies: Vec<String>,

    /// Run once in each of these contexts at the same time: workers=0-1+3 are those that it has, which it may share with other
    /// contexts (all, if it is left out); priorities=0..9 are those that its tasks may have
    #[arg(long = "context", short, value_name = "NAME:policy=POLICY,workers=…", value_parser = wanted)]
    #[arg(conflicts_with = "repeat")]
    pub(super) contexts: Vec<Wanted>,

    /// Swap to this policy when half of the tasks have ended, in each context
    #[arg(long, value_name = "POLICY", conflicts_with = "repeat")]
    pub(super) swap_to: Option<String>,

    /// Runs of each policy; more than one make a table too [default: 1, or 5 where policies are compared]
    #[arg(long, short, value_name = "N", value_parser = positive)]
    repeat: Option<usize>,

    /// Number of workers [default: one for each hardware thread that may be used]
    #[arg(long, short, value_name = "N", value_parser = positive)]
    workers: Option<usize>,

    /// As if the machine had so many memory nodes, among which workers are dealt out: tiles are copied between them, and
    /// policies go by where they are [default: one for each NUMA node that has workers]
    #[arg(long, value_name = "N", value_parser = positive)]
    memory_nodes: Option<usize>,

    /// Seed of generated data, and of whatever components leave to chance
    #[arg(long, value_name = "SEED", default_value_t = 42)]
    pub(super) seed: u64,

    /// Leave it to the system on which hardware thread each worker runs
    #[arg(long)]
    no_bind: bool,

    /// Give up as stalled when nothing has moved for so long, and report where every task sits
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

    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Options {
    /// How many workers there will be.
    pub(super) fn worker_count(&self, topology: &Topology) -> usize {
        self.workers.unwrap_or_else(|| BindingPlan::default_workers(topology))
    }

    /// Runs of each policy.
    pub(super) fn rounds(&self) -> usize {
        self.repeat.unwrap_or(if self.policies.len() > 1 { 5 } else { 1 })
    }

    /// Whether contexts are to be seen at work.
    pub(super) fn has_contexts(&self) -> bool {
        !self.contexts.is_empty() || self.swap_to.is_some()
    }

    /// Runs of all policies together.
    pub(super) fn runs(&self) -> usize {
        self.rounds().saturating_mul(self.policies.len())
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
            .seed(self.seed)
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
    pub(super) fn try_all(&self, registry: &Arc<Registry>, topology: &Topology) -> miette::Result<Vec<String>> {
        start_all(&self.policies, |policy| self.start(registry, topology, policy))
    }
}
