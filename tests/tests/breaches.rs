//! Breaches of contract that do not stop a component are named and counted, in a run and in a simulation; every task is
//! executed all the same.

use sched_core::Offer;
use sched_host::graph::generate::cholesky;
use sched_host::sim::platform::find;
use sched_host::sim::{Context, SimOutcome, Simulation, When};
use sched_host::tree::attendance::Method;
use sched_host::tree::{Breach, Fault, FaultKind};
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::hold::Hold;
use sched_tests::stock;

const TASKS: usize = 100;

/// What Bad does, where it stands, and what is said of it.
const CASES: [(&str, &str, Breach, &[Method]); 8] = [
    ("swap", "BAD { fifo { eager { EACH { worker } } } }", Breach::OtherTaskRefused, &[Method::PushTask]),
    ("swap", "eager { EACH { BAD { fifo { worker } } } }", Breach::OtherTaskRefused, &[Method::PushTask]),
    ("refuse", "BAD { fifo { eager { EACH { worker } } } }", Breach::UnboundedRefused, &[Method::PushTask]),
    ("name a child", "BAD { fifo { eager { EACH { worker } } } }", Breach::NoSuchChild, &[Method::PushTask]),
    ("name a parent", "fifo { BAD { eager { EACH { worker } } } }", Breach::NoSuchParent, &[Method::PullTask]),
    ("no number", "ASK { BAD { fifo { eager { EACH { worker } } } } }", Breach::UnusableLoad, LOAD),
    ("an infinite load", "ASK { fifo { BAD { eager { EACH { worker } } } } }", Breach::UnusableLoad, LOAD),
    ("a negative load", "ASK { fifo { eager { EACH { BAD { worker } } } } }", Breach::UnusableLoad, LOAD),
];

const LOAD: &[Method] = &[Method::EstimatedLoad];

fn tree(what: &str, tree: &str) -> String {
    let tree = tree.replace("BAD", &format!("bad what=\"{what}\"")).replace("EACH", "each \"worker\"");
    tree.replace("ASK", "bad what=\"ask\"")
}

/// Asserts that `faults` are of this breach by these methods only, and that there are some. Gives how often it was
/// seen.
fn assert_named(faults: &[Fault], expected: Breach, methods: &[Method], tree: &str) -> u64 {
    let seen = faults.iter().map(|fault| {
        assert_eq!((&*fault.component, &*fault.plugin), ("bad", "test"), "{tree}: {fault}");
        let FaultKind::Breach { breach, method, count } = fault.kind else { panic!("{tree}: {fault}") };
        assert!(breach == expected && methods.contains(&method) && count > 0, "{tree}: {fault}");
        count
    });
    let seen = seen.sum();
    assert!(seen > 0, "{tree}: the breach is seen");
    seen
}

fn simulate(tree: &str) -> SimOutcome {
    let platform = find("cpu9-gpu3").expect("it is shipped");
    let simulation = Simulation::new(cholesky(5, 960), platform).registry(stock::registry(vec![Offer::of::<Bad>()]));
    simulation.policy_value(stock::policy(tree)).run().unwrap_or_else(|error| panic!("{tree}: {error}"))
}

#[test]
fn breaches_in_a_run_are_counted_and_do_no_harm() {
    for (what, place, breach, methods) in CASES {
        let tree = tree(what, place);
        for workers in [1, 3] {
            let runtime = stock::builder(&tree, workers, vec![Offer::of::<Bad>()]).build().expect("it starts");
            let runs = submit_chains(&runtime, TASKS);
            runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
            runs.assert_once(&tree);
            let count = assert_named(&runtime.faults(), breach, methods, &tree);
            match breach {
                Breach::UnboundedRefused => assert_eq!(count, 2 * TASKS as u64, "{tree}"),
                // A child is notified that it can pull only while somebody sleeps, even a wrong one.
                Breach::NoSuchChild => {
                    assert!((6 * TASKS as u64..=8 * TASKS as u64).contains(&count), "{tree}: {count}")
                }
                _ => {}
            }
        }
    }
}

