//! The runtime: real tasks on real workers.

mod backend;
mod builder;
mod capture;
pub mod context;
pub(crate) mod core;
mod data;
mod device;
mod energy;
mod memory;
mod parallel;
mod recording;
mod scope;
mod task;
mod trace;
mod wait;
mod worker;

pub use builder::{Builder, StartError};
pub use data::access::{Access, AccessList, Commute, Many, Read, ReadWrite, Scratch, Write};
pub use data::array::{ArrayHandle, Element, Matrix, MatrixHandle};
pub use data::layout::{LayoutError, MatrixLayout};
pub use data::plan::{Partition, PartitionError, Plan};
pub use data::reduction::{Reduction, Redux};
pub use data::replicated::ReplicatedData;
pub use data::view::{MatrixMut, MatrixRef};
pub use data::{Handle, Scratchpad};
pub use device::DeviceStats;
pub use device::access::{DeviceAccess, DeviceAccessList, DeviceMatrix, DeviceSlice};
pub use device::choice::{DEVICES_VARIABLE, DeviceChoice, DeviceError};
pub use device::codelet::{KernelCall, RawDevice};
pub use device::kernels::KernelSource;
pub use device::links::{DeviceReport, Links, bus_with_devices, devices_left_out, explore_devices};
pub use device::needs::DeviceNeeds;
pub use energy::{MeasureError, TaskEnergy};
pub use memory::{MemoryNodeStats, TransferStats};
pub use parallel::crew::{Parts, Team};
pub use parallel::share::{Share, TeamAccess, TeamAccessList};
pub use recording::{Recorder, Recording, ReplayError};
pub use sched_graph::{AccessMode, Region, Where};
pub use scope::Scope;
pub use task::after::After;
pub use task::bound::WhenFull;
pub use task::codelet::{Codelet, CodeletBuilder, Context};
pub use task::failure::{
    ContextState, Outcome, RunError, StallReport, SubmitError, TaskFailure, WorkerDoing, WorkerState,
};
pub use task::nest::Nest;
pub use task::submit::{Submitter, TaskBuilder, TaskRef};
pub use task::verdict::Verdict;
pub use trace::TraceWriter;
pub use wait::DataError;
pub use wait::data::{Data, ReadArray, ReadData, ReadMatrix, WriteArray, WriteData, WriteMatrix};
pub use wait::future::{ReadWhenReady, TaskEnded, WriteWhenReady};
pub use wait::held::HeldGuard;
pub use wait::lease::{Lease, WriteLease};
pub use worker::stats::WorkerStats;
pub use worker::times::WorkerExpectation;

pub(crate) use self::core::{CodeletSettings, Core};

use crate::context::PolicyEnv;
use crate::device::LinkedDevices;
use sched_core::{Arch, MemoryNode, WorkerId};
use sched_machine::topology::{BindingPlan, Claim, WorkerDistances};
use sched_model::Models;
use sched_policy::Policy;
use sched_tree::attendance::Watch;
use sched_tree::{Fault, NodeState, Part, Services, WorkerFacts};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;
use task::bound::TaskBound;
use worker::Worker;

/// A running runtime: workers, and the tree that schedules for them.
///
/// Dropping it waits for all tasks, stores the performance models, and stops the workers; if one of its own tasks or
/// callbacks drops it, it ends after that. Tasks are submitted through [`Submitter`], to which it derefs; a submitter
/// that outlives the runtime accepts no more tasks ([`SubmitError::Ended`]).
pub struct Runtime {
    submitter: Submitter,
    /// Threads of the workers, and those that fetch data ahead of tasks.
    threads: Vec<JoinHandle<()>>,
    policy: String,
    bound: usize,
    warnings: Vec<String>,
    /// Announces to other runtimes which PUs this one uses.
    claim: Option<Claim>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("policy", &self.policy)
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}

impl Deref for Runtime {
    type Target = Submitter;

    fn deref(&self) -> &Submitter {
        &self.submitter
    }
}

