//! Simulation: the tree of a policy, with its plugins, under a virtual clock on a described machine.
//!
//! A [`Simulation`] runs a [`TaskGraph`] on a [`Platform`]. The scheduler is the tree that the runtime drives: the same
//! components, from the same plugins, called in the same way; only the [`Services`](sched_tree::Services) behind it
//! differ, so no policy is written twice. A run is a list of [`Event`]s that depends only on graph, platform, policy
//! and seed: it is equal in each run, on each build.
//!
//! [Clusters](cluster) of several nodes have a tree on each of them.
//!
//! Scheduling [contexts](Simulation::context), swaps of policies, and [combined workers](Platform::combined_workers)
//! for parallel tasks work as in the runtime; [`sched_sync::gathering`] describes how teams gather.
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
mod allowed;
mod backend;
pub mod cluster;
mod context;
mod copies;
mod engine;
mod error;
mod homes;
mod lengths;
mod memory;
mod network;
mod noise;
mod outcome;
mod overflow;
pub mod platform;
mod power;
mod priorities;
mod recorder;
mod restrictions;
mod specs;
#[cfg(test)]
mod tests;

pub use context::{Context, When};
pub use error::{Lack, Nowhere, SimError, Unknown};
pub use noise::{Known, Noise};
pub use outcome::{ContextStats, LinkStats, MemoryStats, SimOutcome, Swapped, WorkerStats};
pub use platform::Platform;
pub use priorities::prioritise;
pub use recorder::SimRecorder;

use backend::SimBackend;
use context::Change;
use engine::{Engine, Opening, PlannedChange, PolicyEnv, Supervision};
use lengths::Lengths;
use sched_core::WorkerSet;
use sched_graph::{Dependencies, TaskGraph, TaskId};
use sched_policy::{Policy, PolicyEdit};
use sched_trace::{Event, Observer};
use sched_tree::TreeObserver;
use sched_tree::combined::has_team_leaves;
use sched_tree::context::{ContextError, WantedPolicy, worker_ids};
use sched_tree::hypervisor::{Goals, Hypervisor};
use sched_tree::plugin::Registry;
use specs::Specs;
use std::sync::Arc;

/// A simulation that is being set up.
#[must_use = "a simulation begins with `run`"]
#[derive(Clone)]
pub struct Simulation {
    graph: Arc<TaskGraph>,
    /// Those of the graph, if they are known.
    dependencies: Option<Arc<Dependencies>>,
    platform: Arc<Platform>,
    policy: WantedPolicy,
    registry: Option<Arc<Registry>>,
    seed: u64,
    noise: Noise,
    tree_observer: Option<Arc<dyn TreeObserver>>,
    contexts: Vec<Context>,
    changes: Vec<ChangeRequest>,
    goals: Option<Goals>,
}

/// A requested change of a context.
#[derive(Clone)]
struct ChangeRequest {
    context: String,
    when: When,
    change: RequestedChange,
}

#[derive(Clone)]
enum RequestedChange {
    Policy(WantedPolicy),
    Edit(PolicyEdit),
    AddWorkers(Vec<u32>),
    RemoveWorkers(Vec<u32>),
}

impl Simulation {
    /// A simulation of this graph on this platform, with the policy that the environment variable `SCHED_POLICY` names,
    /// or `tree-ws`.
    pub fn new(graph: impl Into<Arc<TaskGraph>>, platform: impl Into<Arc<Platform>>) -> Simulation {
        Simulation {
            graph: graph.into(),
            dependencies: None,
            platform: platform.into(),
            policy: WantedPolicy::Default,
            registry: None,
            seed: 0,
            noise: Noise::default(),
            tree_observer: None,
            contexts: Vec::new(),
            changes: Vec::new(),
            goals: None,
        }
    }

