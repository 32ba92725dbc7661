//! How a runtime is put together: policy, plugins, workers.

mod start_error;

use super::task::bound::{TaskBound, WhenFull};
use super::{CodeletSettings, Runtime, Start};
use crate::context::PolicyEnv;
use crate::device::choice::{ChosenDevice, DeviceChoice, DeviceError};
use crate::device::links::{self, Links};
use crate::device::machine::DevicePlace;
use crate::device::{Device, LinkedDevices};
use sched_core::{Arch, MemoryNode, Offer, WorkerId, WorkerSet};
use sched_graph::Where;
use sched_machine::topology::{
    BindingError, BindingPlan, Claim, CombinedSizes, Surroundings, Topology, WorkerBinding, WorkerDistances,
};
use sched_memory::{Coherence, Known, known, measure_once};
use sched_model::Bus;
use sched_model::Models;
use sched_policy::{Override, Policy};
use sched_tree::context::WantedPolicy;
use sched_tree::plugin::{Registry, RegistryBuilder, SearchPath};
use sched_tree::{BareTree, WorkerFacts};
use start_error::MOST_WORKERS;
pub use start_error::StartError;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a runtime before it starts; see [`Runtime::builder`].
#[must_use = "a runtime starts with `build`"]
#[derive(Clone)]
pub struct Builder {
    policy: WantedPolicy,
    registry: Option<Arc<Registry>>,
    components: RegistryBuilder,
    topology: Option<Topology>,
    workers: Option<usize>,
    main_worker: bool,
    memory_nodes: Option<usize>,
    bus: Option<Bus>,
    bind: bool,
    seed: u64,
    quiet_period: Duration,
    priorities: RangeInclusive<i32>,
    unchecked: bool,
    combined: Option<CombinedSizes>,
    trace: Option<usize>,
    captures: bool,
    bound: Option<TaskBound>,
    models: Learning,
    codelet_settings: BTreeMap<String, CodeletSettings>,
    user_data: Vec<u8>,
    devices: DeviceChoice,
}

/// Where performance models of codelets come from.
#[derive(Clone)]
enum Learning {
    Forgotten,
    Kept(Arc<Models>),
    Nothing,
}

impl Learning {
    fn into_models(self) -> Option<Arc<Models>> {
        match self {
            Learning::Forgotten => Some(Arc::new(Models::in_memory())),
            Learning::Kept(models) => Some(models),
            Learning::Nothing => None,
        }
    }
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            policy: WantedPolicy::Default,
            registry: None,
            components: RegistryBuilder::default(),
            topology: None,
            workers: None,
            main_worker: false,
            memory_nodes: None,
            bus: None,
            bind: true,
            seed: 0,
            quiet_period: Duration::from_secs(2),
            priorities: i32::MIN..=i32::MAX,
            unchecked: false,
            combined: None,
            trace: None,
            captures: false,
            bound: None,
            models: Learning::Forgotten,
            codelet_settings: BTreeMap::new(),
            user_data: Vec::new(),
            devices: DeviceChoice::default(),
        }
    }
}

impl Builder {
    /// Sets the policy: the name of a shipped one, or the path of a KDL file. The default is the environment variable
    /// `SCHED_POLICY`, or `tree-eager` if that is not set.
    pub fn policy(mut self, name_or_path: impl Into<String>) -> Builder {
        self.policy = WantedPolicy::Named(name_or_path.into());
        self
    }

    /// Sets a policy composed by the program.
    pub fn policy_value(mut self, policy: Policy) -> Builder {
        self.policy = WantedPolicy::Value(Box::new(policy));
        self
    }

    /// Sets the available components, in place of those that [`search_path`](Self::search_path) and the other methods
    /// on components describe.
    pub fn registry(mut self, registry: Arc<Registry>) -> Builder {
        self.registry = Some(registry);
        self
    }

    /// Sets where to look for plugins; the default is [`SearchPath::from_environment`]. Components that no plugin
    /// offers come from the stock components that are compiled in, unless the feature `stock` is off.
    pub fn search_path(mut self, path: SearchPath) -> Builder {
        self.components = self.components.search_path(path);
        self
    }

    /// Adds the program's own components, under the name of a package.
    pub fn components(mut self, package: impl Into<String>, offers: Vec<Offer>) -> Builder {
        self.components = self.components.components(package, offers);
        self
    }

