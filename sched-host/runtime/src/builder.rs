//! How a runtime is put together: policy, plugins, workers.

mod prepare;
mod start_error;

use super::task::bound::{TaskBound, WhenFull};
use super::{CodeletSettings, Runtime};
use crate::device::choice::DeviceChoice;
use sched_core::Offer;
use sched_graph::Where;
use sched_machine::topology::{CombinedSizes, Topology};
use sched_model::Bus;
use sched_model::Models;
use sched_policy::{Override, Policy};
use sched_tree::BareTree;
use sched_tree::context::WantedPolicy;
use sched_tree::plugin::{Registry, RegistryBuilder, SearchPath};
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
    /// `SCHED_POLICY`, or `tree-ws` if that is not set.
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

    /// Number of workers; the default is one for each processing unit that this process may use, but for those that the
    /// threads of [devices](Self::devices) take, one each.
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
    /// worker. Threads of the program are not bound, but one that would take turns with another worker moves to the
    /// processing unit of this one, where its own binding allows that; the thread that builds the runtime does so at
    /// once.
    pub fn main_worker(mut self) -> Builder {
        self.main_worker = true;
        self
    }

    /// Simulates a machine with `count` memory nodes: neighbouring workers share one. The default is one memory node
    /// for each NUMA node that has workers. With more than one, [replicated](super::Submitter::replicated) data is
    /// copied between them, and schedulers take the location of data into account. Useful for tests, and to observe a
    /// policy.
    ///
    /// Starting fails with [`BindingError::MemoryNodes`](sched_machine::topology::BindingError::MemoryNodes) if `count`
    /// is 0 or exceeds the number of workers.
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
    /// workers execute uses memory in proportion to the bound. What tasks and callbacks submit is counted, but always
    /// taken. Several threads, or a replay, may exceed the bound by what they submit at once. 0 counts as 1.
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
    /// [`Duration::MAX`] means never; 0 is refused ([`StartError::QuietPeriod`]), since every run is without progress
    /// for no time.
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
}
