//! How a runtime is put together: policy, plugins, workers.

use super::{Runtime, Start};
use crate::plugin::{Registry, SearchPath};
use crate::policy::{BoundMachine, Plan, Policy, PolicyErrors, Problem, Source, expand, expand_unchecked};
use crate::topology::{BindingError, BindingPlan, Topology, TopologyError, WorkerBinding};
use crate::tree::{Part, PushPull, WorkerFacts};
use sched_core::{Arch, MemoryNode};
use std::sync::Arc;
use std::time::Duration;

/// A runtime in the making; see [`Runtime::builder`].
#[must_use = "a runtime starts with `build`"]
#[derive(Clone)]
pub struct Builder {
    policy: Wanted,
    registry: Option<Arc<Registry>>,
    search_path: Option<SearchPath>,
    topology: Option<Topology>,
    workers: Option<usize>,
    bind: bool,
    seed: u64,
    quiet_period: Duration,
    unchecked: bool,
}

#[derive(Clone)]
enum Wanted {
    Named(String),
    Value(Box<Policy>),
}

/// Why a runtime did not start. No worker runs then.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum StartError {
    /// The policy is not there, is wrong, or does not fit the machine.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Policy(#[from] PolicyErrors),
    /// The machine could not be explored.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Topology(#[from] TopologyError),
    /// There is no processing unit to run on.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Binding(#[from] BindingError),
    /// The system gave no more threads.
    #[error("a worker's thread could not be started: {0}")]
    #[diagnostic(help("ask for fewer workers, or raise the limit of threads"))]
    Thread(#[source] std::io::Error),
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            policy: Wanted::Named("tree-eager".to_owned()),
            registry: None,
            search_path: None,
            topology: None,
            workers: None,
            bind: true,
            seed: 0,
            quiet_period: Duration::from_secs(2),
            unchecked: false,
        }
    }
}

impl Builder {
    /// The policy: the name of a shipped one, or the path of a KDL file. `tree-eager` by default.
    pub fn policy(mut self, name_or_path: impl Into<String>) -> Builder {
        self.policy = Wanted::Named(name_or_path.into());
        self
    }

    /// A policy made by the program.
    pub fn policy_value(mut self, policy: Policy) -> Builder {
        self.policy = Wanted::Value(Box::new(policy));
        self
    }

    /// The plugins, loaded before; otherwise they are looked for as [`search_path`](Self::search_path) says.
    pub fn registry(mut self, registry: Arc<Registry>) -> Builder {
        self.registry = Some(registry);
        self
    }

    /// Where to look for plugins; by default where [`SearchPath::default_for_executable`] says.
    pub fn search_path(mut self, path: SearchPath) -> Builder {
        self.search_path = Some(path);
        self
    }

    /// Number of workers; by default one for each processing unit that this process may use.
    pub fn workers(mut self, count: usize) -> Builder {
        self.workers = Some(count);
        self
    }

    /// The machine, explored before. Workers are bound only if it is this one.
    pub fn topology(mut self, topology: Topology) -> Builder {
        self.topology = Some(topology);
        self
    }

    /// Whether each worker is bound to a processing unit of its own; true by default.
    pub fn bind(mut self, bind: bool) -> Builder {
        self.bind = bind;
        self
    }

    /// Seeds the randomness of every component; 0 by default.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = seed;
        self
    }

    /// How long nothing may move, while somebody waits, before the run is given up as stalled; 2 s by default.
    pub fn quiet_period(mut self, period: Duration) -> Builder {
        self.quiet_period = period;
        self
    }

    /// Starts even with a policy whose root may refuse tasks, or in which tasks may stop moving: one that breaks the rules
    /// V1, V3 or V5 of [`check`](crate::policy::check()). It is for tests of what happens then.
    pub fn unchecked(mut self) -> Builder {
        self.unchecked = true;
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// See [`StartError`]; nothing was started then.
    pub fn build(self) -> Result<Runtime, StartError> {
        Runtime::start(self.prepare()?).map_err(StartError::Thread)
    }

    /// The tree alone, to measure what it costs.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn push_pull(self) -> Result<PushPull, StartError> {
        let start = self.prepare()?;
        Ok(PushPull::new(start.parts, &start.workers))
    }

    fn prepare(self) -> Result<Start, StartError> {
        let registry = self.registry.unwrap_or_else(|| {
            let path = self.search_path.unwrap_or_else(SearchPath::default_for_executable);
            Arc::new(Registry::load(&path))
        });
        let policy = match self.policy {
            Wanted::Named(name) => Source::find(&name)?.policy()?,
            Wanted::Value(policy) => *policy,
        };
        let topology = match self.topology {
            Some(topology) => topology,
            None => Topology::this_machine()?,
        };
        let count = self.workers.unwrap_or_else(|| BindingPlan::default_workers(&topology));
        let binding = BindingPlan::new(&topology, count)?;
        let warnings = binding.warnings().iter().map(ToString::to_string).collect();
        let lay = if self.unchecked { expand_unchecked } else { expand };
        let plan = lay(&policy, &registry.catalogue(), &BoundMachine::new(&topology, &binding))?;
        let parts = build_parts(&plan, &registry)?;
        let facts = |worker: &WorkerBinding| WorkerFacts {
            arch: Arch::CPU,
            memory_node: MemoryNode(worker.numa.unwrap_or(0)),
            relative_speedup: 1.0,
        };
        let workers = binding.workers().iter().map(facts).collect();
        let binding = Some(binding).filter(|_| self.bind && topology.is_this_machine());
        let (policy, seed, quiet_period) = (plan.policy, self.seed, self.quiet_period);
        Ok(Start { policy, parts, workers, binding, warnings, seed, quiet_period })
    }
}

/// Builds the component of each node of a plan.
fn build_parts(plan: &Plan, registry: &Registry) -> Result<Vec<Part>, PolicyErrors> {
    let mut parts = Vec::with_capacity(plan.nodes.len());
    let mut problems = Vec::new();
    for node in &plan.nodes {
        let name = &node.info.name;
        let Some(registered) = registry.component(name) else {
            unreachable!("the plan names components of the catalogue, which is made from the registry");
        };
        match registered.build(&node.params) {
            Ok(component) => parts.push(Part {
                component,
                name: name.clone(),
                plugin: node.plugin.clone(),
                path: node.path.clone(),
                object: node.place.clone(),
                children: node
                    .children
                    .iter()
                    .map(|child| (child.node.0 as u32, child.slot.clone().unwrap_or_default()))
                    .collect(),
                workers: node.workers.clone(),
                worker: node.leaf_worker,
                forwards_pull: node.info.forwards_pull,
            }),
            Err(error) => problems.push(
                Problem::error(error.to_string())
                    .at(node.span, "this one")
                    .code("build")
                    .in_source(plan.source.as_ref()),
            ),
        }
    }
    if problems.is_empty() {
        Ok(parts)
    } else {
        Err(PolicyErrors::new(format!("policy `{}` cannot be built", plan.policy), problems))
    }
}
