//! The contract of every stock component, compiled in or from a plugin, in the rig, a real run and a simulation.

use crate::chains::{submit_chains, submit_sums};
use crate::fixtures::{Profile, stock_plugin};
use crate::hold::Hold;
use crate::stock;
use sched_core::rig::{FakeChild, Rig};
use sched_core::{Arch, Arity, Params, TaskId, WorkerId};
use sched_host::plugin::{Registry, RegistryBuilder, SearchPath};
use sched_host::policy::library;
use sched_host::runtime::{DeviceChoice, Runtime};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Where the components come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// They are compiled into the test.
    BuiltIn,
    /// From the plugins of their families.
    Plugin,
}

impl Origin {
    /// Both.
    pub const ALL: [Origin; 2] = [Origin::BuiltIn, Origin::Plugin];

    /// A registry of the stock components of this origin, and of the driver of fake devices.
    ///
    /// # Panics
    /// If a plugin is not built or not loaded.
    #[must_use]
    pub fn registry(self) -> Arc<Registry> {
        static BUILT_IN: OnceLock<Arc<Registry>> = OnceLock::new();
        static PLUGINS: OnceLock<Arc<Registry>> = OnceLock::new();
        let registry = match self {
            Origin::BuiltIn => BUILT_IN.get_or_init(|| {
                let folder = folder_of(&["driver-fake"]);
                let builder = RegistryBuilder::default().search_path(SearchPath::empty().with_folder(folder.path()));
                Arc::new(builder.load().expect("nothing is overridden"))
            }),
            Origin::Plugin => PLUGINS.get_or_init(|| {
                let folder =
                    folder_of(&["flow-control", "resource-mapping", "special-purpose", "worker", "driver-fake"]);
                Arc::new(Registry::load(&SearchPath::empty().with_folder(folder.path())))
            }),
        };
        assert_eq!(registry.rejected().count(), 0, "{:?}", registry.files());
        Arc::clone(registry)
    }
}

/// A folder with the plugins of these families. (Where they are built there are other libraries too.)
fn folder_of(families: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for family in families {
        let file = stock_plugin(&format!("sched-plugin-{family}"), Profile::Debug);
        let name = file.file_name().expect("a library has a name");
        std::fs::copy(&file, folder.path().join(name)).expect("the library can be copied");
    }
    folder
}

/// Number of tasks of the application; each submits another.
const TASKS: usize = 300;

/// A component in a suitable position.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The component.
    pub component: &'static str,
    /// A policy's tree with it.
    pub tree: &'static str,
    /// With one worker, tasks that are ready run in order of priority, then of submission.
    pub by_priority: bool,
}

const fn in_priority(component: &'static str, tree: &'static str) -> Case {
    Case { component, tree, by_priority: true }
}

const fn in_any_order(component: &'static str, tree: &'static str) -> Case {
    Case { component, tree, by_priority: false }
}

