//! A component that misbehaves in a simulation is named as in a run, and a run that would stall stalls there too.

use sched_core::Offer;
use sched_host::graph::generate::cholesky;
use sched_host::runtime::RunError;
use sched_host::sim::platform::find;
use sched_host::sim::{SimError, SimOutcome, Simulation};
use sched_host::tree::FaultKind;
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::stock;
use std::time::Duration;

fn simulate(tree: &str) -> Result<SimOutcome, SimError> {
    let platform = find("cpu9-gpu3").expect("it is shipped");
    let simulation = Simulation::new(cholesky(5, 960), platform).registry(stock::registry(vec![Offer::of::<Bad>()]));
    simulation.policy_value(stock::policy(tree)).run()
}

#[test]
fn a_panic_loses_no_wake_and_is_reported() {
    for what in ["panic in push", "panic in pull", "panic in can_push", "panic in can_pull"] {
        for after in [0, 3, 20] {
            let bad = format!(r#"bad what="{what}" after={after}"#);
            let trees = [
                r#"fifo { BAD { eager { each "worker" { worker } } } }"#,
                r#"fifo { eager { each "worker" { BAD { fifo ntasks-threshold=2 { worker } } } } }"#,
                r#"BAD { fifo { eager { each "worker" { worker } } } }"#,
            ];
            for tree in trees.map(|tree| tree.replace("BAD", &bad)) {
                let outcome = simulate(&tree).unwrap_or_else(|error| panic!("{tree}: {error:?}"));
                assert_eq!(outcome.tasks, 35, "{tree}");
                for fault in &outcome.faults {
                    assert!(fault.component == "bad" && matches!(fault.kind, FaultKind::Panicked { .. }), "{fault}");
                }
                // Workers pull from the queue above, and are woken for it.
                let certain = after == 0 && ["panic in pull", "panic in can_pull"].contains(&what);
                assert!(!certain || !tree.starts_with("fifo { bad") || !outcome.faults.is_empty(), "{tree}");
            }
        }
    }
}

/// To wake up takes time there, so that no two of these looks are at one time.
#[test]
fn workers_that_are_woken_for_nothing_all_the_time_do_not_keep_a_simulation_from_ending() {
    for machine in ["numa-2x12", "cpu9-gpu3"] {
        for stores in ["", " stores=#true"] {
            let tree = format!(
                r#"bad what="wake for nothing"{stores} {{ eager {{ each "worker" {{ fifo ntasks-threshold=2 {{ worker }} }} }} }}"#
            );
            let simulation = Simulation::new(cholesky(5, 960), find(machine).expect("it is shipped"));
            let simulation = simulation.registry(stock::registry(vec![Offer::of::<Bad>()]));
            let outcome = simulation.policy_value(stock::policy(&tree)).run().expect("it ends");
            assert_eq!(outcome.tasks, 35, "{machine}{stores}");
        }
    }
}

#[test]
fn a_component_that_wakes_nobody_stalls_a_run_and_a_simulation() {
    let tree = r#"bad what="mute" stores=#true { eager { each "worker" { worker } } }"#;
    let Err(error) = simulate(tree) else { panic!("nobody is woken") };
    let said = error.to_string();
    assert!(said.contains("node `bad` (bad of test) holds "), "{said}");
    let runtime = stock::builder(tree, 1, vec![Offer::of::<Bad>()]).quiet_period(Duration::from_millis(60));
    let runtime = runtime.build().expect("it starts");
    // Asleep, so that it does not find the task by itself.
    while runtime.stats()[0].sleeps == 0 {
        std::thread::yield_now();
    }
    let _runs = submit_chains(&runtime, 10);
    assert!(matches!(runtime.wait_all(), Err(RunError::Stalled(_))));
}

#[test]
fn a_component_that_takes_nothing_is_named_when_a_simulation_stalls() {
    // The queues below have their parents push.
    let tree = r#"fifo { bad what="refuse" { eager { each "worker" { fifo ntasks-threshold=2 { worker } } } } }"#;
    let Err(error) = simulate(tree) else { panic!("no task comes through") };
    let said = error.to_string();
    assert!(said.contains("node `fifo/bad` (bad of test) holds 0 tasks, refused "), "{said}");
}
