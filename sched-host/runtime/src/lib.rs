//! The runtime: real tasks on real workers.

mod backend;
mod builder;
pub mod context;
pub(crate) mod core;
mod data;
mod energy;
mod memory;
mod parallel;
mod task;
mod wait;
mod worker;

pub use builder::{Builder, StartError};
pub use data::access::{Access, AccessList, Commute, Many, Read, ReadWrite, Scratch, Write};
pub use data::replicated::ReplicatedData;
pub use data::{Handle, Scratchpad};
pub use energy::{MeasureError, TaskEnergy};
pub use memory::{MemoryNodeStats, TransferStats};
pub use parallel::crew::{Parts, Team};
pub use parallel::share::{Share, TeamAccess, TeamAccessList};
pub use sched_graph::AccessMode;
pub use task::codelet::{Codelet, CodeletBuilder, Context};
pub use task::failure::{
    ContextState, Outcome, RunError, StallReport, SubmitError, TaskFailure, WorkerDoing, WorkerState,
};
pub use task::submit::{Submitter, TaskBuilder, TaskRef};
pub use wait::{DataError, ReadData, WriteData};
pub use worker::stats::WorkerStats;
pub use worker::times::WorkerExpectation;

pub(crate) use self::core::Core;

use self::backend::ThreadBackend;
use crate::context::{ContextCore, PolicyEnv, Roster};
use crate::parallel::combined::Combined;
use crate::parallel::crew::Crews;
use crate::task::ahead::Ahead;
use sched_core::{WorkerId, WorkerSet};
use sched_machine::topology::{BindingPlan, Claim, WorkerDistances};
use sched_model::Bus;
use sched_model::Models;
use sched_policy::Policy;
use sched_trace::{Recorder, Trace, WorkerTrack};
use sched_tree::attendance::Watch;
use sched_tree::combined::has_team_leaves;
use sched_tree::{Fault, Ledger, NodeState, Part, Services, Tree, WorkerFacts};
use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::thread::JoinHandle;
use std::time::Duration;
use worker::Worker;

/// A runtime at work: workers, and the tree that schedules for them.
///
/// Dropping it waits for all tasks, stores what performance models learned, and stops the workers; dropped by one of its own
/// tasks, it ends when that has ended. Tasks are submitted through [`Submitter`], which it derefs to; one that outlives the
/// runtime takes no more tasks ([`SubmitError::Ended`]).
pub struct Runtime {
    submitter: Submitter,
    /// Of the workers, and those that fetch data ahead of tasks.
    threads: Vec<JoinHandle<()>>,
    policy: String,
    bound: usize,
    warnings: Vec<String>,
    /// Tells other runtimes which PUs this one uses.
    claim: Option<Claim>,
}

impl Deref for Runtime {
    type Target = Submitter;

    fn deref(&self) -> &Submitter {
        &self.submitter
    }
}

/// How a runtime starts, when its tree is made.
pub(crate) struct Start {
    pub(crate) parts: Vec<Part>,
    pub(crate) workers: Vec<WorkerFacts>,
    /// The members of each combined worker, which are numbered on from the workers.
    pub(crate) combined: Vec<Box<[WorkerId]>>,
    pub(crate) distances: WorkerDistances,
    /// Name of the policy.
    pub(crate) policy: String,
    pub(crate) binding: Option<BindingPlan>,
    pub(crate) claim: Option<Claim>,
    pub(crate) warnings: Vec<String>,
    pub(crate) seed: u64,
    /// The policy itself, and what it and those of other contexts are laid over.
    pub(crate) laid: Policy,
    pub(crate) policy_env: PolicyEnv,
    pub(crate) models: Option<Arc<Models>>,
    pub(crate) quiet_period: Duration,
    /// Those that tasks of the default context may have.
    pub(crate) priorities: RangeInclusive<i32>,
    /// Most events of a worker to write down, if any are.
    pub(crate) trace: Option<usize>,
    /// What transfers between memory nodes take, where there are several.
    pub(crate) bus: Option<Bus>,
}

/// Stack of a worker: kernels of applications, and components that nest their calls.
const STACK: usize = 8 << 20;

/// How long the end of a runtime waits for a worker that is stuck in a component.
const STUCK_PATIENCE: Duration = Duration::from_secs(1);

