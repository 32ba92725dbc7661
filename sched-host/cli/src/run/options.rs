//! Options of every workload.

use super::problem::graph_of;
use crate::contexts::ContextOptions;
use crate::devices::DeviceOptions;
use crate::energy::CounterOptions;
use crate::format::FormatOptions;
use crate::hints::POLICY;
use crate::machine::{MainWorkerOption, WorkerOption};
use crate::makespan::MAKESPAN;
use crate::pictures::{MOST_EVENTS, Pictures};
use crate::policy::PolicyOptions;
use crate::ranks::Ranks;
use crate::start::start_all;
use crate::streams::{Sink, Target};
use crate::task_options::TaskOptions;
use crate::values::{SeedOption, positive, seconds, up_to};
use crate::variables::variable;
use miette::miette;
use sched_graph::TaskGraph;
use sched_machine::energy::{EnergyError, EnergyMeter};
use sched_machine::topology::Topology;
use sched_model::{Fingerprint, ModelError, Models, Store, default_directory};
use sched_runtime::context::SchedContext;
use sched_runtime::{Runtime, StartError};
use sched_tree::plugin::Registry;
use sched_workloads::workload::Workload;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of ranks in this process, each with threads of its own.
const MOST_RANKS: usize = 1024;

/// What several ranks cannot have.
const ALONE: [&str; 7] = ["repeat", "warm_up", "watch_plugins", "main_worker", "memory_nodes", "calibrate", "energy"];

