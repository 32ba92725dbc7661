//! Outcomes of tasks and runs.

use crate::wait::held::HeldGuard;
use sched_graph::Region;
use sched_tree::attendance::OverdueCall;
use sched_tree::fault::task_count;
use sched_tree::{Fault, NodeState, suspect};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Outcome of a task. It is known for as long as the runtime exists; the reasons are those of the 4096 tasks that
/// failed or were cancelled last.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// Its kernel returned.
    Done,
    /// Its kernel panicked or returned an error.
    Failed(Arc<TaskFailure>),
    /// It was not run: it depends on a task that failed, the program cancelled it, or its deadline has passed. Or a
    /// task that is [nested](crate::Context::nest) in it failed.
    Cancelled(Arc<TaskFailure>),
}

/// The failed task because of which another cannot run.
pub(crate) type Cause = Arc<TaskFailure>;

/// A task whose kernel panicked or returned an error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskFailure {
    /// Its place in the order of submission, from 1.
    pub task: u64,
    /// Its codelet.
    pub codelet: String,
    /// The implementation that ran.
    pub implementation: String,
    /// Name of the task, if the application gave one.
    pub name: Option<String>,
    /// The worker that ran it.
    pub worker: u32,
    /// Whether it panicked; otherwise it returned an error.
    pub panicked: bool,
    /// Whether it did not run at all, because the program [cancelled](crate::Submitter::cancel) it, or its
    /// [deadline](crate::TaskBuilder::deadline) had passed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Message of the panic, or text of the error; or why it was cancelled.
    pub message: String,
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskFailure { task, codelet, implementation, name, worker, panicked, cancelled, message } = self;
        // No task of the program, or one of which no more is known.
        if codelet.is_empty() && (*cancelled || implementation.is_empty()) {
            return f.write_str(message);
        }
        write!(f, "task {task}")?;
        if let Some(name) = name {
            write!(f, " `{name}`")?;
        }
        if *cancelled {
            return write!(f, " (codelet `{codelet}`) was cancelled: {message}");
        }
        write!(f, " (codelet `{codelet}`, implementation `{implementation}`, worker {worker}) ")?;
        f.write_str(if *panicked { "panicked" } else { "failed" })?;
        write!(f, ": {message}")
    }
}

/// Why [`wait_all`](crate::Runtime::wait_all) failed.
#[derive(Clone, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum RunError {
    /// Kernels panicked or returned errors. All tasks that did not depend on them have run, and the runtime remains
    /// usable.
    #[error("{}", failed_text(.failed, *.cancelled))]
    #[diagnostic(code(sched::run::failed))]
    Failed {
        /// Failed tasks, in order of failure.
        failed: Vec<Arc<TaskFailure>>,
        /// Number of tasks cancelled because they depended on them.
        cancelled: u64,
    },
    /// The run makes no progress, and tasks are left.
    #[error("{0}")]
    #[diagnostic(code(sched::run::stalled))]
    Stalled(Box<StallReport>),
}

fn failed_text(failed: &[Arc<TaskFailure>], cancelled: u64) -> String {
    let mut lines: Vec<String> = failed.iter().map(|failure| failure.to_string()).collect();
    lines.extend(match cancelled {
        0 => None,
        1 => Some("1 task that depends on what failed was not run".to_owned()),
        _ => Some(format!("{cancelled} tasks that depend on what failed were not run")),
    });
    lines.join("\n")
}

/// Why no task runs: where every task is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StallReport {
    /// Time without progress, in seconds.
    pub quiet_s: f64,
    /// Number of unfinished tasks.
    pub unfinished: u64,
    /// Unfinished tasks that wait for other tasks.
    pub waiting: u64,
    /// Unfinished tasks of replays that are ready and [wait at home](sched_core::Info::waits_at_home), outside of the
    /// tree.
    pub at_home: u64,
    /// Guards of data that the program holds. Each counts as unfinished.
    pub guards: Vec<HeldGuard>,
    /// Number of [leases](crate::Lease) that have not ended. Each counts as unfinished.
    pub leases: u64,
    /// Unfinished tasks that left the tree and wait for a worker that can execute them.
    pub fallback: u64,
    /// Each context, the default one first.
    pub contexts: Vec<ContextState>,
    /// Each node of each context's tree, the root first.
    pub nodes: Vec<NodeState>,
    /// Each worker.
    pub workers: Vec<WorkerState>,
    /// Calls of components that have not come back.
    pub overdue: Vec<OverdueCall>,
    /// Faults of components.
    pub faults: Vec<Fault>,
}

/// State of a context during a stall.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ContextState {
    /// Its name.
    pub name: String,
    /// Name of its policy.
    pub policy: String,
    /// Its workers.
    pub workers: Vec<u32>,
    /// Number of its unfinished tasks.
    pub unfinished: u64,
}

/// State of a worker during a stall.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WorkerState {
    /// Its number.
    pub worker: u32,
    /// Its activity.
    pub doing: WorkerDoing,
    /// Number of tasks in trees that it could execute.
    pub eligible: u64,
}

