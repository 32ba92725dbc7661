//! Simulation: the tree of a policy, with its plugins, under a virtual clock on a described machine.
//!
//! A [`Simulation`] runs a [`TaskGraph`] on a [`Platform`]. The scheduler is the very tree that the runtime drives: the
//! same components, from the same plugins, called in the same way; only the [`Services`](crate::tree::Services) behind it
//! are others, so no policy is written twice. What happens is a list of [`Event`]s, which depends on graph, platform,
//! policy and seed only: the same in each run, on each build.
//!
//! ```
//! use sched_host::graph::{Datum, Mode, Task, TaskGraph};
//! use sched_host::sim::{Platform, Simulation};
//! use std::time::Duration;
//! # use sched_components::{flow_control::Fifo, resource_mapping::Eager, worker::Simple};
//! # let mut registry = sched_host::plugin::Registry::empty();
//! # let stock = [sched_core::Offer::of::<Fifo>(), sched_core::Offer::of::<Eager>(), sched_core::Offer::of::<Simple>()];
//! # registry.add_builtin("stock", stock.into()).expect("stock components are sound");
//!
//! let mut graph = TaskGraph::new("one, then two");
//! let kind = graph.add_kind("k");
//! let data = graph.add_data(Datum::new(8));
//! graph.add_task(Task::new(kind).access(data, Mode::Write));
//! graph.add_task(Task::new(kind).access(data, Mode::Read));
//! graph.add_task(Task::new(kind).access(data, Mode::Read));
//!
//! let platform = Platform::flat(2, Duration::from_millis(10));
//! let outcome = Simulation::new(graph, platform).policy("tree-eager").registry(registry.into()).run()?;
//! assert_eq!(outcome.makespan, Duration::from_millis(20));
//! # Ok::<(), sched_host::sim::SimError>(())
//! ```

mod desk;
mod engine;
mod error;
mod event;
mod lengths;
mod memory;
mod network;
mod outcome;
pub mod platform;
#[cfg(test)]
mod tests;
mod urgency;

pub use error::{SimError, Unknown};
pub use event::{Digest, Event, EventLog, Observer, Reason, Transfer};
pub use outcome::{LinkStats, MemoryStats, Outcome, WorkerStats};
pub use platform::Platform;
pub use urgency::prioritise;

use crate::graph::TaskGraph;
use crate::plugin::{Registry, SearchPath};
use crate::policy::{Policy, PolicyErrors, Source, expand};
use crate::runtime::build_parts;
use crate::tree::Witness;
use desk::Desk;
use engine::Engine;
use lengths::Lengths;
use std::sync::Arc;

/// A simulation in the making.
#[must_use = "a simulation begins with `run`"]
#[derive(Clone)]
pub struct Simulation {
    graph: Arc<TaskGraph>,
    platform: Arc<Platform>,
    policy: Result<Policy, PolicyErrors>,
    registry: Option<Arc<Registry>>,
    seed: u64,
    witness: Option<Arc<dyn Witness>>,
}

impl Simulation {
    /// Of this graph on this platform, with the policy `tree-eager`.
    pub fn new(graph: impl Into<Arc<TaskGraph>>, platform: impl Into<Arc<Platform>>) -> Simulation {
        Simulation {
            graph: graph.into(),
            platform: platform.into(),
            policy: Source::find("tree-eager").and_then(|source| source.policy()),
            registry: None,
            seed: 0,
            witness: None,
        }
    }

    /// The policy: the name of a shipped one, or the path of a KDL file.
    pub fn policy(mut self, name_or_path: &str) -> Simulation {
        self.policy = Source::find(name_or_path).and_then(|source| source.policy());
        self
    }

    /// A policy made by the program.
    pub fn policy_value(mut self, policy: Policy) -> Simulation {
        self.policy = Ok(policy);
        self
    }

    /// The plugins, loaded before; otherwise they are looked for where
    /// [`SearchPath::default_for_executable`] says.
    pub fn registry(mut self, registry: Arc<Registry>) -> Simulation {
        self.registry = Some(registry);
        self
    }

    /// Seeds the randomness of every component; 0 by default.
    pub fn seed(mut self, seed: u64) -> Simulation {
        self.seed = seed;
        self
    }

    /// Who is told where tasks are in the tree, while it runs.
    pub fn witness(mut self, witness: Arc<dyn Witness>) -> Simulation {
        self.witness = Some(witness);
        self
    }

    /// Runs all tasks.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn run(self) -> Result<Outcome, SimError> {
        struct Nobody;
        impl Observer for Nobody {
            fn event(&mut self, _nanos: u64, _event: &Event) {}
        }
        self.observe(&mut Nobody)
    }

    /// Runs all tasks, and tells `observer` what happens.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn observe(self, observer: &mut dyn Observer) -> Result<Outcome, SimError> {
        let registry = self.registry.unwrap_or_else(|| Arc::new(Registry::load(&SearchPath::default_for_executable())));
        let platform = self.platform;
        let plan = expand(&self.policy?, &registry.catalogue(), &*platform)?;
        let parts = build_parts(&plan, &registry)?;
        let lengths = Lengths::new(&self.graph, &platform)?;
        let dependencies = self.graph.dependencies();
        check_homes(&self.graph, &platform)?;
        let mut desk = Desk::new(self.graph, platform, lengths);
        desk.witness = self.witness;
        Engine::new(desk, parts, dependencies, self.seed, observer).run()
    }
}

/// What is at home in a memory has to fit there.
fn check_homes(graph: &TaskGraph, platform: &Platform) -> Result<(), SimError> {
    let memories = platform.memories.len();
    let mut needed = vec![0u64; memories];
    for datum in &graph.data {
        match needed.get_mut(datum.home.0 as usize) {
            Some(needed) => *needed = needed.saturating_add(datum.bytes),
            None => return Err(SimError::Home { node: datum.home.0, memories }),
        }
    }
    for (needed, memory) in needed.into_iter().zip(&platform.memories) {
        if let Some(capacity) = memory.capacity.filter(|capacity| needed > *capacity) {
            return Err(SimError::Data { memory: memory.name.clone(), needed, capacity });
        }
    }
    Ok(())
}