/// Policies, workers, repetitions and output.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Options {
    #[command(flatten)]
    policies: PolicyOptions,

    #[command(flatten)]
    pub(super) contexts: ContextOptions,

    /// Swap to this policy when half of the tasks have ended, in each context, or on each of several ranks
    #[arg(long, value_name = "POLICY", value_parser = POLICY, hide_possible_values = true)]
    pub(super) swap_to: Option<String>,

    /// Number of runs with each policy; several produce a table [default: 1, or 5 where policies are compared]
    #[arg(long, short, value_name = "N", value_parser = positive, conflicts_with_all = ["contexts", "goals", "swap_to"])]
    repeat: Option<usize>,

    /// Number of runs with each policy before those that count: in the first run of a process, kernels of devices are
    /// compiled, and only stored models say how long tasks take; later runs with a policy know what its earlier ones
    /// measured
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["contexts", "goals", "swap_to"])]
    pub(super) warm_up: usize,

    /// Take plugins into use that are rebuilt, added or removed while the tasks run: each context gets a new tree of
    /// its policy
    #[arg(long)]
    pub(super) watch_plugins: bool,

    #[command(flatten)]
    workers: WorkerOption,

    #[command(flatten)]
    main: MainWorkerOption,

    /// Number of ranks, each with a runtime and workers of its own, that share the matrix and exchange tiles: threads
    /// of this process. Under `mpirun` each process is a rank, in a program that was built with MPI (--features mpi)
    #[arg(long, value_name = "N", value_parser = up_to(MOST_RANKS), conflicts_with_all = ALONE)]
    ranks: Option<usize>,

    #[command(flatten)]
    devices: DeviceOptions,

    /// Number of emulated memory nodes: workers are distributed among them, tiles are copied between them, and policies
    /// take the placement into account [default: one for each NUMA node that has workers]
    #[arg(long, value_name = "N", value_parser = positive)]
    memory_nodes: Option<usize>,

    #[command(flatten)]
    tasks: TaskOptions,

    #[command(flatten)]
    seed: SeedOption,

    /// Do not bind workers to hardware threads
    #[arg(long)]
    no_bind: bool,

    /// Time without progress after which the run is aborted as stalled, in seconds; the error lists where every task is
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    quiet_period: Duration,

    /// Store the measured durations of tasks in the performance models, for later runs; see `sched model`
    ///
    /// Schedulers that decide by expected durations use the stored models, and what runs with their policy measured
    /// before. With this option, they use what all runs measured.
    #[arg(long)]
    pub(super) calibrate: bool,

    /// Directory of the performance models [default: $SCHED_MODEL_DIR, or sched/models in the user's data directory]
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,

    /// Report the energy of the processor packages while tasks run, in joules, from the counters that `sched model
    /// energy` lists; idle power and other programs are included
    #[arg(long, conflicts_with_all = ["contexts", "goals", "swap_to"])]
    energy: bool,

    #[command(flatten)]
    counters: CounterOptions,

    /// Write the graph of the run, with the measured length of each task, for `sched simulate`, `compare` and `graph`;
    /// `-` is the standard output
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["contexts", "swap_to"])]
    record: Option<Target>,

    /// Explain the makespan of one run by the chain of tasks that ends last: what each of them waited for, and how much
    /// of the time is work that was needed, work that was in the way, or waiting for data
    #[arg(long, value_name = "makespan", value_parser = [MAKESPAN], conflicts_with_all = ["contexts", "swap_to"])]
    explain: Option<String>,

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

    /// Seed of the matrix, and of random choices in components.
    pub(super) fn seed(&self) -> u64 {
        self.seed.seed
    }

    /// Number of workers.
    pub(super) fn worker_count(&self, topology: &Topology) -> usize {
        self.workers.count(topology)
    }

    /// Where the ranks are, if there are several.
    ///
    /// # Errors
    /// If this is a process of `mpirun`, and the program knows no MPI.
    pub(super) fn ranks(&self) -> miette::Result<Option<Ranks>> {
        Ranks::of(self.ranks, variable)
    }

    /// Refuses options for devices where there are none.
    pub(super) fn check_devices(&self) -> miette::Result<()> {
        self.devices.check()
    }

    /// Refuses what several ranks cannot have. The command line does so for `--ranks`, and knows nothing of `mpirun`.
    pub(super) fn check_for_ranks(&self) -> miette::Result<()> {
        let asked = [
            (self.repeat.is_some(), "--repeat"),
            (self.warm_up > 0, "--warm-up"),
            (self.watch_plugins, "--watch-plugins"),
            (self.main.main_worker, "--main-worker"),
            (self.memory_nodes.is_some(), "--memory-nodes"),
            (self.calibrate, "--calibrate"),
            (self.energy, "--energy"),
            (self.explains(), "--explain"),
        ];
        match asked.iter().find(|(is_asked, _)| *is_asked) {
            None => Ok(()),
            Some((_, option)) => Err(miette!(
                help = "start it without `mpirun`, or leave the option out",
                "{option} is for a run on one rank, and this is one of several processes of `mpirun`"
            )),
        }
    }

    /// Whether the makespan is explained.
    pub(super) fn explains(&self) -> bool {
        self.explain.is_some()
    }

    /// Checks that what is to be explained can be.
    ///
    /// # Errors
    /// If it is the makespan of more than one run.
    pub(super) fn check_explained(&self, runs: usize) -> miette::Result<()> {
        match self.explains() && runs > 1 {
            true => Err(miette!(
                help = "give one policy and one run, or explain several simulations with `sched simulate`",
                "--explain is for one run, and there would be {runs}"
            )),
            false => Ok(()),
        }
    }

    /// The options of a run on one rank, whose devices are counted.
    ///
    /// # Errors
    /// If a device is named that does not exist.
    pub(super) fn of_one_rank(self, registry: &Registry, topology: &Topology) -> miette::Result<Options> {
        let devices = self.devices.count(registry)?;
        Ok(Options { workers: self.workers.beside(devices, topology), ..self })
    }

    /// The options of each of several ranks on this machine.
    pub(super) fn of_rank(&self, topology: &Topology, ranks_here: usize) -> Options {
        let workers = self.workers.shared_by(ranks_here, topology);
        // Ranks would bind their workers to the same hardware threads.
        Options { workers, no_bind: true, ..self.clone() }
    }

    /// Runs of each of `policies` policies.
    pub(super) fn rounds(&self, policies: usize) -> usize {
        self.repeat.unwrap_or(if policies > 1 { 5 } else { 1 })
    }

    /// Whether the report shows contexts.
    pub(super) fn has_contexts(&self) -> bool {
        !self.contexts.contexts.is_empty() || self.contexts.goals.is_some() || self.swap_to.is_some()
    }

    /// Creates the file for the graph of one of `runs` runs, if that is asked for.
    ///
    /// # Errors
    /// If it cannot be written, or there is more than one run.
    pub(super) fn open_record(&self, runs: usize) -> miette::Result<Option<Sink>> {
        if self.record.is_some() && runs > 1 {
            return Err(miette!(
                help = "give one policy and one run: `sched compare` shows the others on the recorded graph",
                "--record writes the graph of one run, and there would be {runs}"
            ));
        }
        self.record.as_ref().map(Target::create).transpose()
    }

    /// Whether the graph of the run is recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// The reader of energy counters, if requested.
    ///
    /// # Errors
    /// If there are none, or this user may not read them.
    pub(super) fn meter(&self) -> Result<Option<EnergyMeter>, EnergyError> {
        self.energy.then(|| self.counters.open()).transpose()
    }

    /// The stored performance models of this machine.
    ///
    /// # Errors
    /// If neither the command line nor the environment names a directory.
    pub(super) fn store(&self, topology: &Topology) -> Result<Store, ModelError> {
        let directory = match &self.models {
            Some(directory) => directory.clone(),
            None => default_directory(variable)?,
        };
        Ok(Store::new(directory, Fingerprint::of_this_machine(topology)))
    }

    /// The performance models of the runs with each of `policies` policies, loaded from the store. What one run
    /// measures the next with that policy knows; the others do not, unless it is stored, so that no policy learns by
    /// runs of others.
    pub(super) fn models(&self, topology: &Topology, policies: usize) -> Vec<Arc<Models>> {
        let loaded = || match self.store(topology) {
            Err(_) => Models::in_memory(),
            Ok(store) if self.calibrate => Models::with_store(store),
            Ok(store) => Models::with_store(store).read_only(),
        };
        let mut models: Vec<Arc<Models>> = Vec::with_capacity(policies);
        for _ in 0..policies {
            let shared = models.first().filter(|_| self.calibrate).map(Arc::clone);
            models.push(shared.unwrap_or_else(|| Arc::new(loaded())));
        }
        models
    }

    /// Starts a runtime.
    pub(super) fn start(
        &self,
        registry: &Arc<Registry>,
        topology: &Topology,
        policy: &str,
        models: &Arc<Models>,
    ) -> Result<Runtime, StartError> {
        let mut builder = Runtime::builder()
            .registry(Arc::clone(registry))
            .policy(policy)
            .workers(self.worker_count(topology))
            .topology(topology.clone())
            .bind(!self.no_bind)
            .seed(self.seed())
            .quiet_period(self.quiet_period)
            .devices(self.devices.choice())
            .models(Arc::clone(models));
        builder = self.tasks.set(builder);
        if let Some(nodes) = self.memory_nodes {
            builder = builder.memory_nodes(nodes);
        }
        if self.main.main_worker {
            builder = builder.main_worker();
        }
        if self.record.is_some() {
            builder = builder.capture_graph();
        }
        if self.pictures.wanted() || self.explains() { builder.trace(MOST_EVENTS).build() } else { builder.build() }
    }

    /// The options for the tasks of `graph`.
    ///
    /// # Errors
    /// If tasks of a kind are set that the graph has not.
    pub(super) fn for_tasks_of(&self, graph: Option<&TaskGraph>) -> miette::Result<Options> {
        let mut options = self.clone();
        if let Some(graph) = graph {
            options.tasks = self.tasks.for_kinds_of(graph)?;
        }
        Ok(options)
    }

    /// Checks that the contexts have workers for all tasks of `W`, unless a hypervisor moves workers.
    ///
    /// # Errors
    /// All contexts and kinds of tasks without one.
    pub(super) fn check_contexts<W: Workload>(&self, contexts: &[SchedContext]) -> miette::Result<()> {
        match graph_of(W::NAME, 3, 1) {
            Some(graph) if self.contexts.goals()?.is_none() => {
                self.tasks.check_contexts(contexts, &graph, W::ON_DEVICES)
            }
            _ => Ok(()),
        }
    }

    /// Starts a runtime with each policy before anything runs, and returns the warnings.
    ///
    /// # Errors
    /// All policies that no runtime can start with.
    pub(super) fn try_all(
        &self,
        policies: &[String],
        registry: &Arc<Registry>,
        topology: &Topology,
    ) -> miette::Result<Vec<String>> {
        let models = self.models(topology, 1).swap_remove(0);
        start_all(policies, |policy| self.start(registry, topology, policy, &models))
    }
}
