//! Why a workload has no result.

use crate::linalg::NotPositiveDefiniteMatrix;
use crate::runtime::{DataError, RunError, SubmitError};

/// Why a workload has no result.
#[derive(Clone, Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The matrix has no Cholesky factor.
    #[error(transparent)]
    #[diagnostic(
        code(sched::workload::not_positive_definite),
        help("only symmetric positive definite matrices have a Cholesky factor")
    )]
    NotPositiveDefinite(#[from] NotPositiveDefiniteMatrix),
    /// A kernel panicked, or nothing moves any more.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    /// A task was not taken.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Submit(#[from] SubmitError),
    /// The result could not be had.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Data(#[from] DataError),
}
