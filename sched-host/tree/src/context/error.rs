//! Errors when a context is created, changed or deleted.

use crate::{Fault, SwapError};
use sched_text::Findings;

/// Why a context was not created, changed or deleted. It is unchanged, with all of its tasks.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum ContextError {
    /// The policy was not found, is wrong, does not fit the workers, or a component of it cannot be built.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Policy(#[from] Findings),
    /// There is no such worker.
    #[error("there is no worker {worker}, only workers 0 to {}", .workers - 1)]
    #[diagnostic(code(sched::context::worker))]
    UnknownWorker {
        /// The requested number.
        worker: u32,
        /// Number of workers.
        workers: usize,
    },
    /// Another context has this name.
    #[error("there is a context `{name}` already")]
    #[diagnostic(code(sched::context::name), help("choose another name: reports tell contexts apart by it"))]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The range of priorities is empty.
    #[error("the priorities of context `{context}` range from {min} to {max}, which is nothing")]
    #[diagnostic(code(sched::context::priorities), help("give the lower bound first"))]
    Priorities {
        /// The context.
        context: String,
        /// The lower bound.
        min: i32,
        /// The upper bound.
        max: i32,
    },
    /// A component did not return from a call, so the tree could not be exchanged.
    #[error("context `{context}` goes on as it was: a component of it did not come back from a call in time")]
    #[diagnostic(
        code(sched::context::busy),
        help("try again; if this remains, wait_all reports which worker is inside the scheduler")
    )]
    Busy {
        /// The context.
        context: String,
    },
    /// A part that contexts share failed, and another context has not left it yet.
    #[error(
        "context `{context}` goes on as it was: the shared part `{part}` failed, and another context has not left it yet"
    )]
    #[diagnostic(code(sched::context::failing), help("try again: the other context leaves it with its next call"))]
    Failing {
        /// The context.
        context: String,
        /// The part.
        part: String,
    },
    /// Components of the new tree failed while they received the tasks of the old one.
    #[error("context `{context}` goes on as it was: the new tree failed\n{}", faults_text(.faults))]
    #[diagnostic(code(sched::context::failed))]
    Failed {
        /// The context.
        context: String,
        /// Their faults.
        faults: Vec<Fault>,
    },
    /// The context was deleted.
    #[error("context `{context}` was deleted")]
    #[diagnostic(code(sched::context::deleted))]
    Deleted {
        /// The context.
        context: String,
    },
    /// The default context lives as long as the runtime.
    #[error("the default context cannot be deleted")]
    #[diagnostic(code(sched::context::default), help("remove its workers if it should do nothing"))]
    Default,
    /// A task requests something that waits for that very task.
    #[error("context `{context}` cannot be waited for by a task of its own")]
    #[diagnostic(code(sched::context::inside), help("let the thread that made the context wait for it"))]
    Inside {
        /// The context.
        context: String,
    },
    /// Its tasks do not end.
    #[error("context `{context}` is not deleted: {error}")]
    #[diagnostic(code(sched::context::stalled))]
    Stalled {
        /// The context.
        context: String,
        /// The reason, as the back end reports it.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The maximum number of contexts is reached.
    #[error("there are {most} contexts already")]
    #[diagnostic(code(sched::context::many), help("delete contexts that are no longer needed"))]
    TooMany {
        /// The maximum.
        most: usize,
    },
    /// All trees together would have too many nodes.
    #[error("the trees of all contexts together would have more than 2^24 nodes")]
    #[diagnostic(code(sched::context::nodes))]
    TooLarge,
    /// A part that contexts share is defined in another way by another context.
    #[error("context `{context}`: {difference}")]
    #[diagnostic(
        code(sched::context::shared_part),
        help(
            "define it equally in both policies, or give it another name; `between-contexts` asks for one part for all"
        )
    )]
    SharedPart {
        /// The context.
        context: String,
        /// Both definitions.
        difference: Box<SwapError>,
    },
    /// A part that contexts share, and that this one leaves, has tasks that no worker of another one can execute.
    #[error(
        "context `{context}` goes on as it was: the shared part `{part}` has {tasks} task(s) that no worker left to it \
         can execute"
    )]
    #[diagnostic(
        code(sched::context::stranded),
        help("wait for the tasks of the context first, or keep the part and a worker for them in it")
    )]
    Stranded {
        /// The context.
        context: String,
        /// The part.
        part: String,
        /// Number of the tasks.
        tasks: u64,
    },
    /// The goals of contexts are wrong, or name contexts that do not exist.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Goals(Findings),
    /// No thread could be started for the hypervisor.
    #[error("the hypervisor has no thread: {error}")]
    #[diagnostic(code(sched::context::thread), help("end other threads of this process or user"))]
    Thread {
        /// The reason.
        error: std::io::Error,
    },
    /// The runtime was dropped.
    #[error("the runtime of context `{context}` has ended")]
    #[diagnostic(code(sched::context::ended), help("drop the runtime when nothing uses it any more"))]
    Ended {
        /// The context.
        context: String,
    },
}

fn faults_text(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("  {fault}")).collect::<Vec<_>>().join("\n")
}

impl ContextError {
    /// The error for a failed swap of the tree of `context`.
    #[must_use]
    pub fn of_swap(context: &str, error: SwapError) -> ContextError {
        let context = context.to_owned();
        match error {
            SwapError::Busy => ContextError::Busy { context },
            SwapError::Failing { part } => ContextError::Failing { context, part },
            SwapError::Failed(faults) => ContextError::Failed { context, faults },
            SwapError::TooLarge => ContextError::TooLarge,
            difference @ SwapError::DefinedOtherwise { .. } => {
                ContextError::SharedPart { context, difference: Box::new(difference) }
            }
            SwapError::Stranded { part, tasks } => ContextError::Stranded { context, part, tasks },
        }
    }
}

sched_text::debug_as_text!(ContextError);
