//! A component that does not come back from a call is named, and holds up nobody who can do without it.

use sched_core::Offer;
use sched_host::runtime::{RunError, Runtime, StartError};
use sched_host::tree::FaultKind;
use sched_host::tree::attendance::Method;
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::stock::builder;
use std::time::Duration;

const TASKS: usize = 40;

fn begin(tree: &str, workers: usize) -> Result<Runtime, StartError> {
    let builder = builder(tree, workers, vec![Offer::of::<Bad>()]);
    builder.quiet_period(Duration::from_millis(60)).build()
}

fn start(tree: &str, workers: usize) -> Runtime {
    begin(tree, workers).unwrap_or_else(|error| panic!("{tree}: {error}"))
}

#[test]
fn a_run_that_is_stuck_in_a_component_stalls_and_names_it() {
    let cases = [
        (r#"fifo { bad what="block in pull" after=9 stores=#true { worker } }"#, Method::PullTask),
        (r#"bad what="block in can_push" { fifo ntasks-threshold=1 { worker } }"#, Method::CanPush),
    ];
    for (tree, method) in cases {
        let runtime = start(tree, 1);
        let _runs = submit_chains(&runtime, TASKS);
        let end = runtime.wait_all();
        let Err(RunError::Stalled(report)) = end else { panic!("{tree}: {end:?}") };
        let call = report.overdue.first().unwrap_or_else(|| panic!("{tree}: {report}"));
        assert_eq!((&*call.post.component, call.method), ("bad", method), "{tree}");
        assert!(call.post.node.ends_with("bad") && call.thread == "worker-0", "{tree}: {call}");
        let said = report.to_string();
        assert!(said.contains(&format!("stuck: component `bad` of test, node `{}`", call.post.node)), "{said}");
        assert!(!said.contains("look at"), "a queue above it is not to blame: {said}");
        // It returns, and leaves the thread behind.
        drop(runtime);
    }
}

#[test]
fn a_runtime_without_tasks_ends_though_a_worker_is_stuck() {
    for workers in [1, 3] {
        drop(start(r#"fifo { bad what="block in pull" { eager { each "worker" { worker } } } }"#, workers));
    }
}

#[test]
fn a_constructor_that_does_not_come_back_is_an_error() {
    let Err(error) = begin(r#"bad what="block in build" { worker }"#, 1) else { panic!("it is never built") };
    let said = format!("{error:?}");
    assert!(said.contains("component `bad` of test was not built within 5s"), "{said}");
}

#[test]
fn a_swap_does_without_what_a_drain_does_not_give() {
    for what in ["block in drain", "block in drop"] {
        let tree = format!(r#"bad what="{what}" stores=#true {{ eager {{ each "worker" {{ worker }} }} }}"#);
        let runtime = start(&tree, 2);
        let runs = submit_chains(&runtime, TASKS);
        let next = sched_tests::stock::policy("fifo { eager { each \"worker\" { worker } } }");
        runtime.default_context().swap_policy_value(next).unwrap_or_else(|error| panic!("{what}: {error}"));
        runtime.wait_all().unwrap_or_else(|end| panic!("{what}: {end}"));
        runs.assert_once(what);
        if what == "block in drain" {
            let faults = runtime.faults();
            assert!(
                matches!(faults[..], [ref fault] if matches!(fault.kind, FaultKind::Overdue { method: Method::Drain, .. })),
                "{faults:?}"
            );
            assert!(faults[0].to_string().contains("`drain` did not come back within 5s and was left behind"));
        }
    }
}
