//! The case that is simulated with each policy.

mod watcher;

use super::explain::{self, Explain};
use super::report::{Failed, Run};
use super::setup::{Loaded, Setup};
use super::swap::Swap;
use crate::contexts::{ContextOptions, Wanted};
use crate::jobs::Jobs;
use crate::log;
use crate::makespan;
use crate::progress::Progress;
use crate::reports;
use miette::miette;
use sched_graph::bound::Bounds;
use sched_graph::{Dependencies, TaskGraph};
use sched_sim::cluster::{Cluster, ClusterSimulation};
use sched_sim::{Context, Noise, Platform, SimError, SimRecorder, Simulation, When};
use sched_trace::{Digest, Trace};
use sched_tree::hypervisor::Goals;
use sched_tree::plugin::Registry;
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use watcher::Watcher;

/// A graph on a platform, in contexts.
pub(crate) struct Case {
    /// The workload, once in each context.
    pub(crate) graph: Arc<TaskGraph>,
    dependencies: OnceLock<Arc<Dependencies>>,
    bounds: OnceLock<Option<Bounds>>,
    /// The machine; of a cluster, all nodes as one machine.
    pub(crate) platform: Arc<Platform>,
    cluster: Option<Arc<Cluster>>,
    pub(crate) chance: Chance,
    contexts: Vec<Wanted>,
    /// Goals for the hypervisor.
    goals: Option<Goals>,
    swap_to: Option<Swap>,
    /// Half of the tasks of one context.
    half: u64,
    registry: Arc<Registry>,
}

/// What is random in a simulation.
#[derive(Clone)]
pub(crate) struct Chance {
    pub(crate) seed: u64,
    pub(crate) noise: Noise,
}

/// Unknown or invalid policies.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{failed} of {given} policies cannot be used; nothing was simulated")]
#[diagnostic(code(sched::policies))]
struct Unusable {
    failed: usize,
    given: usize,
    #[related]
    causes: Vec<SimError>,
}

/// Maximum number of tasks for which bounds are computed; larger graphs take too long.
const MOST_FOR_BOUNDS: usize = 100_000;

/// The policy that replays static schedules: it hands each task to the worker that may execute it, by priority.
const REPLAYER: &str = "tree-dmdas";

/// Recordings of a simulation.
pub(crate) struct Recording<'a> {
    /// Whether a trace is recorded.
    pub(crate) trace: bool,
    /// Destination of a line for each event.
    pub(crate) events: Option<Box<dyn Write + Send + 'a>>,
    /// What is explained.
    pub(crate) explain: &'a Explain,
}

impl Recording<'_> {
    /// Of a trace alone, if it is wanted.
    pub(crate) fn of_trace(trace: bool) -> Recording<'static> {
        Recording { trace, events: None, explain: const { &Explain::NOTHING } }
    }
}

/// A simulation that is wanted.
pub(crate) struct Wish<'a> {
    pub(crate) policy: &'a str,
    pub(crate) chance: Chance,
    pub(crate) recording: Recording<'a>,
}

/// What completes, with its place among what was wanted, and what does not.
type Completed<T> = (Vec<(usize, T)>, Vec<Failed>);

/// A completed simulation.
pub(crate) struct Simulated {
    pub(crate) run: Run,
    pub(crate) trace: Option<Trace>,
    /// Whether the events were written.
    pub(super) written: io::Result<()>,
}

impl Case {
    /// The case of the command line.
    ///
    /// # Errors
    /// If graph or platform are invalid.
    pub(crate) fn load(
        setup: &Setup,
        contexts: &ContextOptions,
        swap_to: Option<&Swap>,
        registry: Arc<Registry>,
    ) -> miette::Result<Case> {
        let goals = contexts.goals()?;
        let contexts = &contexts.contexts;
        let Loaded { graph, platform, cluster } = setup.load()?;
        if cluster.is_some() && (goals.is_some() || swap_to.is_some() || !contexts.is_empty()) {
            return Err(miette!(
                help = "leave out --context and --swap-to, or name the platform of one node",
                "contexts, their goals and swaps are simulated on one machine, not on a cluster"
            ));
        }
        let noise = setup.noise(&graph, &platform)?;
        let half = graph.tasks.len() as u64 / 2;
        let graph = match contexts.len() {
            0 => graph,
            count => TaskGraph::side_by_side(graph.name.clone(), &vec![&graph; count]),
        };
        Ok(Case {
            graph: Arc::new(graph),
            dependencies: OnceLock::new(),
            bounds: OnceLock::new(),
            platform,
            cluster,
            chance: Chance { seed: setup.seed.seed, noise },
            contexts: contexts.to_vec(),
            goals,
            swap_to: swap_to.cloned(),
            half,
            registry,
        })
    }

