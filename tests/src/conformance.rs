//! What every stock component keeps to, wherever it comes from and whatever drives it.

use crate::fixtures::{Profile, stock_plugin};
use crate::hold::Hold;
use crate::stock;
use sched_core::rig::{FakeChild, Rig};
use sched_core::{Arch, Arity, Params, TaskId, WorkerId};
use sched_host::plugin::{Registry, SearchPath};
use sched_host::policy::library;
use sched_host::runtime::{ReadWrite, Runtime};
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
}

/// What drives the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BackEnd {
    /// Threads and a wall clock.
    Runtime,
}

/// A component in a place that suits it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The component.
    pub component: &'static str,
    /// A policy's tree with it.
    pub tree: &'static str,
    /// With one worker, tasks that are ready run in order of priority, then of submission.
    pub by_priority: bool,
}

/// At least one for each stock component.
pub const CASES: &[Case] = &[
    Case { component: "fifo", tree: stock::EAGER, by_priority: true },
    Case {
        component: "fifo",
        tree: r#"fifo { eager { each "worker" { fifo ntasks-threshold=1 { worker } } } }"#,
        by_priority: false,
    },
    Case { component: "prio", tree: r#"prio { eager { each "worker" { worker } } }"#, by_priority: true },
    Case {
        component: "prio",
        tree: r#"prio { eager { each "worker" { prio ntasks-threshold=2 { worker } } } }"#,
        by_priority: false,
    },
    Case { component: "eager", tree: r#"fifo { eager { each "worker" { worker } } }"#, by_priority: true },
    Case { component: "eager", tree: r#"eager { each "worker" { fifo { worker } } }"#, by_priority: true },
    Case {
        component: "eager-prio",
        tree: r#"eager-prio { each "worker" { prio ntasks-threshold=2 { worker } } }"#,
        by_priority: false,
    },
    Case { component: "eager-prio", tree: r#"eager-prio { each "worker" { worker } }"#, by_priority: true },
    Case {
        component: "random",
        tree: r#"fifo { random { each "worker" { best-implementation { worker } } } }"#,
        by_priority: true,
    },
    Case { component: "random", tree: r#"prio { random { each "worker" { worker } } }"#, by_priority: true },
    Case {
        component: "random",
        tree: r#"fifo { random { each "worker" { fifo ntasks-threshold=2 { worker } } } }"#,
        by_priority: false,
    },
    Case { component: "random", tree: r#"fifo { random { eager { each "worker" { worker } } } }"#, by_priority: true },
    Case {
        component: "eager-calibration",
        tree: r#"fifo { eager-calibration { each "worker" { worker } } }"#,
        by_priority: true,
    },
    Case { component: "work-stealing", tree: r#"work-stealing { each "worker" { worker } }"#, by_priority: false },
    Case {
        component: "work-stealing",
        tree: r#"work-stealing { each "worker" { fifo ntasks-threshold=2 { worker } } }"#,
        by_priority: false,
    },
    Case {
        component: "work-stealing",
        tree: r#"fifo { eager { work-stealing { each "worker" { best-implementation { worker } } } } }"#,
        by_priority: false,
    },
    Case {
        component: "best-implementation",
        tree: r#"fifo { best-implementation { eager { each "worker" { worker } } } }"#,
        by_priority: true,
    },
    Case {
        component: "best-implementation",
        tree: r#"fifo { eager { each "worker" { best-implementation { worker } } } }"#,
        by_priority: true,
    },
    Case {
        component: "stage",
        tree: r#"
            user-choice { prio { eager { use "leaf" } }; fifo { random { use "leaf" } } }
            shared "leaf" each="worker" { stage { worker } }
        "#,
        by_priority: true,
    },
    Case { component: "user-choice", tree: r#"fifo { user-choice { each "worker" { worker } } }"#, by_priority: true },
    Case {
        component: "user-choice",
        tree: r#"user-choice { fifo { eager { each "worker" { worker } } } }"#,
        by_priority: true,
    },
    // Its tasks have no model.
    Case {
        component: "mct",
        tree: r#"fifo { mct { each "worker" { fifo ntasks-threshold=1 { worker } } } }"#,
        by_priority: false,
    },
    Case { component: "mct", tree: r#"fifo { mct { eager { each "worker" { worker } } } }"#, by_priority: true },
    Case {
        component: "heft",
        tree: r#"heft { each "worker" { fifo ntasks-threshold=1 { worker } } }"#,
        by_priority: false,
    },
    Case { component: "heft", tree: r#"heft { each "worker" { worker } }"#, by_priority: true },
    Case { component: "heft", tree: r#"heft { eager { each "worker" { worker } } }"#, by_priority: true },
    Case {
        component: "heteroprio",
        tree: r#"heteroprio { each "worker" { fifo ntasks-threshold=1 { worker } } }"#,
        by_priority: false,
    },
    Case { component: "heteroprio", tree: r#"heteroprio { each "worker" { worker } }"#, by_priority: true },
    Case {
        component: "replan",
        tree: r#"replan { each "worker" { fifo ntasks-threshold=1 { worker } } }"#,
        by_priority: false,
    },
    Case { component: "replan", tree: r#"replan { each "worker" { worker } }"#, by_priority: true },
    Case {
        component: "plan",
        tree: r#"plan { each "worker" { fifo ntasks-threshold=1 { worker } } }"#,
        by_priority: false,
    },
    Case { component: "plan", tree: r#"plan { each "worker" { worker } }"#, by_priority: true },
    Case {
        component: "perfmodel-select",
        tree: r#"fifo {
            perfmodel-select {
                perfmodel { mct { each "worker" { fifo ntasks-threshold=2 { use "leaf" } } } }
                calibrator { eager { each "worker" { fifo ntasks-threshold=1 { use "leaf" } } } }
                no-perfmodel { eager { each "worker" { fifo ntasks-threshold=1 { use "leaf" } } } }
            }
        }
        shared "leaf" each="worker" { best-implementation { worker } }"#,
        by_priority: false,
    },
    // Where there is one worker, nothing is combined.
    Case {
        component: "combined-worker",
        tree: r#"fifo { eager { each "worker" { worker }; each "combined-worker" { combined-worker } } }"#,
        by_priority: false,
    },
    Case {
        component: "combined-worker",
        tree: r#"heft { each "worker" { worker }; each "combined-worker" { best-implementation { combined-worker } } }"#,
        by_priority: false,
    },
    Case { component: "worker", tree: r#"eager { each "worker" { fifo { worker } } }"#, by_priority: true },
];

/// The stock components from there.
///
/// # Panics
/// When a plugin is not built, or not loaded.
#[must_use]
pub fn registry(origin: Origin) -> Arc<Registry> {
    static PLUGINS: OnceLock<Arc<Registry>> = OnceLock::new();
    match origin {
        Origin::BuiltIn => stock::registry(Vec::new()),
        Origin::Plugin => Arc::clone(PLUGINS.get_or_init(|| {
            let families = ["flow-control", "resource-mapping", "special-purpose", "worker"];
            let built = families.map(|family| stock_plugin(&format!("sched-plugin-{family}"), Profile::Debug));
            // The folder has other libraries as well, which do not belong here.
            let folder = tempfile::tempdir().expect("there is room for a folder");
            for file in built {
                let name = file.file_name().expect("a library has a name");
                std::fs::copy(&file, folder.path().join(name)).expect("the library can be copied");
            }
            let registry = Registry::load(&SearchPath::empty().with_folder(folder.path()));
            assert_eq!(registry.rejected().count(), 0, "{:?}", registry.files());
            Arc::new(registry)
        })),
    }
}

/// Runs tasks under every policy that is shipped.
///
/// # Panics
/// When a task does not run once, or a component is at fault.
pub fn check_policies(origin: Origin) {
    let registry = registry(origin);
    for shipped in library() {
        for workers in [1, 3] {
            let builder = stock::builder(stock::EAGER, workers, Vec::new()).policy_value(shipped.policy());
            let runtime = builder.registry(Arc::clone(&registry)).build();
            let runtime = runtime.unwrap_or_else(|error| panic!("{}: {error:?}", shipped.name));
            let runs = work(&runtime);
            runtime.wait_all().unwrap_or_else(|end| panic!("{}: {end}", shipped.name));
            assert!(runs.iter().all(|runs| runs.load(SeqCst) == 1), "{}: every task runs once", shipped.name);
            assert_eq!(runtime.faults(), [], "{}", shipped.name);
        }
    }
}

fn start(case: &Case, registry: &Arc<Registry>, workers: usize) -> Runtime {
    let builder = stock::builder(case.tree, workers, Vec::new()).registry(Arc::clone(registry));
    // In some cases the root may refuse a task, which the host survives.
    builder.unchecked().build().unwrap_or_else(|error| panic!("{case:?}: {error:?}"))
}

/// Checks everything.
///
/// # Panics
/// When a component does not keep to something.
pub fn check(origin: Origin, back_end: BackEnd) {
    let registry = registry(origin);
    for case in CASES {
        match back_end {
            BackEnd::Runtime => {
                for workers in [1, 2, 4] {
                    every_task_runs_once(case, &start(case, &registry, workers));
                }
                nothing_is_lost_at_the_end(case, start(case, &registry, 2));
                parallel_tasks_run_once(case, &start(case, &registry, 4));
                if case.by_priority {
                    tasks_run_by_priority(case, &start(case, &registry, 1));
                }
            }
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

/// Chains of tasks, each of which submits another from inside.
fn work(runtime: &Runtime) -> Arc<Vec<AtomicU32>> {
    const TASKS: usize = 300;
    let runs: Arc<Vec<AtomicU32>> = Arc::new((0..2 * TASKS).map(|_| AtomicU32::new(0)).collect());
    let counters = Arc::clone(&runs);
    let second = runtime
        .codelet::<(), usize>("second")
        .cpu("second", move |context, ()| {
            counters[*context.params].fetch_add(1, SeqCst);
        })
        .build();
    let counters = Arc::clone(&runs);
    let first = runtime
        .codelet::<(ReadWrite<usize>,), usize>("first")
        .cpu("first", move |context, (steps,)| {
            *steps += 1;
            counters[*context.params].fetch_add(1, SeqCst);
            let next = context.submitter().task_with(&second, context.params + TASKS, ());
            next.submit().expect("the task is sound");
        })
        .build();
    let chains = [(); 7].map(|()| runtime.register(0_usize));
    for number in 0..TASKS {
        let task = runtime.task_with(&first, number, (&chains[number % chains.len()],));
        task.priority(number as i32 % 5 - 2).submit().expect("the task is sound");
    }
    runs
}

fn once(case: &Case, runs: &[AtomicU32]) {
    assert!(runs.iter().all(|runs| runs.load(SeqCst) == 1), "{case:?}: every task runs once");
}

fn every_task_runs_once(case: &Case, runtime: &Runtime) {
    let runs = work(runtime);
    runtime.wait_all().unwrap_or_else(|end| panic!("{case:?}: {end}"));
    once(case, &runs);
    assert_eq!(runtime.faults(), [], "{case:?}");
    let nodes = runtime.survey();
    let there = nodes.iter().any(|node| node.component == case.component);
    assert!(there || (case.component == "combined-worker" && runtime.workers() == 1), "{case:?}: {nodes:?}");
    assert!(nodes.iter().all(|node| node.tasks == 0), "{case:?}: {nodes:?}");
}

/// Parallel tasks, by a combined worker or by one alone, among others. All members of a team are there at once.
fn parallel_tasks_run_once(case: &Case, runtime: &Runtime) {
    const TASKS: usize = 60;
    let members: Arc<Vec<AtomicU32>> = Arc::new((0..TASKS).map(|_| AtomicU32::new(0)).collect());
    let missing: Arc<Vec<AtomicU32>> = Arc::new((0..TASKS).map(|_| AtomicU32::new(0)).collect());
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
    let runs = work(runtime);
    for number in 0..TASKS {
        runtime.task_with(&parallel, number, ()).submit().expect("the task is sound");
    }
    runtime.wait_all().unwrap_or_else(|end| panic!("{case:?}: {end}"));
    once(case, &runs);
    assert!(members.iter().all(|members| members.load(SeqCst) > 0), "{case:?}: {members:?}");
    assert!(missing.iter().all(|missing| missing.load(SeqCst) == 0), "{case:?}: {missing:?}");
    assert_eq!(runtime.faults(), [], "{case:?}");
}

fn nothing_is_lost_at_the_end(case: &Case, runtime: Runtime) {
    let runs = work(&runtime);
    drop(runtime);
    once(case, &runs);
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

/// The rig fails the test as well, when a task is dropped or kept.
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
