use super::*;
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
