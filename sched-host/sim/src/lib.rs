//! Simulation: the tree of a policy, with its plugins, under a virtual clock on a described machine.
//!
//! A [`Simulation`] runs a [`TaskGraph`] on a [`Platform`]. The scheduler is the very tree that the runtime drives: the
//! same components, from the same plugins, called in the same way; only the [`Services`](sched_tree::Services) behind it
//! are others, so no policy is written twice. What happens is a list of [`Event`]s, which depends on graph, platform,
//! policy and seed only: the same in each run, on each build.
//!
//! Scheduling [contexts](Simulation::context), swaps of policies, and [combined workers](Platform::combined_workers) for
//! parallel tasks work as in the runtime: `context` describes the former, [`sched_sync::gathering`] how teams
//! come together.
//!
//! ```
//! use sched_graph::{AccessMode, Datum, Task, TaskGraph};
//! use sched_sim::{Platform, Simulation};
//! use std::time::Duration;
//! # let registry = sched_tree::plugin::Registry::compiled_in();
//!
//! let mut graph = TaskGraph::new("one, then two");
//! let kind = graph.add_kind("k");
//! let data = graph.add_data(Datum::new(8));
//! graph.add_task(Task::new(kind).access(data, AccessMode::Write));
//! graph.add_task(Task::new(kind).access(data, AccessMode::Read));
//! graph.add_task(Task::new(kind).access(data, AccessMode::Read));
//!
//! let platform = Platform::flat(2, Duration::from_millis(10));
//! let outcome = Simulation::new(graph, platform).policy("tree-eager").registry(registry.into()).run()?;
//! assert_eq!(outcome.makespan, Duration::from_millis(20));
//! # Ok::<(), sched_sim::SimError>(())
//! ```

mod ahead;
mod backend;
mod context;
mod engine;
mod error;
mod lengths;
mod memory;
mod network;
mod outcome;
pub mod platform;
mod power;
mod reach;
mod recorder;
#[cfg(test)]
mod tests;
mod urgency;

pub use context::{Context, When};
pub use error::{SimError, Unknown};
pub use outcome::{ContextStats, LinkStats, MemoryStats, Outcome, Swapped, WorkerStats};
pub use platform::Platform;
pub use recorder::SimRecorder;
pub use urgency::prioritise;

use backend::SimBackend;
use context::Change;
use engine::{Engine, Opening, Planned, PolicyEnv};
use lengths::Lengths;
use sched_core::WorkerSet;
use sched_graph::TaskGraph;
use sched_policy::Policy;
use sched_trace::{Event, Observer};
use sched_tree::TreeObserver;
use sched_tree::combined::has_team_leaves;
use sched_tree::context::{ContextError, WantedPolicy, worker_ids};
use sched_tree::plugin::Registry;
use std::sync::Arc;

/// A simulation in the making.
#[must_use = "a simulation begins with `run`"]
#[derive(Clone)]
pub struct Simulation {
    graph: Arc<TaskGraph>,
    platform: Arc<Platform>,
    policy: WantedPolicy,
    registry: Option<Arc<Registry>>,
    seed: u64,
    tree_observer: Option<Arc<dyn TreeObserver>>,
    contexts: Vec<Context>,
    changes: Vec<Wish>,
}

/// A change that is asked for.
#[derive(Clone)]
struct Wish {
    context: String,
    when: When,
    what: Wished,
}

#[derive(Clone)]
enum Wished {
    Policy(WantedPolicy),
    AddWorkers(Vec<u32>),
    RemoveWorkers(Vec<u32>),
}

