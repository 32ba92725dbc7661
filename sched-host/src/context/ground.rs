//! What the policies of all contexts are laid over: the machine, and the components that there are.

use crate::plugin::Registry;
use crate::policy::{BoundMachine, Machine, Plan, Policy, PolicyErrors, SomeWorkers, Source, expand, expand_unchecked};
use crate::runtime::build_parts;
use crate::topology::{BindingPlan, Topology};
use crate::tree::Part;
use sched_core::WorkerSet;
use std::sync::Arc;

/// A policy that is data, or the name of one.
#[derive(Clone, Debug, Default)]
pub(crate) enum Wanted {
    /// Nothing is said: the one of the environment, or else `tree-eager`.
    #[default]
    Default,
    /// The name of a shipped policy, or the path of a file.
    Named(String),
    /// A policy made by the program.
    Value(Box<Policy>),
}

impl Wanted {
    pub(crate) fn find(self) -> Result<Policy, PolicyErrors> {
        match self {
            Wanted::Default => Source::from_environment()?.policy(),
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
        lay(policy, &BoundMachine::new(&self.topology, &self.binding), workers, &self.registry, self.unchecked)
    }
}

/// Builds the components of a policy laid over some of a machine's workers, or none, where there are none. If `unchecked`, it
/// may break the rules on progress.
///
/// # Errors
/// As for [`PolicyGround::lay`].
pub(crate) fn lay(
    policy: &Policy,
    machine: &dyn Machine,
    workers: &WorkerSet,
    registry: &Registry,
    unchecked: bool,
) -> Result<Vec<Part>, PolicyErrors> {
    let plan = |workers| -> Result<Plan, PolicyErrors> {
        let lay = if unchecked { expand_unchecked } else { expand };
        lay(policy, &registry.catalogue(), &SomeWorkers { machine, workers })
    };
    if workers.is_empty() {
        plan(&WorkerSet::first(machine.workers() as u32))?;
        return Ok(Vec::new());
    }
    build_parts(&plan(workers)?, registry)
}
