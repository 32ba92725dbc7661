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

/// Nobody sleeps, so nobody comes by to fetch the task. Where it goes is decided all the same, so that its data can be
/// on the way.
#[test]
fn tasks_are_sent_to_workers_when_they_arrive_although_all_of_these_are_busy() {
    let registry = stock::registry(Vec::new());
    for name in ["tree-heft", "tree-heft2", "tree-heft-prio", "tree-heteroprio"] {
        let policy = library().iter().find(|shipped| shipped.name == name).expect("it is shipped").policy();
        let tree = ByHand::new(&policy, &registry, &MACHINE, None);
        let below = |path: &str| path.contains("/worker ") || path.contains("/memory-node ");
        for number in 1..=8 {
            tree.push([Arch::CPU, Arch::CUDA][number % 2], Some(0));
            let (stored, sent) = (tree.tasks_at(|_| true), tree.tasks_at(below));
            assert_eq!((stored, sent), (number as u64, number as u64), "{name}");
        }
        assert!(tree.woken().is_empty(), "{name}");
        let pulled = |worker: u32| std::iter::from_fn(|| tree.pull(worker)).count();
        assert_eq!([0, 1, 2, 3].map(pulled).iter().sum::<usize>(), 8, "{name}");
        assert_eq!(tree.faults(), [], "{name}");
    }
}

#[test]
fn a_full_queue_leaves_tasks_above_until_there_is_room() {
    let registry = stock::registry(Vec::new());
    let policy = library().iter().find(|shipped| shipped.name == "tree-heft").expect("it is shipped").policy();
    let tree = ByHand::new(&policy, &registry, &Mixed { cpus: 1, gpus: 1 }, None);
    let above = || tree.tasks_at(|path| path == "prio");
    (0..32).for_each(|_| _ = tree.push(Arch::CPU, None));
    assert_eq!(above(), 2, "the queue of the worker holds 30 tasks");
    tree.sleep([1]);
    tree.push(Arch::CUDA, None);
    assert_eq!(tree.woken(), [1], "behind those that wait, one for another worker wakes it");
    assert!(tree.pull(1).is_some());
    assert!(tree.pull(0).is_some());
    assert_eq!(above(), 1);
    assert_eq!(tree.faults(), []);
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