    /// The dependencies that hold on the machine, computed once. Nodes of a cluster have copies of their own.
    pub(super) fn dependencies(&self) -> &Arc<Dependencies> {
        let of_graph =
            || if self.cluster.is_some() { Dependencies::of_flows(&self.graph) } else { self.graph.dependencies() };
        self.dependencies.get_or_init(|| Arc::new(of_graph()))
    }

    /// The lower bounds of the makespan by the lengths that schedulers expect, computed once; none for graphs for which
    /// that takes too long.
    pub(crate) fn bounds(&self) -> Option<Bounds> {
        let is_small = self.graph.tasks.len() <= MOST_FOR_BOUNDS;
        let bounds = || is_small.then(|| self.platform.bounds(&self.graph, self.dependencies()).ok()).flatten();
        *self.bounds.get_or_init(bounds)
    }

    /// Checks that it is on one machine.
    ///
    /// # Errors
    /// If it is on a cluster.
    pub(crate) fn on_one_machine(&self) -> miette::Result<()> {
        match &self.cluster {
            Some(cluster) => Err(miette!(
                help = "`sched simulate` takes several policies too: --policy tree-heft,tree-prio",
                "`{}` is a cluster, and static schedules are for one machine",
                cluster.name
            )),
            None => Ok(()),
        }
    }

    /// Checks that what is to be explained can be.
    ///
    /// # Errors
    /// If it is the makespan on a cluster, where tasks wait for messages.
    pub(super) fn can_explain(&self, wanted: &Explain) -> miette::Result<()> {
        match &self.cluster {
            Some(cluster) if wanted.makespan => Err(miette!(
                help = "explain single tasks, or the makespan on the platform of one node",
                "`{}` is a cluster, and makespans are explained on one machine",
                cluster.name
            )),
            _ => Ok(()),
        }
    }

    /// Whether the report shows contexts.
    pub(super) fn has_contexts(&self) -> bool {
        !self.contexts.is_empty() || self.swap_to.is_some() || self.goals.is_some()
    }

    /// Names of the policies in use together with this one.
    pub(super) fn policies(&self, policy: &str) -> String {
        let of = |wanted: &Wanted| format!("{} ({})", wanted.policy.as_deref().unwrap_or(policy), wanted.name);
        let policies: Vec<String> = self.contexts.iter().map(of).collect();
        let policies = if policies.is_empty() { policy.to_owned() } else { policies.join(", ") };
        match &self.swap_to {
            Some(swap) => format!("{policies} → {}", swap.policy),
            None => policies,
        }
    }

    /// Checks that the policies exist, are valid, and fit the platform, without simulating.
    ///
    /// # Errors
    /// The invalid ones, each with all its problems.
    pub(crate) fn check(&self, policies: &[String]) -> miette::Result<()> {
        let unusable = |policy: &String| {
            let check = |platform: &Arc<Platform>| {
                let nothing = Simulation::new(TaskGraph::default(), Arc::clone(platform));
                nothing.policy(policy).registry(Arc::clone(&self.registry)).run().err()
            };
            match &self.cluster {
                Some(cluster) => cluster.kinds().iter().find_map(|(platform, _)| check(platform)),
                None => check(&self.platform),
            }
        };
        let mut causes: Vec<SimError> = policies.iter().filter_map(unusable).collect();
        match (causes.len(), policies.len()) {
            (0, _) => Ok(()),
            (1, 1) => Err(causes.remove(0).into()),
            (failed, given) => Err(Unusable { failed, given, causes: reports::without_repetition(causes) }.into()),
        }
    }