#[test]
fn breaches_in_a_simulation_are_counted_and_do_no_harm() {
    for (what, place, breach, methods) in CASES {
        let tree = tree(what, place);
        let outcome = simulate(&tree);
        assert_eq!(outcome.tasks, 35, "{tree}");
        let count = assert_named(&outcome.faults, breach, methods, &tree);
        assert!(breach != Breach::UnboundedRefused || count == 35, "{tree}");
    }
}

#[test]
fn tasks_that_a_drain_keeps_are_taken_back_and_counted() {
    let keeps = tree("keep when drained", "BAD stores=#true { eager { EACH { worker } } }");
    let next = "fifo { eager { each \"worker\" { worker } } }";
    let runtime = stock::builder(&keeps, 2, vec![Offer::of::<Bad>()]).build().expect("it starts");
    // So that there are tasks to drain.
    let hold = Hold::new(&runtime);
    let held = [hold.worker(), hold.worker()];
    let runs = submit_chains(&runtime, TASKS);
    runtime.default_context().swap_policy_value(stock::policy(next)).expect("the policy is sound");
    drop(held);
    runtime.wait_all().unwrap_or_else(|end| panic!("{end}"));
    runs.assert_once(&keeps);
    // One of each chain was ready.
    assert_eq!(assert_named(&runtime.faults(), Breach::TasksKept, &[Method::Drain], &keeps), 7);

    let platform = find("cpu9-gpu3").expect("it is shipped");
    let simulation = Simulation::new(cholesky(5, 960), platform).registry(stock::registry(vec![Offer::of::<Bad>()]));
    let simulation = simulation.policy_value(stock::policy(&keeps));
    let outcome = simulation.swap_policy(Context::DEFAULT, "tree-eager", When::AfterTasks(5)).run().expect("it ends");
    assert_eq!(outcome.tasks, 35);
    assert_named(&outcome.faults, Breach::TasksKept, &[Method::Drain], &keeps);
}

#[test]
fn breaches_read_well() {
    let said = |breach, method, count| {
        let [context, node] = ["", "fifo/bad"].map(str::to_owned);
        let kind = FaultKind::Breach { breach, method, count };
        Fault { context, node, component: "bad".to_owned(), plugin: "test".to_owned(), kind }
    };
    let text = [
        said(Breach::OtherTaskRefused, Method::PushTask, 187),
        said(Breach::UnboundedRefused, Method::PushTask, 1),
        said(Breach::NoSuchChild, Method::PullTask, 2),
        said(Breach::NoSuchParent, Method::CanPush, 3),
        said(Breach::TasksKept, Method::Drain, 1),
        said(Breach::TasksKept, Method::Drain, 12),
        said(Breach::UnusableLoad, Method::EstimatedLoad, 5),
    ];
    let lines: Vec<String> = text.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    component `bad` of test, node `fifo/bad`: `push_task` handed back another task than it was given, 187 times
    component `bad` of test, node `fifo/bad`: `push_task` refused a task at the root, once, although it is declared to store any number
    component `bad` of test, node `fifo/bad`: `pull_task` named a child that does not exist, twice
    component `bad` of test, node `fifo/bad`: `can_push` named a parent that does not exist, 3 times
    component `bad` of test, node `fifo/bad`: `drain` kept a task, which was taken back from it
    component `bad` of test, node `fifo/bad`: `drain` kept 12 tasks, which were taken back from it
    component `bad` of test, node `fifo/bad`: `estimated_load` gave a load that is negative, infinite or not a number, 5 times; it was replaced
    ");
    let json = serde_json::to_string(&text[0]).expect("it has text for keys");
    insta::assert_snapshot!(json, @r#"{"node":"fifo/bad","component":"bad","plugin":"test","fault":"breach","breach":"other-task-refused","method":"push_task","count":187}"#);
}