impl Runtime {
    /// Begins a runtime with the default policy, plugins and workers.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// use sched_tree::plugin::Registry;
    /// use std::sync::Arc;
    ///
    /// // The components that are compiled in; without this line, plugin files come first.
    /// let builder = Runtime::builder().registry(Arc::new(Registry::compiled_in()));
    /// let runtime = builder.policy("tree-eager").workers(2).build()?;
    /// assert_eq!((runtime.policy(), runtime.workers()), ("tree-eager", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Name of the policy that it began with.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    pub(crate) fn start(start: Start) -> Result<Runtime, std::io::Error> {
        let count = start.workers.len();
        let ledger = Arc::new(Ledger::new());
        let recorder = start.trace.map(|most| Arc::new(Recorder::new(count, most)));
        let backend =
            Arc::new(ThreadBackend::new(&start.workers, &start.combined, start.distances, recorder, start.bus));
        let has_teams = has_team_leaves(&start.parts, count);
        let ahead = Arc::new(Ahead::new(0, Arc::clone(&backend), Arc::clone(&ledger)));
        let (services, told) = (Arc::<ThreadBackend>::clone(&backend), Some(Arc::<Ahead>::clone(&ahead) as _));
        let tree =
            Tree::assemble_foreseeing(start.parts, &start.workers, services, Arc::clone(&ledger), start.seed, told);
        let crews = Crews::new(count, &start.combined, start.binding.clone());
        let combined = Combined::new(count, &start.combined, crews);
        if let Some(combined) = &combined
            && has_teams
        {
            combined.workers.begin_use();
        }
        let everybody = WorkerSet::first(count as u32);
        let default = ContextCore::new(0, tree, ahead, "default".to_owned(), start.laid, everybody);
        default.set_priorities(&start.priorities);
        let roster = Roster::new(default);
        let (quiet_period, models) = (start.quiet_period, start.models);
        let core = Core::new(roster, start.policy_env, ledger, backend, start.workers, combined, quiet_period, models);
        let core = Arc::new(core);
        core.roster.default.ahead.serve(&core);
        if let Some(memories) = &core.backend.memories {
            memories.serve(&core);
        }
        let mut runtime = Runtime {
            submitter: Submitter { core: Arc::clone(&core) },
            threads: Vec::new(),
            policy: start.policy,
            bound: 0,
            warnings: start.warnings,
            claim: start.claim,
        };
        let (tell, told) = std::sync::mpsc::channel();
        for id in 0..count {
            let (core, tell, binding) = (Arc::clone(&core), tell.clone(), start.binding.clone());
            let body = move || {
                let bound = binding.map_or(Ok(()), |plan| plan.bind_current_thread(id));
                let _ = tell.send(bound.map_err(|error| error.to_string()));
                let ends = Arc::clone(&core);
                let _end = ends.ended.at_end();
                Worker::new(core, WorkerId(id as u32)).run();
            };
            // If this fails, the drop of `runtime` stops the workers that began.
            runtime
                .threads
                .push(std::thread::Builder::new().name(format!("worker-{id}")).stack_size(STACK).spawn(body)?);
        }
        if let Some(memories) = &core.backend.memories {
            for stats in memories.stats() {
                let (memories, binding, node) = (Arc::clone(memories), start.binding.clone(), stats.node);
                let core = Arc::clone(&core);
                let body = move || {
                    let _end = core.ended.at_end();
                    let workers = memories.workers_of(node);
                    if let Some(Err(why)) = binding.map(|plan| plan.bind_current_thread_to(&workers)) {
                        tracing::warn!(node, "the thread that fetches data is not bound: {why}");
                    }
                    memories.follow_hints(node);
                };
                runtime.threads.push(std::thread::Builder::new().name(format!("fetch-{node}")).spawn(body)?);
            }
        }
        drop(tell);
        let asked = start.binding.is_some();
        for bound in told.iter().take(count) {
            match bound {
                Ok(()) => runtime.bound += usize::from(asked),
                Err(why) => runtime.warnings.push(why),
            }
        }
        Ok(runtime)
    }

    /// What did not go as planned at the start: workers that could not be bound, or that share their PUs with each other or
    /// with another runtime; a machine or a time that this process may use only in part.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of workers; combined workers are not counted.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.core.facts.len()
    }

    /// How many workers are bound to a processing unit.
    #[must_use]
    pub fn bound_workers(&self) -> usize {
        self.bound
    }

    /// What each worker did since the runtime began.
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
                wakes_in_vain: counters.wakes_in_vain.load(Relaxed),
            }
        });
        stats.collect()
    }

    /// The memory nodes that have workers, in order, where there are several; none if all workers have one.
    #[must_use]
    pub fn memory_nodes(&self) -> Vec<MemoryNodeStats> {
        self.core.backend.memories.as_ref().map_or_else(Vec::new, |memories| memories.stats())
    }

    /// What was copied from one memory node to another since the runtime began: [replicas](Submitter::replicated) of data,
    /// by where they came from and where they went. Nothing about pairs of nodes between which nothing was.
    #[must_use]
    pub fn transfers(&self) -> Vec<TransferStats> {
        self.core.backend.memories.as_ref().map_or_else(Vec::new, |memories| memories.transfers())
    }

    /// The members of each combined worker of this runtime, whether the policy has a use for it or not. They are numbered
    /// on from the workers.
    #[must_use]
    pub fn combined_workers(&self) -> Vec<Vec<WorkerId>> {
        self.core.backend.combined().iter().map(|members| members.to_vec()).collect()
    }

    /// What each worker should be doing until when, as far as expected lengths tell.
    #[must_use]
    pub fn expectations(&self) -> Vec<WorkerExpectation> {
        let now = self.core.backend.now();
        let expectation = |worker: usize| {
            let end = self.core.free_at(WorkerId(worker as u32), now);
            let start = self.core.backend.times.since(worker).unwrap_or(now);
            WorkerExpectation { worker: worker as u32, start, length: end.since(start), end }
        };
        (0..self.workers()).map(expectation).collect()
    }

    /// The performance models of its codelets; `None` if it was built [without](Builder::without_models).
    #[must_use]
    pub fn models(&self) -> Option<&Arc<Models>> {
        self.core.models.as_ref()
    }

    /// What happened since the runtime began, or since the last time, if it was [built](Builder::trace) to write that down.
    ///
    /// Tasks that are under way now are there in part: wait for them before.
    #[must_use]
    pub fn take_trace(&self) -> Option<Trace> {
        let recorder = self.core.backend.recorder.as_ref()?;
        let workers = self.core.facts.iter().enumerate();
        let workers = workers.map(|(id, facts)| WorkerTrack::new(id, facts.arch.to_string()));
        let codelets = self.core.backend.codelets.read().iter().map(|facts| facts.name.clone()).collect();
        let mut trace = recorder.take(self.policy.clone(), workers.collect(), codelets);
        if let Some(memories) = &self.core.backend.memories {
            trace.memories = (0..memories.nodes()).map(|node| format!("memory {node}")).collect();
        }
        Some(trace)
    }

    /// What components did wrong so far, in every context.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.core.faults()
    }

    /// Where tasks sit now, context by context and node by node.
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        self.core.survey()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let (core, threads, claim) = (Arc::clone(&self.core), std::mem::take(&mut self.threads), self.claim.take());
        // A task cannot wait for its own end, so a thread does that.
        if worker::executed_here(&self.core).is_some() {
            let ends = std::thread::Builder::new().name("runtime-end".to_owned());
            if let Err(error) = ends.spawn(move || end(&core, threads, claim)) {
                tracing::error!("the runtime goes on, since no thread could be made to end it: {error}");
            }
        } else {
            end(&core, threads, claim);
        }
    }
}

