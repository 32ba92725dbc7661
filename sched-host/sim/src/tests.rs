use super::platform::{KernelTime, find};
use super::*;
use sched_graph::generate::cholesky;
use sched_graph::priorities::Priorities;
use sched_graph::{AccessMode, Datum, KindId, Task};
use sched_policy::library;
use sched_trace::{Digest, EventLog};
use sched_tree::Part;
use std::time::Duration;

/// Digest of the events of a run, with the parts of the tree changed by `change` before.
fn digest(policy: &Policy, platform: &Arc<Platform>, registry: &Arc<Registry>, change: impl Fn(&mut Part)) -> u64 {
    let graph = Arc::new(cholesky(7, 960));
    let policy_env = PolicyEnv { registry: Arc::clone(registry), seed: 7 };
    let mut contexts = openings(policy.clone(), Vec::new(), platform, &policy_env).expect("the policy fits");
    contexts[0].parts.iter_mut().for_each(change);
    let combined = platform.combined_members();
    let lengths = Lengths::new(&graph, platform, &combined).expect("every task can run");
    let dependencies = graph.dependencies();
    let mut digest = Digest::default();
    let specs = Specs::of(&graph);
    let backend = SimBackend::new(graph, specs, Arc::new(dependencies), Arc::clone(platform), lengths, combined);
    let outcome = Engine::new(backend, policy_env, contexts, Vec::new(), &mut digest).and_then(Engine::run);
    assert_eq!(outcome.expect("it runs to the end").faults, [], "{}: every component is as it declares", policy.name);
    digest.value()
}

#[test]
fn components_that_are_called_after_all_change_nothing() {
    let registry = Arc::new(Registry::compiled_in());
    for platform in ["cpu9-gpu3", "numa-2x12"] {
        let platform = Arc::new(find(platform).expect("it is shipped"));
        for shipped in library() {
            let policy = shipped.policy();
            let expected = digest(&policy, &platform, &registry, |_| {});
            let check = |what: &str, change: fn(&mut Part)| {
                assert_eq!(digest(&policy, &platform, &registry, change), expected, "{} without {what}", shipped.name);
            };
            check("forwards-pull", |part| part.claims.forwards_pull = false);
            check("empty-until-pushed", |part| part.claims.empty_until_pushed = false);
            check("end-is-noted", |part| part.claims.end_is_noted = false);
            check("any shortcut, and as it declares,", |part| part.attended = true);
        }
    }
}

/// A machine whose only worker is a GPU with memory of this size.
fn with_a_gpu(size: &str) -> Arc<Platform> {
    let text = format!(
        r#"platform "p" {{
            memory "ram"
            memory "gpu" size="{size}"
            link "ram" "gpu" bandwidth="1 GB/s"
            workers "gpu" arch="cuda" memory="gpu"
            kernel "k" {{ on "gpu" time="1 ms" }}
        }}"#
    );
    Arc::new(Platform::parse("p.kdl", &text).expect("it is sound"))
}

#[test]
fn a_scratchpad_has_memory_beside_a_replica_of_the_same_data() {
    for (size, fits) in [("15 MB", false), ("20 MB", true)] {
        let platform = with_a_gpu(size);
        let registry = Arc::new(Registry::compiled_in());
        // In any order, and if the data comes ahead of the task.
        for (modes, policy) in [AccessMode::Scratch, AccessMode::Read, AccessMode::Scratch]
            .windows(2)
            .flat_map(|modes| ["tree-eager", "tree-dmda"].map(|policy| (modes, policy)))
        {
            let mut graph = TaskGraph::new("one task");
            let (kind, data) = (graph.add_kind("k"), graph.add_data(Datum::new(10_000_000)));
            graph.add_task(modes.iter().fold(Task::new(kind), |task, mode| task.access(data, *mode)));
            let simulation =
                Simulation::new(graph, Arc::clone(&platform)).policy(policy).registry(Arc::clone(&registry));
            match simulation.run() {
                Ok(outcome) => assert!(fits && outcome.memories[1].peak == 20_000_000, "{policy}, {modes:?}"),
                Err(SimError::Task { needed: 20_000_000, capacity: 15_000_000, .. }) if !fits => {}
                Err(error) => panic!("{policy}, {modes:?}: {error}"),
            }
        }
    }
}

