//! Why a context was not made, changed or deleted.

use crate::{Fault, SwapError};
use sched_text::Findings;

/// Why a context was not made, changed or deleted. It is as it was before, with all of its tasks.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum ContextError {
    /// The policy is not there, is wrong, does not fit the workers, or a component of it cannot be built.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Policy(#[from] Findings),
    /// There is no such worker.
    #[error("there is no worker {worker}, only workers 0 to {}", .workers - 1)]
    #[diagnostic(code(sched::context::worker))]
    UnknownWorker {
        /// The number asked for.
        worker: u32,
        /// How many there are.
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
    /// A component did not come back from a call, so that the tree could not be exchanged.
    #[error("context `{context}` goes on as it was: a component of it did not come back from a call in time")]
    #[diagnostic(
        code(sched::context::busy),
        help("try again; if this remains, wait_all reports which worker is inside the scheduler")
    )]
    Busy {
        /// The context.
        context: String,
    },
    /// Components of the new tree failed when they got the tasks of the old one.
    #[error("context `{context}` goes on as it was: the new tree failed\n{}", faults_text(.faults))]
    #[diagnostic(code(sched::context::failed))]
    Failed {
        /// The context.
        context: String,
        /// What they did.
        faults: Vec<Fault>,
    },
    /// The context is gone.
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
    /// A task asks for what waits for that very task.
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
        /// Why they do not, as the back end reports it.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no room for another one.
    #[error("there are {most} contexts already")]
    #[diagnostic(code(sched::context::many), help("delete contexts that are no longer needed"))]
    TooMany {
        /// The most that there can be.
        most: usize,
    },
    /// All trees together would have too many nodes.
    #[error("the trees of all contexts together would have more than 2^24 nodes")]
    #[diagnostic(code(sched::context::nodes))]
    TooLarge,
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
    /// Why a swap of the tree of `context` failed.
    #[must_use]
    pub fn of_swap(context: &str, error: SwapError) -> ContextError {
        let context = context.to_owned();
        match error {
            SwapError::Busy => ContextError::Busy { context },
            SwapError::Failed(faults) => ContextError::Failed { context, faults },
            SwapError::TooLarge => ContextError::TooLarge,
        }
    }
}

sched_text::debug_as_text!(ContextError);
