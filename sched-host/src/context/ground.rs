//! What the policies of all contexts are laid over: the machine, and the components that there are.

use crate::plugin::Registry;
use crate::policy::{BoundMachine, Plan, Policy, PolicyErrors, SomeWorkers, Source, expand, expand_unchecked};
use crate::runtime::build_parts;
use crate::topology::{BindingPlan, Topology};
use crate::tree::Part;
use sched_core::WorkerSet;
use std::sync::Arc;

/// A policy that is data, or the name of one.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// The name of a shipped policy, or the path of a file.
    Named(String),
    /// A policy made by the program.
    Value(Box<Policy>),
}

impl Wanted {
    pub(crate) fn find(self) -> Result<Policy, PolicyErrors> {
        match self {
            Wanted::Named(name) => Source::find(&name)?.policy(),
            Wanted::Value(policy) => Ok(*policy),
        }
    }
}

/// See the module's text.
pub(crate) struct PolicyGround {
    pub(crate) registry: Arc<Registry>,
    pub(crate) topology: Topology,
    pub(crate) binding: BindingPlan,
    /// Policies may break the rules on progress.
    pub(crate) unchecked: bool,
    /// Seeds the randomness of every component.
    pub(crate) seed: u64,
}

impl PolicyGround {
    /// Builds the components of a policy laid over some of the workers, or none, where there are none.
    ///
    /// # Errors
    /// All that is wrong with the policy, be there workers or not; what the components' constructors say.
    pub(crate) fn lay(&self, policy: &Policy, workers: &WorkerSet) -> Result<Vec<Part>, PolicyErrors> {
        if workers.is_empty() {
            self.plan(policy, &WorkerSet::first(self.binding.workers().len() as u32))?;
            return Ok(Vec::new());
        }
        build_parts(&self.plan(policy, workers)?, &self.registry)
    }

    fn plan(&self, policy: &Policy, workers: &WorkerSet) -> Result<Plan, PolicyErrors> {
        let machine = BoundMachine::new(&self.topology, &self.binding);
        let lay = if self.unchecked { expand_unchecked } else { expand };
        lay(policy, &self.registry.catalogue(), &SomeWorkers { machine: &machine, workers })
    }
}
