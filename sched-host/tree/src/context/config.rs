//! Configuration of a context, and its change while the tree is running.

use super::ContextError;
use crate::{Part, Tree};
use sched_core::{WorkerId, WorkerSet};
use sched_policy::Policy;
use sched_text::Findings;
use std::sync::Arc;

/// Current configuration of a context.
#[derive(Clone, Debug)]
pub struct ContextConfig {
    /// Name in reports.
    pub name: String,
    /// Policy of its tree.
    pub policy: Arc<Policy>,
    /// Workers that its tree schedules for.
    pub workers: WorkerSet,
}

impl ContextConfig {
    /// A context with this name and policy, and these workers.
    #[must_use]
    pub fn new(name: String, policy: Policy, workers: WorkerSet) -> ContextConfig {
        ContextConfig { name, policy: Arc::new(policy), workers }
    }
}

/// What becomes of the policy of a context.
#[derive(Debug)]
pub enum NewPolicy {
    /// It stays.
    Same,
    /// It stays, in this changed form: components that are in both live on.
    Edited(Box<Policy>),
    /// Another one takes its place, with components of its own.
    Other(Box<Policy>),
}

/// Lays the policy over the changed workers of `config`, and exchanges the trees. Returns the new configuration, or
/// `None` if nothing changed. [`Tree::swap`] describes `members_changed`.
///
/// # Errors
/// The policy cannot be laid over the workers, or the swap failed: the context is unchanged.
pub fn exchange(
    tree: &Tree,
    config: &ContextConfig,
    policy: NewPolicy,
    change: impl FnOnce(&mut WorkerSet),
    lay: impl FnOnce(&Policy, &WorkerSet) -> Result<Vec<Part>, Findings>,
    members_changed: &dyn Fn(),
) -> Result<Option<ContextConfig>, ContextError> {
    let mut next = config.clone();
    change(&mut next.workers);
    let lives_on = !matches!(policy, NewPolicy::Other(_));
    match policy {
        NewPolicy::Same if next.workers == config.workers => return Ok(None),
        NewPolicy::Same => {}
        NewPolicy::Edited(policy) | NewPolicy::Other(policy) => next.policy = Arc::new(*policy),
    }
    let parts = lay(&next.policy, &next.workers)?;
    let exchanged = if lives_on { tree.reshape(parts, members_changed) } else { tree.swap(parts, members_changed) };
    exchanged.map_err(|error| ContextError::of_swap(&next.name, error))?;
    Ok(Some(next))
}

/// The set of these workers, if all numbers are below `count`.
///
/// # Errors
/// A number belongs to no worker.
pub fn worker_ids(workers: impl IntoIterator<Item = u32>, count: usize) -> Result<WorkerSet, ContextError> {
    let check = |worker: u32| match (worker as usize) < count {
        true => Ok(WorkerId(worker)),
        false => Err(ContextError::UnknownWorker { worker, workers: count }),
    };
    workers.into_iter().map(check).collect()
}
