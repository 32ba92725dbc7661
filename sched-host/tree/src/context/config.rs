//! What a context is at present, and how that is changed while its tree is at work.

use super::ContextError;
use crate::{Part, Tree};
use sched_core::{WorkerId, WorkerSet};
use sched_policy::Policy;
use sched_text::Findings;
use std::sync::Arc;

/// What a context is at present.
#[derive(Clone, Debug)]
pub struct ContextConfig {
    /// Its name, by which reports tell it from others.
    pub name: String,
    /// The policy that its tree was made from.
    pub policy: Arc<Policy>,
    /// The workers that its tree schedules for.
    pub workers: WorkerSet,
}

impl ContextConfig {
    /// A context with this name and policy, and these workers.
    #[must_use]
    pub fn new(name: String, policy: Policy, workers: WorkerSet) -> ContextConfig {
        ContextConfig { name, policy: Arc::new(policy), workers }
    }
}

/// Lays a policy (without one, that of `config`) over the workers that `change` makes of those of `config`, and swaps the
/// trees. Returns the new configuration, or `None` if nothing was to be changed. [`Tree::swap`] describes
/// `members_changed`.
///
/// # Errors
/// The policy cannot be laid over the workers, or the swap failed: the context is as it was.
pub fn exchange(
    tree: &Tree,
    config: &ContextConfig,
    policy: Option<Policy>,
    change: impl FnOnce(&mut WorkerSet),
    lay: impl FnOnce(&Policy, &WorkerSet) -> Result<Vec<Part>, Findings>,
    members_changed: &dyn Fn(),
) -> Result<Option<ContextConfig>, ContextError> {
    let mut next = config.clone();
    change(&mut next.workers);
    if policy.is_none() && next.workers == config.workers {
        return Ok(None);
    }
    if let Some(policy) = policy {
        next.policy = Arc::new(policy);
    }
    let parts = lay(&next.policy, &next.workers)?;
    tree.swap(parts, members_changed).map_err(|error| ContextError::of_swap(&next.name, error))?;
    Ok(Some(next))
}

/// The set of these workers, of which there are `count`.
///
/// # Errors
/// One of the numbers is that of no worker.
pub fn worker_ids(workers: impl IntoIterator<Item = u32>, count: usize) -> Result<WorkerSet, ContextError> {
    let check = |worker: u32| match (worker as usize) < count {
        true => Ok(WorkerId(worker)),
        false => Err(ContextError::UnknownWorker { worker, workers: count }),
    };
    workers.into_iter().map(check).collect()
}
