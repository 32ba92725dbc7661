//! Every service of the host answers every argument, in a run and in a simulation: neither panics, and no number is
//! unusable.

use proptest::prelude::*;
use sched_core::{
    Arch, Build, BuildError, Child, Component, Family, Info, LogLevel, MemoryNode, Node, Offer, Params, Parent, Push,
    Task, Time, WorkerId,
};
use sched_host::graph::generate::cholesky;
use sched_host::model::{Bus, NodeMatrix};
use sched_host::runtime::ReadWrite;
use sched_host::sim::Simulation;
use sched_host::sim::platform::find;
use sched_host::tree::{Breach, Fault, FaultKind};
use sched_tests::stock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request: the number of a service, and its arguments.
#[derive(Clone, Debug)]
struct Ask {
    service: u8,
    ids: [u32; 2],
    number: u64,
}

/// Numbers that count, and others.
fn id() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..5, 62u32..66, (u32::MAX - 3)..=u32::MAX, Just(1 << 31), any::<u32>()]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..40, (u64::MAX - 3)..=u64::MAX, Just(1 << 63), any::<u64>()]
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (0u8..SERVICES, id(), id(), number());
    let ask = ask.prop_map(|(service, one, other, number)| Ask { service, ids: [one, other], number });
    prop::collection::vec(ask, 1..60)
}

/// What is asked for at each push, and each pull. Set before a component is built.
static ASKS: Mutex<Vec<Ask>> = Mutex::new(Vec::new());

/// Asks, and passes tasks on.
struct Curious {
    asks: Vec<Ask>,
}

impl Build for Curious {
    const INFO: Info = Info::new("curious", Family::SpecialPurpose, "Asks for everything.").forwards_push();

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Curious { asks: ASKS.lock().map_err(|_| BuildError::new("a test failed"))?.clone() })
    }
}

impl Component for Curious {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        for ask in &self.asks {
            of_task(node, &mut task, ask);
            of_node(node, ask);
            of_submitted(node, ask);
            if ask.service == SERVICES - 1 && ask.ids[0] as usize >= node.children().len() {
                task = node.push_to(Child(ask.ids[0]), task).expect_err("there is no such child").task;
            }
        }
        node.push_to(Child(0), task)
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        self.asks.iter().for_each(|ask| of_node(node, ask));
        let wrong = self.asks.iter().map(|ask| ask.ids[1]).filter(|parent| *parent as usize >= node.parents().len());
        // The highest number stands for all parents.
        let wrong = wrong.filter(|parent| *parent != u32::MAX);
        wrong.for_each(|parent| assert!(node.pull_from(Parent(parent)).is_none()));
        node.pull_from_parents()
    }
}

const SERVICES: u8 = 26;

/// A load, or another number.
fn assert_usable(number: f64) {
    assert!(number.is_finite() && number >= 0.0, "{number}");
}

/// Services about a task.
fn of_task(node: Node<'_>, task: &mut Task, Ask { service, ids: [one, other], number }: &Ask) {
    let (worker, memory, length) = (WorkerId(*one), MemoryNode(*one), Duration::from_nanos(*number));
    match service {
        0 => _ = (node.can_execute(task), node.worker_can_execute(worker, task), node.requester_can_execute(task)),
        1 => _ = node.child_can_execute(Child(*one), task),
        2 => _ = node.implementations(worker, task),
        3 => _ = node.expected_length(worker, task),
        4 => _ = node.expected_length_with(worker, task, *other),
        5 => _ = node.expected_transfer(memory, task),
        6 => assert!(node.expected_energy(worker, task).is_none_or(|joules| joules >= 0.0)),
        7 => node.prefetch(task),
        8 => node.prefetch_to(memory, task),
        9 => node.prospects(task, true, |_, prospect| assert!(prospect.energy.is_none_or(|joules| joules >= 0.0))),
        10 => _ = node.expected_below(task),
        11 => task.set_predicted(Some(length).filter(|_| *other != 0)),
        12 => task.set_predicted_transfer(Some(length).filter(|_| *other != 0)),
        13 => task.set_implementation(Some(*one).filter(|_| *other != 0)),
        14 => task.set_priority(*one as i32),
        _ => {}
    }
}