    /// Excludes the stock components that are compiled in: all stock components come from plugin files.
    pub fn without_builtin(mut self) -> Builder {
        self.components = self.components.without_builtin();
        self
    }

    /// Chooses among several components of one name, such as a stock component and one of a plugin, for every policy
    /// that does not choose itself; see [`plugin`](sched_tree::plugin).
    pub fn overriding(mut self, chosen: impl Into<Override>) -> Builder {
        self.components = self.components.overriding(chosen);
        self
    }

    /// Number of workers; the default is one for each processing unit that this process may use.
    pub fn workers(mut self, count: usize) -> Builder {
        self.workers = Some(count);
        self
    }

    /// Starts no thread for the last worker: a thread of the program is that worker while it waits, whatever it waits
    /// for: [all tasks](Runtime::wait_all), [one](Runtime::wait), [data](Runtime::read), the end of a
    /// [scope](Runtime::scope), room for a [bounded](Self::bound_tasks) submission. So a program that submits from one
    /// thread and then waits keeps as many threads busy as there are workers. By default each worker has a thread, and
    /// threads that wait sleep.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let builder = Runtime::builder().registry(components);
    /// let runtime = builder.workers(1).main_worker().build()?;
    /// let main = std::thread::current().id();
    /// let here = move |_: &sched_runtime::Context<'_, ()>, ()| assert_eq!(std::thread::current().id(), main);
    /// let check = runtime.codelet::<(), ()>("check").cpu("check", here).build();
    /// runtime.task(&check, ()).submit()?; // Nobody executes it yet.
    /// runtime.wait_all()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// While no thread of the program waits, tasks that the policy has assigned to that worker stay where they are, and
    /// a parallel task does not begin if its team includes the worker. A [future](super::Submitter::ended) does not
    /// wait, and tasks that wait do so on the worker that they have. If several threads wait, one of them is the
    /// worker. Threads of the program are not bound: on a machine with several NUMA nodes, the program binds its thread
    /// where the last worker belongs.
    pub fn main_worker(mut self) -> Builder {
        self.main_worker = true;
        self
    }

    /// Simulates a machine with `count` memory nodes: neighbouring workers share one. The default is one memory node
    /// for each NUMA node that has workers. With more than one, [replicated](super::Submitter::replicated) data is
    /// copied between them, and schedulers take the location of data into account. Useful for tests, and to observe a
    /// policy.
    ///
    /// Starting fails with [`BindingError::MemoryNodes`] if `count` is 0 or exceeds the number of workers.
    pub fn memory_nodes(mut self, count: usize) -> Builder {
        self.memory_nodes = Some(count);
        self
    }

