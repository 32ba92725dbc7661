use super::*;
use crate::{Simulation, prioritise};
use sched_graph::priorities::Priorities;
use sched_graph::{AccessMode, Datum};
use sched_tree::plugin::Registry;
use std::sync::Arc;
use std::time::Duration;

/// Two cores, and two devices that are ten times as fast.
fn cores_and_devices() -> Platform {
    let text = r#"platform "p" {
        memory "ram"
        workers "cpu" count=2 memory="ram"
        workers "gpu" count=2 arch="cuda" memory="ram"
        kernel "k" { on "cpu" time="10 ms"; on "gpu" time="1 ms" }
    }"#;
    Platform::parse("p.kdl", text).expect("it is sound")
}

#[test]
fn bounds_count_tasks_where_they_may_run() {
    let platform = cores_and_devices();
    let bounds = |only: Option<&str>| {
        let mut graph = TaskGraph::new("twelve");
        let kind = graph.add_kind("k");
        for _ in 0..12 {
            let only = only.map(|only| Box::new(only.parse().expect("it names places")));
            graph.add_task(Task { only, ..Task::new(kind) });
        }
        platform.bounds(&graph, &graph.dependencies()).expect("it can run")
    };
    let of = |only| {
        let bounds = bounds(only);
        (bounds.critical_path, (bounds.area * 1e9).round() / 1e9)
    };
    // Cores do a tenth of what devices do.
    assert_eq!(of(None), (0.001, 0.005_454_545));
    assert_eq!(of(Some("cpu")), (0.01, 0.06));
    assert_eq!(of(Some("cuda")), (0.001, 0.006));
    // Of equal workers, only those that are named.
    assert_eq!(of(Some("1")), (0.01, 0.12));
    assert_eq!(of(Some("cpu+3")), (0.001, 0.01));
    assert_eq!(of(Some("1+2")), (0.001, 0.010_909_091));
}

#[test]
fn very_many_places_leave_the_workers_of_a_class_together() {
    let platform = Platform::flat(100, Duration::from_millis(1));
    let mut graph = TaskGraph::new("each at home");
    let kind = graph.add_kind("k");
    for worker in 0..100 {
        graph.add_task(Task { only: Some(Box::new(Where::worker(worker))), ..Task::new(kind) });
    }
    let bounds = platform.bounds(&graph, &graph.dependencies()).expect("it can run");
    assert!((bounds.area - 0.001).abs() < 1e-9, "{bounds:?}");
}

#[test]
fn priorities_count_tasks_where_they_may_run() {
    let platform = cores_and_devices();
    let mut graph = TaskGraph::new("two chains");
    let (kind, [one, other]) = (graph.add_kind("k"), [graph.add_data(Datum::new(8)), graph.add_data(Datum::new(8))]);
    // One after the other on a core, and two on a device.
    for (data, tasks, only) in [(one, 1, Some("cpu")), (other, 2, None)] {
        for _ in 0..tasks {
            let only = only.map(|only| Box::new(only.parse().expect("it names places")));
            graph.add_task(Task { only, ..Task::new(kind).access(data, AccessMode::ReadWrite) });
        }
    }
    for by in [Priorities::CriticalPath, Priorities::UpwardRank] {
        prioritise(&mut graph, &platform, by).expect("it can run");
        let priorities: Vec<i32> = graph.tasks.iter().map(|task| task.priority).collect();
        match by {
            Priorities::CriticalPath => assert!(priorities[0] > priorities[1], "{priorities:?}"),
            // Half of the workers that may execute the second chain are cores.
            _ => assert!(priorities[1] > priorities[0] && priorities[0] > priorities[2], "{priorities:?}"),
        }
    }
    let graph = Arc::new(graph);
    let registry = Arc::new(Registry::compiled_in());
    let outcome = Simulation::new(Arc::clone(&graph), platform).registry(registry).run().expect("it runs");
    assert_eq!(outcome.critical_path, Duration::from_millis(10));
}
