//! Environment of the policies of all contexts: the machine and the available components.

use sched_core::WorkerSet;
use sched_machine::topology::{BindingPlan, Topology};
use sched_policy::{BoundMachine, Policy};
use sched_text::Findings;
use sched_tree::Part;
use sched_tree::context::lay;
use sched_tree::plugin::Registry;
use std::sync::Arc;

/// See the [module](self).
pub(crate) struct PolicyEnv {
    pub(crate) registry: Arc<Registry>,
    pub(crate) topology: Topology,
    pub(crate) binding: BindingPlan,
    /// Whether policies may break the rules on progress.
    pub(crate) unchecked: bool,
    /// Seeds the randomness of every component.
    pub(crate) seed: u64,
}

impl PolicyEnv {
    /// Builds the components of a policy laid over a set of workers, which may be empty.
    ///
    /// # Errors
    /// All problems of the policy, also without workers, and errors of constructors of components.
    pub(crate) fn lay(&self, policy: &Policy, workers: &WorkerSet) -> Result<Vec<Part>, Findings> {
        lay(policy, &BoundMachine::new(&self.topology, &self.binding), workers, &self.registry, self.unchecked)
    }
}
