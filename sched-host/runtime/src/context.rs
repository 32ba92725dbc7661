//! Scheduling contexts: several trees on one machine, each with workers, tasks and a policy of its own.
//!
//! A runtime starts with one, the *default* context, which has all workers. [`Submitter::context`] creates further
//! ones. A task names its context ([`TaskBuilder::context`](crate::TaskBuilder::context)); otherwise it belongs to the
//! current context of the submitting thread: inside a task, the context of that task; within [`SchedContext::with`],
//! that context; else the default one.
//!
//! # Workers
//!
//! Contexts may share workers. A worker of several contexts asks each in turn, starting after the one that gave it the
//! last task, so it serves them fairly by number of tasks. Nothing else is shared, unless policies say so: components
//! of a context see only its workers and its tasks. A part of a policy that is `shared` with `between-contexts=#true`
//! exists once for all contexts that have it, and its tasks are executed by the workers of any of them. Data and
//! dependencies belong to the runtime; a task may wait for tasks of other contexts.
//!
//! [`SchedContext::add_workers`], [`remove_workers`](SchedContext::remove_workers) and
//! [`swap_policy`](SchedContext::swap_policy) may be called at any time, by any thread, and are one operation: the
//! policy is laid over the workers anew, and the new tree replaces the old one and receives all of its tasks. The
//! operation succeeds as a whole or changes nothing; `tree::swap` describes how. Running tasks are not disturbed. State
//! that components had learned is lost.
//!
//! How a worker learns which contexts it serves: before a new tree gets its first task, the thread that swaps notes its
//! workers, then increments a version number. A worker reads the number before each pull. A stored task wakes a worker
//! after that, so the woken worker knows where to look; and a worker that looks once more before it sleeps either sees
//! the new number, or is seen to sleep by the thread that stores the next task ([`sleep`](sched_sync::sleep)).
//!
//! A worker that was woken for a task of one context may first receive one of another. So a worker with several
//! contexts that finds a task after it slept wakes another worker for each of the other contexts: the wake may be in
//! vain, but no task waits for a busy worker while another one sleeps.
//!
//! # Without workers
//!
//! A context may have no workers, from the start or for a while. Its tasks wait, in order, and are scheduled when
//! workers arrive. Waiting for them while nothing else moves is a stall: `wait_all` then returns [`RunError::Stalled`],
//! whose report names the context without workers. No task is lost by that.
//!
//! # The end
//!
//! A context lives until it is [deleted](SchedContext::delete), or until the end of the runtime; dropping its handles
//! has no effect. Deletion accepts no more tasks, and waits for the existing ones. Workers that are then in no context
//! move to the default one.

mod builder;
mod change;
mod governor;
mod policy_env;
mod roster;

pub use builder::ContextBuilder;
pub use governor::Governor;
pub(crate) use policy_env::PolicyEnv;
pub(crate) use roster::{ContextCore, Roster};
pub use sched_tree::context::ContextError;

use crate::worker::executed_here;
use crate::{Core, RunError, Submitter};
use sched_core::{Arch, WorkerId};
use sched_graph::ContextId;
use sched_policy::Policy;
use sched_sync::in_flight::Counts;
use sched_tree::NodeState;
use sched_tree::plugin::PluginChange;
use serde::Serialize;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// Handle of a scheduling context, cheap to clone. It keeps no worker alive, and its drop does not end the context.
#[derive(Clone)]
pub struct SchedContext {
    pub(crate) submitter: Submitter,
    pub(crate) context: Arc<ContextCore>,
    /// Distinguishes the context from later ones in the same place.
    pub(crate) serial: u64,
    name: Arc<str>,
}

impl std::fmt::Debug for SchedContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchedContext").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for SchedContext {
    /// Whether both are the same context of the same runtime.
    fn eq(&self, other: &SchedContext) -> bool {
        Arc::ptr_eq(&self.context, &other.context) && self.serial == other.serial
    }
}

impl Eq for SchedContext {}

/// State of a context.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ContextStats {
    /// Its name.
    pub name: String,
    /// Name of its policy.
    pub policy: String,
    /// Its workers.
    pub workers: Vec<u32>,
    /// Tasks submitted to it.
    pub submitted: u64,
    /// Of these, those that have ended.
    pub finished: u64,
}

impl Submitter {
    /// Starts to build a further context.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// # use std::sync::Arc;
    /// # let components = sched_tree::plugin::Registry::compiled_in();
    /// # let runtime = Runtime::builder().registry(Arc::new(components)).workers(4).bind(false).build()?;
    /// let urgent = runtime.context("urgent").policy("tree-prio").workers([2, 3]).priorities(0..=9).build()?;
    /// let say = runtime.codelet::<(), &str>("say").cpu("say", |context, ()| assert!(!context.params.is_empty())).build();
    /// runtime.task_with(&say, "now", ()).context(&urgent).priority(9).submit()?;
    /// urgent.add_workers([1])?;
    /// urgent.wait_all()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn context(&self, name: impl Into<String>) -> ContextBuilder<'_> {
        ContextBuilder::new(self, name.into())
    }

    /// Searches the folders of plugins again, and loads what is new. Returns the differences.
    ///
    /// A rebuilt plugin is loaded beside its old build: contexts that are made or changed from now on use the new one,
    /// and [`SchedContext::rebuild`] moves a context to it. The old build remains where it is in use.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// # use std::sync::Arc;
    /// # let components = sched_tree::plugin::Registry::compiled_in();
    /// # let runtime = Runtime::builder().registry(Arc::new(components)).workers(2).build()?;
    /// for change in runtime.rescan() {
    ///     println!("{change}");
    /// }
    /// runtime.default_context().rebuild()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rescan(&self) -> Vec<PluginChange> {
        self.core.policy_env.rescan()
    }

    /// The initial context of the runtime.
    #[must_use]
    pub fn default_context(&self) -> SchedContext {
        SchedContext::of(self, &self.core.roster.default)
    }

    /// Every context, the default one first.
    #[must_use]
    pub fn contexts(&self) -> Vec<SchedContext> {
        self.core.roster.contexts().map(|context| SchedContext::of(self, context)).collect()
    }
}