/// Everything needed to start a runtime, prepared by the builder.
pub(crate) struct Start {
    pub(crate) parts: Vec<Part>,
    pub(crate) workers: Vec<WorkerFacts>,
    /// Members of each combined worker. Combined workers are numbered after the simple ones.
    pub(crate) combined: Vec<Box<[WorkerId]>>,
    pub(crate) distances: WorkerDistances,
    /// Name of the policy.
    pub(crate) policy: String,
    pub(crate) binding: Option<BindingPlan>,
    /// The worker that has no thread of its own.
    pub(crate) main_worker: Option<WorkerId>,
    pub(crate) claim: Option<Claim>,
    pub(crate) warnings: Vec<String>,
    pub(crate) seed: u64,
    /// The policy itself, and the environment of this and other policies.
    pub(crate) laid: Policy,
    pub(crate) policy_env: PolicyEnv,
    pub(crate) models: Option<Arc<Models>>,
    pub(crate) quiet_period: Duration,
    /// Allowed priorities of tasks of the default context.
    pub(crate) priorities: RangeInclusive<i32>,
    /// Bound on the tasks in flight.
    pub(crate) bound: Option<TaskBound>,
    /// Maximum number of events recorded per worker; `None` disables tracing.
    pub(crate) trace: Option<usize>,
    /// Whether the graph of the program is captured.
    pub(crate) captures: bool,
    /// Latency and bandwidth between memory nodes, if there are several, and the devices among them.
    pub(crate) memories: Option<LinkedDevices>,
    pub(crate) codelet_settings: BTreeMap<String, CodeletSettings>,
    /// What the application attached to the default context.
    pub(crate) user_data: Vec<u8>,
}

/// Stack size of a worker, for kernels of applications and nested calls of components.
const STACK: usize = 8 << 20;

/// Time that the end of a runtime waits for a worker stuck in a component.
const STUCK_PATIENCE: Duration = Duration::from_secs(1);

/// Name of the thread of a worker.
fn worker_name(worker: usize) -> String {
    format!("worker-{worker}")
}