    /// Uses devices beside the cores; none by default. Each has a worker and a memory node, numbered after those of the
    /// cores, and is driven by a plugin: see [`driver`](sched_core::driver).
    ///
    /// ```no_run
    /// use sched_runtime::{DeviceChoice, Runtime};
    ///
    /// // What the environment names (SCHED_DEVICES).
    /// let runtime = Runtime::builder().devices(DeviceChoice::from_environment()?).build()?;
    /// println!("{:?}", runtime.devices());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn devices(mut self, devices: DeviceChoice) -> Builder {
        self.devices = devices;
        self
    }

    /// Latency and bandwidth between memory nodes, in place of measured ones. With several memory nodes and neither
    /// this setting nor values stored with the [models](Self::models), the first runtime of a process
    /// [measures](sched_memory::measure()) them, which takes some ten milliseconds for each pair of nodes, and stores
    /// them if models are stored. (Measurements between [simulated](Self::memory_nodes) memory nodes, or without
    /// binding, do not describe the machine and are not stored.)
    pub fn bus(mut self, bus: Bus) -> Builder {
        self.bus = Some(bus);
        self
    }

    /// The machine, explored beforehand. Workers are bound only if it is this machine.
    pub fn topology(mut self, topology: Topology) -> Builder {
        self.topology = Some(topology);
        self
    }

    /// Whether each worker is bound to its own processing unit; true by default.
    pub fn bind(mut self, bind: bool) -> Builder {
        self.bind = bind;
        self
    }

    /// Sizes of combined workers for parallel tasks. The default comes from the environment: `SCHED_MIN_WORKERSIZE` (2
    /// unless set), `SCHED_MAX_WORKERSIZE` (all workers), and `SCHED_SYNTHESIZE_ARITY_COMBINED_WORKER` (2), which is
    /// the [arity](CombinedSizes::arity).
    pub fn combined_sizes(mut self, sizes: CombinedSizes) -> Builder {
        self.combined = Some(sizes);
        self
    }

    /// Attaches data to the default context, for its components
    /// ([`Node::context_data`](sched_core::Node::context_data)).
    pub fn user_data(mut self, data: impl Into<Vec<u8>>) -> Builder {
        self.user_data = data.into();
        self
    }

    /// Restricts the tasks of the codelet of this name to some places, in addition to those of the
    /// [program](super::CodeletBuilder::only_on).
    pub fn only_on(mut self, codelet: impl Into<String>, places: Where) -> Builder {
        self.codelet_settings.entry(codelet.into()).or_default().only = Some(places);
        self
    }

    /// Sets the number for the scheduler that tasks of the codelet of this name have, in place of that of the
    /// [codelet](super::CodeletBuilder::sched_data).
    pub fn sched_data(mut self, codelet: impl Into<String>, data: u64) -> Builder {
        self.codelet_settings.entry(codelet.into()).or_default().sched_data = Some(data);
        self
    }

    /// Bounds the tasks that are submitted and have not ended, in all contexts: so a program that submits faster than
    /// workers execute uses memory in proportion to the bound. Tasks that tasks submit are counted, but always taken.
    /// Several threads, or a replay, may exceed the bound by what they submit at once. 0 counts as 1.
    ///
    /// ```
    /// use sched_runtime::{Runtime, WhenFull};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let builder = Runtime::builder().registry(components).workers(2);
    /// let runtime = builder.bound_tasks(100, WhenFull::Wait).build()?;
    /// let work = runtime.codelet::<(), ()>("work").cpu("work", |_, ()| {}).build();
    /// for _ in 0..10_000 {
    ///     runtime.task(&work, ()).submit()?; // never more than 100 at once
    /// }
    /// runtime.wait_all()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bound_tasks(mut self, most: u64, when_full: WhenFull) -> Builder {
        self.bound = Some(TaskBound { most: most.max(1), when_full });
        self
    }

    /// Seeds the randomness of every component; 0 by default.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = seed;
        self
    }

    /// Time without progress, while a thread waits, after which the run is reported as stalled; 2 s by default.
    pub fn quiet_period(mut self, period: Duration) -> Builder {
        self.quiet_period = period;
        self
    }

    /// Allowed priorities of tasks of the default context; any by default.
    /// [`ContextBuilder::priorities`](crate::context::ContextBuilder::priorities) describes how they are applied.
    pub fn priorities(mut self, range: RangeInclusive<i32>) -> Builder {
        self.priorities = range;
        self
    }

    /// Performance models of the codelets that [declare one](super::CodeletBuilder::model). By default each runtime
    /// learns them anew and forgets them at its end; models with a [`Store`](sched_model::Store) continue from the last
    /// run, and are stored when the runtime is dropped.
    ///
    /// ```no_run
    /// use sched_model::{Fingerprint, Models, Store, default_directory};
    /// use sched_machine::topology::Topology;
    /// use sched_runtime::Runtime;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> miette::Result<()> {
    /// let topology = Topology::this_machine()?;
    /// let directory = default_directory(|name| std::env::var(name).ok())?;
    /// let store = Store::new(directory, Fingerprint::of_this_machine(&topology));
    /// let models = Arc::new(Models::with_store(store));
    /// let runtime = Runtime::builder().policy("tree-heft").topology(topology).models(models).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn models(mut self, models: Arc<Models>) -> Builder {
        self.models = Learning::Kept(models);
        self
    }

    /// Ignores the performance models that codelets declare: nothing is measured, and schedulers know only the
    /// estimates of codelets.
    pub fn without_models(mut self) -> Builder {
        self.models = Learning::Nothing;
        self
    }

    /// Accepts a policy whose root may refuse tasks, or in which tasks may stop moving: one that breaks rule V1, V3 or
    /// V5 of [`check`](sched_policy::check()). For tests of the consequences.
    pub fn unchecked(mut self) -> Builder {
        self.unchecked = true;
        self
    }

    /// Records events for [`Runtime::take_trace`](super::Runtime::take_trace): at most this number for each worker, and
    /// for the application. Events beyond it are only counted. Without this call nothing is recorded, and no clock is
    /// read for it.
    pub fn trace(mut self, most_events: usize) -> Builder {
        self.trace = Some(most_events);
        self
    }

    /// Captures the graph that the program submits, with the length of each task, for
    /// [`Runtime::take_graph`](super::Runtime::take_graph).
    pub fn capture_graph(mut self) -> Builder {
        self.captures = true;
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// See [`StartError`]; no thread runs in that case.
    pub fn build(self) -> Result<Runtime, StartError> {
        Runtime::start(self.prepare()?).map_err(StartError::Thread)
    }

    /// Builds the tree alone, without workers, to measure its cost.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn bare_tree(self) -> Result<BareTree, StartError> {
        let start = self.prepare()?;
        Ok(BareTree::new(start.parts, &start.workers, start.combined))
    }

    fn prepare(self) -> Result<Start, StartError> {
        let (min, max) = (*self.priorities.start(), *self.priorities.end());
        if min > max {
            return Err(StartError::Priorities { min, max });
        }
        let registry = match self.registry {
            Some(registry) => registry,
            None => Arc::new(self.components.load()?),
        };
        let policy = self.policy.find()?;
        let topology = self.topology.map_or_else(Topology::this_machine, Ok)?;
        let count = self.workers.unwrap_or_else(|| BindingPlan::default_workers(&topology));
        if count > MOST_WORKERS {
            return Err(StartError::TooManyWorkers { asked: count });
        }
        let mut warnings = registry.warnings();
        let sizes = self.combined.unwrap_or_else(|| CombinedSizes::from_environment(&mut warnings));
        let (binding, claim) = plan_binding(&topology, count, sizes, self.memory_nodes, self.bind)?;
        warnings.extend(binding.warnings().iter().map(ToString::to_string));
        let mut workers: Vec<WorkerFacts> = binding.workers().iter().map(facts_of).collect();
        let (chosen, remarks) = self.devices.open(&registry)?;
        warnings.extend(remarks);
        let places = device_places(&chosen, &workers);
        let policy_env = PolicyEnv::new(registry, topology, binding.clone(), places.clone(), self.unchecked, self.seed);
        let parts = policy_env.lay(&policy, &WorkerSet::first((count + chosen.len()) as u32))?;
        let members = |members: &[usize]| members.iter().map(|member| WorkerId(*member as u32)).collect();
        let combined = binding.combined().iter().map(|combined| members(&combined.members)).collect();
        let distances = WorkerDistances::new(&policy_env.topology, &binding);
        let binding = Some(binding).filter(|_| self.bind && policy_env.topology.is_this_machine());
        let models = self.models.into_models();
        let bus = bus_between(
            &workers,
            self.bus,
            self.memory_nodes.is_some(),
            models.as_deref(),
            binding.as_ref(),
            &mut warnings,
        )?;
        let limit = self.devices.limit();
        let memories = with_devices(bus, &mut workers, chosen, &places, limit)?;
        Ok(Start {
            policy: policy.name.clone(),
            parts,
            workers,
            combined,
            distances,
            binding,
            main_worker: self.main_worker.then(|| WorkerId(count as u32 - 1)),
            claim,
            warnings,
            seed: self.seed,
            laid: policy,
            policy_env,
            quiet_period: self.quiet_period,
            priorities: self.priorities,
            models,
            trace: self.trace,
            captures: self.captures,
            bound: self.bound,
            memories,
            codelet_settings: self.codelet_settings,
            user_data: self.user_data,
        })
    }
}