/// At least one for each stock component.
pub const CASES: &[Case] = &[
    in_priority("fifo", stock::EAGER),
    in_any_order("fifo", r#"fifo { eager { each "worker" { fifo ntasks-threshold=1 { worker } } } }"#),
    in_priority("prio", r#"prio { eager { each "worker" { worker } } }"#),
    in_any_order("prio", r#"prio { eager { each "worker" { prio ntasks-threshold=2 { worker } } } }"#),
    in_priority("eager", r#"fifo { eager { each "worker" { worker } } }"#),
    in_priority("eager", r#"eager { each "worker" { fifo { worker } } }"#),
    in_any_order("eager-prio", r#"eager-prio { each "worker" { prio ntasks-threshold=2 { worker } } }"#),
    in_priority("eager-prio", r#"eager-prio { each "worker" { worker } }"#),
    in_priority("random", r#"fifo { random { each "worker" { best-implementation { worker } } } }"#),
    in_priority("random", r#"prio { random { each "worker" { worker } } }"#),
    in_any_order("random", r#"fifo { random { each "worker" { fifo ntasks-threshold=2 { worker } } } }"#),
    in_priority("random", r#"fifo { random { eager { each "worker" { worker } } } }"#),
    in_priority("eager-calibration", r#"fifo { eager-calibration { each "worker" { worker } } }"#),
    in_any_order("work-stealing", r#"work-stealing { each "worker" { worker } }"#),
    in_any_order("work-stealing", r#"work-stealing { each "worker" { fifo ntasks-threshold=2 { worker } } }"#),
    in_any_order(
        "work-stealing",
        r#"fifo { eager { work-stealing { each "worker" { best-implementation { worker } } } } }"#,
    ),
    in_priority("best-implementation", r#"fifo { best-implementation { eager { each "worker" { worker } } } }"#),
    in_priority("best-implementation", r#"fifo { eager { each "worker" { best-implementation { worker } } } }"#),
    in_priority(
        "stage",
        r#"
            user-choice { prio { eager { use "leaf" } }; fifo { random { use "leaf" } } }
            shared "leaf" each="worker" { stage { worker } }
        "#,
    ),
    in_priority("user-choice", r#"fifo { user-choice { each "worker" { worker } } }"#),
    in_priority("user-choice", r#"user-choice { fifo { eager { each "worker" { worker } } } }"#),
    // Its tasks have no model.
    in_any_order("mct", r#"fifo { mct { each "worker" { fifo ntasks-threshold=1 { worker } } } }"#),
    in_priority("mct", r#"fifo { mct { eager { each "worker" { worker } } } }"#),
    in_any_order("block-cyclic", r#"fifo { block-cyclic { each "worker" { fifo ntasks-threshold=1 { worker } } } }"#),
    in_priority("block-cyclic", r#"fifo { block-cyclic { eager { each "worker" { worker } } } }"#),
    in_any_order("heft", r#"heft { each "worker" { fifo ntasks-threshold=1 { worker } } }"#),
    in_priority("heft", r#"heft { each "worker" { worker } }"#),
    in_priority("heft", r#"heft { eager { each "worker" { worker } } }"#),
    in_any_order("heteroprio", r#"heteroprio { each "worker" { fifo ntasks-threshold=1 { worker } } }"#),
    in_priority("heteroprio", r#"heteroprio { each "worker" { worker } }"#),
    in_any_order("replan", r#"replan { each "worker" { fifo ntasks-threshold=1 { worker } } }"#),
    in_priority("replan", r#"replan { each "worker" { worker } }"#),
    in_any_order("plan", r#"plan { each "worker" { fifo ntasks-threshold=1 { worker } } }"#),
    in_priority("plan", r#"plan { each "worker" { worker } }"#),
    in_any_order(
        "perfmodel-select",
        r#"fifo {
            perfmodel-select {
                perfmodel { mct { each "worker" { fifo ntasks-threshold=2 { use "leaf" } } } }
                calibrator { eager { each "worker" { fifo ntasks-threshold=1 { use "leaf" } } } }
                no-perfmodel { eager { each "worker" { fifo ntasks-threshold=1 { use "leaf" } } } }
            }
        }
        shared "leaf" each="worker" { best-implementation { worker } }"#,
    ),
    // With one worker there are no combined workers.
    in_any_order(
        "combined-worker",
        r#"fifo { eager { each "worker" { worker }; each "combined-worker" { combined-worker } } }"#,
    ),
    in_any_order(
        "combined-worker",
        r#"heft { each "worker" { worker }; each "combined-worker" { best-implementation { combined-worker } } }"#,
    ),
    in_priority("worker", r#"eager { each "worker" { fifo { worker } } }"#),
];

/// Runs tasks under every shipped policy.
///
/// # Panics
/// If a task does not run exactly once, or a component is at fault.
pub fn check_policies(origin: Origin) {
    let registry = origin.registry();
    for shipped in library() {
        for workers in [1, 3] {
            let builder = stock::builder(stock::EAGER, workers, Vec::new()).policy_value(shipped.policy());
            let runtime = builder.registry(Arc::clone(&registry)).build();
            let runtime = runtime.unwrap_or_else(|error| panic!("{}: {error:?}", shipped.name));
            let runs = submit_chains(&runtime, TASKS);
            runtime.wait_all().unwrap_or_else(|end| panic!("{}: {end}", shipped.name));
            runs.assert_once(shipped.name);
            assert_eq!(runtime.faults(), [], "{}", shipped.name);
        }
    }
}

fn start(case: &Case, registry: &Arc<Registry>, workers: usize) -> Runtime {
    let builder = stock::builder(case.tree, workers, Vec::new()).registry(Arc::clone(registry));
    // In some cases the root may refuse a task; the host handles that.
    builder.unchecked().build().unwrap_or_else(|error| panic!("{case:?}: {error:?}"))
}

/// Runs every case with two cores and a device whose memory has room for three of the five arrays, so that tasks and
/// their data move to and fro.
///
/// # Panics
/// If a component breaks its contract.
pub fn check_with_a_device(origin: Origin) {
    let registry = origin.registry();
    for case in CASES {
        let what = format!("{case:?}");
        let start = || {
            let device: DeviceChoice = "fake:0".parse().expect("it names a device");
            let builder = stock::builder(case.tree, 2, Vec::new()).registry(Arc::clone(&registry));
            let builder = builder.devices(device.memory_limit(3 * 64)).unchecked();
            builder.build().unwrap_or_else(|error| panic!("{what}: {error:?}"))
        };
        let runtime = start();
        let sums = submit_sums(&runtime, TASKS / 4);
        every_task_runs_once(case, &runtime);
        sums.assert_once(&runtime, &what);
        nothing_is_lost_at_the_end(case, start());
    }
}

/// Checks everything.
///
/// # Panics
/// If a component breaks its contract.
pub fn check(origin: Origin) {
    let registry = origin.registry();
    for case in CASES {
        for workers in [1, 2, 4] {
            every_task_runs_once(case, &start(case, &registry, workers));
        }
        nothing_is_lost_at_the_end(case, start(case, &registry, 2));
        parallel_tasks_run_once(case, &start(case, &registry, 4));
        if case.by_priority {
            tasks_run_by_priority(case, &start(case, &registry, 1));
        }
    }
    for component in registry.components() {
        let name = &component.info().name;
        assert!(CASES.iter().any(|case| case.component == name), "`{name}` has no case");
        let rig = Rig::from_object(component.build(&Params::default()).expect("defaults are sound"));
        let rig = match component.info().arity {
            Arity::Leaf => rig.leaf(WorkerId(0)),
            _ => rig.child(FakeChild::new().room(2)),
        };
        everything_is_given_up(name, &rig);
    }
}

fn every_task_runs_once(case: &Case, runtime: &Runtime) {
    let runs = submit_chains(runtime, TASKS);
    runtime.wait_all().unwrap_or_else(|end| panic!("{case:?}: {end}"));
    runs.assert_once(&format!("{case:?}"));
    assert_eq!(runtime.faults(), [], "{case:?}");
    let nodes = runtime.survey();
    let there = nodes.iter().any(|node| node.component == case.component);
    assert!(there || (case.component == "combined-worker" && runtime.workers() == 1), "{case:?}: {nodes:?}");
    assert!(nodes.iter().all(|node| node.tasks == 0), "{case:?}: {nodes:?}");
}

/// Parallel tasks, by a combined worker or by one alone, among others. All members of a team are there at once.
fn parallel_tasks_run_once(case: &Case, runtime: &Runtime) {
    const PARALLEL: usize = 60;
    let members: Arc<Vec<AtomicU32>> = Arc::new((0..PARALLEL).map(|_| AtomicU32::new(0)).collect());
    let missing: Arc<Vec<AtomicU32>> = Arc::new((0..PARALLEL).map(|_| AtomicU32::new(0)).collect());
    let (came, lacks) = (Arc::clone(&members), Arc::clone(&missing));
    let parallel = runtime
        .codelet::<(), usize>("parallel")
        .cpu_spmd("parallel", 4, move |context, ()| {
            let (team, number) = (context.team(), *context.params);
            came[number].fetch_add(1, SeqCst);
            team.barrier();
            lacks[number].store(team.size() as u32 - came[number].load(SeqCst), SeqCst);
        })
        .estimate(Arch::CPU, Duration::from_micros(30))
        .estimate_parallel(Arch::CPU, 4, Duration::from_micros(10));
    let parallel = parallel.build();
    let runs = submit_chains(runtime, TASKS);
    for number in 0..PARALLEL {
        runtime.task_with(&parallel, number, ()).submit().expect("the task is sound");
    }
    runtime.wait_all().unwrap_or_else(|end| panic!("{case:?}: {end}"));
    runs.assert_once(&format!("{case:?}"));
    assert!(members.iter().all(|members| members.load(SeqCst) > 0), "{case:?}: {members:?}");
    assert!(missing.iter().all(|missing| missing.load(SeqCst) == 0), "{case:?}: {missing:?}");
    assert_eq!(runtime.faults(), [], "{case:?}");
}

fn nothing_is_lost_at_the_end(case: &Case, runtime: Runtime) {
    let runs = submit_chains(&runtime, TASKS);
    drop(runtime);
    runs.assert_once(&format!("{case:?}"));
}

fn tasks_run_by_priority(case: &Case, runtime: &Runtime) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&order);
    let notes = runtime
        .codelet::<(), (i32, usize)>("notes")
        .cpu("notes", move |context, ()| note.lock().expect("nobody panics").push(*context.params))
        .build();
    let held = Hold::new(runtime).worker();
    // The only worker is busy: these are all ready before it looks for the next.
    let mut expected: Vec<(i32, usize)> = (0..60).map(|number| (number as i32 * 7 % 5 - 2, number)).collect();
    for (priority, number) in &expected {
        let task = runtime.task_with(&notes, (*priority, *number), ());
        task.priority(*priority).submit().expect("the task is sound");
    }
    drop(held);
    runtime.wait_all().unwrap_or_else(|end| panic!("{case:?}: {end}"));
    expected.sort_by_key(|(priority, number)| (-priority, *number));
    assert_eq!(*order.lock().expect("nobody panics"), expected, "{case:?}");
}

/// The rig also fails the test if a task is dropped or kept.
fn everything_is_given_up(name: &str, rig: &Rig) {
    let tasks: Vec<TaskId> = (0..6).map(|number| rig.task().priority(number % 3).make()).collect();
    for task in &tasks {
        let _ = rig.push(*task);
    }
    let mut held = rig.held();
    let mut given_up = rig.drain();
    held.sort_unstable();
    given_up.sort_unstable();
    assert_eq!(given_up, held, "`{name}` gives up all that it holds");
    assert_eq!(rig.held(), [], "`{name}` keeps nothing");
}
