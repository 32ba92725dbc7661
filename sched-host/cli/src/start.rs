//! Checks before a run with several policies.

use crate::reports;
use sched_runtime::{Runtime, StartError};

/// Policies that no runtime can start with.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{failed} of {given} policies cannot be used; nothing was run")]
#[diagnostic(code(sched::policies))]
struct NotStarted {
    failed: usize,
    given: usize,
    #[related]
    causes: Vec<StartError>,
}

/// Starts and ends a runtime with each policy to check it; returns the warnings without repetitions.
///
/// # Errors
/// All policies that no runtime can start with, each with all its problems.
pub(super) fn start_all(
    policies: &[String],
    start: impl Fn(&str) -> Result<Runtime, StartError>,
) -> miette::Result<Vec<String>> {
    let (mut warnings, mut causes) = (Vec::<String>::new(), Vec::new());
    for policy in policies {
        match start(policy) {
            Ok(runtime) => {
                let new = runtime.warnings().iter().filter(|warning| !warnings.contains(warning));
                let new: Vec<String> = new.cloned().collect();
                warnings.extend(new);
            }
            Err(cause) => causes.push(cause),
        }
    }
    match (causes.len(), policies.len()) {
        (0, _) => Ok(warnings),
        (_, 1) => Err(causes.remove(0).into()),
        (failed, given) => Err(NotStarted { failed, given, causes: reports::without_repetition(causes) }.into()),
    }
}
