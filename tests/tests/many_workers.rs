//! Trees over many workers: the cost of a task must not grow with workers that are not involved.

use sched_components::resource_mapping::WorkStealing;
use sched_components::worker::Simple;
use sched_core::rig::{FakeChild, Rig};
use sched_core::{
    Arch, Build, Child, Component, Estimate, Node, Params, Push, Refusal, Refused, Task, WorkerId, WorkerSet, adapt,
};
use sched_host::graph::TaskGraph;
use sched_host::graph::generate::{cholesky, fork_join, independent};
use sched_host::sim::{Platform, Simulation};
use sched_host::trace::{Event, Observer};
use sched_host::tree::{Claims, Ledger, NodeId, Part, Phase, Slot, SlotId, Tree, Unplaced, WorkerFacts};
use sched_tests::fake_services::FakeServices;
use sched_tests::stock;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A component over a leaf for each of these workers, in this order.
fn over(
    component: impl Component,
    workers: &[u32],
    facts: &[WorkerFacts],
    lengths: Vec<Estimate>,
) -> (Tree, Arc<Ledger>, Arc<FakeServices<Vec<Estimate>>>) {
    let part = |component, name: &str, children: Vec<(NodeId, String)>, workers: WorkerSet, worker| Part {
        component: Unplaced::new(component, None),
        name: name.to_owned(),
        plugin: "test".to_owned(),
        params: Params::default(),
        path: name.to_owned(),
        object: String::new(),
        children,
        workers_in_context: workers.clone(),
        workers,
        sharing: None,
        worker,
        claims: Claims::default(),
        attended: true,
    };
    let all: WorkerSet = workers.iter().copied().map(WorkerId).collect();
    let children = (1..=workers.len() as u32).map(|child| (NodeId(child), String::new())).collect();
    let mut parts = vec![part(adapt(component), "top", children, all, None)];
    for worker in workers.iter().copied().map(WorkerId) {
        let leaf = Simple::build(&Params::defaults(Simple::INFO.declared_params())).expect("it has no parameters");
        parts.push(part(adapt(leaf), "leaf", Vec::new(), [worker].into_iter().collect(), Some(worker)));
    }
    let services = Arc::new(FakeServices::expecting(facts.len(), lengths));
    let ledger = Arc::new(Ledger::new());
    let tree = Tree::assemble(parts, facts, services.clone(), Arc::clone(&ledger), 0);
    ledger.grow();
    (tree, ledger, services)
}

/// Task number `index`, for workers of these architectures.
fn task(ledger: &Ledger, index: u32, archs: &[Arch]) -> &'static Slot {
    let slot = ledger.slot(SlotId(index));
    slot.set_phase(Phase::Waiting);
    slot.head().reset();
    slot.head().priority.store(0, Relaxed);
    slot.head().archs.store(archs.iter().fold(0, |bits, arch| bits | 1 << arch.number()), Relaxed);
    slot
}

#[test]
fn the_first_sleeper_in_the_order_of_children_is_woken() {
    let stealing =
        || WorkStealing::build(&Params::defaults(WorkStealing::INFO.declared_params())).expect("no parameters");
    let forward: Vec<u32> = (0..1000).collect();
    let backward: Vec<u32> = (0..1000).rev().collect();
    for (order, woken) in [(forward, [130, 131, 700]), (backward, [999, 700, 131])] {
        let (tree, ledger, services) = over(stealing(), &order, &[WorkerFacts::CPU; 1000], Vec::new());
        for sleeper in [130_u32, 131, 700, 999] {
            services.sleeping.insert(sleeper);
        }
        // Worker 5 is awake: each of its tasks is for a thief.
        for index in 0..3 {
            tree.push(task(&ledger, index, &[Arch::CPU]), Some(WorkerId(5)), None);
        }
        assert_eq!(services.take_woken(), woken);
        let robbed: Vec<Option<u32>> =
            woken.iter().map(|thief| tree.pull(WorkerId(*thief)).map(|slot| slot.id().0)).collect();
        assert_eq!(robbed, [Some(0), Some(1), Some(2)]);
        assert!(tree.pull(WorkerId(999)).is_none());
    }
}

#[test]
fn a_sleeper_of_another_architecture_is_passed_over() {
    let stealing = WorkStealing::build(&Params::defaults(WorkStealing::INFO.declared_params())).expect("no parameters");
    let mut facts = [WorkerFacts::CPU; 200];
    facts[150].arch = Arch::CUDA;
    facts[3].arch = Arch::CUDA;
    let (tree, ledger, services) = over(stealing, &(0..200).collect::<Vec<_>>(), &facts, Vec::new());
    (20..200).for_each(|sleeper| services.sleeping.insert(sleeper));
    tree.push(task(&ledger, 0, &[Arch::CUDA]), Some(WorkerId(3)), None);
    assert_eq!(services.take_woken(), [150]);
}

