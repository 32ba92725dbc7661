use super::platform::find;
use super::*;
use sched_graph::generate::cholesky;
use sched_graph::priorities::Priorities;
use sched_graph::{AccessMode, Datum, Task};
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
