//! Scheduling contexts: several trees on one machine, each with workers, tasks and a policy of its own.
//!
//! A runtime begins with one, the *default* context, which has all workers. [`Submitter::context`] makes further ones.
//! A task names its context ([`TaskBuilder::context`](crate::TaskBuilder::context)); one that names none belongs to
//! the current context of the thread that submits it: inside a task that of the task, within [`SchedContext::with`] that
//! context, else the default one.
//!
//! # Workers
//!
//! Contexts may share workers. A worker of several asks each in turn, beginning behind the one that gave it the last
//! task, so that it serves them fairly: by number of tasks, where each has some. Nothing else is shared: the components
//! of a context see its workers and its tasks only. Data and dependencies belong to the runtime; a task may wait for tasks
//! of other contexts.
//!
//! [`SchedContext::add_workers`], [`remove_workers`](SchedContext::remove_workers) and
//! [`swap_policy`](SchedContext::swap_policy) may be called at any time, by any thread, and are one operation: the policy
//! is laid over the workers anew, and the new tree takes the place of the old one, with all of its tasks. It happens
//! altogether or not at all; `tree::swap` describes how. A task that runs already is not disturbed. What components had
//! learnt is forgotten.
//!
//! How a worker learns which contexts it serves: before a new tree gets its first task, whoever swaps notes its workers,
//! then counts up a version number. A worker looks at the number before each pull. A task that is stored wakes a worker
//! after that, so the one that is woken knows where to look; and a worker that looks once more before it sleeps either
//! sees the new number, or is seen to sleep by whoever stores the next task ([`sleep`](sched_sync::sleep)).
//!
//! A worker that was woken for a task of one context may first be given one of another. So a worker with several contexts
//! that finds a task after it slept wakes another worker for each of the others: it may be in vain, but no task waits for
//! a busy worker while another one sleeps.
//!
//! # Without workers
//!
//! A context may have no workers, from the beginning or for a while. Its tasks wait, in order, and get scheduled when
//! workers come. Waiting for them while nothing else moves is a stall: `wait_all` then gives
//! [`RunError::Stalled`], whose report names the context that has no workers. Nothing is lost by that: the tasks still
//! wait, and run when workers come.
//!
//! # The end
//!
//! A context lives until it is [deleted](SchedContext::delete), or until the end of the runtime; that handles are
//! dropped means nothing. Deletion takes no more tasks, and waits for those that there are. Workers that are then in no
//! context at all go to the default one.

mod builder;
mod change;
mod policy_env;
mod roster;

pub use builder::ContextBuilder;
pub(crate) use policy_env::PolicyEnv;
pub(crate) use roster::{ContextCore, Roster};
pub use sched_tree::context::ContextError;

use crate::{RunError, Submitter};
use sched_tree::NodeState;
use serde::Serialize;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// A scheduling context. A handle, cheap to clone; it keeps no worker alive, and the context does not end with it.
#[derive(Clone)]
pub struct SchedContext {
    pub(crate) submitter: Submitter,
    pub(crate) context: Arc<ContextCore>,
    /// Tells the context from later ones in the same place.
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

/// How a context is doing.
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
    /// Begins a further context.
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

    /// The context that the runtime began with.
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

    /// Its workers now, ascending.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        self.context.config().workers.iter().map(|worker| worker.0).collect()
    }

    /// The lowest priority that its tasks may have.
    #[must_use]
    pub fn min_priority(&self) -> i32 {
        self.context.least.load(Relaxed)
    }

    /// The highest priority that its tasks may have.
    #[must_use]
    pub fn max_priority(&self) -> i32 {
        self.context.greatest.load(Relaxed)
    }

    /// How it is doing.
    #[must_use]
    pub fn stats(&self) -> ContextStats {
        let config = self.context.config();
        let before = self.context.before.load(SeqCst);
        let (finished, submitted) = self.submitter.core.task_counts(&self.context);
        ContextStats {
            name: config.name,
            policy: config.policy.name.clone(),
            workers: config.workers.iter().map(|worker| worker.0).collect(),
            submitted: submitted.saturating_sub(before),
            finished: finished.saturating_sub(before),
        }
    }

    /// Where its tasks sit now, node by node.
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        self.context.tree.survey()
    }

    /// Runs `body` with this as the current context of the thread: tasks that it submits on this thread, and that name no
    /// context, belong to this one.
    pub fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Restore(Current);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let current =
            Current { runtime: self.submitter.core.id, number: self.context.number, serial: Some(self.serial) };
        let _restore = Restore(CURRENT.replace(current));
        body()
    }

    /// Waits until every task of this context has ended, those submitted meanwhile included.
    ///
    /// # Errors
    /// [`RunError::Failed`] with those of its tasks that failed since somebody last asked; [`RunError::Stalled`] when nothing
    /// of it moves any more: because nothing in the runtime does, or because it has no workers.
    ///
    /// # Panics
    /// When a task of this very context calls it: it would wait for itself.
    pub fn wait_all(&self) -> Result<(), RunError> {
        assert!(!self.is_inside(), "context `{}` is waited for by a task of its own", self.name);
        self.submitter.core.wait_context(self)
    }

    /// Whether this thread executes a task of this context.
    fn is_inside(&self) -> bool {
        let core = &self.submitter.core;
        crate::worker::executed_here(core).is_some_and(|number| number == self.context.number)
    }
}

/// The context to which a thread submits, where that is not the default one.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    runtime: u64,
    /// 0 is the default context of any runtime.
    number: u16,
    /// None inside a task of that context, which is there as long as the task runs.
    serial: Option<u64>,
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current { runtime: 0, number: 0, serial: None }) };
}

/// This thread, a worker, executes or ends a task of this context.
#[inline]
pub(crate) fn enter_task(runtime: u64, number: u16) {
    if CURRENT.get().number != number {
        CURRENT.set(Current { runtime, number, serial: None });
    }
}

/// The current context of this thread at a runtime: its number, and its serial number unless it cannot end now.
#[inline]
pub(crate) fn current(runtime: u64) -> (u16, Option<u64>) {
    let current = CURRENT.get();
    if current.number != 0 && current.runtime == runtime { (current.number, current.serial) } else { (0, None) }
}