    /// Gives the dependencies of the graph, which each run computes otherwise. A graph that is simulated repeatedly
    /// needs them once.
    ///
    /// ```
    /// # use sched_graph::generate::cholesky;
    /// # use sched_sim::{Platform, Simulation};
    /// # use std::{sync::Arc, time::Duration};
    /// # let registry = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// let graph = Arc::new(cholesky(8, 100));
    /// let dependencies = Arc::new(graph.dependencies());
    /// for (policy, workers) in [("tree-eager", 4), ("tree-prio", 4), ("tree-ws", 8)] {
    ///     let platform = Platform::flat(workers, Duration::from_millis(1));
    ///     let simulation = Simulation::new(Arc::clone(&graph), platform).policy(policy);
    ///     let simulation = simulation.registry(Arc::clone(&registry));
    ///     let given = simulation.clone().dependencies(Arc::clone(&dependencies)).run()?;
    ///     assert_eq!(given.makespan, simulation.run()?.makespan);
    /// }
    /// # Ok::<(), sched_sim::SimError>(())
    /// ```
    ///
    /// # Panics
    /// If they are of a graph with another number of tasks.
    pub fn dependencies(mut self, dependencies: Arc<Dependencies>) -> Simulation {
        assert_eq!(dependencies.n_tasks(), self.graph.tasks.len(), "dependencies are those of the graph");
        self.dependencies = Some(dependencies);
        self
    }

    /// Sets the policy: the name of a shipped one, or the path of a KDL file.
    pub fn policy(mut self, name_or_path: &str) -> Simulation {
        self.policy = WantedPolicy::Named(name_or_path.to_owned());
        self
    }

    /// Sets the policy to a given value.
    pub fn policy_value(mut self, policy: Policy) -> Simulation {
        self.policy = WantedPolicy::Value(Box::new(policy));
        self
    }

    /// Sets the available components; [`Registry::available`] by default.
    pub fn registry(mut self, registry: Arc<Registry>) -> Simulation {
        self.registry = Some(registry);
        self
    }

    /// Sets the seed of the random choices of every component; 0 by default.
    pub fn seed(mut self, seed: u64) -> Simulation {
        self.seed = seed;
        self
    }

    /// Lets kernels take other times than schedulers expect.
    pub fn noise(mut self, noise: Noise) -> Simulation {
        self.noise = noise;
        self
    }

    /// Sets the observer of the trees, to which they report where tasks are.
    pub fn tree_observer(mut self, tree_observer: Arc<dyn TreeObserver>) -> Simulation {
        self.tree_observer = Some(tree_observer);
        self
    }

    /// Adds a scheduling context. Tasks of the graph [name](sched_graph::Task::context) contexts by number: 1 is the
    /// first that is added; 0 is the default context, which has all workers and the policy of the simulation.
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

    /// Swaps the policy of a context for the one of this name or path, unless all of its tasks have ended then. The
    /// default context is named [`default`](Context::DEFAULT).
    pub fn swap_policy(self, context: &str, name_or_path: &str, when: When) -> Simulation {
        self.request(context, when, RequestedChange::Policy(WantedPolicy::Named(name_or_path.to_owned())))
    }

    /// Swaps the policy of a context for a given value, as [`swap_policy`](Self::swap_policy) does.
    pub fn swap_policy_value(self, context: &str, policy: Policy, when: When) -> Simulation {
        self.request(context, when, RequestedChange::Policy(WantedPolicy::Value(Box::new(policy))))
    }

    /// Changes the shape of the policy of a context, unless all of its tasks have ended then.
    pub fn edit_policy(self, context: &str, edit: PolicyEdit, when: When) -> Simulation {
        self.request(context, when, RequestedChange::Edit(edit))
    }

    /// Adds workers to a context, unless all of its tasks have ended then.
    pub fn add_workers(self, context: &str, workers: impl IntoIterator<Item = u32>, when: When) -> Simulation {
        self.request(context, when, RequestedChange::AddWorkers(workers.into_iter().collect()))
    }

    /// Removes workers from a context, unless all of its tasks have ended then. Tasks that they execute are not
    /// disturbed.
    pub fn remove_workers(self, context: &str, workers: impl IntoIterator<Item = u32>, when: When) -> Simulation {
        self.request(context, when, RequestedChange::RemoveWorkers(workers.into_iter().collect()))
    }