/// Services about the node and its neighbours.
fn of_node(node: Node<'_>, Ask { service, ids: [one, other], number }: &Ask) {
    let (child, worker, length) = (Child(*one), WorkerId(*one), Duration::from_nanos(*number));
    match service {
        0 => assert!((0.0..1.0).contains(&node.random_unit()) && node.now() < Time::FAR),
        1 => _ = (node.child_worker(child), node.child_workers(child), node.child_has_worker(child, WorkerId(*other))),
        2 => assert_usable(node.child_relative_speedup(child)),
        3 => _ = node.each_child_worker_in_context(child).count(),
        4 => _ = node.child_estimated_end(child),
        5 => _ = (node.average_end_below(), node.end_below_with_queued(length)),
        6 => _ = (node.worker_busy_until(worker), node.worker_free_at(worker)),
        7 => node.note_queued(length),
        8 => assert_usable(node.child_load(child)),
        9 => assert_usable(node.members_load(worker)),
        10 => assert_usable(node.load_below()),
        11 => _ = node.child_can_pull(child),
        12 => assert!(node.members(worker).count() <= 64),
        13 => _ = (node.arch(worker), node.memory_node(worker), node.has_in_context(worker)),
        14 => _ = (node.worker_distance(worker, WorkerId(*other)), node.worker_distance(worker, worker)),
        15 => node.log(LogLevel::Debug, &"\u{1b}[2J\n\0".repeat((*number % 40) as usize)),
        16 => _ = (node.slot("\0"), node.requester(), node.workers(), node.path().len()),
        _ => {}
    }
}

/// Services about the tasks to come.
fn of_submitted(node: Node<'_>, Ask { service, ids: [one, other], number }: &Ask) {
    let Some(submitted) = node.submitted().filter(|_| *service >= 17) else { return };
    let (one, other) = (MemoryNode(*one), MemoryNode(*other));
    match service {
        17 => _ = (submitted.range(), submitted.task(*number)),
        18 => _ = submitted.tasks().take(20).count(),
        19 => _ = submitted.expected_length(*number, WorkerId(one.0)),
        20 => _ = submitted.expected_length(submitted.range().start, WorkerId(one.0)),
        21 => _ = submitted.has_copy(*number, one),
        22 => _ = submitted.expected_transfer(one, other, *number),
        23 => {
            // The answer about one task is not that about another.
            for (_, task) in submitted.tasks().take(3) {
                assert!(submitted.successors(*number, task).count() <= 1000);
                assert!(submitted.accesses(*number, task).count() <= 1000);
            }
        }
        24 => _ = submitted.expected_transfer(MemoryNode(0), MemoryNode(1), *number),
        _ => {}
    }
}

/// Only what names neighbours that are not there is a breach.
fn assert_sound(faults: &[Fault]) -> Result<(), TestCaseError> {
    for fault in faults {
        let is_expected =
            matches!(fault.kind, FaultKind::Breach { breach: Breach::NoSuchChild | Breach::NoSuchParent, .. });
        prop_assert!(is_expected, "{}", fault);
    }
    Ok(())
}

const TREES: [&str; 3] = [
    r#"curious { fifo { eager { each "worker" { curious { fifo { worker } } } } } }"#,
    r#"fifo { curious { eager { each "worker" { curious { worker } } } } }"#,
    r#"random { each "worker" { curious { prio { worker } } } }"#,
];

/// Decides by models; a simulation refuses such a tree without a component that sorts tasks out.
const BY_MODELS: &str = r#"curious { mct { each "worker" { curious { fifo { worker } } } } }"#;

fn registry() -> Arc<sched_host::plugin::Registry> {
    stock::registry(vec![Offer::of::<Curious>()])
}

fn run(tree: &str) -> Result<(), TestCaseError> {
    let all = |value: f64| NodeMatrix::new(2, vec![value; 4]);
    let bus = Bus { bandwidth: all(1e3), latency: all(1.0), ..Bus::default() };
    let builder = stock::builder(tree, 3, Vec::new()).registry(registry()).unchecked().memory_nodes(2).bus(bus);
    let runtime = builder.build().expect("it starts");
    let data: Vec<_> = (0..4).map(|number: u32| runtime.replicated(number).register()).collect();
    let count = |_: &sched_host::runtime::Context<'_, ()>, (number,): (&mut u32,)| *number += 1;
    let codelet = runtime.codelet::<(ReadWrite<u32>,), ()>("count").cpu("count", count);
    let codelet = codelet.estimate(Arch::CPU, Duration::from_micros(5)).build();
    for number in 0..24 {
        runtime.task(&codelet, (&data[number % data.len()],)).submit().expect("the task is sound");
    }
    runtime.wait_all().map_err(|end| TestCaseError::fail(format!("{tree}: {end}")))?;
    assert_sound(&runtime.faults())
}

fn simulate(tree: &str) -> Result<(), TestCaseError> {
    let simulation = Simulation::new(cholesky(4, 960), find("cpu9-gpu3").expect("it is shipped")).registry(registry());
    let outcome = simulation.policy_value(stock::policy(tree)).run();
    let outcome = outcome.map_err(|error| TestCaseError::fail(format!("{tree}: {error}")))?;
    prop_assert_eq!(outcome.tasks, 20);
    assert_sound(&outcome.faults)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_service_answers_every_argument(asks in asks(), tree in 0usize..TREES.len()) {
        *ASKS.lock().expect("nobody panics") = asks;
        run(TREES[tree])?;
        run(BY_MODELS)?;
        simulate(TREES[tree])?;
    }
}
