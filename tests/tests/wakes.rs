//! Wakes go to workers that can execute a task, and are counted.

use sched_core::Arch;
use sched_host::graph::{Task, TaskGraph};
use sched_host::policy::library;
use sched_host::runtime::{ReadWrite, Runtime};
use sched_host::sim::{Platform, Simulation};
use sched_tests::by_hand::{ByHand, Mixed};
use sched_tests::stock;
use std::time::Duration;

/// Two CPU workers and two CUDA workers.
const MACHINE: Mixed = Mixed { cpus: 2, gpus: 2 };

#[test]
fn a_task_wakes_only_workers_that_can_run_it_under_every_policy() {
    let registry = stock::registry(Vec::new());
    for shipped in library() {
        for (arch, able) in [(Arch::CPU, [0, 1]), (Arch::CUDA, [2, 3])] {
            let tree = ByHand::new(&shipped.policy(), &registry, &MACHINE, None);
            tree.sleep(0..4);
            let tasks = [(); 6].map(|()| tree.push(arch, None));
            let mut woken = tree.woken();
            woken.sort_unstable();
            assert!(!woken.is_empty(), "{}: somebody is woken for a {arch} task", shipped.name);
            assert!(woken.iter().all(|worker| able.contains(worker)), "{}: {woken:?} for {arch}", shipped.name);
            assert!(woken.is_sorted_by(|one, other| one < other), "{}: {woken:?} twice", shipped.name);

            let mut pulled: Vec<u32> = Vec::new();
            while let Some(task) = able.iter().find_map(|worker| tree.pull(*worker)) {
                pulled.push(task);
            }
            pulled.sort_unstable();
            assert_eq!(pulled, tasks, "{}", shipped.name);
            assert_eq!(tree.faults(), [], "{}", shipped.name);
        }
    }
}

#[test]
fn nobody_is_woken_where_those_who_can_run_it_are_awake() {
    let registry = stock::registry(Vec::new());
    for shipped in library() {
        let tree = ByHand::new(&shipped.policy(), &registry, &MACHINE, None);
        tree.sleep([0, 1]);
        for _ in 0..4 {
            tree.push(Arch::CUDA, None);
        }
        assert!(tree.woken().is_empty(), "{}", shipped.name);
        while [2, 3].into_iter().any(|worker| tree.pull(worker).is_some()) {}
    }
}

/// The slow device is woken for a task that the policy then sends to the memory node of the fast one, whose first
/// worker cannot execute it.
#[test]
fn a_task_that_one_worker_sends_to_others_wakes_one_that_can_execute_it() {
    let machine = r#"platform "two devices" {
        memory "ram"
        memory "fast"
        link "ram" "fast" bandwidth="10 GB/s"
        workers "slow" arch="cuda" memory="ram"
        workers "cpu" arch="cpu" memory="fast"
        workers "fast" arch="cuda" memory="fast"
        kernel "k" { on "slow" time="9 ms"; on "fast" time="1 ms"; }
    }"#;
    let machine = Platform::parse("test.kdl", machine).expect("it is sound");
    let mut graph = TaskGraph::new("one");
    let kind = graph.add_kind("k");
    graph.add_task(Task::new(kind));
    for shipped in library() {
        let simulation = Simulation::new(graph.clone(), machine.clone()).policy(shipped.name);
        let outcome = simulation.registry(stock::registry(Vec::new())).run();
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", shipped.name));
        if shipped.name == "tree-heft-prio" {
            assert_eq!(outcome.makespan, Duration::from_millis(1));
        }
    }
}

/// Runs chains of tasks, with pauses in which workers fall asleep.
fn work(runtime: &Runtime) {
    let data = [0u32; 3].map(|value| runtime.register(value));
    let add = runtime.codelet::<(ReadWrite<u32>,), ()>("add").cpu("add", |_, (value,)| *value += 1).build();
    for _ in 0..20 {
        for handle in &data {
            runtime.task(&add, (handle,)).submit().expect("the task is sound");
        }
        runtime.wait_all().expect("every task runs");
    }
}

#[test]
fn every_wake_follows_a_sleep_and_may_come_to_nothing() {
    for tree in [stock::EAGER, r#"work-stealing { each "worker" { worker } }"#] {
        let runtime = stock::runtime(tree, 3);
        work(&runtime);
        for worker in runtime.stats() {
            assert!(worker.wakes_in_vain <= worker.wakes && worker.wakes <= worker.sleeps, "{worker:?}");
        }
    }
}