/// Activity of a worker; see [`WorkerState`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerDoing {
    /// It sleeps until it is woken.
    Sleeping,
    /// It executes a task.
    Executing,
    /// It executes a task that waits for the end of others, or for data.
    Waiting,
    /// It waits for the other members of a team, to execute a parallel task.
    Gathering,
    /// It is inside a component, or looks for work.
    Scheduling,
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_tree: u64 = self.nodes.iter().map(|node| node.tasks).sum();
        let quiet = Duration::from_secs_f64(self.quiet_s);
        let left = task_count(self.unfinished);
        let are = if self.unfinished == 1 { "is" } else { "are" };
        writeln!(f, "the run has stalled: nothing moved for {quiet:.1?}, {left} {are} left")?;
        write!(f, "  {in_tree} are in the tree, ")?;
        if self.at_home > 0 {
            write!(f, "{} at home with workers, ", self.at_home)?;
        }
        writeln!(f, "{} wait for others, {} in the fallback store", self.waiting, self.fallback)?;
        for guard in &self.guards {
            writeln!(f, "  {guard}")?;
        }
        match self.leases {
            0 => {}
            1 => writeln!(f, "  1 lease of data waits for something outside")?,
            leases => writeln!(f, "  {leases} leases of data wait for something outside")?,
        }
        let several = self.contexts.len() > 1;
        for context in self.contexts.iter().filter(|context| several || context.workers.is_empty()) {
            write_context(f, context)?;
        }
        for node in self.nodes.iter().filter(|node| node.is_of_interest()) {
            writeln!(f, "  {node}")?;
        }
        for worker in &self.workers {
            write_worker(f, worker)?;
        }
        for fault in &self.faults {
            writeln!(f, "  fault: {fault}")?;
        }
        for call in &self.overdue {
            writeln!(f, "  stuck: {call}")?;
        }
        if !self.overdue.is_empty() {
            return Ok(());
        }
        let blocks = |guard: &&HeldGuard| guard.waiting > 0;
        if in_tree == 0
            && let Some(guard) = self.guards.iter().find(blocks)
        {
            return write!(f, "  drop the guard from {} first", guard.at);
        }
        if let Some((node, why)) = suspect(&self.nodes, &self.faults) {
            return write!(f, "  look at `{}` first: {why}", node.node);
        }
        if let Some(worst) = self.nodes.iter().max_by_key(|node| node.tasks).filter(|node| node.tasks > 0) {
            let eligible = |doing| self.workers.iter().filter(move |w| w.doing == doing && w.eligible > 0).count();
            let sleeping = eligible(WorkerDoing::Sleeping);
            if sleeping == 0 && eligible(WorkerDoing::Waiting) > 0 {
                return f.write_str(
                    "  the workers that could run them are in tasks that wait: nest tasks in these instead",
                );
            }
            write!(
                f,
                "  look at `{}` first: it keeps {}, and {} that could run some",
                worst.node,
                task_count(worst.tasks),
                if sleeping == 1 { "1 worker sleeps".to_owned() } else { format!("{sleeping} workers sleep") }
            )?;
        }
        Ok(())
    }
}

fn write_context(f: &mut fmt::Formatter<'_>, context: &ContextState) -> fmt::Result {
    let ContextState { name, policy, workers, unfinished } = context;
    write!(f, "  context `{name}` (policy `{policy}`) has {unfinished} of them")?;
    writeln!(f, "{}", if workers.is_empty() { " and no workers: add some" } else { "" })
}

fn write_worker(f: &mut fmt::Formatter<'_>, state: &WorkerState) -> fmt::Result {
    let WorkerState { worker, eligible, doing, .. } = state;
    let doing = match doing {
        WorkerDoing::Sleeping => "sleeps",
        WorkerDoing::Executing => "executes a task",
        WorkerDoing::Waiting => "executes a task that waits for others",
        WorkerDoing::Gathering => "waits for its team",
        WorkerDoing::Scheduling => "is inside the scheduler",
    };
    writeln!(f, "  worker {worker} {doing} and could execute {eligible} of the tasks in the tree")
}