impl Simulation {
    /// Of this graph on this platform, with the policy that the environment variable `SCHED_POLICY` names, or `tree-eager`.
    pub fn new(graph: impl Into<Arc<TaskGraph>>, platform: impl Into<Arc<Platform>>) -> Simulation {
        Simulation {
            graph: graph.into(),
            platform: platform.into(),
            policy: WantedPolicy::Default,
            registry: None,
            seed: 0,
            tree_observer: None,
            contexts: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The policy: the name of a shipped one, or the path of a KDL file.
    pub fn policy(mut self, name_or_path: &str) -> Simulation {
        self.policy = WantedPolicy::Named(name_or_path.to_owned());
        self
    }

    /// A policy made by the program.
    pub fn policy_value(mut self, policy: Policy) -> Simulation {
        self.policy = WantedPolicy::Value(Box::new(policy));
        self
    }

    /// All components there are; [`Registry::available`] by default.
    pub fn registry(mut self, registry: Arc<Registry>) -> Simulation {
        self.registry = Some(registry);
        self
    }

    /// Seeds the randomness of every component; 0 by default.
    pub fn seed(mut self, seed: u64) -> Simulation {
        self.seed = seed;
        self
    }

    /// Observes where tasks are in the tree, while the simulation runs.
    pub fn tree_observer(mut self, tree_observer: Arc<dyn TreeObserver>) -> Simulation {
        self.tree_observer = Some(tree_observer);
        self
    }

    /// Adds a scheduling context. The first that is added is the one of number 1, which tasks of the graph
    /// [name](sched_graph::Task::context); the default context, of number 0, has all workers and the policy of the
    /// simulation.
    ///
    /// ```
    /// use sched_graph::{TaskGraph, generate::cholesky};
    /// use sched_sim::{Context, Platform, Simulation, When};
    /// use std::time::Duration;
    /// # let registry = sched_tree::plugin::Registry::compiled_in();
    /// let (ms, one) = (Duration::from_millis, cholesky(4, 100));
    /// let outcome = Simulation::new(TaskGraph::side_by_side("two", &[&one, &one]), Platform::flat(4, ms(1)))
    ///     .context(Context::new("a").policy("tree-prio").workers(0..2))
    ///     .context(Context::new("b").workers(1..4))
    ///     .swap_policy("b", "tree-prio", When::At(ms(2)))
    ///     .registry(registry.into())
    ///     .run()?;
    /// assert_eq!((outcome.contexts[1].tasks, outcome.contexts[2].tasks), (20, 20));
    /// assert_eq!(outcome.contexts[2].swaps[0].policy, "tree-prio");
    /// # Ok::<(), sched_sim::SimError>(())
    /// ```
    pub fn context(mut self, context: Context) -> Simulation {
        self.contexts.push(context);
        self
    }

    /// Swaps the policy of a context, to that of this name or path, unless all of its tasks have ended then. The one that every
    /// simulation has is called [`default`](Context::DEFAULT).
    pub fn swap_policy(self, context: &str, name_or_path: &str, when: When) -> Simulation {
        self.wish(context, when, Wished::Policy(WantedPolicy::Named(name_or_path.to_owned())))
    }

    /// The same with a policy made by the program.
    pub fn swap_policy_value(self, context: &str, policy: Policy, when: When) -> Simulation {
        self.wish(context, when, Wished::Policy(WantedPolicy::Value(Box::new(policy))))
    }

    /// Lets further workers serve a context, unless all of its tasks have ended then.
    pub fn add_workers(self, context: &str, workers: impl IntoIterator<Item = u32>, when: When) -> Simulation {
        self.wish(context, when, Wished::AddWorkers(workers.into_iter().collect()))
    }

    /// Lets workers serve a context no more, unless all of its tasks have ended then. What they execute is not disturbed.
    pub fn remove_workers(self, context: &str, workers: impl IntoIterator<Item = u32>, when: When) -> Simulation {
        self.wish(context, when, Wished::RemoveWorkers(workers.into_iter().collect()))
    }

    fn wish(mut self, context: &str, when: When, what: Wished) -> Simulation {
        self.changes.push(Wish { context: context.to_owned(), when, what });
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
        let registry = self.registry.unwrap_or_else(|| Arc::new(Registry::available()));
        let platform = self.platform;
        let policy_env = PolicyEnv { registry, seed: self.seed };
        let contexts = openings(self.policy.find()?, self.contexts, &platform, &policy_env)?;
        let changes = planned(self.changes, &contexts, platform.workers.len())?;
        check_contexts(&self.graph, &contexts)?;
        // A large machine has many teams, and most policies have no leaf for any.
        let has_teams = |context: &Opening| has_team_leaves(&context.parts, platform.workers.len());
        let teams = !changes.is_empty() || contexts.iter().any(has_teams);
        let combined = if teams { platform.combined_members() } else { Vec::new() };
        let lengths = Lengths::new(&self.graph, &platform, &combined)?;
        reach::check(&self.graph, &platform, &lengths)?;
        let dependencies = self.graph.dependencies();
        check_homes(&self.graph, &platform)?;
        let alone = contexts.len() == 1 && changes.is_empty();
        let mut backend = SimBackend::new(self.graph, Arc::new(dependencies), platform, lengths, combined);
        backend.tree_observer = self.tree_observer;
        backend.foresees = alone;
        Engine::new(backend, policy_env, contexts, changes, observer).run()
    }
}

/// The default context with this policy, and the others.
fn openings(
    policy: Policy,
    contexts: Vec<Context>,
    platform: &Platform,
    policy_env: &PolicyEnv,
) -> Result<Vec<Opening>, SimError> {
    let count = platform.workers.len();
    let everybody = WorkerSet::first(count as u32);
    let parts = policy_env.lay(platform, &policy, &everybody)?;
    let (name, any) = (Context::DEFAULT.to_owned(), i32::MIN..=i32::MAX);
    let mut openings =
        vec![Opening { name, policy: policy.clone(), workers: everybody.clone(), priorities: any, parts }];
    for context in contexts {
        let open = || -> Result<Opening, ContextError> {
            context.check(openings.iter().map(|opening| &*opening.name))?;
            let workers = match &context.workers {
                Some(workers) => worker_ids(workers.iter().copied(), count)?,
                None => everybody.clone(),
            };
            let policy = context.policy.clone().map_or_else(|| Ok(policy.clone()), WantedPolicy::find)?;
            let parts = policy_env.lay(platform, &policy, &workers)?;
            Ok(Opening { name: context.name.clone(), policy, workers, priorities: context.priorities.clone(), parts })
        };
        openings.push(open().map_err(|error| not_made(&context.name, error))?);
    }
    Ok(openings)
}

fn not_made(context: &str, error: ContextError) -> SimError {
    SimError::Context { context: context.to_owned(), done: "made".to_owned(), error }
}

/// The changes that are asked for, with policies that are there, of contexts and to workers that there are.
fn planned(wishes: Vec<Wish>, contexts: &[Opening], workers: usize) -> Result<Vec<Planned>, SimError> {
    let planned = |wish: Wish| {
        let Some(context) = contexts.iter().position(|context| context.name == wish.context) else {
            let known = contexts.iter().map(|context| context.name.clone()).collect();
            return Err(SimError::NoContext { name: wish.context, known });
        };
        let change = || -> Result<Change, ContextError> {
            Ok(match wish.what {
                Wished::Policy(policy) => Change::Policy(Box::new(policy.find()?)),
                Wished::AddWorkers(added) => Change::AddWorkers(worker_ids(added, workers)?),
                Wished::RemoveWorkers(removed) => Change::RemoveWorkers(worker_ids(removed, workers)?),
            })
        };
        let change =
            change().map_err(|error| SimError::Context { context: wish.context, done: "changed".to_owned(), error })?;
        Ok(Planned { context, when: wish.when, change: Some(change) })
    };
    wishes.into_iter().map(planned).collect()
}

/// Tasks belong to contexts that there are, and have priorities that these allow.
fn check_contexts(graph: &TaskGraph, contexts: &[Opening]) -> Result<(), SimError> {
    for (number, task) in graph.tasks.iter().enumerate() {
        let number = number as u32;
        let Some(context) = contexts.get(usize::from(task.context)) else {
            return Err(SimError::TaskContext { task: number, context: task.context, contexts: contexts.len() });
        };
        if task.priority != 0 && !context.priorities.contains(&task.priority) {
            return Err(SimError::Priority {
                task: number,
                priority: task.priority,
                context: context.name.clone(),
                min: *context.priorities.start(),
                max: *context.priorities.end(),
            });
        }
    }
    Ok(())
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