    /// Lets a [hypervisor](sched_tree::hypervisor) move workers between contexts, so that they attain these goals.
    /// Times are those of the virtual clock. [`SimOutcome::governance`] reports what it did.
    ///
    /// ```
    /// use sched_graph::{TaskGraph, generate::independent};
    /// use sched_sim::{Context, Platform, Simulation};
    /// use sched_tree::hypervisor::{Goal, Goals, GovernedContext};
    /// use std::time::Duration;
    /// # let registry = sched_tree::plugin::Registry::compiled_in();
    /// let (ms, many) = (Duration::from_millis, independent(400, Duration::from_millis(1)));
    /// let share = |name, share| GovernedContext::new(name).goal(Goal::Share(share));
    /// let outcome = Simulation::new(TaskGraph::side_by_side("two", &[&many, &many]), Platform::flat(8, ms(1)))
    ///     .context(Context::new("a").workers(0..4))
    ///     .context(Context::new("b").workers(4..8))
    ///     .govern(Goals::new().context(share("a", 0.75)).context(share("b", 0.25)))
    ///     .registry(registry.into())
    ///     .run()?;
    /// assert!(outcome.contexts[1].makespan < outcome.contexts[2].makespan);
    /// # Ok::<(), sched_sim::SimError>(())
    /// ```
    pub fn govern(mut self, goals: Goals) -> Simulation {
        self.goals = Some(goals);
        self
    }

    fn request(mut self, context: &str, when: When, change: RequestedChange) -> Simulation {
        self.changes.push(ChangeRequest { context: context.to_owned(), when, change });
        self
    }

    /// Runs all tasks.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn run(self) -> Result<SimOutcome, SimError> {
        struct Nobody;
        impl Observer for Nobody {
            fn event(&mut self, _nanos: u64, _event: &Event) {}
        }
        self.observe(&mut Nobody)
    }

    /// Runs all tasks, and reports each event to `observer`.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn observe(self, observer: &mut dyn Observer) -> Result<SimOutcome, SimError> {
        let registry = self.registry.unwrap_or_else(|| Arc::new(Registry::available()));
        let platform = self.platform;
        let policy_env = PolicyEnv { registry, seed: self.seed };
        let contexts = openings(self.policy.find()?, self.contexts, &platform, &policy_env)?;
        let changes = planned(self.changes, &contexts, &platform)?;
        let specs = Specs::of(&self.graph);
        check_contexts(&specs, &contexts)?;
        if self.goals.is_none() {
            check_changes(&changes, &contexts, &platform, &policy_env)?;
        }
        let names: Vec<String> = contexts.iter().map(|context| context.name.clone()).collect();
        observer.contexts(&names);
        let resolve = |goals: &Goals| {
            let governed = goals.resolve(&names, true)?;
            let mut pool = WorkerSet::new();
            governed.iter().for_each(|context| pool.union_with(&contexts[*context].workers));
            goals.check_minima(pool.len()).map(|()| governed)
        };
        let governed = self.goals.as_ref().map(resolve).transpose()?;
        // A large machine has many combined workers, and most policies have no leaf for any of them.
        let has_teams = |context: &Opening| has_team_leaves(&context.parts, platform.workers.len());
        let teams = !changes.is_empty() || governed.is_some() || contexts.iter().any(has_teams);
        let combined = if teams { platform.combined_members() } else { Vec::new() };
        let lengths = Lengths::new(&self.graph, &platform, &combined)?;
        restrictions::check(&self.graph, &specs, &platform, &lengths)?;
        let pool = governed.as_deref().unwrap_or(&[]);
        restrictions::check_contexts(&self.graph, &specs, &platform, &lengths, &contexts, &changes, pool)?;
        let (lengths, luck) = self.noise.disturb(&self.graph, &platform, lengths);
        overflow::check(&self.graph, &specs, &platform, &lengths, luck.as_ref())?;
        let dependencies = self.dependencies.unwrap_or_else(|| Arc::new(self.graph.dependencies()));
        homes::check(&self.graph, &platform)?;
        let alone = contexts.len() == 1 && changes.is_empty() && governed.is_none();
        let mut backend = SimBackend::new(self.graph, specs, dependencies, platform, lengths, combined);
        backend.luck = luck;
        backend.tree_observer = self.tree_observer;
        backend.foresees = alone;
        let supervision = self.goals.zip(governed).map(|(goals, governed)| {
            let speeds = backend.platform.worker_facts().iter().map(|facts| facts.relative_speedup).collect();
            Supervision::new(Hypervisor::new(goals, speeds), governed, names.len(), &backend)
        });
        let mut engine = Engine::new(backend, policy_env, contexts, changes, observer)?;
        engine.supervision = supervision;
        engine.run()
    }
}

