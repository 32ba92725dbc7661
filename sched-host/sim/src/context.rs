//! Scheduling contexts of a simulation, as requested.

use sched_core::WorkerSet;
use sched_policy::{Policy, PolicyEdit};
use sched_tree::context::{ContextError, WantedPolicy};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A scheduling context of a simulation; see [`Simulation::context`](super::Simulation::context).
#[must_use = "a context does nothing before it is given to a simulation"]
#[derive(Clone, Debug)]
pub struct Context {
    pub(super) name: String,
    pub(super) policy: Option<WantedPolicy>,
    pub(super) workers: Option<Vec<u32>>,
    pub(super) priorities: RangeInclusive<i32>,
    pub(super) user_data: Vec<u8>,
}

impl Context {
    /// Name of the context that every simulation has.
    pub const DEFAULT: &'static str = "default";

    /// A context with the policy of the default context, all workers, and any priorities.
    pub fn new(name: impl Into<String>) -> Context {
        Context {
            name: name.into(),
            policy: None,
            workers: None,
            priorities: i32::MIN..=i32::MAX,
            user_data: Vec::new(),
        }
    }

    /// Sets the policy: the name of a shipped one, or the path of a KDL file.
    pub fn policy(mut self, name_or_path: impl Into<String>) -> Context {
        self.policy = Some(WantedPolicy::Named(name_or_path.into()));
        self
    }

    /// Sets the policy to a given value.
    pub fn policy_value(mut self, policy: Policy) -> Context {
        self.policy = Some(WantedPolicy::Value(Box::new(policy)));
        self
    }

    /// Sets the workers by their numbers; there may be none for a time. Contexts may share workers.
    pub fn workers(mut self, workers: impl IntoIterator<Item = u32>) -> Context {
        self.workers = Some(workers.into_iter().collect());
        self
    }

    /// Sets the range of priorities for tasks of this context. A priority outside of the range is an error, except 0,
    /// the priority of tasks without one: it becomes the nearest bound.
    pub fn priorities(mut self, range: RangeInclusive<i32>) -> Context {
        self.priorities = range;
        self
    }

    /// Attaches data to the context, for its components ([`Node::context_data`](sched_core::Node::context_data)).
    pub fn user_data(mut self, data: impl Into<Vec<u8>>) -> Context {
        self.user_data = data.into();
        self
    }

    /// Checks the priorities, and that the name is none of those in `before`.
    pub(super) fn check<'a>(&self, mut before: impl Iterator<Item = &'a str>) -> Result<(), ContextError> {
        if before.any(|name| name == self.name) {
            return Err(ContextError::NameTaken { name: self.name.clone() });
        }
        let (min, max) = (*self.priorities.start(), *self.priorities.end());
        if min > max {
            return Err(ContextError::Priorities { context: self.name.clone(), min, max });
        }
        Ok(())
    }
}

/// Time of a change in a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At this virtual time.
    At(Duration),
    /// When this number of tasks of the context have ended.
    AfterTasks(u64),
}

/// A change of a context while a simulation runs.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Policy(Box<Policy>),
    Edit(PolicyEdit),
    AddWorkers(WorkerSet),
    RemoveWorkers(WorkerSet),
    Workers { added: WorkerSet, removed: WorkerSet },
}