impl Runtime {
    /// Starts to build a runtime with the default policy, plugins and workers.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// use sched_tree::plugin::Registry;
    /// use std::sync::Arc;
    ///
    /// // Use the components that are compiled in; without this line, plugin files come first.
    /// let builder = Runtime::builder().registry(Arc::new(Registry::compiled_in()));
    /// let runtime = builder.policy("tree-eager").workers(2).build()?;
    /// assert_eq!((runtime.policy(), runtime.workers()), ("tree-eager", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Name of the initial policy.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    pub(crate) fn start(mut start: Start) -> Result<Runtime, std::io::Error> {
        let (binding, main_worker) = (start.binding.clone(), start.main_worker);
        let (policy, warnings, claim) =
            (std::mem::take(&mut start.policy), std::mem::take(&mut start.warnings), start.claim.take());
        let core = Core::new(start);
        let submitter = Submitter { core };
        // If a thread cannot be started, the drop of `runtime` stops the workers that run.
        let mut runtime = Runtime { submitter, threads: Vec::new(), policy, bound: 0, warnings, claim };
        if let Some(worker) = main_worker {
            let mut worker = Worker::new(Arc::clone(&runtime.core), worker);
            worker.binding.clone_from(&binding);
            worker.rest();
            runtime.core.outcomes.waiters.put(worker);
        }
        let threads = runtime.workers() - usize::from(main_worker.is_some());
        let bound = runtime.spawn_workers(main_worker, binding.as_ref())?;
        runtime.spawn_fetchers(binding.as_ref())?;
        // This thread will most likely submit: where no worker of another thread is, if there is such a place.
        if let Some(plan) = &binding {
            plan.step_aside(main_worker.map(WorkerId::index));
        }
        for bound in bound.iter().take(threads) {
            match bound {
                Ok(is_bound) => runtime.bound += usize::from(is_bound),
                Err(why) => runtime.warnings.push(why),
            }
        }
        Ok(runtime)
    }

    /// Starts threads for all workers but the main one. Each reports over the channel whether it is bound, or why it
    /// could not be.
    fn spawn_workers(
        &mut self,
        main: Option<WorkerId>,
        binding: Option<&BindingPlan>,
    ) -> Result<Receiver<Result<bool, String>>, std::io::Error> {
        let (report, reports) = std::sync::mpsc::channel();
        for id in (0..self.workers()).filter(|id| main.is_none_or(|main| main.index() != *id)) {
            let (core, report) = (Arc::clone(&self.core), report.clone());
            let binding = binding.cloned();
            let numa = self.core.device_of(WorkerId(id as u32)).and_then(|device| device.info.numa_node);
            let body = move || {
                let bound = binding.map_or(Ok(false), |plan| match id < plan.workers().len() {
                    true => plan.bind_current_thread(id).map(|()| true),
                    // Devices are driven from where no core worker is, which has its PU for itself then.
                    false => plan.bind_current_thread_beside(id, numa).map(|_| false),
                });
                let _ = report.send(bound.map_err(|error| error.to_string()));
                let ends = Arc::clone(&core);
                let _end = ends.ended.at_end();
                Worker::new(core, WorkerId(id as u32)).run();
            };
            let thread = std::thread::Builder::new().name(worker_name(id)).stack_size(STACK);
            self.threads.push(thread.spawn(body)?);
        }
        Ok(reports)
    }

    /// Starts a thread for each memory node, if there are several, which fetches data ahead of tasks.
    fn spawn_fetchers(&mut self, binding: Option<&BindingPlan>) -> Result<(), std::io::Error> {
        let Some(memories) = self.submitter.core.backend.memories.clone() else { return Ok(()) };
        for MemoryNodeStats { node, .. } in memories.stats() {
            let (memories, binding, core) = (Arc::clone(&memories), binding.cloned(), Arc::clone(&self.core));
            let body = move || {
                let _end = core.ended.at_end();
                let workers = memories.workers_of(MemoryNode(node));
                let binding = binding.filter(|_| memories.device(MemoryNode(node)).is_none());
                if let Some(Err(why)) = binding.map(|plan| plan.bind_current_thread_to(&workers)) {
                    tracing::warn!(node, "the thread that fetches data is not bound: {why}");
                }
                memories.follow_hints(MemoryNode(node));
            };
            self.threads.push(std::thread::Builder::new().name(format!("fetch-{node}")).spawn(body)?);
        }
        Ok(())
    }

    /// Problems at the start that are no errors: workers that could not be bound, or that share PUs with each other or
    /// with another runtime; restrictions of this process on processors or time.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of workers, without combined workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.core.facts.len()
    }

    /// Whether a worker has this architecture.
    #[must_use]
    pub fn has_arch(&self, arch: Arch) -> bool {
        self.core.facts.iter().any(|facts| facts.arch == arch)
    }

    /// Number of workers bound to a processing unit. The [main worker](Builder::main_worker) is not bound.
    #[must_use]
    pub fn bound_workers(&self) -> usize {
        self.bound
    }

    /// Counters of each worker since the start of the runtime.
    #[must_use]
    pub fn stats(&self) -> Vec<WorkerStats> {
        let now = u64::try_from(self.core.backend.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let stats = self.core.counters.iter().enumerate().map(|(id, counters)| {
            let since = counters.idle_since.load(Relaxed);
            let ongoing = if since == 0 { 0 } else { now.saturating_sub(since - 1) };
            WorkerStats {
                id: id as u32,
                tasks: counters.executed.load(Relaxed),
                idle: Duration::from_nanos(counters.idle.load(Relaxed) + ongoing),
                sleeps: counters.sleeps.load(Relaxed),
                wakes: counters.wakes.load(Relaxed),
                went_on: counters.went_on.load(Relaxed),
                at_home: counters.at_home.load(Relaxed),
                wakes_in_vain: counters.wakes_in_vain.load(Relaxed),
            }
        });
        stats.collect()
    }

    /// Memory nodes that have workers, in order; empty if all workers share one.
    #[must_use]
    pub fn memory_nodes(&self) -> Vec<MemoryNodeStats> {
        self.core.backend.memories.as_ref().map_or_else(Vec::new, |memories| memories.stats())
    }

    /// Transfers of [replicas](Submitter::replicated), and of arrays, matrices and their parts, between memory nodes
    /// since the start of the runtime, by source and destination. Pairs without transfers are omitted.
    #[must_use]
    pub fn transfers(&self) -> Vec<TransferStats> {
        self.core.backend.memories.as_ref().map_or_else(Vec::new, |memories| memories.transfers())
    }

    /// Devices of the runtime, in order of their workers.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceStats> {
        let memories = self.core.backend.memories.as_ref();
        memories.map_or_else(Vec::new, |memories| memories.devices().iter().map(|device| device.stats()).collect())
    }

    /// Members of each combined worker of this runtime, whether the policy uses it or not. Combined workers are
    /// numbered after the simple ones.
    #[must_use]
    pub fn combined_workers(&self) -> Vec<Vec<WorkerId>> {
        self.core.backend.combined().iter().map(|members| members.to_vec()).collect()
    }

    /// Expected occupation of each worker, according to expected lengths of tasks.
    #[must_use]
    pub fn expectations(&self) -> Vec<WorkerExpectation> {
        let now = self.core.backend.now();
        let expectation = |worker: WorkerId| {
            let end = self.core.free_at(worker, now);
            let start = self.core.backend.times.since(worker).unwrap_or(now);
            WorkerExpectation { worker: worker.0, start, length: end.since(start), end }
        };
        (0..self.workers() as u32).map(WorkerId).map(expectation).collect()
    }

    /// Performance models of its codelets; `None` if it was built [without](Builder::without_models).
    #[must_use]
    pub fn models(&self) -> Option<&Arc<Models>> {
        self.core.models.as_ref()
    }

    /// Faults of components so far, in every context.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.core.faults()
    }

    /// State of each node of each context.
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        self.core.survey()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let (core, threads, claim) = (Arc::clone(&self.core), std::mem::take(&mut self.threads), self.claim.take());
        // Neither a task nor a callback can wait for its own end, so another thread ends the runtime.
        if worker::acting::is_needed_by(&self.core) {
            let ends = std::thread::Builder::new().name("runtime-end".to_owned());
            if let Err(error) = ends.spawn(move || end(&core, threads, claim)) {
                tracing::error!("the runtime goes on, since no thread could be made to end it: {error}");
            }
        } else {
            end(&core, threads, claim);
        }
    }
}