/// Waits for all tasks, and stops the workers; then other runtimes may have the PUs.
fn end(core: &Core, threads: Vec<JoinHandle<()>>, claim: Option<Claim>) {
    if let Err(RunError::Stalled(report)) = core.wait_all() {
        tracing::error!("tasks are left behind: {report}");
    }
    core.roster.contexts().for_each(|context| context.end());
    if let Some(Err(errors)) = core.models.as_ref().map(|models| models.save()) {
        errors.iter().for_each(|error| tracing::error!("what was measured is not stored: {error}"));
    }
    core.stop.store(true, SeqCst);
    core.backend.sleep.wake_all();
    if let Some(memories) = &core.backend.memories {
        memories.stop();
    }
    let mut calls = Watch::default();
    let _ = calls.overdue(STUCK_PATIENCE);
    let ended = core.ended.wait_for(threads.len(), STUCK_PATIENCE);
    let overdue = calls.overdue(STUCK_PATIENCE);
    for thread in threads {
        // No task is left, so who has not ended is stuck inside a component. It cannot be stopped, and is left behind.
        if ended.contains(&thread.thread().id()) {
            let _ = thread.join();
            continue;
        }
        let name = thread.thread().name().unwrap_or_default().to_owned();
        match overdue.iter().find(|call| call.thread == name) {
            Some(call) => tracing::error!("the thread `{name}` is left behind: {call}"),
            None => tracing::error!("the thread `{name}` is left behind: it does not end within {STUCK_PATIENCE:?}"),
        }
    }
    drop(claim);
}
