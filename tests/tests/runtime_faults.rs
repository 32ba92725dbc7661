//! A faulty component does no harm: every task is executed exactly once, and the report names the component.

use sched_core::Offer;
use sched_host::runtime::{ReadWrite, RunError, Runtime};
use sched_host::tree::{Fault, FaultKind};
use sched_tests::bad::{Bad, Deal};
use sched_tests::chains::submit_chains;
use sched_tests::stock::builder;
use std::time::Duration;

/// Number of tasks of the application; each submits another.
const TASKS: usize = 200;

fn start(tree: &str, workers: usize) -> Runtime {
    builder(tree, workers, vec![Offer::of::<Bad>(), Offer::of::<Deal>()]).build().expect("it starts")
}

/// A run that is expected to stall, with a short quiet period.
fn start_impatient(tree: &str, workers: usize) -> Runtime {
    let builder = builder(tree, workers, vec![Offer::of::<Bad>(), Offer::of::<Deal>()]);
    builder.quiet_period(Duration::from_millis(60)).build().expect("it starts")
}

/// Where a component may stand, with `BAD` for it.
fn places(bad: &str) -> [String; 5] {
    [
        r#"fifo { BAD { eager { each "worker" { worker } } } }"#,
        r#"BAD { fifo { eager { each "worker" { worker } } } }"#,
        r#"BAD { eager { each "worker" { fifo { worker } } } }"#,
        r#"fifo { eager { each "worker" { BAD { worker } } } }"#,
        r#"eager { each "worker" { fifo { BAD { worker } } } }"#,
    ]
    .map(|tree| tree.replace("BAD", bad))
}

fn faults_of_bad(tree: &str, runtime: &Runtime) -> Vec<Fault> {
    let faults = runtime.faults();
    for fault in &faults {
        assert_eq!((&*fault.component, &*fault.plugin), ("bad", "test"), "{tree}: {fault}");
        assert!(fault.node.ends_with("bad"), "{tree}: {fault}");
    }
    faults
}

