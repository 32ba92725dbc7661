//! Why a workload has no result.

use crate::linalg::{NoLuFactors, NotPositiveDefiniteMatrix};
use sched_runtime::{DataError, RunError, SubmitError};

/// Why a workload has no result.
#[derive(Clone, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The matrix has no Cholesky factor.
    #[error(transparent)]
    #[diagnostic(
        code(sched::workload::not_positive_definite),
        help("only symmetric positive definite matrices have a Cholesky factor")
    )]
    NotPositiveDefinite(#[from] NotPositiveDefiniteMatrix),
    /// The matrix has no LU factors without pivoting.
    #[error(transparent)]
    #[diagnostic(
        code(sched::workload::zero_pivot),
        help(
            "nothing is pivoted here: use a matrix that is dominated by its diagonal, or order its rows so that it is"
        )
    )]
    ZeroPivot(#[from] NoLuFactors),
    /// A kernel panicked, or the runtime stalled.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    /// A task was not accepted.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Submit(#[from] SubmitError),
    /// The result could not be obtained.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Data(#[from] DataError),
}

sched_text::debug_as_text!(WorkloadError);
