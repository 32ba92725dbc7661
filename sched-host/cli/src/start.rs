//! Starting with several policies.

use sched_runtime::{Runtime, StartError};

/// Policies with which no runtime starts.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{} of {given} policies cannot be used; nothing was run", causes.len())]
#[diagnostic(code(sched::policies))]
struct NotStarted {
    given: usize,
    #[related]
    causes: Vec<StartError>,
}

/// Starts a runtime with each policy, to see whether that goes well, and ends it again; gives back their warnings, each one
/// once.
///
/// # Errors
/// All policies with which none starts, each with everything that is wrong.
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
        (_, given) => Err(NotStarted { given, causes }.into()),
    }
}