#[test]
fn panics_are_survived_and_named() {
    let calls = ["panic in push", "panic after storing", "panic in pull", "panic in can_push", "panic in can_pull"];
    for what in calls {
        let mut noted = 0;
        for after in [0, 7, 50] {
            for stores in ["#false", "#true"] {
                for tree in places(&format!(r#"bad what="{what}" after={after} stores={stores}"#)) {
                    for workers in [1, 3] {
                        let runtime = start(&tree, workers);
                        let runs = submit_chains(&runtime, TASKS);
                        runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
                        runs.assert_once(&tree);
                        for fault in faults_of_bad(&tree, &runtime) {
                            let FaultKind::Panicked { message, .. } = &fault.kind else { panic!("{tree}: {fault}") };
                            assert!(message.contains(&format!("bad on purpose: {what}")), "{tree}: {fault}");
                        }
                        noted += runtime.faults().len();
                    }
                }
            }
        }
        // Others are called only when a worker sleeps, or pulls from a queue.
        let certain = ["panic in push", "panic in pull", "panic after storing"].contains(&what);
        assert!(!certain || noted > 0, "{what}: a fault is noted");
    }
}

#[test]
fn a_fault_reads_well() {
    let runtime = start(r#"fifo { eager { each "worker" { bad what="panic in pull" { worker } } } }"#, 1);
    let runs = submit_chains(&runtime, TASKS);
    runtime.wait_all().expect("every task runs");
    runs.assert_once("");
    let text = runtime.faults()[0].to_string();
    let (who, rest) = text.split_once(": panicked: ").expect("it panicked");
    insta::assert_snapshot!(who, @"component `bad` of test, node `fifo/eager/worker 0/bad`");
    assert!(rest.starts_with("bad on purpose: panic in pull"), "{rest}");
    assert!(rest.contains("; the node is quarantined, "), "{rest}");
}

#[test]
fn panics_of_estimates_are_survived() {
    for what in ["panic in estimated_end", "panic in estimated_load"] {
        let trees = [
            r#"fifo { bad what="ask" { eager { each "worker" { BAD { fifo { worker } } } } } }"#,
            r#"bad what="ask" { fifo { BAD { eager { each "worker" { worker } } } } }"#,
        ];
        for tree in trees.map(|tree| tree.replace("BAD", &format!(r#"bad what="{what}" after=5"#))) {
            let runtime = start(&tree, 2);
            let runs = submit_chains(&runtime, TASKS);
            runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
            runs.assert_once(&tree);
            faults_of_bad(&tree, &runtime);
        }
    }
}

#[test]
fn a_component_may_fail_while_it_describes_itself() {
    for tree in places(r#"bad what="panic in describe" stores=#true"#) {
        let runtime = start(&tree, 2);
        let runs = submit_chains(&runtime, TASKS);
        let _ = runtime.survey();
        let faults = faults_of_bad(&tree, &runtime);
        assert!(matches!(faults[0].kind, FaultKind::Panicked { .. }), "{tree}");
        runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        runs.assert_once(&tree);
    }
}

#[test]
fn a_component_may_fail_while_it_is_dropped() {
    for tree in places(r#"bad what="panic in drop" stores=#true"#) {
        let runtime = start(&tree, 2);
        let runs = submit_chains(&runtime, TASKS);
        runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        runs.assert_once(&tree);
    }
}

#[test]
fn dropped_tasks_run_all_the_same() {
    for what in ["drop", "drop when pulled"] {
        for stores in ["#false", "#true"] {
            for tree in places(&format!(r#"bad what="{what}" stores={stores}"#)) {
                for workers in [1, 3] {
                    let runtime = start(&tree, workers);
                    let runs = submit_chains(&runtime, TASKS);
                    runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
                    runs.assert_once(&tree);
                    for fault in faults_of_bad(&tree, &runtime) {
                        assert!(matches!(fault.kind, FaultKind::Dropped { tasks } if tasks > 0), "{tree}: {fault}");
                    }
                }
            }
        }
    }
}

#[test]
fn odd_answers_are_taken_as_they_come() {
    for what in ["one behind", "ask"] {
        for tree in places(&format!(r#"bad what="{what}""#)) {
            for workers in [1, 2, 4] {
                let runtime = start(&tree, workers);
                let runs = submit_chains(&runtime, TASKS);
                runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
                runs.assert_once(&tree);
                assert_eq!(runtime.faults(), [], "{tree}");
            }
        }
    }
}

#[test]
fn calls_in_a_circle_are_broken() {
    let trees = [
        r#"fifo { bad what="down again" { bad what="up again" { eager { each "worker" { worker } } } } }"#,
        r#"bad what="down again" stores=#true { eager { each "worker" { bad what="up again" { fifo { worker } } } } }"#,
    ];
    for tree in trees {
        for workers in [1, 3] {
            let runtime = start(tree, workers);
            for _ in 0..3 {
                let runs = submit_chains(&runtime, TASKS);
                runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
                runs.assert_once(tree);
            }
            // Whichever node the calls came by last is taken out of the circle.
            for fault in runtime.faults() {
                assert!(matches!(fault.kind, FaultKind::Cycle { .. }), "{tree}: {fault}");
            }
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_lock_held_across_a_hop_is_a_fault() {
    for tree in places(r#"bad what="hold a lock""#) {
        let runtime = start(&tree, 2);
        let runs = submit_chains(&runtime, TASKS);
        runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        runs.assert_once(&tree);
        for fault in faults_of_bad(&tree, &runtime) {
            assert!(fault.to_string().contains("`push_to` was called while holding a lock"), "{tree}: {fault}");
        }
    }
}

#[test]
fn who_keeps_tasks_for_ever_is_named() {
    for what in ["hoard", "leak"] {
        for (number, tree) in places(&format!(r#"bad what="{what}""#)).into_iter().enumerate() {
            let runtime = start_impatient(&tree, 2);
            let runs = submit_chains(&runtime, TASKS);
            let end = runtime.wait_all();
            if what == "leak" && [0, 3, 4].contains(&number) && end.is_ok() {
                // Nothing is pushed to a node below a queue from which workers pull.
                runs.assert_once(&tree);
                continue;
            }
            let Err(RunError::Stalled(report)) = end else { panic!("{tree}: expected a stall, found {end:?}") };
            let held: u64 = report.nodes.iter().map(|node| node.tasks).sum();
            let keeper = report.nodes.iter().max_by_key(|node| node.tasks).expect("there are nodes");
            // What is pulled from a queue above a hoard stays there.
            let right = keeper.component == "bad" || (what == "hoard" && keeper.component == "fifo");
            assert!(right && keeper.tasks > 0, "{tree}: {report}");
            // The queue is not to blame.
            let said = report.to_string();
            let mut bad = report.nodes.iter().filter(|node| node.component == "bad");
            assert!(bad.any(|node| said.contains(&format!("look at `{}` first", node.node))), "{tree}: {report}");
            assert_eq!(report.unfinished, held + report.waiting + report.fallback, "{tree}: {report}");
            let counts: Vec<u32> = runs.counts().collect();
            assert!(counts.contains(&0) && counts.iter().all(|count| *count <= 1), "{tree}: {counts:?}");
            // The stalled runtime can be dropped, and what is left behind does not disturb the next one.
        }
    }
}

/// A worker that ends a task puts off the wake of another where it will probably pull the new task itself: nobody may
/// be forgotten over this.
#[test]
fn nobody_sleeps_while_its_own_queue_has_a_task() {
    let trees = [
        r#"deal { each "worker" { fifo { worker } } }"#,
        r#"deal { each "worker" { worker } }"#,
        r#"fifo { deal { each "worker" { fifo ntasks-threshold=1 { worker } } } }"#,
        r#"bad what="one behind" { deal { each "worker" { worker } } }"#,
        r#"bad what="one behind" { deal { each "worker" { fifo { worker } } } }"#,
    ];
    for tree in trees {
        for workers in [1, 2, 3] {
            let runtime = start(tree, workers);
            for _ in 0..20 {
                let runs = submit_chains(&runtime, TASKS);
                runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
                runs.assert_once(tree);
                let step =
                    runtime.codelet::<(ReadWrite<u32>,), ()>("step").cpu("step", |_, (count,)| *count += 1).build();
                let chains = [0_u32, 0, 0].map(|count| runtime.register(count));
                for _ in 0..60 {
                    for chain in &chains {
                        runtime.task(&step, (chain,)).submit().expect("the task is sound");
                    }
                }
                runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
            }
        }
    }
}