impl SchedContext {
    fn of(submitter: &Submitter, context: &Arc<ContextCore>) -> SchedContext {
        SchedContext {
            submitter: submitter.clone(),
            context: Arc::clone(context),
            serial: context.in_flight.serial().unwrap_or(0),
            name: context.name().into(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of its policy now.
    #[must_use]
    pub fn policy(&self) -> String {
        self.context.config().policy.name.clone()
    }

    /// Its policy now, as text, without the comments.
    #[must_use]
    pub fn policy_text(&self) -> String {
        let policy = self.context.config().policy.clone();
        Policy { doc: String::new(), ..(*policy).clone() }.to_kdl()
    }

    /// Its workers now, ascending.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        self.context.config().workers.iter().map(|worker| worker.0).collect()
    }

    /// Whether some worker that tasks of the context may come to now is `able`. It is one of its workers, or any worker
    /// where its policy shares a part between contexts.
    pub fn has_worker(&self, able: impl Fn(WorkerId, Arch) -> bool) -> bool {
        let (config, facts) = (self.context.config(), &self.submitter.core.facts);
        let is_shared = config.policy.shared.iter().any(|shared| shared.between_contexts);
        let mut workers = (0..).map(WorkerId).zip(facts);
        workers.any(|(worker, facts)| (is_shared || config.workers.contains(worker)) && able(worker, facts.arch))
    }

    /// The lowest priority that its tasks may have.
    #[must_use]
    pub fn min_priority(&self) -> i32 {
        self.context.priorities().map_or(i32::MAX, |range| *range.start())
    }

    /// The highest priority that its tasks may have.
    #[must_use]
    pub fn max_priority(&self) -> i32 {
        self.context.priorities().map_or(i32::MIN, |range| *range.end())
    }

    /// Its state now.
    #[must_use]
    pub fn stats(&self) -> ContextStats {
        let config = self.context.config();
        let before = self.context.before.load(SeqCst);
        let Counts { finished, submitted } = self.submitter.core.task_counts(&self.context);
        ContextStats {
            name: config.name,
            policy: config.policy.name.clone(),
            workers: config.workers.iter().map(|worker| worker.0).collect(),
            submitted: submitted.saturating_sub(before),
            finished: finished.saturating_sub(before),
        }
    }

    /// State of each node of its tree.
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        self.context.tree.survey()
    }

    /// Runs `body` with this as the current context of the thread, which applies to submitted tasks that name no
    /// context.
    pub fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        let _restore = RestoreCurrent::after(Current {
            runtime: self.submitter.core.id,
            number: self.context.number,
            serial: Some(self.serial),
        });
        body()
    }

    /// Waits until every task of this context has ended, including tasks submitted meanwhile.
    ///
    /// # Errors
    /// [`RunError::Failed`] with its tasks that failed since the last report; [`RunError::Stalled`] when it makes no
    /// progress, because nothing in the runtime does or because it has no workers.
    ///
    /// # Panics
    /// When a task of this context calls it: the task would wait for itself.
    pub fn wait_all(&self) -> Result<(), RunError> {
        assert!(!self.is_inside(), "context `{}` is waited for by a task of its own", self.name);
        self.submitter.core.wait_context(self)
    }

    /// Whether this thread executes a task of this context.
    fn is_inside(&self) -> bool {
        let core = &self.submitter.core;
        executed_here(core).is_some_and(|number| number == self.context.number)
    }
}

/// The context to which a thread submits.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    runtime: u64,
    /// 0 is the default context of any runtime.
    number: ContextId,
    /// `None` inside a task of that context, which exists while the task runs.
    serial: Option<u64>,
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current { runtime: 0, number: ContextId::DEFAULT, serial: None }) };
}

/// Restores the current context of the thread when it is dropped.
pub(crate) struct RestoreCurrent(Current);

impl RestoreCurrent {
    fn after(current: Current) -> RestoreCurrent {
        RestoreCurrent(CURRENT.replace(current))
    }

    /// For a thread of the program that is a worker of this runtime until then.
    pub(crate) fn after_tasks_of(runtime: u64) -> RestoreCurrent {
        RestoreCurrent::after_tasks_in(runtime, ContextId::DEFAULT)
    }

    /// For a thread that acts for a task of this context until then.
    pub(crate) fn after_tasks_in(runtime: u64, number: ContextId) -> RestoreCurrent {
        RestoreCurrent::after(Current { runtime, number, serial: None })
    }
}

impl Drop for RestoreCurrent {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Notes that this thread, a worker, executes or ends a task of this context.
#[inline]
pub(crate) fn enter_task(runtime: u64, number: ContextId) {
    if CURRENT.get().number != number {
        CURRENT.set(Current { runtime, number, serial: None });
    }
}

/// Current context of this thread at a runtime: its number, and its serial number unless it cannot end now.
#[inline]
pub(crate) fn current(core: &Core) -> (ContextId, Option<u64>) {
    let current = CURRENT.get();
    if current.number == ContextId::DEFAULT {
        return (ContextId::DEFAULT, None);
    }
    // A worker that has executed a task may act for the program, in the context of none: that of the task may be gone.
    let is_left = || current.serial.is_none() && executed_here(core) != Some(current.number);
    if current.runtime != core.id || is_left() {
        return (ContextId::DEFAULT, None);
    }
    (current.number, current.serial)
}