/// A core, on the memory node of its binding.
fn facts_of(worker: &WorkerBinding) -> WorkerFacts {
    WorkerFacts { arch: Arch::CPU, memory_node: MemoryNode(worker.numa.unwrap_or(0)), relative_speedup: 1.0 }
}

/// The places of devices, after the memory nodes of the cores.
fn device_places(chosen: &[ChosenDevice], cores: &[WorkerFacts]) -> Vec<DevicePlace> {
    let first = cores.iter().map(|core| core.memory_node.0).max().map_or(0, |last| last + 1);
    chosen.iter().zip(first..).map(|(device, node)| DevicePlace { arch: device.arch, node: MemoryNode(node) }).collect()
}

/// The devices with the links to their memory, after the bus between the memory nodes of the cores. Adds their workers.
fn with_devices(
    bus: Option<Bus>,
    workers: &mut Vec<WorkerFacts>,
    chosen: Vec<ChosenDevice>,
    places: &[DevicePlace],
    limit: Option<u64>,
) -> Result<Option<LinkedDevices>, StartError> {
    let Some(first) = places.first() else { return Ok(bus.map(|bus| (bus, Box::default()))) };
    if first.node.index() + places.len() > Coherence::MOST_NODES {
        let (found, most) = (first.node.index() + places.len(), Coherence::MOST_NODES);
        return Err(StartError::MemoryNodes { found, most });
    }
    let mut devices = Vec::new();
    for (chosen, place) in chosen.into_iter().zip(places) {
        let worker = WorkerId(workers.len() as u32);
        let relative_speedup = place.arch.relative_speedup();
        workers.push(WorkerFacts { arch: place.arch, memory_node: place.node, relative_speedup });
        devices.push(Arc::new(Device::new(chosen, limit, worker, place.node)));
    }
    let links = devices
        .iter()
        .map(|device| device.links().map_err(|error| DeviceError::Unusable { device: device.name(), error }));
    let links = links.collect::<Result<Vec<Links>, DeviceError>>()?;
    let bus = links::with_devices(&bus.unwrap_or_default(), first.node.index(), &links);
    Ok(Some((bus, devices.into())))
}

