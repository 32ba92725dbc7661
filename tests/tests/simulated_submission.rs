//! `tree-plan` in a simulation knows that the application still submits, and waits for that as long as it costs little.

use sched_core::Arch;
use sched_host::graph::{Lengths, Task, TaskGraph, generate};
use sched_host::sim::{Platform, Simulation};
use sched_host::trace::{Event, EventLog};
use sched_tests::stock::registry;
use std::time::Duration;

/// Two workers, and a submission that takes a microsecond for each task.
const TWO: &str = r#"platform "two" {
    memory "ram"; workers "cpu" arch="cpu" memory="ram" count=2
    overheads submission="1 us"
}"#;

/// When the first task starts, and the makespan.
fn run(graph: TaskGraph) -> (Duration, Duration) {
    let machine = Platform::parse("two.kdl", TWO).expect("the text is sound");
    let mut log = EventLog::default();
    let simulation = Simulation::new(graph, machine).registry(registry(Vec::new())).policy("tree-plan");
    let outcome = simulation.observe(&mut log).expect("it runs");
    let is_start = |event: &Event| matches!(event, Event::Started { .. });
    let first = log.events.iter().find(|stamped| is_start(&stamped.event)).expect("tasks have started");
    (Duration::from_nanos(first.nanos), outcome.makespan)
}

#[test]
fn the_first_plan_has_the_task_that_is_submitted_last() {
    let mut graph = TaskGraph::new("a long task at the end");
    let kind = graph.add_kind("k");
    for millis in [10, 10, 20] {
        let lengths = Lengths::default().with(Arch::CPU, Duration::from_millis(millis));
        graph.add_task(Task { lengths, ..Task::new(kind) });
    }
    let (first, makespan) = run(graph);
    assert_eq!(first, Duration::from_micros(2), "the last one is submitted then");
    assert!(makespan < Duration::from_millis(21), "{makespan:?}: the long one begins at once");
}

#[test]
fn short_tasks_do_not_wait_for_a_long_submission() {
    let (first, makespan) = run(generate::independent(2000, Duration::from_micros(10)));
    assert!(first < Duration::from_micros(10), "{first:?}");
    assert!(makespan < Duration::from_micros(10_100), "{makespan:?}: nothing is lost");
}

#[test]
fn tasks_that_wait_for_others_end_the_submission_too() {
    // The last task is not ready when it is submitted, so that nothing is pushed then.
    let (first, makespan) = run(generate::fork_join(3, 2, Duration::from_millis(10), 8));
    assert!(first > Duration::ZERO && makespan < Duration::from_millis(100), "{first:?} {makespan:?}");
}