/// Waits for all tasks and stops the workers, then gives up the claim on their PUs.
fn end(core: &Core, threads: Vec<JoinHandle<()>>, claim: Option<Claim>) {
    // What runs may submit more, but no other thread: the end would wait for as long as that goes on.
    core.is_ending.store(true, SeqCst);
    core.roster.contexts().for_each(|context| context.show_none());
    // The program has the report of a stall that it waited for.
    let is_told = core.stall_is_told.load(Relaxed);
    let waited = core.wait_all();
    core.roster.contexts().for_each(|context| context.end());
    core.close();
    match waited {
        Err(RunError::Stalled(report)) if !is_told => tracing::error!("tasks are left behind: {report}"),
        Err(RunError::Stalled(_)) => {}
        // Those whose submission was under way when the end began.
        _ => _ = core.wait_all(),
    }
    if let Some(models) = &core.models
        && !models.failure_is_told()
        && let Err(errors) = models.save()
    {
        errors.iter().for_each(|error| tracing::error!("what was measured is not stored: {error}"));
    }
    core.stop.store(true, SeqCst);
    core.backend.sleep.wake_all();
    core.outcomes.waiters.close();
    if let Some(memories) = &core.backend.memories {
        memories.stop();
    }
    let mut calls = Watch::default();
    let _ = calls.overdue(STUCK_PATIENCE);
    let ended = core.ended.wait_for(threads.len(), STUCK_PATIENCE);
    let overdue = calls.overdue(STUCK_PATIENCE);
    for thread in threads {
        // No task is left, so a thread that has not ended is stuck inside a component. It cannot be stopped: it is left
        // behind.
        if ended.contains(&thread.thread().id()) {
            let _ = thread.join();
            continue;
        }
        let name = thread.thread().name().unwrap_or_default().to_owned();
        match overdue.iter().find(|call| call.thread == name) {
            Some(call) => {
                tracing::error!("the thread `{name}` is left behind: {call}");
                call.give_up();
            }
            None => tracing::error!("the thread `{name}` is left behind: it does not end within {STUCK_PATIENCE:?}"),
        }
    }
    drop(claim);
}
