//! The runtime: real tasks on real workers.

mod access;
mod builder;
mod codelet;
mod complete;
pub(crate) mod core;
mod data;
mod ends;
pub(crate) mod failure;
mod link;
mod record;
pub mod sleep;
mod stats;
mod submit;
mod wait;
mod worker;

pub use access::{Access, AccessList, Commute, Many, Read, ReadWrite, Scratch, Write};
pub use builder::{Builder, StartError};
pub use codelet::{Codelet, CodeletBuilder, Context};
pub use data::{Handle, Mode, Scratchpad};
pub use failure::{Outcome, RunError, StallReport, SubmitError, TaskFailure, WorkerDoing, WorkerState};
pub use stats::WorkerStats;
pub use submit::{Submitter, TaskBuilder, TaskRef};
pub use wait::{DataError, ReadData, WriteData};

use self::core::{Clock, Core};
use crate::topology::BindingPlan;
use crate::tree::{Fault, Ledger, NodeState, Part, Tree, WorkerFacts};
use sched_core::{Arch, WorkerId};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use worker::Worker;

/// A runtime at work: workers, and the tree that schedules for them.
///
/// Dropping it waits for all tasks, and stops the workers. Tasks are submitted through [`Submitter`], which it derefs to.
pub struct Runtime {
    submitter: Submitter,
    threads: Vec<JoinHandle<()>>,
    policy: String,
    bound: usize,
    warnings: Vec<String>,
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
    /// Name of the policy.
    pub(crate) policy: String,
    pub(crate) binding: Option<BindingPlan>,
    pub(crate) warnings: Vec<String>,
    pub(crate) seed: u64,
    pub(crate) quiet_period: Duration,
}

/// Stack of a worker: kernels of applications, and components that nest their calls.
const STACK: usize = 8 << 20;

/// How long the end of a stalled runtime waits for a worker that is stuck in a component.
const STUCK_PATIENCE: Duration = Duration::from_secs(1);

impl Runtime {
    /// Begins a runtime with the default policy, plugins and workers.
    ///
    /// ```
    /// use sched_host::runtime::Runtime;
    /// # use sched_components::{flow_control::Fifo, resource_mapping::Eager, worker::Simple};
    /// # use std::sync::Arc;
    /// # let mut components = sched_host::plugin::Registry::empty();
    /// # let stock = [sched_core::Offer::of::<Fifo>(), sched_core::Offer::of::<Eager>(), sched_core::Offer::of::<Simple>()];
    /// # components.add_builtin("stock", stock.into()).expect("stock components are sound");
    /// # let components = Arc::new(components);
    /// // Components of the program's own; without this line they come from the plugins that are found.
    /// let builder = Runtime::builder().registry(components);
    /// let runtime = builder.policy("tree-eager").workers(2).build()?;
    /// assert_eq!((runtime.policy(), runtime.workers()), ("tree-eager", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Name of its policy.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    pub(crate) fn start(start: Start) -> Result<Runtime, std::io::Error> {
        let count = start.workers.len();
        let ledger = Arc::new(Ledger::new());
        let clock = Arc::new(Clock::new(&start.workers));
        let tree =
            Tree::assemble(start.parts, &start.workers, Arc::<Clock>::clone(&clock), Arc::clone(&ledger), start.seed);
        {
            let clock = Arc::downgrade(&clock);
            let archs: Vec<Arch> = start.workers.iter().map(|worker| worker.arch).collect();
            ledger.on_fallback(move |wanted| {
                if let Some(clock) = clock.upgrade() {
                    clock.sleep.wake_any(|worker| wanted.contains(archs[worker]));
                }
            });
        }
        let core = Arc::new(Core::new(tree, ledger, clock, start.workers, start.quiet_period));
        let mut runtime = Runtime {
            submitter: Submitter { core: Arc::clone(&core) },
            threads: Vec::new(),
            policy: start.policy,
            bound: 0,
            warnings: start.warnings,
        };
        let (tell, told) = std::sync::mpsc::channel();
        for id in 0..count {
            let (core, tell, binding) = (Arc::clone(&core), tell.clone(), start.binding.clone());
            let body = move || {
                let bound = binding.map_or(Ok(()), |plan| plan.bind_current_thread(id));
                let _ = tell.send(bound.map_err(|error| error.to_string()));
                Worker::new(core, WorkerId(id as u32)).run();
            };
            // If this fails, the drop of `runtime` stops the workers that began.
            runtime
                .threads
                .push(std::thread::Builder::new().name(format!("worker-{id}")).stack_size(STACK).spawn(body)?);
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

    /// What did not go as planned at the start: workers that could not be bound.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of workers.
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
        let now = u64::try_from(self.core.clock.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let stats = self.core.counters.iter().enumerate().map(|(id, counters)| {
            let since = counters.idle_since.load(Relaxed);
            let ongoing = if since == 0 { 0 } else { now.saturating_sub(since - 1) };
            WorkerStats {
                id: id as u32,
                tasks: counters.executed.load(Relaxed),
                idle: Duration::from_nanos(counters.idle.load(Relaxed) + ongoing),
                sleeps: counters.sleeps.load(Relaxed),
            }
        });
        stats.collect()
    }

    /// What components did wrong so far.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.core.tree.faults()
    }

    /// Where tasks sit now, node by node.
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        self.core.tree.survey()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Err(RunError::Stalled(report)) = self.core.wait_all() {
            tracing::error!("tasks are left behind: {report}");
        }
        self.core.stop.store(true, SeqCst);
        self.core.clock.sleep.wake_all();
        let began = Instant::now();
        let stalled = self.core.stalled.load(Relaxed);
        for thread in self.threads.drain(..) {
            // A worker that is stuck inside a component cannot be stopped: it is left behind.
            while stalled && !thread.is_finished() && began.elapsed() < STUCK_PATIENCE {
                std::thread::yield_now();
            }
            if !stalled || thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}