#[test]
fn data_that_a_task_names_several_times_takes_memory_once() {
    for (size, fits) in [("29 MB", false), ("30 MB", true)] {
        let platform = with_a_gpu(size);
        let mut graph = TaskGraph::new("one task");
        let kind = graph.add_kind("k");
        let data = [(); 3].map(|()| graph.add_data(Datum::new(10_000_000)));
        let names = (0..3000).map(|number| data[number * 7 % 3]);
        graph.add_task(names.fold(Task::new(kind), |task, data| task.access(data, AccessMode::Read)));
        match Simulation::new(graph, platform).registry(Registry::compiled_in().into()).run() {
            Ok(outcome) => assert!(fits && outcome.memories[1].peak == 30_000_000),
            Err(SimError::Task { needed: 30_000_000, capacity: 29_000_000, .. }) if !fits => {}
            Err(error) => panic!("{size}: {error}"),
        }
    }
}

#[test]
fn the_help_for_tasks_that_cannot_run_fits_what_the_platform_lacks() {
    let text = r#"platform "p" {
        memory "ram"
        workers "big" arch="cpu" memory="ram"
        workers "little" arch="cpu" memory="ram"
        kernel "speedy" { on "big" gflops=2.0; on "little" gflops=1.0; }
        kernel "partial" { on "big" time="1 ms"; }
    }"#;
    let mut platform = Platform::parse("p.kdl", text).expect("it is sound");
    let history = KernelTime::History { times: [(7, Duration::from_millis(1))].into(), measured: Vec::new() };
    (0..2).for_each(|class| platform.kernels.set("measured", class, history.clone()));
    let platform = Arc::new(platform);
    let refused = |task: fn(KindId) -> Task, kind: &str| {
        let mut graph = TaskGraph::new("one task");
        let kind = graph.add_kind(kind);
        graph.add_task(task(kind));
        let simulation = Simulation::new(graph, Arc::clone(&platform)).registry(Registry::compiled_in().into());
        let error = simulation.run().expect_err("nobody can run it");
        format!("{error}\n{}", miette::Diagnostic::help(&error).expect("there is a help"))
    };
    insta::assert_snapshot!(refused(Task::new, "speedy"), @r#"
    the platform `p` cannot run `speedy` (1 task, first task 1, which has no operations)
    a speed (`gflops`) is for tasks with operations: give the tasks `flops`, or the kernel a time: `on "class" time="3 ms"`
    "#);
    insta::assert_snapshot!(refused(Task::new, "partial"), @r#"
    the platform `p` cannot run `partial` (1 task, first task 1, without a time on all workers of an architecture)
    give the kind a time on each class of an architecture: `kernel "name" { on "class" time="3 ms" }`
    "#);
    insta::assert_snapshot!(refused(|kind| Task { footprint: Some(8), ..Task::new(kind) }, "measured"), @"
    the platform `p` cannot run `measured` (1 task, first task 1, whose footprint has no time)
    the models have no measurement of this footprint: measure tasks with such data, too
    ");
    insta::assert_snapshot!(refused(Task::new, "sped"), @r#"
    the platform `p` cannot run `sped` (1 task, first task 1)
    did you mean `speedy` for `sped`?
    add `kernel "name" { on "class" time="3 ms" }` to the platform; it knows: measured, partial, speedy
    "#);
}

#[test]
fn a_task_without_work_takes_no_time_although_the_platform_has_one_for_every_kernel() {
    let ms = Duration::from_millis(1);
    let platform = Arc::new(Platform::flat(2, ms));
    let mut graph = TaskGraph::new("barrier");
    let (kind, barrier) = (graph.add_kind("k"), graph.add_kind("barrier"));
    graph.kinds[barrier.index()].runs = false;
    let first = graph.add_task(Task::new(kind));
    let between = graph.add_task(Task::new(barrier).after(first));
    graph.add_task(Task::new(kind).after(between));
    graph.add_task(Task::new(kind));
    prioritise(&mut graph, &platform, Priorities::UpwardRank).expect("all can run");
    let priorities: Vec<i32> = graph.tasks.iter().map(|task| task.priority).collect();
    assert_eq!(priorities, [2, 1, 1, 1]);
    let outcome = Simulation::new(graph, platform).registry(Registry::compiled_in().into()).run();
    let outcome = outcome.expect("it runs to the end");
    assert_eq!((outcome.critical_path, outcome.makespan), (2 * ms, 2 * ms));
}

#[test]
fn a_task_that_does_not_fit_into_the_memory_of_a_worker_goes_to_one_where_it_fits() {
    let text = r#"platform "small" {
        memory "ram"
        memory "gpu" size="20 MB" device=#true
        link "ram" "gpu" bandwidth="10 GB/s"
        workers "cpu" count=2 memory="ram"
        workers "gpu" arch="cuda" memory="gpu"
        kernel "k" { on "cpu" time="10 ms"; on "gpu" time="1 ms" }
    }"#;
    let platform = Arc::new(Platform::parse("small.kdl", text).expect("it is sound"));
    let mut graph = TaskGraph::new("large and small");
    let kind = graph.add_kind("k");
    for task in 0..60 {
        let data = [(); 3].map(|()| graph.add_data(Datum::new(if task % 4 == 0 { 10_000_000 } else { 1_000 })));
        graph.add_task(data.into_iter().fold(Task::new(kind), |task, data| task.access(data, AccessMode::ReadWrite)));
    }
    let graph = Arc::new(graph);
    for policy in library() {
        let mut log = EventLog::default();
        let simulation = Simulation::new(Arc::clone(&graph), Arc::clone(&platform)).policy(policy.name);
        let outcome = simulation.registry(Registry::compiled_in().into()).observe(&mut log);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", policy.name));
        assert_eq!((outcome.tasks, &outcome.faults[..]), (60, &[][..]), "{}", policy.name);
        for stamped in &log.events {
            if let Event::Started { task, worker, .. } = stamped.event {
                let is_large = (task.sequence() - 1) % 4 == 0;
                assert!(!is_large || worker.0 < 2, "{}: {task:?} on {worker:?}", policy.name);
            }
        }
    }
}

#[test]
fn a_parallel_task_that_does_not_fit_into_a_memory_goes_to_workers_where_it_fits() {
    let registry = Arc::new(Registry::compiled_in());
    let run = |small: &str, large: &str, after: &[&str]| {
        let text = format!(
            r#"platform "small" {{
                memory "ram"
                memory "fast" size="20 MB"
                link "ram" "fast" bandwidth="10 GB/s"
                {small}
                kernel "large" {{ {large} }}
                kernel "wide" {{ on "slow" time="10 ms" parallel=1.0; on "quick" time="100 ms" parallel=0.01 }}
            }}"#
        );
        let platform = Arc::new(Platform::parse("small.kdl", &text).expect("it is sound"));
        let mut graph = TaskGraph::new("large and wide");
        let (kind, data) = (graph.add_kind("large"), graph.add_data(Datum::new(30_000_000)));
        let mut last = graph.add_task(Task::new(kind).access(data, AccessMode::Read));
        for kind in after {
            let kind = graph.add_kind(*kind);
            last = graph.add_task(Task::new(kind).after(last));
        }
        let simulation = Simulation::new(graph, platform).policy("tree-pheft").registry(Arc::clone(&registry));
        simulation.run().expect("workers with enough memory execute it").makespan
    };
    // A team of two has too little memory, and one worker enough.
    let workers = r#"workers "slow" memory="ram"; workers "quick" count=2 memory="fast""#;
    let makespan = run(workers, r#"on "slow" time="30 ms"; on "quick" time="10 ms" parallel=1.0"#, &[]);
    assert_eq!(makespan, Duration::from_millis(30));
    // One worker has too little memory, and a team enough: a task that is handed on waits for a team like any other.
    let workers = r#"workers "slow" count=2 memory="ram"; workers "quick" memory="fast""#;
    let large = r#"on "slow" time="50 ms" parallel=0.2; on "quick" time="1 ms" parallel=0.01"#;
    assert_eq!(run(workers, large, &["wide"]), Duration::from_millis(45 + 5));
}

#[test]
fn at_one_time_what_was_planned_first_comes_first() {
    // The first kernel ends when the application, which has submitted the second task meanwhile, would go on.
    let text = r#"platform "p" {
        memory "ram"
        workers "cpu" memory="ram"
        overheads submission="1 us" push="1 us"
        kernel "k" { on "cpu" time="3 us"; }
    }"#;
    let platform = Arc::new(Platform::parse("p.kdl", text).expect("it is sound"));
    let mut graph = TaskGraph::new("three tasks");
    let kind = graph.add_kind("k");
    let first = graph.add_task(Task::new(kind));
    graph.add_task(Task::new(kind).after(first));
    graph.add_task(Task::new(kind));
    let mut log = EventLog::default();
    let simulation = Simulation::new(graph, platform).policy("tree-eager").registry(Registry::compiled_in().into());
    simulation.observe(&mut log).expect("it runs to the end");
    insta::assert_snapshot!(log, @r"
    0 submitted task 1
    0 pushed task 1
    0 woken worker 0
    0 pulled task 1 by worker 0
    0 started task 1 on worker 0
    2000 submitted task 2
    3000 ended task 1 on worker 0
    3000 pushed task 2 by worker 0
    3000 submitted task 3
    3000 pushed task 3
    4000 pulled task 2 by worker 0
    4000 started task 2 on worker 0
    7000 ended task 2 on worker 0
    7000 pulled task 3 by worker 0
    7000 started task 3 on worker 0
    10000 ended task 3 on worker 0
    10000 idle worker 0
    ");
}

#[test]
fn a_worker_finds_a_task_that_its_own_look_brought_to_where_it_had_looked() {
    // The leaf of a worker asks each of three queues in turn, and each of these has the bounded queue at the top send a
    // task: what the second or the third of them releases is sent to the first.
    let text = r#"
        policy "bounded above" {
            fifo { fifo ntasks-threshold=1 { perfmodel-select {
                perfmodel { mct { each "worker" { fifo { use "leaf" } } } }
                calibrator { eager-calibration { each "worker" { fifo { use "leaf" } } } }
                no-perfmodel { eager { each "worker" { fifo { use "leaf" } } } }
            } } }
            shared "leaf" each="worker" { worker }
        }
    "#;
    let policy = sched_policy::parse("bounded.kdl", text).expect("it is sound").remove(0);
    let text = r#"platform "p" {
        memory "ram"
        workers "good at a" count=2 memory="ram"
        workers "good at b" count=2 memory="ram"
        kernel "a" { on "good at a" time="1 ms"; on "good at b" time="3 ms" }
        kernel "b" { on "good at a" time="3 ms"; on "good at b" time="1 ms" }
    }"#;
    let platform = Arc::new(Platform::parse("p.kdl", text).expect("it is sound"));
    let registry = Arc::new(Registry::compiled_in());
    // Each bit is the kind of a task.
    for kinds in 0..128_u32 {
        let mut graph = TaskGraph::new("a and b");
        let both = ["a", "b"].map(|kind| graph.add_kind(kind));
        (0..7).for_each(|bit| _ = graph.add_task(Task::new(both[(kinds >> bit & 1) as usize])));
        let simulation = Simulation::new(graph, Arc::clone(&platform)).policy_value(policy.clone());
        let outcome = simulation.registry(Arc::clone(&registry)).run();
        outcome.unwrap_or_else(|error| panic!("{kinds:b}: {error}"));
    }
}