/// The bus between the memory nodes of these workers, if there are several: the given one, or one that is measured.
fn bus_between(
    workers: &[WorkerFacts],
    given: Option<Bus>,
    simulated: bool,
    models: Option<&Models>,
    binding: Option<&BindingPlan>,
    warnings: &mut Vec<String>,
) -> Result<Option<Bus>, StartError> {
    let nodes = by_memory_node(workers);
    if nodes.len() <= 1 {
        return Ok(None);
    }
    if nodes.len() > Coherence::MOST_NODES {
        let (last, most) = (nodes.len() - 1, Coherence::MOST_NODES);
        warnings.push(format!(
            "there are workers on memory node {last}, and replicas can be on the first {most} only: data is not copied"
        ));
        return Ok(None);
    }
    if let Some(bus) = given {
        return Ok(Some(bus));
    }
    // Simulated memory nodes do not describe the machine.
    let Known { bus, problems } = measure_bus(&nodes, models.filter(|_| !simulated), binding)?;
    warnings.extend(problems);
    Ok(Some(bus))
}

/// Plans where workers are bound, with warnings about other users of the machine, and claims their PUs.
fn plan_binding(
    topology: &Topology,
    workers: usize,
    sizes: CombinedSizes,
    memory_nodes: Option<usize>,
    bind: bool,
) -> Result<(BindingPlan, Option<Claim>), BindingError> {
    let mut binding = BindingPlan::new(topology, workers)?.with_combined(topology, sizes);
    if let Some(nodes) = memory_nodes {
        binding = binding.with_memory_nodes(nodes)?;
    }
    // The claim comes before the look around: of two runtimes that start at once, at least one sees the other.
    let claim = if bind { binding.claim() } else { None };
    let mut around = Surroundings::look(claim.as_ref());
    if !bind {
        // The system keeps unbound workers out of each other's way.
        around.neighbours.clear();
    }
    binding.warn_of(&around);
    Ok((binding, claim))
}

/// Latency and bandwidth between memory nodes: as `models` store them for this machine, else measured once per process.
fn measure_bus(
    nodes: &[Vec<usize>],
    models: Option<&Models>,
    binding: Option<&BindingPlan>,
) -> Result<Known, StartError> {
    let store = models.and_then(|models| Some((models.store()?, !models.is_read_only())));
    let measured = match (store, binding) {
        (Some((store, keep)), Some(plan)) => known(store, keep, nodes, plan),
        _ => measure_once(nodes, binding).map(|bus| Known { bus, problems: Vec::new() }),
    };
    measured.map_err(StartError::Thread)
}

/// Workers by memory node. All in one list if they share a node.
fn by_memory_node(workers: &[WorkerFacts]) -> Vec<Vec<usize>> {
    let node = |worker: &WorkerFacts| worker.memory_node.index();
    let last = workers.iter().map(node).max().unwrap_or(0);
    if workers.iter().all(|worker| node(worker) == last) {
        return vec![(0..workers.len()).collect()];
    }
    let mut nodes = vec![Vec::new(); last + 1];
    workers.iter().enumerate().for_each(|(number, worker)| nodes[node(worker)].push(number));
    nodes
}
