//! Why a bench has no figures.

use sched_runtime::{RunError, StartError};
use sched_tree::NotGivenBack;

/// Why a bench has no figures.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum BenchError {
    /// A runtime does not start.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Start(#[from] StartError),
    /// A run has stalled, or a task has failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    /// A tree without running workers keeps tasks that it should give.
    #[error("there are no figures for `{of}`: {why}")]
    #[diagnostic(
        code(sched::bench::not_given_back),
        help(
            "a component keeps tasks, or has lost them: `sched run` with this component shows which, and where they are"
        )
    )]
    NotGivenBack {
        /// The policy or component.
        of: String,
        /// What is missing.
        why: NotGivenBack,
    },
}

sched_text::debug_as_text!(BenchError);

impl BenchError {
    /// For the tree of this policy or component.
    pub(super) fn of(name: &str) -> impl Fn(NotGivenBack) -> BenchError {
        move |why| BenchError::NotGivenBack { of: name.to_owned(), why }
    }
}