#[test]
fn tasks_are_found_wherever_they_are_and_emptied_queues_forgotten() {
    // Workers 0 to 64 are near each other, and far from the others, which are near each other as well.
    let rig =
        (0..130).fold(Rig::build::<WorkStealing>(&[]).workers(130), |rig, worker| rig.child(FakeChild::worker(worker)));
    for (one, other) in (0..130).flat_map(|one| (0..one).map(move |other| (one, other))) {
        rig.set_distance(WorkerId(one), WorkerId(other), if (one < 65) == (other < 65) { 1 } else { 3 });
    }
    let fill = || -> Vec<_> {
        let push = |worker| {
            let task = rig.task().make();
            rig.set_requester(Some(WorkerId(worker)));
            assert_eq!(rig.push(task), Ok(()));
            rig.set_requester(None);
            task
        };
        (0..130).map(push).collect()
    };
    for thief in [0, 7, 64, 65, 129, 7] {
        let tasks = fill();
        let robbed: Vec<u32> = std::iter::from_fn(|| rig.pull(Child(thief)))
            .map(|task| tasks.iter().position(|other| *other == task).expect("it was pushed") as u32)
            .collect();
        let (near, far): (Vec<u32>, Vec<u32>) = match thief < 65 {
            true => ((0..65).collect(), (65..130).collect()),
            false => ((65..130).collect(), (0..65).collect()),
        };
        let round = |of: Vec<u32>| -> Vec<u32> {
            let mut others = of;
            let start = thief as usize % others.len();
            others.rotate_left(start);
            others.retain(|child| *child != thief);
            others
        };
        assert_eq!(robbed, [vec![thief], round(near), round(far)].concat(), "thief {thief}");
        assert_eq!(rig.pull(Child(12)), None);
    }
}

/// Compares the expectations of each task from one call with those for single workers.
struct Ask {
    said: Arc<Mutex<Vec<(Estimate, Estimate)>>>,
}

impl Component for Ask {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let able = node.each_worker_in_context().filter(|worker| node.worker_can_execute(*worker, &task));
        let each: Vec<Estimate> = able.map(|worker| node.expected_length(worker, &task)).collect();
        let shortest = each.iter().filter_map(|estimate| estimate.known()).min();
        let one_by_one = match each.contains(&Estimate::Uncalibrated) {
            true => Estimate::Uncalibrated,
            false => shortest.map_or(Estimate::NoModel, Estimate::Known),
        };
        self.said.lock().expect("nobody panics").push((node.expected_below(&task), one_by_one));
        Err(Refused::new(task, Refusal::Full))
    }
}

#[test]
fn what_is_expected_below_is_what_is_expected_of_each_worker() {
    let micros = |micros| Estimate::Known(Duration::from_micros(micros));
    let mut facts = vec![WorkerFacts::CPU; 70];
    facts[69].arch = Arch::CUDA;
    for (cpu, last_cpu, cuda) in [
        (Estimate::NoModel, Estimate::NoModel, Estimate::NoModel),
        (micros(9), micros(8), micros(1)),
        (Estimate::NoModel, micros(8), micros(9)),
        (micros(9), Estimate::Uncalibrated, micros(1)),
        (micros(9), micros(9), Estimate::Uncalibrated),
    ] {
        let mut lengths = vec![cpu; 70];
        (lengths[68], lengths[69]) = (last_cpu, cuda);
        let said = Arc::new(Mutex::default());
        let (tree, ledger, _) = over(Ask { said: Arc::clone(&said) }, &(0..70).collect::<Vec<_>>(), &facts, lengths);
        let archs: [&[Arch]; 4] = [&[Arch::CPU], &[Arch::CUDA], &[Arch::CPU, Arch::CUDA], &[Arch::FPGA]];
        for (index, archs) in (0..).zip(archs) {
            tree.push(task(&ledger, index, archs), None, None);
        }
        let said = said.lock().expect("nobody panics");
        assert!(said.len() == 4 && said.iter().all(|(at_once, each)| at_once == each), "{said:?}");
        assert_eq!(said[3].0, Estimate::NoModel, "nobody can execute it");
    }
}

/// Counts what workers do in vain, and tasks.
#[derive(Default)]
struct Count {
    woken: usize,
    idle: usize,
    ended: usize,
}

impl Observer for Count {
    fn event(&mut self, _nanos: u64, event: &Event) {
        match event {
            Event::Woken { .. } => self.woken += 1,
            Event::Idle { .. } => self.idle += 1,
            Event::Ended { .. } => self.ended += 1,
            _ => {}
        }
    }
}

#[test]
fn stealing_takes_no_more_steps_where_there_are_more_workers() {
    let steps = |graph: &TaskGraph, workers| {
        let mut count = Count::default();
        let platform = Platform::flat(workers, Duration::from_millis(1));
        let simulation =
            Simulation::new(graph.clone(), platform).policy("tree-ws").registry(stock::registry(Vec::new()));
        let outcome = simulation.observe(&mut count).expect("it runs to the end");
        assert_eq!(count.ended, graph.tasks.len());
        (outcome.events, count.woken + count.idle)
    };
    let all =
        [independent(4096, Duration::from_millis(1)), fork_join(300, 12, Duration::from_millis(1), 8), cholesky(16, 8)];
    for graph in all {
        let ((few_events, few_wakes), (many_events, many_wakes)) = (steps(&graph, 64), steps(&graph, 1024));
        // With more workers than tasks, each task causes at most one wake, and as many workers fall asleep.
        let tasks = graph.tasks.len();
        assert!(many_events <= few_events + tasks as u64 + 1024, "{}: {few_events}, {many_events}", graph.name);
        assert!(many_wakes <= few_wakes + 2 * tasks + 1024, "{}: {few_wakes}, {many_wakes}", graph.name);
    }
}