/// The default context with this policy, then the others.
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
    let mut openings = vec![Opening {
        name,
        policy: policy.clone(),
        workers: everybody.clone(),
        priorities: any,
        parts,
        user_data: Vec::new(),
    }];
    for context in contexts {
        let open = || -> Result<Opening, ContextError> {
            context.check(openings.iter().map(|opening| &*opening.name))?;
            let workers = match &context.workers {
                Some(workers) => worker_ids(workers.iter().copied(), count)?,
                None => everybody.clone(),
            };
            let policy = context.policy.clone().map_or_else(|| Ok(policy.clone()), WantedPolicy::find)?;
            let parts = policy_env.lay(platform, &policy, &workers)?;
            let (name, priorities, user_data) =
                (context.name.clone(), context.priorities.clone(), context.user_data.clone());
            Ok(Opening { name, policy, workers, priorities, parts, user_data })
        };
        openings.push(open().map_err(|error| not_made(&context.name, error))?);
    }
    Ok(openings)
}

pub(crate) fn not_made(context: &str, error: ContextError) -> SimError {
    SimError::Context { context: context.to_owned(), done: "made".to_owned(), error }
}

/// Resolves the contexts, policies and workers of requested changes.
fn planned(
    requests: Vec<ChangeRequest>,
    contexts: &[Opening],
    platform: &Platform,
) -> Result<Vec<PlannedChange>, SimError> {
    let workers = platform.workers.len();
    let planned = |request: ChangeRequest| {
        let Some(context) = contexts.iter().position(|context| context.name == request.context) else {
            let known = contexts.iter().map(|context| context.name.clone()).collect();
            return Err(SimError::NoContext { name: request.context, known });
        };
        let change = || -> Result<Change, ContextError> {
            Ok(match request.change {
                RequestedChange::Edit(edit) => Change::Edit(edit),
                RequestedChange::Policy(policy) => Change::Policy(Box::new(policy.find()?)),
                RequestedChange::AddWorkers(added) => Change::AddWorkers(worker_ids(added, workers)?),
                RequestedChange::RemoveWorkers(removed) => Change::RemoveWorkers(worker_ids(removed, workers)?),
            })
        };
        let change = change().map_err(|error| SimError::Context {
            context: request.context,
            done: "changed".to_owned(),
            error,
        })?;
        Ok(PlannedChange { context, when: request.when, change: Some(change) })
    };
    requests.into_iter().map(planned).collect()
}

/// Checks that policies which are swapped in fit the workers of their contexts, where these stay the same until then.
fn check_changes(
    changes: &[PlannedChange],
    contexts: &[Opening],
    platform: &Platform,
    policy_env: &PolicyEnv,
) -> Result<(), SimError> {
    let moves_workers = |planned: &PlannedChange| {
        matches!(planned.change, Some(Change::AddWorkers(_) | Change::RemoveWorkers(_) | Change::Workers { .. }))
    };
    for planned in changes {
        let Some(Change::Policy(policy)) = &planned.change else { continue };
        if changes.iter().any(|other| other.context == planned.context && moves_workers(other)) {
            continue;
        }
        let Opening { name, workers, .. } = &contexts[planned.context];
        policy_env.lay(platform, policy, workers).map_err(|error| SimError::Context {
            context: name.clone(),
            done: "changed".to_owned(),
            error: error.into(),
        })?;
    }
    Ok(())
}

/// Checks that the context of each task exists, and that the priority of each task is in its range.
fn check_contexts(specs: &Specs, contexts: &[Opening]) -> Result<(), SimError> {
    for (TaskId(number), task) in specs.iter() {
        let Some(context) = contexts.get(task.context.index()) else {
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