#[test]
fn a_task_that_goes_to_another_worker_for_its_data_keeps_its_priority() {
    let text = r#"platform "small" {
        memory "ram"
        memory "gpu" size="20 MB"
        link "ram" "gpu" bandwidth="10 GB/s"
        workers "cpu" memory="ram"
        workers "gpu" arch="cuda" memory="gpu"
        kernel "large" { on "cpu" time="10 ms"; on "gpu" time="1 ms" }
        kernel "urgent" { on "cpu" time="10 ms" }
    }"#;
    let platform = Arc::new(Platform::parse("small.kdl", text).expect("it is sound"));
    let mut graph = TaskGraph::new("one that is not urgent");
    let [large, urgent] = ["large", "urgent"].map(|kind| graph.add_kind(kind));
    let data = graph.add_data(Datum::new(30_000_000));
    let last = graph.add_task(Task { priority: -5, ..Task::new(large).access(data, AccessMode::Read) });
    // More than the queue of the core takes. That of the GPU has the other one, without its priority, in a batch.
    (0..40).for_each(|_| _ = graph.add_task(Task { priority: 9, ..Task::new(urgent) }));
    let mut log = EventLog::default();
    let simulation = Simulation::new(graph, platform).policy("tree-heteroprio");
    simulation.registry(Registry::compiled_in().into()).observe(&mut log).expect("it runs to the end");
    let mut started = log.events.iter().filter_map(|stamped| match stamped.event {
        Event::Started { task, .. } => Some(task),
        _ => None,
    });
    assert_eq!(started.next_back(), Some(last.submitted()));
}
