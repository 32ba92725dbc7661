//! Environment of the policies of all contexts: the machine and the available components.

use crate::device::machine::{DeviceMachine, DevicePlace};
use parking_lot::RwLock;
use sched_core::WorkerSet;
use sched_machine::topology::{BindingPlan, Topology};
use sched_policy::{BoundMachine, Policy};
use sched_text::Findings;
use sched_tree::Part;
use sched_tree::context::lay;
use sched_tree::plugin::{PluginChange, Registry};
use std::sync::Arc;

/// See the [module](self).
pub(crate) struct PolicyEnv {
    /// The components; a rescan replaces them.
    registry: RwLock<Arc<Registry>>,
    pub(crate) topology: Topology,
    pub(crate) binding: BindingPlan,
    /// Devices, whose workers are numbered after those of the binding.
    pub(crate) devices: Vec<DevicePlace>,
    /// Whether policies may break the rules on progress.
    pub(crate) unchecked: bool,
    /// Seeds the randomness of every component.
    pub(crate) seed: u64,
}

impl PolicyEnv {
    pub(crate) fn new(
        registry: Arc<Registry>,
        topology: Topology,
        binding: BindingPlan,
        devices: Vec<DevicePlace>,
        unchecked: bool,
        seed: u64,
    ) -> PolicyEnv {
        PolicyEnv { registry: RwLock::new(registry), topology, binding, devices, unchecked, seed }
    }

    /// Searches for plugins again; from now on policies are laid with what is found.
    pub(crate) fn rescan(&self) -> Vec<PluginChange> {
        let mut registry = self.registry.write();
        let now = registry.rescan();
        let changes = PluginChange::between(&registry, &now);
        *registry = Arc::new(now);
        changes
    }

    /// Builds the components of a policy laid over a set of workers, which may be empty.
    ///
    /// # Errors
    /// All problems of the policy, also without workers, and errors of constructors of components.
    pub(crate) fn lay(&self, policy: &Policy, workers: &WorkerSet) -> Result<Vec<Part>, Findings> {
        let registry = Arc::clone(&self.registry.read());
        let cores = BoundMachine::new(&self.topology, &self.binding);
        let machine = DeviceMachine { cores, devices: &self.devices };
        lay(policy, &machine, workers, &registry, self.unchecked)
    }
}