/// Why a task was not submitted.
#[derive(Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum SubmitError {
    /// A handle or the codelet belongs to another runtime.
    #[error("codelet `{codelet}` {} of another runtime", foreign_text(.what))]
    #[diagnostic(help("make codelets and handles with the runtime that the task is submitted to"))]
    Foreign {
        /// The codelet.
        codelet: String,
        /// `a handle`, or `itself`.
        what: &'static str,
    },
    /// A task to wait for belongs to another runtime, or one of both to a recording and the other not to the same.
    #[error("codelet `{codelet}` was given a task to wait for that is not of the same runtime or recording")]
    #[diagnostic(help(
        "tasks of a recording wait for tasks of the same recording; others wait for the replay, or for what it writes"
    ))]
    ForeignTask {
        /// The codelet.
        codelet: String,
    },
    /// The context does not allow the priority.
    #[error("codelet `{codelet}` was given priority {priority}; context `{context}` has {min} to {max}")]
    #[diagnostic(help("choose a priority of that range, or make the context with another one"))]
    Priority {
        /// The codelet.
        codelet: String,
        /// The context.
        context: String,
        /// The priority.
        priority: i32,
        /// Lowest priority of the context.
        min: i32,
        /// Highest priority of the context.
        max: i32,
    },
    /// The context accepts no more tasks.
    #[error("codelet `{codelet}` was submitted to context `{context}`, which is deleted")]
    #[diagnostic(help("submit to a context that is there, or delete this one later"))]
    Deleted {
        /// The codelet.
        codelet: String,
        /// The context.
        context: String,
    },
    /// One handle is passed twice, and one of the accesses writes.
    #[error("codelet `{codelet}` was given one handle twice, and writes to it")]
    #[diagnostic(help("pass each handle once, with the strongest access"))]
    Aliased {
        /// The codelet.
        codelet: String,
    },
    /// Two handles name overlapping parts of one array or matrix, and one of the accesses writes.
    #[error(
        "codelet `{codelet}` was given {first} and {second} of one array or matrix, which overlap, and writes to one"
    )]
    #[diagnostic(help(
        "name what both have in common once: divide the data so that the parts of a task are disjoint, or pass \
        the whole"
    ))]
    Overlap {
        /// The codelet.
        codelet: String,
        /// The first part.
        first: Region,
        /// The second part.
        second: Region,
    },
    /// Data that a scope lent is no longer there, or is there for reading only.
    #[error("codelet `{codelet}` was given lent data that it cannot use so: {why}")]
    #[diagnostic(help("keep handles to lent data inside the scope, and lend what tasks write with `&mut`"))]
    Loan {
        /// The codelet.
        codelet: String,
        /// The reason.
        why: &'static str,
    },
    /// No worker has an architecture that the codelet has an implementation for.
    #[error("codelet `{codelet}` has {}", implementations_text(.has))]
    #[diagnostic(help("add an implementation for an architecture that this runtime has workers of"))]
    NoWorker {
        /// The codelet.
        codelet: String,
        /// Its architectures, separated by commas.
        has: String,
    },
    /// No worker that may execute the task has an implementation.
    #[error("codelet `{codelet}` is restricted to {places}: no worker there can execute it")]
    #[diagnostic(help(
        "restrict it to places of this runtime with a worker of an architecture that it has an implementation for"
    ))]
    Nowhere {
        /// The codelet.
        codelet: String,
        /// The places of the codelet and of the task.
        places: String,
    },
    /// The devices lack what the kernels of the codelet need, and nobody else can execute the task.
    #[error("codelet `{codelet}` needs {why}, and no other worker can execute it")]
    #[diagnostic(help(
        "add an implementation for cores, or use a device that has what it needs: see `sched topology`"
    ))]
    Unable {
        /// The codelet.
        codelet: String,
        /// What it needs, and who lacks it.
        why: String,
    },
    /// A nested task might wait for the task that it is [nested](crate::Context::nest) in.
    #[error("codelet `{codelet}` was nested in a task: {why}")]
    #[diagnostic(help(
        "name the data that nested tasks use in the task that they are nested in, with the same access"
    ))]
    Nested {
        /// The codelet.
        codelet: String,
        /// The reason.
        why: &'static str,
    },
    /// A recorded task was given what only a task that runs once can have.
    #[error("codelet `{codelet}` was recorded with {what}, which a recorded task cannot have")]
    #[diagnostic(help(
        "leave it out: a recording runs in the context where it is replayed, a callback is replaced by waiting for the \
         replay, and tasks that nest or have a deadline are submitted anew each time"
    ))]
    Recorded {
        /// The codelet.
        codelet: String,
        /// `a context`, `a callback`, `a deadline` or `nested tasks`.
        what: &'static str,
    },
    /// As many tasks are in flight as the runtime was [built](crate::Builder::bound_tasks) for; if submissions wait
    /// then, the run makes no progress.
    #[error("codelet `{codelet}` was submitted while {most} tasks are in flight, which is the bound")]
    #[diagnostic(help("wait for some of them first, or build the runtime with a higher bound"))]
    Full {
        /// The codelet.
        codelet: String,
        /// The bound.
        most: u64,
    },
    /// The runtime was dropped.
    #[error("codelet `{codelet}` was submitted to a runtime that has ended")]
    #[diagnostic(help("drop the runtime when nothing submits to it any more"))]
    Ended {
        /// The codelet.
        codelet: String,
    },
}

fn foreign_text(what: &str) -> String {
    match what {
        "itself" => "is".to_owned(),
        _ => format!("was given {what}"),
    }
}

fn implementations_text(has: &str) -> String {
    match has {
        "" => "no implementation".to_owned(),
        _ => format!("implementations for {has} only, and no worker is one of these"),
    }
}

sched_text::debug_as_text!(RunError, SubmitError);