    /// Simulates each policy with the recordings that `recording` returns for it.
    ///
    /// # Errors
    /// If none completes.
    pub(crate) fn simulate_all<'a>(
        &self,
        policies: &[String],
        (jobs, progress): (&Jobs, &Progress),
        mut recording: impl FnMut(usize) -> Recording<'a>,
    ) -> miette::Result<(Vec<Simulated>, Vec<Failed>)> {
        let wanted = policies.iter().enumerate().map(|(place, policy)| Wish {
            policy,
            chance: self.chance.clone(),
            recording: recording(place),
        });
        // Recordings are opened on this thread.
        let wanted: Vec<Wish<'_>> = wanted.collect();
        let (simulated, failed) = self.simulate_each(wanted.into_iter(), (jobs, progress), |simulated| simulated)?;
        Ok((simulated.into_iter().map(|(_, simulated)| simulated).collect(), failed))
    }

    /// Simulates all that is wanted, and keeps of each what `keep` makes of it: with the place in that order, if it completes.
    ///
    /// # Errors
    /// If nothing completes.
    pub(crate) fn simulate_each<'w, T: Send>(
        &self,
        wanted: impl ExactSizeIterator<Item = Wish<'w>> + Send,
        (jobs, progress): (&Jobs, &Progress),
        keep: impl Fn(Simulated) -> T + Sync,
    ) -> miette::Result<Completed<T>> {
        let tasks = self.graph.tasks.len() as u64;
        progress.expect(tasks * wanted.len() as u64);
        let outcomes = jobs.each(wanted, |Wish { policy, chance, recording }| {
            progress.doing(policy);
            let counted = Cell::new(0);
            let count = |ended: u64| progress.advance(ended.saturating_sub(counted.replace(ended)));
            let outcome = self.simulate(&self.graph, policy, &chance, recording, &count).map(&keep);
            // One that fails ends early.
            count(tasks);
            (policy, outcome)
        });
        progress.clear();
        let (mut done, mut failed, mut cause) = (Vec::new(), Vec::new(), None);
        for (place, (policy, outcome)) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(kept) => done.push((place, kept)),
                Err(error) => {
                    failed.push(Failed { policy: policy.to_owned(), why: error.to_string() });
                    cause.get_or_insert(error);
                }
            }
        }
        match cause.filter(|_| done.is_empty()) {
            Some(cause) => Err(without_any(cause, &failed)),
            None => Ok((done, failed)),
        }
    }

    /// Simulates a static schedule, given as the graph with each task
    /// [pinned](sched_graph::reference::Schedule::pinned) to its worker, under this name.
    ///
    /// # Errors
    /// If it does not complete.
    pub(crate) fn replay(&self, name: &str, pinned: TaskGraph, trace: bool) -> Result<Simulated, SimError> {
        let recording = Recording::of_trace(trace);
        let mut simulated = self.simulate(&Arc::new(pinned), REPLAYER, &self.chance, recording, &|_| ())?;
        name.clone_into(&mut simulated.run.policy);
        if let Some(trace) = &mut simulated.trace {
            name.clone_into(&mut trace.title);
        }
        Ok(simulated)
    }

    fn simulate(
        &self,
        graph: &Arc<TaskGraph>,
        policy: &str,
        chance: &Chance,
        recording: Recording<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<Simulated, SimError> {
        let recorder = (recording.trace || recording.explain.makespan).then(|| match &self.cluster {
            Some(cluster) => SimRecorder::of_cluster(graph, cluster),
            None => SimRecorder::new(Arc::clone(graph), Arc::clone(&self.platform)),
        });
        let explainer = explain::explainer(recording.explain, graph);
        let mut watcher = Watcher {
            digest: Digest::default(),
            records: recorder.is_some() || explainer.is_some() || recording.events.is_some(),
            lines: recording.events,
            error: None,
            recorder,
            explainer,
            ended: 0,
            progress,
        };
        let _own = log::of_thread(&self.policies(policy));
        let began;
        let (outcome, nodes) = match &self.cluster {
            Some(cluster) => {
                let simulation = self.on_cluster(cluster, (graph, policy), chance, &watcher);
                began = Instant::now();
                let outcome = simulation.observe(&mut watcher)?;
                (outcome.total, Some((outcome.nodes, outcome.messages, outcome.message_bytes)))
            }
            None => {
                let simulation = self.on_machine((graph, policy), chance, &watcher);
                began = Instant::now();
                (simulation.observe(&mut watcher)?, None)
            }
        };
        let wall: Duration = began.elapsed();
        let digest = watcher.digest.value();
        let flushed = watcher.lines.as_mut().map_or(Ok(()), |lines| lines.flush());
        let written = watcher.error.map_or(flushed, Err);
        let trace = watcher.recorder.map(|recorder| recorder.finish(&self.policies(policy)));
        let mut run = Run::simulated(policy, outcome, self.has_contexts(), digest, wall);
        if let Some(trace) = trace.as_ref().filter(|_| recording.explain.makespan) {
            run.makespan_explained = makespan::report(trace);
        }
        if let Some(explainer) = watcher.explainer {
            let names = match &self.cluster {
                Some(cluster) => cluster.empty_trace(graph, ""),
                None => self.platform.empty_trace(graph, ""),
            };
            run.explained = explain::reports(&explainer.finish(), graph, &self.platform, names);
        }
        if let Some((nodes, messages, bytes)) = nodes {
            run.on_nodes(&nodes, messages, bytes);
        }
        Ok(Simulated { run, trace, written })
    }

    fn on_machine(
        &self,
        (graph, policy): (&Arc<TaskGraph>, &str),
        chance: &Chance,
        watcher: &Watcher<'_>,
    ) -> Simulation {
        let mut simulation = Simulation::new(Arc::clone(graph), Arc::clone(&self.platform));
        // Pins of a static schedule change none of them.
        simulation = simulation.dependencies(Arc::clone(self.dependencies()));
        simulation = self.with_contexts(simulation.policy(policy));
        simulation = simulation.registry(Arc::clone(&self.registry)).seed(chance.seed);
        simulation = simulation.noise(Noise { seed: chance.seed, ..chance.noise.clone() });
        match watcher.tree_observer() {
            Some(observer) => simulation.tree_observer(observer),
            None => simulation,
        }
    }

    fn on_cluster(
        &self,
        cluster: &Arc<Cluster>,
        (graph, policy): (&Arc<TaskGraph>, &str),
        chance: &Chance,
        watcher: &Watcher<'_>,
    ) -> ClusterSimulation {
        let mut simulation = ClusterSimulation::new(Arc::clone(graph), Arc::clone(cluster)).policy(policy);
        simulation = simulation.registry(Arc::clone(&self.registry)).seed(chance.seed);
        simulation = simulation.noise(Noise { seed: chance.seed, ..chance.noise.clone() });
        match watcher.tree_observer() {
            Some(observer) => simulation.tree_observer(observer),
            None => simulation,
        }
    }

    fn with_contexts(&self, mut simulation: Simulation) -> Simulation {
        for wanted in &self.contexts {
            let mut context = Context::new(&wanted.name);
            if let Some(policy) = &wanted.policy {
                context = context.policy(policy);
            }
            if let Some(workers) = &wanted.workers {
                context = context.workers(workers.iter().copied());
            }
            if let Some(priorities) = &wanted.priorities {
                context = context.priorities(priorities.clone());
            }
            simulation = simulation.context(context);
        }
        if let Some(goals) = &self.goals {
            simulation = simulation.govern(goals.clone());
        }
        let Some(Swap { policy, at }) = &self.swap_to else { return simulation };
        let names: Vec<&str> = self.contexts.iter().map(|wanted| &*wanted.name).collect();
        let names = if names.is_empty() { vec![Context::DEFAULT] } else { names };
        let when = at.map_or(When::AfterTasks(self.half), When::At);
        names.into_iter().fold(simulation, |simulation, name| simulation.swap_policy(name, policy, when))
    }
}

/// The error if no policy completes; a common reason is reported once.
fn without_any(cause: SimError, failed: &[Failed]) -> miette::Report {
    if failed.iter().all(|failed| failed.why == cause.to_string()) {
        return cause.into();
    }
    let reasons: Vec<String> = failed.iter().map(|Failed { policy, why }| format!("{policy}: {why}")).collect();
    miette!("no policy completes\n{}", reasons.join("\n"))
}
