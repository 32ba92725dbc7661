//! Schedulers that decide by expected lengths, with lengths that the application gives.

use sched_core::Arch;
use sched_host::runtime::{Codelet, Context, Runtime};
use sched_tests::hold::{Held, Hold};
use sched_tests::stock::runtime;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const QUEUES: &str = r#"mct { each "worker" { fifo { worker } } }"#;

/// Longer than any test, so that no decision depends on how fast the test goes.
const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count * 1000)
}

/// An empty codelet with this expected duration.
fn codelet(runtime: &Runtime, name: &str, length: Duration) -> Codelet<(), ()> {
    runtime.codelet(name).cpu(name, |_, ()| {}).estimate(Arch::CPU, length).build()
}

/// Both workers are busy, and expected to be for equally long.
fn both_busy(runtime: &Runtime) -> [Held; 2] {
    let hold = Hold::lasting(runtime, seconds(100));
    // The first has begun, so its worker counts as busy, when the second is decided.
    [hold.worker(), hold.worker()]
}

/// Number of tasks in the queue of each worker.
fn queued(runtime: &Runtime) -> Vec<u64> {
    let nodes = runtime.survey();
    let queues = nodes.iter().filter(|node| node.component == "fifo");
    queues.map(|node| node.tasks).collect()
}

#[test]
fn tasks_are_balanced_by_expected_length() {
    let runtime = runtime(QUEUES, 2);
    let (long, short) = (codelet(&runtime, "long", seconds(3)), codelet(&runtime, "short", seconds(1)));
    let busy = both_busy(&runtime);
    runtime.task(&long, ()).submit().expect("the task is sound");
    assert_eq!(queued(&runtime), [1, 0]);
    for _ in 0..3 {
        runtime.task(&short, ()).submit().expect("the task is sound");
    }
    assert_eq!(queued(&runtime), [1, 3], "one of 3 s against three of 1 s");
    drop(busy);
    runtime.wait_all().expect("every task runs");
}

#[test]
fn decisions_at_the_same_time_see_each_other() {
    let runtime = runtime(QUEUES, 2);
    let task = codelet(&runtime, "task", seconds(1));
    let busy = both_busy(&runtime);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    runtime.task(&task, ()).submit().expect("the task is sound");
                }
            });
        }
    });
    assert_eq!(queued(&runtime), [100, 100]);
    drop(busy);
    runtime.wait_all().expect("every task runs");
}

#[test]
fn tasks_without_an_expected_length_go_another_way() {
    let tree = r#"perfmodel-select {
        perfmodel { mct { each "worker" { fifo { use "leaf" } } } }
        calibrator { eager { each "worker" { fifo { use "leaf" } } } }
        no-perfmodel { fifo { eager { use "leaf" } } }
    }
    shared "leaf" each="worker" { best-implementation { worker } }"#;
    let runtime = runtime(tree, 2);
    let known = codelet(&runtime, "known", seconds(1));
    let unknown = runtime.codelet::<(), ()>("unknown").cpu("unknown", |_, ()| {}).build();
    let busy = both_busy(&runtime);
    for codelet in [&known, &unknown, &known] {
        runtime.task(codelet, ()).submit().expect("the task is sound");
    }
    let queues = runtime.survey().into_iter().filter(|node| node.component == "fifo");
    let queues: Vec<(String, u64)> = queues.map(|node| (node.node, node.tasks)).collect();
    let below = |slot: &str| queues.iter().filter(|(node, _)| node.contains(slot)).map(|(_, tasks)| tasks).sum::<u64>();
    assert_eq!([below("/perfmodel/"), below("/calibrator/"), below("/no-perfmodel/")], [2, 0, 1]);
    drop(busy);
    runtime.wait_all().expect("every task runs");
}

/// Tasks that are known and unknown, submitted from several threads and from inside tasks, through every way down.
#[test]
fn every_task_runs_whoever_decides() {
    let decisions = [
        r#"mct { each "worker" { fifo ntasks-threshold=3 { use "leaf" } } }"#,
        r#"heft { each "worker" { fifo ntasks-threshold=3 { use "leaf" } } }"#,
        r#"heft window=1 { eager { each "worker" { fifo ntasks-threshold=1 { use "leaf" } } } }"#,
        r#"heteroprio { each "worker" { fifo ntasks-threshold=1 { use "leaf" } } }"#,
    ];
    for decision in decisions {
        let eager = r#"eager { each "worker" { fifo ntasks-threshold=1 { use "leaf" } } }"#;
        let slots = format!("perfmodel {{ {decision} }}; calibrator {{ {eager} }}; no-perfmodel {{ {eager} }}");
        let leaf = r#"shared "leaf" each="worker" { best-implementation { worker } }"#;
        let runtime = runtime(&format!("fifo {{ perfmodel-select {{ {slots} }} }}; {leaf}"), 4);
        let runs = Arc::new(AtomicU32::new(0));
        let count = |runs: &Arc<AtomicU32>| {
            let runs = Arc::clone(runs);
            move |_: &Context<'_, ()>, ()| {
                runs.fetch_add(1, SeqCst);
            }
        };
        let unknown = runtime.codelet::<(), ()>("unknown").cpu("unknown", count(&runs)).build();
        let next = unknown.clone();
        let spawn = move |context: &Context<'_, ()>, ()| {
            context.submitter().task(&next, ()).submit().expect("the task is sound");
        };
        let known = runtime.codelet::<(), ()>("known").cpu("known", spawn);
        let known = known.estimate(Arch::CPU, Duration::from_micros(20)).build();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for number in 0..300 {
                        let codelet = if number % 3 == 0 { &unknown } else { &known };
                        runtime.task(codelet, ()).priority(number % 2).submit().expect("the task is sound");
                    }
                });
            }
        });
        runtime.wait_all().unwrap_or_else(|end| panic!("{decision}: {end}"));
        assert_eq!(runs.load(SeqCst), 900, "{decision}");
        assert_eq!(runtime.faults(), [], "{decision}");
    }
}
